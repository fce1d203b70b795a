package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/simtests"
)

// gives gives orders to all programs until ctx ends, from a machine that runs none of them.
func (c *crew) gives(ctx context.Context) {
	for range 1 + c.Rand().IntN(5) {
		if idle(ctx, c.World, 1+c.Rand().IntN(150)) != nil {
			return
		}
		o := fleet.Order{Op: []string{"cancel", "requeue", "requeue", "retune"}[c.Rand().IntN(4)], By: "a person"}
		switch o.Op {
		case "retune":
			o.N = 1 + c.Rand().IntN(3)
		default:
			o.Task = c.tasks[c.Rand().IntN(len(c.tasks))].ID
		}
		c.gave(ctx, o)
		if c.Rand().IntN(3) == 0 {
			c.gave(ctx, fleet.Order{Op: "pause"})
			_ = idle(ctx, c.World, 1+c.Rand().IntN(50))
			c.gave(context.WithoutCancel(ctx), fleet.Order{Op: "resume"})
		}
	}
}

func (c *crew) gave(ctx context.Context, o fleet.Order) {
	err := fleet.Decide(ctx, c.queue, o)
	c.World.Note("order %s %s: %v", o.Op, o.Task, err)
	if err != nil && ctx.Err() == nil {
		assert.True(c, errors.Is(err, fleet.ErrTaskOver) || errors.Is(err, fleet.ErrNoTask), "%s %s: %v", o.Op, o.Task, err)
	}
}

// result is what the queue has of each task: the result of its last ticket.
func (c *crew) result() map[string]queue.Change {
	last, over := map[string]queue.Change{}, map[string]bool{}
	for change, err := range c.queue.Watch(c.Context()) {
		require.NoError(c, err)
		if change.State == queue.Current {
			break
		}
		if change.Decision != nil {
			continue
		}
		id := idOf(change.Task)
		if change.State == queue.Over {
			assert.False(c, over[change.Task], "two results of %s", change.Task)
			over[change.Task] = true
		}
		if before := last[id].Task; len(change.Task) > len(before) || len(change.Task) == len(before) && change.Task > before {
			last[id] = change
		}
	}
	return last
}

// TestExploreOrdersOfASharedJob: a person gives orders, programs die and lose their leases and the
// network, and all programs come to the results that the queue has.
func TestExploreOrdersOfASharedJob(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(30), Cost: 6, Twice: 1}, func(w *simtests.World) {
		c := newCrew(w)
		c.orders = true
		members := c.members()
		ctx, stop := context.WithCancel(w.Context())
		given := make(chan struct{})
		w.Go(func() {
			defer close(given)
			c.gives(ctx)
		})
		c.all(members, (*member).live)
		stop()
		require.NoError(w, w.Runtime().Executor().Await(w.Context(), given))
		c.all(members, (*member).lastly) // those that had ended before an order
		final := c.result()
		require.Len(w, final, len(c.tasks))
		requeued, canceled := false, false
		for id, change := range final { //troupe:maporder each by itself
			require.Equal(w, queue.Over, change.State, change.Task)
			var r fleet.TaskResult
			require.NoError(w, json.Unmarshal(change.Result, &r))
			requeued = requeued || change.Task != id
			canceled = canceled || r.Status == fleet.Canceled
			for _, m := range members {
				got := m.last[id]
				assert.Equal(w, r.Status, got.Status, "%s of %s", change.Task, m.name)
				assert.Equal(w, r.Text, got.Text, "%s of %s", change.Task, m.name)
				if r.Status.Family() != "not_run" || r.Status == fleet.Canceled {
					assert.Equal(w, change.Fence, got.Fence, "%s of %s", change.Task, m.name)
				}
			}
		}
		w.Sometimes("a task was requeued", requeued)
		w.Sometimes("a task was canceled", canceled)
	})
}

// lastly is the last life of a member.
func (m *member) lastly() {
	for {
		var stopped *fleet.StoppedError
		if err := m.run(-1); !errors.As(err, &stopped) || stopped.Reason != fleet.StopQueue {
			assert.NoError(m, err)
			return
		}
	}
}
