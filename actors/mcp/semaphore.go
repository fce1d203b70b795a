package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Semaphore limits how many calls run at the same time. Calls wait in the order of their
// arrival. The nil Semaphore has no limit.
type Semaphore struct {
	mu    sync.Mutex
	free  int
	queue []*Ticket
}

// NewSemaphore returns a semaphore for capacity calls at the same time.
func NewSemaphore(capacity int) *Semaphore { return &Semaphore{free: capacity} }

// Ticket is a call's place in the queue of a semaphore. The nil Ticket belongs to the nil
// Semaphore.
type Ticket struct {
	of    *Semaphore
	ready chan struct{} // closed when the call may run; nil: at once
	holds bool          // guarded by of.mu
	left  atomic.Bool
}

// Enter returns a ticket for the next place. It does not block. Call Leave on every ticket.
func (g *Semaphore) Enter() *Ticket {
	if g == nil {
		return nil
	}
	t := &Ticket{of: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 { // so nobody waits
		g.free--
		t.holds = true
		return t
	}
	t.ready = make(chan struct{})
	g.queue = append(g.queue, t)
	return t
}

func (g *Semaphore) admit() {
	for g.free > 0 && len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		g.free--
		next.holds = true
		close(next.ready)
	}
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
	g := t.of
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.holds {
		g.free++
	} else {
		g.queue = slices.DeleteFunc(g.queue, func(other *Ticket) bool { return other == t })
	}
	g.admit()
}
