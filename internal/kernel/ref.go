package kernel

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// Ref is the typed address of one incarnation of an actor. The zero value is
// nobody. Refs are safe for concurrent use and comparable with Same.
type Ref[M any] struct {
	sys  *System
	pid  *actor.PID
	life *life
}

// Stoppable is any ref, whatever its messages are.
type Stoppable interface{ address() *actor.PID }

func (r Ref[M]) address() *actor.PID { return r.pid }

// Tell sends m and returns at once. A message to an actor that is gone is
// counted as a dead letter. Nil messages panic: the library's mailbox would
// spin on them for ever.
func (r Ref[M]) Tell(m M) {
	if any(m) == nil {
		panic("kernel: Tell with a nil message")
	}
	if r.pid == nil {
		return
	}
	r.sys.sys.Root.Send(r.pid, m)
}

// Valid reports whether the ref was ever given by a spawn.
func (r Ref[M]) Valid() bool { return r.pid != nil }

// Name is the name given at the spawn.
func (r Ref[M]) Name() string {
	if r.life == nil {
		return ""
	}
	return r.life.name
}

// Same reports whether both refs name the same incarnation.
func (r Ref[M]) Same(o Ref[M]) bool { return r.life == o.life }

// Depth is the number of messages waiting.
func (r Ref[M]) Depth() int {
	if r.life == nil || r.life.mailbox == nil {
		return 0
	}
	return r.life.mailbox.UserMessageCount()
}

// Handled is the number of messages this incarnation has handled.
func (r Ref[M]) Handled() int64 {
	if r.life == nil {
		return 0
	}
	return r.life.handled.Load()
}

// Address is a ref that can be re-pointed to the next incarnation, so that
// senders need not know of restarts. The zero value points to nobody.
type Address[M any] struct{ target atomic.Pointer[Ref[M]] }

// Point makes r the receiver from now on.
func (a *Address[M]) Point(r Ref[M]) { a.target.Store(&r) }

// Clear makes nobody the receiver.
func (a *Address[M]) Clear() { a.target.Store(nil) }

// Ref returns the present receiver, which may be nobody.
func (a *Address[M]) Ref() Ref[M] {
	if r := a.target.Load(); r != nil {
		return *r
	}
	return Ref[M]{}
}

// Tell sends to the present receiver and reports whether there is one.
func (a *Address[M]) Tell(m M) bool {
	r := a.target.Load()
	if r == nil {
		return false
	}
	r.Tell(m)
	return true
}

// TellAfter is Tell by somebody who has a turn and is about to end it: the
// receiver then runs on the same goroutine, if nobody else runs it. A nil t is
// nobody's turn.
func (a *Address[M]) TellAfter(t Turner, m M) bool {
	r := a.target.Load()
	if r == nil {
		return false
	}
	var mine *Turn
	if t != nil {
		mine = t.turn()
	}
	box := r.mailbox()
	if mine == nil || box == nil {
		r.Tell(m)
		return true
	}
	box.hold()
	r.Tell(m)
	if box.release() {
		mine.actors = append(mine.actors, box)
	}
	return true
}

func (r Ref[M]) mailbox() *mailbox {
	if r.life == nil {
		return nil
	}
	box, _ := r.life.mailbox.(*mailbox)
	return box
}
