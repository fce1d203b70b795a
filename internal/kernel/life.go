package kernel

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// life is one incarnation of an actor, and the mailbox that the actor library
// knows: it holds system messages, which are for this incarnation alone. The
// library keeps it for long after its end, so it then refers to nothing.
type life struct {
	name string
	sys  *System
	box  atomic.Pointer[inbox] // nil once it is gone
	idle node                  // the mark that it rests

	reason error // written before the parent is notified, read after

	// Of the parent, which has it as a child.
	pid    *actor.PID
	number int32 // among all that the parent has spawned

	signals atomic.Int32 // of the system messages
	handled atomic.Int64

	// Used only by the goroutine that runs it.
	worker   *Worker // whose goroutine runs it
	started  bool    // it takes messages
	stopping bool    // it takes none any more

	root   bool        // it has no parent, and so no successor
	parked bool        // no goroutine runs it, and only a system message schedules it; guarded by box.mu
	gone   atomic.Bool // it has stopped; written under box.mu

	// Guarded by box.mu.
	invoker actor.MessageInvoker
	rare    *rare // nil: empty
}

// rare is what an incarnation has for moments of its life.
type rare struct {
	system   []any     // system messages
	watchers []*func() // called when it is gone
}

// aside returns it, to add to it.
func (l *life) aside() *rare {
	if l.rare == nil {
		l.rare = &rare{}
	}
	return l.rare
}

// orders are the system messages.
func (l *life) orders() []any {
	if l.rare == nil {
		return nil
	}
	return l.rare.system
}

// shed gives up what is empty.
func (l *life) shed() {
	if l.rare != nil && len(l.rare.system)+len(l.rare.watchers) == 0 {
		l.rare = nil
	}
}

func newLife(s *System, name string, root bool) *life {
	l := &life{name: name, root: root, sys: s, parked: true}
	l.idle.m = l
	return l
}
