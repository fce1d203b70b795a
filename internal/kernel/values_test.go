package kernel_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
)

func TestIdentifiersFollowFromTheSeed(t *testing.T) {
	t.Parallel()
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	id := regexp.MustCompile(`^[0-9a-z]{13}$`)
	seen := map[string]bool{}
	for seed := range uint64(50) {
		s, again := sim.New(seed), sim.New(seed)
		for range 4 {
			u, n := kernel.NewUUID(s), kernel.NewID(s)
			require.Regexp(t, uuid, u)
			require.Regexp(t, id, n)
			require.Equal(t, u, kernel.NewUUID(again))
			require.Equal(t, n, kernel.NewID(again))
			seen[u], seen[n] = true, true
		}
	}
	assert.Len(t, seen, 400)
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	ctx, cancel := kernel.WithTimeout(t.Context(), s, &session.TimeoutError{What: "it", Limit: time.Second, SetBy: "an option"})
	defer cancel()
	err := s.Await(ctx, make(chan struct{}))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var over interface{ Timeout() bool }
	require.ErrorAs(t, err, &over)
	assert.True(t, over.Timeout())
	assert.EqualError(t, err, "it: no answer within 1s (set by an option)")

	ctx, cancel = kernel.WithTimeout(t.Context(), s, &session.TimeoutError{What: "it"})
	require.NoError(t, s.Run(10))
	require.NoError(t, ctx.Err(), "no limit")
	cancel()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

func TestKilledSaysWhereAndOfWhat(t *testing.T) {
	t.Parallel()
	for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
		k := &kernel.Killed{Actor: "a#1", Message: "ping", At: at}
		assert.EqualError(t, k, "killed by the test "+at.String()+" ping in a#1")
	}
}

func TestAParentStopsItsChild(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	parent, child := &node{}, &node{}
	at := root(t, sys, parent)
	below := askSpawn(t, at, "child#1", &kernel.Address[msg]{}, child)
	at.Tell(nil, drop{below})
	at.Tell(nil, drop{below}) // it may be gone by then
	require.NoError(t, s.Run(1000))
	require.Len(t, parent.downs, 1)
	require.NoError(t, parent.downs[0].Reason)
	assert.Equal(t, 1, child.stopped)
	assert.Equal(t, sys.Clock(), s)
	assert.Equal(t, sys.Rand(), s)

	_, err := kernel.Ask(t.Context(), at, func(p *kernel.Promise[bool]) msg {
		return spawn{"child#2", &node{}, at, p}
	})
	require.ErrorContains(t, err, "the address has an actor")
}
