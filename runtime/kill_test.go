package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
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
				&scripted.MCPCall{Server: "tools", Tool: "echo", Arguments: map[string]any{"text": "hey"}, Gate: agent.GateAllow},
				scripted.Text("done"),
			}},
			{Steps: scripted.Steps{scripted.Text("again")}},
		},
	}
}

// gated is a turn with text, two gated tools at once, and more text.
func gated(effect string) *scripted.Script {
	tool := func(id string) scripted.Step {
		return &scripted.ToolUse{
			ID: id, Name: "Bash", Input: map[string]any{"command": id}, Gate: agent.GateAsk, Effect: effect,
			Takes: 2 * time.Millisecond,
		}
	}
	return &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
		scripted.Text("a"), scripted.Parallel{tool("t0"), tool("t1")}, scripted.Text("b"), tool("t2"), scripted.Text("c"),
	}}}}
}

func TestSameSeedSameHistory(t *testing.T) {
	t.Parallel()
	histories := make(map[string]uint64)
	n := sim.Seeds(t, 20, 10)
	for seed := range n {
		var first string
		for range 2 {
			w := newWorld(t, seed)
			require.NoError(t, w.Play(context.Background(), w.Gated(script()), "go", "on"))
			w.Finish()
			w.Lossless(fmt.Sprint("seed ", seed))
			require.Len(t, w.Effects(), 1)
			if first == "" {
				first = w.Hash()
			}
			require.Equal(t, first, w.Hash(), "seed %d: two runs differ", seed)
		}
		histories[first] = seed
	}
	assert.Greater(t, len(histories), int(n/2), "different seeds should take different paths")
}

// strike kills the actor of the n-th message, once.
func strike(n int, at kernel.Moment, struck *bool) change {
	return killingWhen(func(i int, _ string, when kernel.Moment) bool {
		if i != n || when != at || *struck {
			return false
		}
		*struck = true
		return true
	})
}

// TestKillAnyActorAtAnyMessage runs the same two turns once for each message that any
// actor of the session's tree handles, and kills that actor there, before or after the
// message. The session must continue as if nothing had happened, except for gates,
// which may deny.
func TestKillAnyActorAtAnyMessage(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 2, 200) {
		calm := newWorld(t, seed)
		require.NoError(t, calm.Play(context.Background(), calm.Gated(script()), "go", "on"))
		calm.Finish()
		for n, what := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := newWorld(t, seed, strike(n, at, &struck))
				err := w.Play(context.Background(), w.Gated(script()), "go", "on")
				require.NoError(t, err, where)
				w.Finish()
				require.True(t, struck, where)
				require.Empty(t, w.TurnErrors(), where)
				w.Lossless(where)
				w.FailClosed(where)
			}
		}
	}
}

// TestKillBetweenEffects kills the router and the session actor after each effect of
// each of their steps: what was carried out is not done again, and what was not is done
// by the next incarnation.
func TestKillBetweenEffects(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 1, 400) {
		struck := true
		for n := 0; struck; n++ { // the n-th effect of the run
			if sim.Skips(seed, n) {
				continue
			}
			var actor string
			struck = false
			effects := -1
			w := newWorld(t, seed, killingWhen(func(_ int, who string, at kernel.Moment) bool {
				if at != kernel.AfterEffect {
					return false
				}
				effects++
				if effects != n {
					return false
				}
				struck, actor = true, who
				return true
			}))
			err := w.Play(context.Background(), w.Gated(script()), "go", "on")
			where := fmt.Sprintf("seed %d, killed %s after effect %d", seed, actor, n)
			require.NoError(t, err, where)
			w.Finish()
			require.Empty(t, w.TurnErrors(), where)
			w.Lossless(where)
			w.FailClosed(where)
		}
	}
}

