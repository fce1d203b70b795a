//go:build linux

package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestInterruptNeverOpensAGate interrupts a turn whose gates are being decided.
// They say yes once the receipt is there, and nothing runs; the next turn does.
func TestInterruptNeverOpensAGate(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"permission", "hook"} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			for seed := range sim.Seeds(t, 10, 50) {
				where := fmt.Sprintf("seed %d", seed)
				w := newWorld(t, seed)
				script := gated("count")
				script.Turns = append(script.Turns, scripted.Turn{Steps: scripted.Steps{
					&scripted.ToolUse{ID: "second", Name: "Bash", Gate: agent.GateAsk, Effect: "count"}, scripted.Text("on"),
				}})
				spec := w.Gated(script)
				asked, over, ended := 0, make(chan struct{}), 0
				wait := func(ctx context.Context) {
					if asked++; asked > 2 {
						return // of the second turn
					}
					_ = w.Sched.Await(context.Background(), over)
					if w.Sched.Await(context.Background(), ctx.Done()) == nil {
						ended++
					}
				}
				if gate == "permission" {
					spec.Options.Hooks = nil
					spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
						wait(ctx)
						return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
					}
				} else {
					spec.Options.CanUseTool = nil
					spec.Options.Hooks[0].Func = func(ctx context.Context, _ *session.HookCall) (json.RawMessage, error) {
						wait(ctx)
						return json.RawMessage(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`), nil
					}
				}
				ctx := context.Background()
				s, err := w.Open(ctx, spec)
				require.NoError(t, err)
				turn, err := s.Send(ctx, userText("go"))
				require.NoError(t, err)
				for asked < 2 {
					require.True(t, w.Sched.Step(), where)
				}
				require.NoError(t, s.Call(ctx, &protocol.InterruptRequest{}, nil, 0), where)
				close(over)
				result, err := turn.Result(ctx)
				require.NoError(t, err, where)
				require.True(t, result.Failed(), where)
				require.NoError(t, s.AwaitIdle(ctx))
				require.Empty(t, w.Effects(), "%s: fail-closed", where)

				turn, err = s.Send(ctx, userText("on"))
				require.NoError(t, err)
				_, err = turn.Result(ctx)
				require.NoError(t, err)
				require.Len(t, w.Effects(), 1, where)
				require.Contains(t, w.Effects()[0], "second", where)
				require.NoError(t, s.Close(ctx))
				w.Finish()
				require.Equal(t, 2, ended, "%s: the callbacks are told", where)
			}
		})
	}
}

// slowTools is an in-process MCP server whose tool takes its time, and says
// every so often that it is alive.
type slowTools struct {
	echo
	takes, alive time.Duration
	pass         func(ctx context.Context, d time.Duration) error
}

func (s slowTools) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if method != "tools/call" {
		return s.echo.Handle(ctx, method, params)
	}
	for rest := s.takes; rest > 0; rest -= s.alive {
		if err := s.pass(ctx, min(rest, s.alive)); err != nil {
			return nil, err
		}
		mcp.Alive(ctx)
	}
	return json.RawMessage(`{"content":[{"type":"text","text":"at last"}]}`), nil
}

// TestToolsThatTakeLong: a tool of the host's has its own deadline, which a sign
// of life starts anew, and which is seen while it runs. No other clock ends it.
func TestToolsThatTakeLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes, alive time.Duration
		ends         bool
	}{
		"9 minutes of silence":  {9 * time.Minute, time.Hour, true},
		"11 minutes of silence": {11 * time.Minute, time.Hour, false},
		"12 hours of progress":  {12 * time.Hour, 9 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range sim.Seeds(t, 4, 100) {
				w := newWorld(t, seed)
				spec := w.Gated(&scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
					&scripted.MCPCall{Server: "tools", Tool: "echo", Gate: agent.GateAllow}, scripted.Text("done"),
				}}}})
				spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: slowTools{takes: c.takes, alive: c.alive, pass: func(ctx context.Context, d time.Duration) error {
					over := make(chan struct{})
					defer w.Sched.AfterFunc(d, func() { close(over) }).Stop()
					return w.Sched.Await(ctx, over)
				}}}}
				ctx := context.Background()
				s, err := w.Open(ctx, spec)
				require.NoError(t, err)
				turn, err := s.Send(ctx, userText("go"))
				require.NoError(t, err)
				began := w.Sched.Now()
				seen := false
				w.Sched.AfterFunc(5*time.Minute, func() {
					w.Sched.Go(func() {
						for _, wait := range s.Tree(ctx).Waits {
							seen = seen || wait.What == "mcp request mcp__tools__echo" && wait.Limit == 10*time.Minute
						}
					})
				})
				var answer string
				for m, err := range turn.Messages(ctx) {
					require.NoError(t, err)
					if raw := string(m.Raw()); strings.Contains(raw, "tool_result") {
						answer = raw
					}
				}
				if c.ends {
					require.Contains(t, answer, "at last")
					require.GreaterOrEqual(t, w.Sched.Now().Sub(began), c.takes)
				} else {
					require.Contains(t, answer, "did not finish within 10m0s")
				}
				require.True(t, seen, "its wait is shown, with its limit")
				require.NoError(t, s.Close(ctx))
				w.Finish()
			}
		})
	}
}

// TestGatesAreAnsweredWhileNobodyReads: hundreds of calls are decided although no
// message is read, and the messages are there afterwards.
func TestGatesAreAnsweredWhileNobodyReads(t *testing.T) {
	t.Parallel()
	const calls = 500
	var steps scripted.Steps
	for i := range calls {
		steps = append(steps, &scripted.ToolUse{ID: fmt.Sprint("t", i), Name: "Bash", Gate: agent.GateAsk, Effect: "count"})
	}
	for seed := range sim.Seeds(t, 2, 500) {
		w := newWorld(t, seed)
		spec := w.Gated(&scripted.Script{Turns: []scripted.Turn{{Steps: append(steps, scripted.Text("done"))}}})
		ctx := context.Background()
		s, err := w.Open(ctx, spec)
		require.NoError(t, err)
		turn, err := s.Send(ctx, userText("go"))
		require.NoError(t, err)
		require.NoError(t, w.Sched.Await(ctx, turn.Done()), "seed %d", seed)
		require.Len(t, w.Effects(), calls, "each gate was answered")
		require.Equal(t, calls, w.Allowed())
		var saw []string
		for m, err := range turn.Messages(ctx) {
			require.NoError(t, err)
			saw = append(saw, string(m.Raw()))
		}
		require.Equal(t, w.Wrote()[:len(saw)], saw, "seed %d: ordered-lossless", seed)
		require.Contains(t, saw[len(saw)-1], `"result"`)
		require.NoError(t, s.Close(ctx))
		w.Finish()
	}
}

// TestADeathIsSeenAtOnce: an agent dies while it is idle and unobserved. The session
// reports it at that instant, and so does each later call.
func TestADeathIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 10, 50) {
		inSimulation(t, seed, runtime.Config{}, func(s *stage) {
			var died time.Time
			spec := s.spec(func(h *hand) {
				h.say(resultLine(h.prompt()))
				h.pass(time.Minute)
				died = s.rt.Clock().Now()
				panic(exited{Code: 7})
			})
			var told time.Time
			spec.Options.OnEvent = func(r session.EventRecord) {
				if _, over := r.Event.(*session.Ended); over {
					told = r.At
				}
			}
			sess := s.open(spec)
			_, err := s.send(sess).Result(s.ctx)
			require.NoError(s, err)
			s.pass(2 * time.Minute)
			assert.Equal(s, session.StateFailed, sess.State())
			assert.Equal(s, died, told, "at that instant")
			assert.Empty(s, s.rt.Sessions())
			var exit *session.ExitError
			require.ErrorAs(s, sess.Err(), &exit)
			assert.Equal(s, "idle", exit.During)
			assert.Equal(s, 7, exit.Status.Code)
			_, err = sess.Send(s.ctx, userText("anybody?"))
			require.ErrorAs(s, err, &exit, "a message says why")
			err = sess.Call(s.ctx, &protocol.InterruptRequest{}, nil, 0)
			require.ErrorAs(s, err, &exit, "and so does a request")
		})
	}
}

// TestAWaitingSessionDoesNothing lets an hour pass in which a session only
// waits, for whatever it may be: nothing of it runs meanwhile.
func TestAWaitingSessionDoesNothing(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(s *stage, over <-chan struct{}) (*runtime.Session, session.State){
		"idle": func(s *stage, _ <-chan struct{}) (*runtime.Session, session.State) {
			sess := s.open(s.spec(func(h *hand) { h.say(resultLine(h.prompt())) }))
			_, err := s.send(sess).Result(s.ctx)
			require.NoError(s, err)
			return sess, session.StateReady
		},
		"in a turn": func(s *stage, _ <-chan struct{}) (*runtime.Session, session.State) {
			sess := s.open(s.spec(func(h *hand) { h.prompt() }))
			s.send(sess)
			return sess, session.StateRunning
		},
		"for a decision": func(s *stage, _ <-chan struct{}) (*runtime.Session, session.State) {
			spec := s.spec(func(h *hand) {
				h.prompt()
				h.ask("q", callbackKinds()[0].request)
			})
			spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{}, s.rt.Executor().Await(ctx, nil)
			}
			sess := s.open(spec)
			s.send(sess)
			return sess, session.StateAwaitingHost
		},
		"for its consumer": func(s *stage, _ <-chan struct{}) (*runtime.Session, session.State) {
			sess := s.open(s.manyLines(300))
			s.send(sess)
			return sess, session.StateAwaitingConsumer
		},
		"for an agent that hears nothing": func(s *stage, over <-chan struct{}) (*runtime.Session, session.State) {
			sess := s.open(s.spec(func(h *hand) {
				h.prompt()
				_ = s.rt.Executor().Await(context.Background(), over)
			}))
			for range 3 {
				_, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib/4)))
				require.NoError(s, err)
			}
			return sess, session.StateRunning
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range sim.Seeds(t, 4, 100) {
				inSimulation(t, seed, runtime.Config{}, func(s *stage) {
					over := make(chan struct{})
					sess, state := begin(s, over)
					s.pass(10 * time.Minute) // whatever was under way, and the timers of the start, which stay set
					require.Equal(s, state, sess.State())
					before := s.sched.Steps()
					s.pass(15 * time.Minute) // less than Limits.Stall
					assert.LessOrEqual(s, s.sched.Steps()-before, 2, "the time itself, and nothing else")
					close(over)
					s.close(sess)
				})
			}
		})
	}
}

// TestSessionsDoNotMix runs many sessions at once, whose agents use the same
// ids: each sees its own messages, callbacks, answers, stderr and events.
func TestSessionsDoNotMix(t *testing.T) {
	t.Parallel()
	const sessions, rounds = 20, 5
	permission := callbackKinds()[0].request
	onStages(t, func(s *stage) {
		var done []<-chan struct{}
		for i := range sessions {
			name := fmt.Sprintf("session-%d.", i)
			spec := s.spec(func(h *hand) {
				for round := range rounds {
					uuid, q, m := h.prompt(), fmt.Sprint("q", round), fmt.Sprint("m", round)
					h.ask(q, strings.Replace(permission, "date", name, 1))
					assert.Contains(s, string(h.reply(q).Raw), name, "the answer is another's")
					h.ask(m, fmt.Sprintf(`{"subtype":"mcp_message","server_name":"tools","message":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"v":%q}}}}`, name))
					assert.Contains(s, string(h.reply(m).Raw), name, "the tool's result is another's")
					h.say("noise of "+name, strings.Replace(assistantLine(0, 0), `"text":""`, `"text":"`+name+`"`, 1), resultLine(uuid))
				}
			})
			spec.ID = name
			spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: parrot{}}} // the same for all
			spec.Options.CanUseTool = func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				assert.Contains(s, string(r.Input), name, "the call is another's")
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(fmt.Sprintf("{\"v\":%q}", name))}, nil
			}
			spec.Options.OnEvent = func(r session.EventRecord) {
				assert.Equal(s, name, r.Session)
				if noise, ok := r.Event.(*session.NoiseLine); ok {
					assert.ErrorContains(s, noise.Err, name)
				}
			}
			done = append(done, s.task(func() {
				sess, err := s.rt.Open(s.ctx, spec)
				if !assert.NoError(s, err) {
					return
				}
				for range rounds {
					turn, err := sess.Send(s.ctx, userText("hi"))
					if !assert.NoError(s, err) {
						return
					}
					var got []string
					for m, err := range turn.Messages(s.ctx) {
						assert.NoError(s, err)
						got = append(got, protocol.TextOf(m))
					}
					assert.Equal(s, []string{name, "done"}, got)
				}
				assert.NoError(s, sess.Close(s.ctx))
			}))
		}
		for _, d := range done {
			s.await(d)
		}
	})
}

// parrot is an in-process MCP server that answers with what it was asked.
type parrot struct{ echo }

func (parrot) Handle(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
	return params, nil
}
