package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func names(actors []session.ActorInfo) []string {
	all := make([]string, len(actors))
	for i, a := range actors {
		all[i] = a.Name
	}
	return all
}

func TestTheTreeOfASession(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(turns())
		spec.ID = "s"
		s := w.open(spec)
		_, err := w.send(s, "hi").Result(context.Background())
		require.NoError(t, err)
		tree := w.Tree(context.Background())
		require.Len(t, tree.Sessions, 1)
		got := tree.Sessions[0]
		assert.Equal(t, "s", got.ID)
		assert.Equal(t, s.AgentSessionID(), got.AgentSessionID)
		assert.Equal(t, "up", got.Transport)
		assert.Equal(t, []string{
			"s#1", "transport#1", "router#1",
		}, names(got.Actors))
		for _, a := range got.Actors {
			assert.Equal(t, "running", a.State, a.Name)
			assert.Zero(t, a.Restarts, a.Name)
			assert.Empty(t, a.LastFailure, a.Name)
		}
		assert.Positive(t, got.Actors[2].Handled, "the router has worked")
		b, err := json.Marshal(tree)
		require.NoError(t, err)
		assert.Contains(t, string(b), `"State":"`, "states by their names")

		require.NoError(t, s.Close(context.Background()))
		assert.Empty(t, w.Tree(context.Background()).Sessions)
		assert.Equal(t, "ended, stdin closed", s.Tree(context.Background()).Transport, "one that has ended can be asked, too")
	})
}

func TestTheTreeShowsWaits(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns(scripted.Steps{gate()}))
	spec.Options.PermissionTimeout = time.Hour
	spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{}, w.Executor().Await(ctx, never)
	}
	s := w.open(spec)
	turn := w.send(s, "go")
	w.Pass(time.Second)
	tree := s.Tree(t.Context())
	assert.Equal(t, session.StateAwaitingHost, tree.State)
	require.Len(t, tree.Waits, 2)
	assert.Equal(t, "permission request Bash", tree.Waits[0].What)
	assert.Equal(t, time.Hour, tree.Waits[0].Limit)
	assert.LessOrEqual(t, tree.Waits[0].Age, time.Second)
	assert.Equal(t, "turn started", tree.Waits[1].What)
	assert.Equal(t, turn.UUID(), tree.Waits[1].ID)
}

func TestTheTreeShowsRestarts(t *testing.T) {
	t.Parallel()
	struck := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
			strike := !struck && actor == "permission#1"
			struck = struck || strike
			return strike
		}
	})
	spec := w.spec(turns(scripted.Steps{gate()}, scripted.Steps{gate()}))
	spec.Options.CanUseTool = allow
	s := w.open(spec)
	_, err := w.send(s, "1").Result(t.Context())
	require.NoError(t, err)
	_, err = w.send(s, "2").Result(t.Context())
	require.NoError(t, err)
	require.True(t, struck)
	actors := s.Tree(t.Context()).Actors
	require.Contains(t, names(actors), "callbacks/permission#2")
	for _, a := range actors {
		if a.Name == "callbacks/permission#2" {
			assert.Equal(t, 1, a.Restarts)
			assert.Contains(t, a.LastFailure, "killed by the test")
		} else {
			assert.Zero(t, a.Restarts, a.Name)
		}
	}
}

// TestATreeDoesNotWaitForLong asks a session whose actors do not answer.
func TestATreeDoesNotWaitForLong(t *testing.T) {
	t.Parallel()
	deafNow := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			return deafNow && at == kernel.BeforeMessage && strings.HasPrefix(actor, "s#")
		}
	})
	spec := w.spec(turns())
	spec.ID = "s"
	s := w.open(spec)
	deafNow = true
	start := w.Sched.Now()
	tree := s.Tree(t.Context())
	assert.LessOrEqual(t, w.Sched.Now().Sub(start), time.Second)
	assert.Equal(t, "up", tree.Transport, "the rest is told")
	deafNow = false
	w.Pass(time.Minute)
}