// TestKillNeverOpensAGate does the same with a gate that denies: no tool may run, after
// the death of any actor.
func TestKillNeverOpensAGate(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"permission", "hook"} {
		spec := func(w *world) runtime.Spec {
			spec := w.Gated(script())
			if gate == "permission" {
				spec.Options.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					return protocol.PermissionResult{}, nil
				}
			} else {
				spec.Options.Hooks[0].Func = func(context.Context, *session.HookCall) (json.RawMessage, error) {
					return json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`), nil
				}
			}
			return spec
		}
		for seed := range sim.Seeds(t, 1, 400) {
			calm := newWorld(t, seed)
			require.NoError(t, calm.Play(context.Background(), spec(calm), "go"))
			calm.Finish()
			require.Empty(t, calm.Effects())
			for n, what := range calm.Handled() {
				if sim.Skips(seed, n) {
					continue
				}
				where := fmt.Sprintf("%s gate, seed %d, killed before message %d (%s)", gate, seed, n, what)
				struck := false
				w := newWorld(t, seed, strike(n, kernel.BeforeMessage, &struck))
				require.NoError(t, w.Play(context.Background(), spec(w), "go"), where)
				w.Finish()
				w.Lossless(where)
				require.Empty(t, w.Effects(), "%s: fail-closed", where)
			}
		}
	}
}

// TestCloseAtAnyMoment closes the session from a task of its own after any
// number of steps of the scheduler, with a gate that is still being decided at
// some of them. Nothing hangs, nothing is left, and no tool runs without an
// allow.
func TestCloseAtAnyMoment(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 1, 400) {
		calm := newWorld(t, seed)
		require.NoError(t, calm.Play(context.Background(), calm.Gated(script()), "go", "on"))
		calm.Finish()
		for at := 0; at < calm.Sched.Steps(); at += 3 {
			if sim.Skips(seed, at/3) {
				continue
			}
			where := fmt.Sprintf("seed %d, closed after %d steps", seed, at)
			w := newWorld(t, seed)
			done := kernel.NewPromise[error]()
			w.Sched.Go(func() { done.Resolve(w.Play(context.Background(), w.Gated(script()), "go", "on")) })
			for range at {
				w.Sched.Step()
			}
			for _, s := range w.Sessions() {
				require.NoError(t, s.Close(context.Background()), where)
			}
			_, err := done.Wait(context.Background(), w.Sched)
			require.NoError(t, err, where)
			w.Finish()
			w.FailClosed(where)
			require.Equal(t, w.Wrote()[:len(w.Saw())], w.Saw(), "%s: ordered-lossless", where)
		}
	}
}

// TestKillSeveralActors kills at several random messages of one run, so that an
// actor dies while another is being restarted.
func TestKillSeveralActors(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 60, 5) {
		rng := rand.New(rand.NewPCG(seed, 11))
		deaths := make(map[int]bool)
		for range 2 + rng.IntN(2) { // more may all be the session's, which then ends
			deaths[rng.IntN(120)] = true
		}
		last := -1
		w := newWorld(t, seed, killingWhen(func(n int, _ string, at kernel.Moment) bool {
			if at != kernel.BeforeMessage || !deaths[n] || n == last {
				return false
			}
			last = n
			return true
		}))
		spec := w.Gated(script())
		spec.Options.Supervisors.Session.Intensity = supervisor.Intensity{Max: 10, Window: time.Minute}
		where := fmt.Sprintf("seed %d, killed at %v", seed, deaths)
		require.NoError(t, w.Play(context.Background(), spec, "go", "on"), where)
		w.Finish()
		require.Empty(t, w.TurnErrors(), where)
		w.Lossless(where)
		w.FailClosed(where)
	}
}

// TestRouterAndSessionDieTogether: the session actor dies, and its router does in a step before
// it is stopped. The next session actor gets no message about that: it ends the session all the
// same.
func TestRouterAndSessionDieTogether(t *testing.T) {
	t.Parallel()
	broke := 0
	for seed := range sim.Seeds(t, 20, 100) {
		for n := range 12 { // messages of the session actor before it dies
			handled, struck, inStep := 0, false, false
			w := newWorld(t, seed, func(c *kernel.Config) {
				c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
					switch {
					case !struck && at == kernel.AfterMessage && strings.HasPrefix(actor, "together#"):
						handled++
						struck = handled == n+1
						return struck
					case struck && !inStep && at == kernel.InStep && strings.HasPrefix(actor, "router#1"):
						inStep = true
						return true
					}
					return false
				}
			})
			spec := w.Gated(script())
			spec.ID = "together"
			err := w.Play(context.Background(), spec, "go", "on")
			w.Finish()
			if inStep {
				broke++
				require.Error(t, errors.Join(append(w.TurnErrors(), err)...), "seed %d, message %d", seed, n)
			}
			w.FailClosed(fmt.Sprintf("seed %d, message %d", seed, n))
		}
	}
	require.Positive(t, broke)
}
