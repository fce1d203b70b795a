package simtests_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

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
		decide func(context.Context, session.Death) session.Recovery
		turn   func(t require.TestingT, result *sdk.ResultMessage, err error)
		lives  bool
	}{
		"continue": {
			func(context.Context, session.Death) session.Recovery { return session.RecoverContinue },
			func(t require.TestingT, result *sdk.ResultMessage, err error) {
				require.NoError(t, err)
				require.True(t, result.Recovered)
			}, true,
		},
		"rerun": {
			func(context.Context, session.Death) session.Recovery { return session.RecoverRerun },
			func(t require.TestingT, result *sdk.ResultMessage, err error) {
				require.NoError(t, err)
				require.True(t, result.Recovered)
			}, true,
		},
		"report": {
			func(_ context.Context, f session.Death) session.Recovery {
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
			func(context.Context, session.Death) session.Recovery { return session.RecoverFail },
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.ExitError))
				require.NotErrorAs(t, err, new(*session.RecoveryError))
			}, false,
		},
		"nothing": {
			func(context.Context, session.Death) session.Recovery { return "" },
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.RecoveryError))
				require.ErrorAs(t, err, new(*session.ExitError))
				require.ErrorContains(t, err, "no policy")
			}, false,
		},
		"no return": {
			func(context.Context, session.Death) session.Recovery {
				runtime.Goexit()
				return ""
			},
			func(t require.TestingT, _ *sdk.ResultMessage, err error) {
				require.ErrorAs(t, err, new(*session.RecoveryError))
				require.ErrorContains(t, err, "did not return")
			}, false,
		},
		"panic": {
			func(context.Context, session.Death) session.Recovery { panic("boom") },
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
		c := w.Open(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 1, DecideRecovery: func(ctx context.Context, _ session.Death) session.Recovery {
			_ = w.Runtime().Executor().Await(ctx, nil) // until the context ends
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
