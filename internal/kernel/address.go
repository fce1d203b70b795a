package kernel

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Address is where the messages for an actor go, whichever incarnation of it
// lives. It owns the mailbox, and belongs to the actor's parent: what an
// incarnation has not handled when it dies, the next one at the address handles.
// The zero value is ready to use and has no incarnation yet. An Address is safe
// for concurrent use and must not be copied.
type Address[M any] struct{ box inbox }

// Located is any address, whatever its messages are.
type Located interface {
	Name() string
	Depth() int
	Handled() int64
	Waited(now time.Time) time.Duration
	present() *life
}

// Tell leaves a message and returns at once. The message is handled by the
// present incarnation or by a later one; once the address is closed it is counted
// as a dead letter. w is the caller's worker, which may then run the receiver, or
// nil. A nil message panics.
func (a *Address[M]) Tell(w *Worker, m M) { a.box.tell(w, m) }

// Live reports whether there is an incarnation that handles messages, or will
// once it has started.
func (a *Address[M]) Live() bool { return a.present() != nil }

// Name is the name of the last incarnation; empty before the first.
func (a *Address[M]) Name() string {
	if l := a.box.life.Load(); l != nil {
		return l.name
	}
	return ""
}

// Depth is the number of messages that are not handled yet.
func (a *Address[M]) Depth() int { return int(a.box.depth.Load()) }

// Handled is the number of messages that the last incarnation took up.
func (a *Address[M]) Handled() int64 {
	if l := a.box.life.Load(); l != nil {
		return l.handled.Load()
	}
	return 0
}

// Waited is for how long the oldest message has been in the mailbox, as far as earlier calls
// have seen it: the first call that finds a message returns 0.
func (a *Address[M]) Waited(now time.Time) time.Duration { return a.box.waited(now) }

// Tries is how many incarnations have died of the message at the head without
// committing it.
func (a *Address[M]) Tries() int { return int(a.box.tries.Load()) }

// DropHead takes the message that incarnations have died of, so that the next one does
// not. It reports false for an empty queue. The parent calls it, while no incarnation
// lives.
func (a *Address[M]) DropHead() (m M, ok bool) {
	a.box.mu.Lock()
	defer a.box.mu.Unlock()
	if a.box.tries.Load() == 0 || a.box.life.Load().live() {
		return m, false
	}
	m, ok = a.box.head.m.(M)
	a.box.pop()
	return m, ok
}

// Take takes every message that is left. The parent calls it, while no incarnation
// lives.
func (a *Address[M]) Take() []M {
	a.box.mu.Lock()
	defer a.box.mu.Unlock()
	if a.box.life.Load().live() {
		return nil
	}
	left := a.box.take()
	a.box.makeRoom()
	all := make([]M, len(left))
	for i, m := range left {
		all[i] = m.(M)
	}
	return all
}

// Room returns nil if fewer than n messages wait, else a channel to wait for before the
// next call. It is backpressure for senders that can wait.
func (a *Address[M]) Room(n int) <-chan struct{} { return a.box.roomFor(n) }

// Close ends the address: no incarnation will follow. Unhandled messages, and all later
// ones, are counted as dead letters. A later incarnation opens it again.
func (a *Address[M]) Close() { a.box.close() }

func (a *Address[M]) present() *life {
	if l := a.box.life.Load(); l.live() {
		return l
	}
	return nil
}

// settle makes b the next incarnation, l, at the address.
func (a *Address[M]) settle(l *life, b Behavior[M], by func(*actor.Props) (*actor.PID, error)) (*actor.PID, error) {
	if err := a.box.occupy(l); err != nil {
		return nil, fmt.Errorf("kernel: spawn %s: %w", l.name, err)
	}
	pid, err := l.sys.spawn(newAdapter(l, a, b), by)
	if err != nil {
		a.box.vacate(l)
		return nil, fmt.Errorf("kernel: spawn %s: %w", l.name, err)
	}
	return pid, nil
}
