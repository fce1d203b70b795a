package simtests_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// script is a turn with everything on the frame path: text, partial messages,
// a tool behind a hook and a permission gate, and a second turn.
func script() *scripted.Script {
	partials := true
	return &scripted.Script{
		Partials: &partials,
		Turns: []scripted.Turn{
			{Steps: scripted.Steps{
				scripted.Thinking("hm"),
				&scripted.Partial{Text: "some words in pieces", Chunk: 5, Pause: time.Millisecond},
				&scripted.ToolUse{
					Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk,
					Result: "now", Effect: "count", Takes: 5 * time.Millisecond,
				},
				scripted.Text("done"),
			}},
			{Steps: scripted.Steps{scripted.Text("again")}},
		},
	}
}

func TestSameSeedSameHistory(t *testing.T) {
	t.Parallel()
	histories := make(map[string]uint64)
	for seed := range uint64(20) {
		var first string
		for range 2 {
			w := newWorld(t, seed, nil)
			require.NoError(t, w.play(context.Background(), w.spec(script()), "go", "on"))
			w.finish(t)
			w.checkMessages(t, fmt.Sprint("seed ", seed))
			require.Len(t, w.effects, 1)
			if first == "" {
				first = w.hash()
			}
			require.Equal(t, first, w.hash(), "seed %d: two runs differ", seed)
		}
		histories[first] = seed
	}
	assert.Greater(t, len(histories), 10, "different seeds should take different paths")
}

// TestKillAnyActorAtAnyMessage runs the same two turns once for each message
// that any actor of the session's tree handles, and kills that actor there,
// before or after the message. The session must go on as if nothing had
// happened, but for gates, which may deny.
func TestKillAnyActorAtAnyMessage(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 8)/4 + 1 {
		calm := newWorld(t, seed, nil)
		require.NoError(t, calm.play(context.Background(), calm.spec(script()), "go", "on"))
		calm.finish(t)
		for n, what := range calm.handled {
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := newWorld(t, seed, func(i int, _ string, when kernel.Moment) bool {
					if i == n && when == at && !struck {
						struck = true
						return true
					}
					return false
				})
				err := w.play(context.Background(), w.spec(script()), "go", "on")
				require.NoError(t, err, where)
				w.finish(t)
				require.True(t, struck, where)
				require.Empty(t, w.turnErrs, where)
				w.checkMessages(t, where)
				w.checkGates(t, where)
			}
		}
	}
}
