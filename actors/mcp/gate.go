package mcp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Gate lets a number of calls through at a time, first come, first served. The
// nil Gate holds nobody.
type Gate struct {
	mu    sync.Mutex
	free  int
	queue []*Turn
}

// NewGate returns a gate for so many calls at a time.
func NewGate(capacity int) *Gate { return &Gate{free: capacity} }

// Turn is a call's place at a gate. The nil Turn is that of a call without one.
type Turn struct {
	gate  *Gate
	ready chan struct{} // closed when the call may run; nil: at once
	holds bool          // guarded by gate.mu
	left  atomic.Bool
}

// Enter takes the next place. It does not block; the turn must be left.
func (g *Gate) Enter() *Turn {
	if g == nil {
		return nil
	}
	t := &Turn{gate: g}
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

func (g *Gate) admit() {
	for g.free > 0 && len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		g.free--
		next.holds = true
		close(next.ready)
	}
}

// At reports whether the turn is one at g.
func (t *Turn) At(g *Gate) bool { return t == nil && g == nil || t != nil && t.gate == g }

// Wait blocks until it is the call's turn, or ctx ends. It waits by the rules
// of the executor that ctx carries.
func (t *Turn) Wait(ctx context.Context) error {
	if t == nil || t.ready == nil {
		return nil
	}
	return Await(ctx, t.ready)
}

// Leave implements [Place].
func (t *Turn) Leave() {
	if t == nil || t.left.Swap(true) {
		return
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.holds {
		g.free++
	} else {
		g.queue = slices.DeleteFunc(g.queue, func(other *Turn) bool { return other == t })
	}
	g.admit()
}
