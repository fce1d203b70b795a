package mcp

import (
	"context"
	"slices"
	"sync/atomic"
)

// Semaphore limits how many calls run at the same time. Calls wait in the order of their
// arrival. It is safe for concurrent use, and never blocks but in [Ticket.Wait]. The nil
// Semaphore has no limit; the zero value cannot be used.
type Semaphore struct{ now atomic.Pointer[places] }

// places is a semaphore at one moment: the places that are free, and, only while none is,
// those who wait for one. It is never changed, but replaced.
type places struct {
	free  int
	queue []*Ticket
}

// NewSemaphore returns a semaphore for capacity calls at the same time.
func NewSemaphore(capacity int) *Semaphore {
	g := &Semaphore{}
	g.now.Store(&places{free: capacity})
	return g
}

// Ticket is a call's place in the queue of a semaphore. The nil Ticket belongs to the nil
// Semaphore.
type Ticket struct {
	of    *Semaphore
	ready chan struct{} // closed when the call may run; nil: at once
	left  atomic.Bool
}

// Enter returns a ticket for the next place. It does not block. Call Leave on every ticket.
func (g *Semaphore) Enter() *Ticket {
	if g == nil {
		return nil
	}
	t := &Ticket{of: g}
	for {
		old := g.now.Load()
		next, waits := old.with(t)
		t.ready = nil
		if waits {
			t.ready = make(chan struct{})
		}
		if g.now.CompareAndSwap(old, next) {
			return t
		}
	}
}

// with returns what p becomes when t enters, and whether t has to wait.
func (p *places) with(t *Ticket) (next *places, waits bool) {
	if p.free > 0 {
		return &places{free: p.free - 1}, false
	}
	return &places{queue: append(slices.Clip(p.queue), t)}, true
}

// At reports whether the ticket belongs to g.
func (t *Ticket) At(g *Semaphore) bool { return t == nil && g == nil || t != nil && t.of == g }

// Wait blocks until the call may run or ctx ends. If ctx has an executor, Wait waits with
// it.
func (t *Ticket) Wait(ctx context.Context) error {
	if t == nil || t.ready == nil {
		return nil
	}
	return Await(ctx, t.ready)
}

// Leave implements [Place].
func (t *Ticket) Leave() {
	if t == nil || t.left.Swap(true) {
		return
	}
	for {
		old := t.of.now.Load()
		next, admitted := old.without(t)
		if !t.of.now.CompareAndSwap(old, next) {
			continue
		}
		if admitted != nil {
			close(admitted.ready)
		}
		return
	}
}

// without returns p without t, and the ticket that gets its place, or nil.
func (p *places) without(t *Ticket) (next *places, admitted *Ticket) {
	if i := slices.Index(p.queue, t); i >= 0 {
		return &places{queue: slices.Concat(p.queue[:i], p.queue[i+1:])}, nil
	}
	if len(p.queue) > 0 {
		return &places{queue: p.queue[1:]}, p.queue[0]
	}
	return &places{free: p.free + 1}, nil
}
