package actors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var states = []State{
	Admitting, Starting, Initializing, Ready, Running, AwaitingHost, AwaitingConsumer, Recovering, Passivated, Closing, Closed, Failed,
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
	running           . . . x x x x x . x . .
	awaiting_host     . . . x x x x x . x . .
	awaiting_consumer . . . x x x x x . x . .
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
			assert.Equal(t, fields[1+j] == "x", legal(from, to), "%v -> %v", from, to)
		}
	}
}

// TestEveryStateCanEnd follows legal transitions: from each state that lives the
// session can come to an end, and there is no way back from it.
func TestEveryStateCanEnd(t *testing.T) {
	t.Parallel()
	reach := func(from State) map[State]bool {
		seen := map[State]bool{}
		todo := []State{from}
		for len(todo) > 0 {
			at := todo[0]
			todo = todo[1:]
			for _, to := range states {
				if legal(at, to) && !seen[to] {
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
		assert.True(t, reachable[Closed], "%v", from)
		assert.True(t, reachable[Failed], "%v", from)
		assert.NotContains(t, reachable, Admitting, "%v", from)
	}
	assert.Len(t, reach(Admitting), len(states)-1)
}

func TestStatesShowTheirNames(t *testing.T) {
	t.Parallel()
	for _, s := range states {
		b, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, s.String(), string(b))
		assert.Equal(t, s == Closed || s == Failed, s.Terminal())
	}
	assert.EqualError(t, &IllegalTransition{From: Closed, To: Ready}, "session: illegal transition closed -> ready")
	assert.Equal(t, "awaiting_host", fmt.Sprint(AwaitingHost))
}
