package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var states = []session.State{
	session.StateAdmitting, session.StateStarting, session.StateInitializing, session.StateReady, session.StateRunning, session.StateAwaitingHost, session.StateAwaitingConsumer, session.StateRecovering, session.StatePassivated, session.StateClosing, session.StateClosed, session.StateFailed,
}

// TestLegalTransitions is the whole table: a row for each state, a mark for each
// state that may follow it, in the order of states.
func TestLegalTransitions(t *testing.T) {
	t.Parallel()
	const table = `
                      A S I R r h c V P C d F
	admitting         . x . . . . . x . x . .
	starting          . . x . . . . x . x . .
	initializing      . . . x x x x x . x . .
	ready             . . . x x x x x x x . .
	running           . . . x x x x x x x . .
	awaiting_host     . . . x x x x x x x . .
	awaiting_consumer . . . x x x x x x x . .
	recovering        . x x x x x x . . x . .
	passivated        . x . . . . . . . x . .
	closing           . . . . . . . . . . x x
	closed            . . . . . . . . . . . .
	failed            . . . . . . . . . . . .`
	rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
	require.Len(t, rows, len(states))
	for i, row := range rows {
		fields := strings.Fields(row)
		require.Len(t, fields, 1+len(states))
		from := states[i]
		require.Equal(t, fields[0], from.String())
		for j, to := range states {
			assert.Equal(t, fields[1+j] == "x", machine.Legal(from, to), "%v -> %v", from, to)
		}
	}
}

// TestEveryStateCanEnd follows legal transitions: from each state that lives the
// session can come to an end, and there is no way back from it.
func TestEveryStateCanEnd(t *testing.T) {
	t.Parallel()
	reach := func(from session.State) map[session.State]bool {
		seen := map[session.State]bool{}
		todo := []session.State{from}
		for len(todo) > 0 {
			at := todo[0]
			todo = todo[1:]
			for _, to := range states {
				if machine.Legal(at, to) && !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		return seen
	}
	for _, from := range states {
		reachable := reach(from)
		if from.Terminal() {
			assert.Empty(t, reachable, "%v", from)
			continue
		}
		assert.True(t, reachable[session.StateClosed], "%v", from)
		assert.True(t, reachable[session.StateFailed], "%v", from)
		assert.NotContains(t, reachable, session.StateAdmitting, "%v", from)
	}
	assert.Len(t, reach(session.StateAdmitting), len(states)-1)
}

func TestStatesShowTheirNames(t *testing.T) {
	t.Parallel()
	for _, s := range states {
		b, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, s.String(), string(b))
		assert.Equal(t, s == session.StateClosed || s == session.StateFailed, s.Terminal())
	}
	assert.EqualError(t, &session.IllegalTransitionError{From: session.StateClosed, To: session.StateReady}, "session: illegal transition closed -> ready")
	assert.Equal(t, "awaiting_host", fmt.Sprint(session.StateAwaitingHost))
}
