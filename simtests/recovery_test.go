package simtests_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/world"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// launches notes the arguments of each process that a program runs as.
type launches struct {
	agent.Program
	args *[][]string
}

func (p launches) Serve(l agent.Launch, port agent.Port) agent.Exit {
	*p.args = append(*p.args, l.Args)
	return p.Program.Serve(l, port)
}

// outlive sends three prompts to a session whose agent dies at a line of its first
// process, and reads everything.
func outlive(w *world.World, die scripted.Die, restarts int) (turns []error, args [][]string, err error) {
	ctx := context.Background()
	script := gated("count")
	script.Turns = append(script.Turns, scripted.Turn{Steps: scripted.Steps{scripted.Text("again")}})
	script.Default = scripted.Steps{scripted.Text("more")}
	die.Only = "fresh"
	script.Misbehave.Die = &die
	spec := w.Gated(script)
	spec.Program = launches{spec.Program, &args}
	spec.Options.MaxRestarts = restarts
	s, err := w.Open(ctx, spec)
	if err != nil {
		return nil, args, err
	}
	r, err := s.Read()
	if err != nil {
		return nil, args, err
	}
	read := w.Task(func() {
		defer r.Close()
		for {
			m, err := r.Next(ctx)
			if err != nil {
				return
			}
			w.Note("saw %T", m)
		}
	})
	for _, prompt := range []string{"go", "on", "more"} {
		turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(prompt)}})
		if err == nil {
			_, err = turn.Result(ctx)
		}
		turns = append(turns, err)
	}
	err = s.Close(ctx)
	read()
	return turns, args, err
}

// TestASessionOutlivesItsAgent: the agent dies after each of its lines. What it had
// been given ends with the reason, everything else has its result, no gate opens, and
// the next process takes up the session.
func TestASessionOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	resumed := 0
	for seed := range world.Seeds(t, 4, 40) {
		died := 0
		for n := 1; ; n++ {
			die := scripted.Die{Lines: n, Code: 3}
			where := fmt.Sprintf("seed %d, %+v", seed, die)
			w := world.New(t, seed)
			turns, args, err := outlive(w, die, 1)
			w.Finish()
			w.FailClosed(where)
			if len(args) == 1 && !slices.ContainsFunc(turns, func(err error) bool { return err != nil }) {
				require.NoError(t, err, where)
				break // it was never reached
			}
			died++
			if len(args) == 1 { // it was not ready
				require.ErrorAs(t, errors.Join(append(turns, err)...), new(*session.ExitError), where)
				continue
			}
			require.Len(t, args, 2, where)
			if !slices.ContainsFunc(args[1], func(a string) bool { return strings.HasPrefix(a, "--resume") }) {
				continue // it had told no session, so the next process begins one, and dies as well
			}
			resumed++
			failed := 0
			for _, e := range turns {
				if e != nil {
					failed++
					require.ErrorAs(t, e, new(*session.ExitError), where)
				}
			}
			require.LessOrEqual(t, failed, 1, "%s: %v", where, turns)
			require.NoError(t, err, where)
		}
		require.Greater(t, died, 15, "seed %d", seed)
	}
	assert.Positive(t, resumed, "the agent had told its session")
}

// TestRestartsAreCounted: an agent that dies again and again ends the session.
func TestRestartsAreCounted(t *testing.T) {
	t.Parallel()
	w := world.New(t, 1)
	script := gated("count")
	script.Misbehave.Die = &scripted.Die{Lines: 7, Code: 3}
	var args [][]string
	spec := w.Gated(script)
	spec.Program = launches{spec.Program, &args}
	spec.Options.MaxRestarts = 2
	s, err := w.Open(t.Context(), spec)
	require.NoError(t, err)
	for range 4 {
		turn, err := s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
		if err == nil {
			_, err = turn.Result(t.Context())
		}
		require.ErrorAs(t, err, new(*session.ExitError))
	}
	require.ErrorAs(t, s.Err(), new(*session.ExitError))
	require.Len(t, args, 3, "the first, and two more")
	for _, a := range args[1:] {
		assert.True(t, slices.ContainsFunc(a, func(a string) bool { return strings.HasPrefix(a, "--resume") }), "each takes up the session: %q", a)
	}
	w.Finish()
}

// TestKillDuringRecovery kills any actor at any message of a session whose agent dies
// in its first turn: at most that turn is lost.
func TestKillDuringRecovery(t *testing.T) {
	t.Parallel()
	for seed := range world.Seeds(t, 1, 400) {
		die := scripted.Die{Lines: 6, Signal: "KILL"}
		calm := world.New(t, seed)
		_, args, err := outlive(calm, die, 1)
		require.NoError(t, err)
		require.Len(t, args, 2)
		calm.Finish()
		for n, what := range calm.Handled() {
			if world.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := world.New(t, seed, strike(n, at, &struck))
				turns, _, err := outlive(w, die, 1)
				w.Finish()
				require.NoError(t, err, where)
				require.Len(t, turns, 3)
				require.NoError(t, errors.Join(turns[1:]...), where)
				w.FailClosed(where)
			}
		}
	}
}

