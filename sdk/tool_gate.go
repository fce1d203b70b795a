package sdk

import (
	"context"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/actors/mcp"
)

// gate lets a number of calls run at a time, first come, first served.
type gate struct {
	mu    sync.Mutex
	free  int
	queue []*turn
}

func newGate(capacity int) *gate { return &gate{free: capacity} }

// turn is a call's place at a gate. The nil turn is that of a call without a
// gate.
type turn struct {
	gate  *gate
	ready chan struct{} // closed when the call may run
	holds bool
	left  bool
}

// enter takes the next place. It does not block; the turn must be left.
func (g *gate) enter() *turn {
	if g == nil {
		return nil
	}
	t := &turn{gate: g, ready: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, t)
	g.admit()
	return t
}

func (g *gate) admit() {
	for g.free > 0 && len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		g.free--
		next.holds = true
		close(next.ready)
	}
}

// wait blocks until it is the call's turn, or ctx ends.
func (t *turn) wait(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return mcp.Await(ctx, t.ready)
}

// Leave implements [mcp.Place].
func (t *turn) Leave() {
	if t == nil {
		return
	}
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.left:
		return
	case t.holds:
		g.free++
	default:
		g.queue = slices.DeleteFunc(g.queue, func(other *turn) bool { return other == t })
	}
	t.left = true
	g.admit()
}
