package mcp

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestASemaphoreAdmitsInOrder enters and leaves at random. The model is the list of the
// tickets that have not left, in the order of their arrival: the first ones may run.
func TestASemaphoreAdmitsInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		capacity := rapid.IntRange(1, 3).Draw(rt, "capacity")
		sem := NewSemaphore(capacity)
		var inside []*Ticket
		for _, at := range rapid.SliceOfN(rapid.IntRange(-6, 8), 0, 60).Draw(rt, "steps") {
			old := sem.now.Load()
			rival, _ := old.with(&Ticket{}) // of somebody who will be too late
			then, thenRival := copyOf(old), copyOf(rival)
			if at < 0 || at >= len(inside) {
				inside = append(inside, sem.Enter())
			} else {
				inside[at].Leave()
				inside[at].Leave() // again: nothing
				inside = slices.Delete(inside, at, at+1)
			}
			require.Equal(rt, then, copyOf(old), "another goroutine may still read it")
			require.Equal(rt, thenRival, copyOf(rival))
			for i, ticket := range inside {
				require.Equal(rt, i < capacity, admitted(ticket), "ticket %d of %d", i, len(inside))
			}
		}
	})
}

func copyOf(p *places) places { return places{free: p.free, queue: slices.Clone(p.queue)} }

func admitted(t *Ticket) bool {
	select {
	case <-t.ready:
		return true
	default:
		return t.ready == nil
	}
}

// TestManyCallsOfASemaphore enters from many goroutines, of which some leave before they
// are admitted.
func TestManyCallsOfASemaphore(t *testing.T) {
	t.Parallel()
	const capacity, callers, rounds = 3, 16, 300
	sem := NewSemaphore(capacity)
	var running atomic.Int32
	var all sync.WaitGroup
	for id := range callers {
		all.Go(func() {
			for i := range rounds {
				ticket := sem.Enter()
				if (id+i)%3 > 0 {
					assert.NoError(t, ticket.Wait(t.Context()))
					assert.LessOrEqual(t, running.Add(1), int32(capacity))
					running.Add(-1)
				}
				ticket.Leave()
			}
		})
	}
	all.Wait()
	assert.Equal(t, places{free: capacity}, *sem.now.Load())
}