// paysOnce pays in its first life, and not again when it is told that it had: by the
// history, or by the message if it begins the session anew.
func paysOnce() *scripted.Script {
	s := refund()
	s.Turns[0].When = "refund order 7"
	paid := scripted.Steps{scripted.Text("it was paid")}
	s.Turns = append([]scripted.Turn{{When: "it had made these tool calls", Steps: paid}}, s.Turns...)
	s.Default = scripted.Steps{scripted.Text("more")}
	s.Resumed = []scripted.Turn{{Steps: paid}}
	return s
}

// TestTurnsOutliveTheirAgent kills the agent anywhere, and the actors of the session: each
// message has one outcome, the tool runs once at most, and the session ends well unless it
// says why not.
func TestTurnsOutliveTheirAgent(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: fewer(300), First: 2_000_000}, func(w *simtests.World) {
		w.Faults(simtests.AgentCrash(0.03), simtests.CrashInTool(0.3), simtests.CrashWaiting(0.03, 5*time.Second),
			simtests.AgentExit(0.01, 1), simtests.TranscriptTruncated(0.2), simtests.TranscriptUnsynced(0.7, time.Second), simtests.KillActor(0.005).AtMost(3))
		c, err := w.Dial(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 6, RestartBackoff: session.Backoff{Initial: time.Second}}, paysOnce())
		if err != nil {
			return
		}
		recovered := 0
		for _, prompt := range []string{"refund order 7", "and again", "more"} {
			_, result, err := simtests.Ask(w.Context(), c, prompt)
			if err == nil && result.Recovered {
				recovered++
			}
			if err != nil {
				_, exit := errors.AsType[*session.ExitError](err)
				require.True(w, exit, "%v", err)
				w.Sometimes("an error", true)
				break // the agent may have died too often
			}
		}
		w.Sometimes("a turn was recovered", recovered > 0)
		w.Sometimes("two turns were recovered", recovered > 1)
		require.LessOrEqual(w, len(w.Effects()), 1, "it was paid at most once")
		_ = c.Close(w.Context()) // the session may have failed
	})
}

// TestDecideRecovery: the user's function decides about each death.
func TestDecideRecovery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide func(context.Context, session.Failure) session.Recovery
		turn   func(t require.TestingT, result *sdk.ResultMessage, err error)
		lives  bool
	}{
		"continue": {
			func(context.Context, session.Failure) session.Recovery { return session.RecoverContinue },
			func(t require.TestingT, result *sdk.ResultMessage, err error) {
				require.NoError(t, err)
				require.True(t, result.Recovered)
			}, true,
		},
		"rerun": {
			func(context.Context, session.Failure) session.Recovery { return session.RecoverRerun },
			func(t require.TestingT, result *sdk.ResultMessage, err error) {
				require.NoError(t, err)
				require.True(t, result.Recovered)
			}, true,
		},
		"report": {
			func(_ context.Context, f session.Failure) session.Recovery {
				if len(f.Messages) == 1 && f.Messages[0].Accepted && len(f.Tools) == 1 && f.State == session.StateRunning && f.Attempt == 1 && f.SessionID != "" {
					return session.RecoverReport
				}
				return session.RecoverFail
			},
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.ExitError))
			}, true,
		},
		"fail": {
			func(context.Context, session.Failure) session.Recovery { return session.RecoverFail },
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.ExitError))
				require.NotErrorAs(t, err, new(*session.RecoveryError))
			}, false,
		},
		"nothing": {
			func(context.Context, session.Failure) session.Recovery { return "" },
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.RecoveryError))
				require.ErrorAs(t, err, new(*session.ExitError))
				require.ErrorContains(t, err, "no policy")
			}, false,
		},
		"no return": {
			func(context.Context, session.Failure) session.Recovery {
				runtime.Goexit()
				return ""
			},
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.RecoveryError))
				require.ErrorContains(t, err, "did not return")
			}, false,
		},
		"panic": {
			func(context.Context, session.Failure) session.Recovery { panic("boom") },
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.RecoveryError))
				require.ErrorAs(t, err, new(*session.PanicError))
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simtests.Explore(t, simtests.Config{Seeds: 5, AllFaults: true}, func(w *simtests.World) {
				w.Faults(simtests.CrashInTool(1).AtMost(1))
				client := w.Open(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 1, DecideRecovery: c.decide}, paysOnce())
				_, result, err := simtests.Ask(w.Context(), client, "refund order 7")
				c.turn(w, result, err)
				_, _, err = simtests.Ask(w.Context(), client, "and again")
				require.Equal(w, c.lives, err == nil, "%v", err)
				_ = client.Close(w.Context())
			})
		})
	}
}

// TestCloseWhileItIsDecided ends the context of the user's function, and waits for nobody.
func TestCloseWhileItIsDecided(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 5, AllFaults: true}, func(w *simtests.World) {
		w.Faults(simtests.CrashInTool(1).AtMost(1))
		ended := false
		c := w.Open(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 1, DecideRecovery: func(ctx context.Context, _ session.Failure) session.Recovery {
			<-ctx.Done()
			ended = true
			return session.RecoverContinue
		}}, paysOnce())
		turn, err := c.Send(w.Context(), sdk.UserText("refund order 7"))
		require.NoError(w, err)
		w.Sleep(time.Minute)
		require.Equal(w, session.StateRecovering, c.State())
		require.NoError(w, c.Close(w.Context()))
		_, err = turn.Result(w.Context())
		require.ErrorIs(w, err, session.ErrClosed)
		w.Run()
		require.True(w, ended)
	})
}
