package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/transcript/store"
)

// timed is a session of which one thing takes its time, in a world where nothing goes wrong:
// so the instant at which its limit is reached is known to the nanosecond.
type timed struct {
	*simtests.World
	limit  time.Duration
	takes  time.Duration // a millisecond less than the limit, or more, or much less or more
	late   bool          // it takes longer than the limit
	events []session.EventRecord
}

// inTime is how long it lasts until it is over, one way or the other.
func (x *timed) inTime() time.Duration { return min(x.takes, x.limit) }

func (x *timed) saw(r session.EventRecord) { x.events = append(x.events, r) }

// all returns the events of a type.
func eventsOf[E session.Event](x *timed) (all []E) {
	for _, r := range x.events {
		if e, ok := r.Event.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// once asserts that there was one event of a type if the limit was passed, and none otherwise.
func once[E session.Event](x *timed) (e E) {
	all := eventsOf[E](x)
	if !x.late {
		assert.Empty(x, all)
		return e
	}
	require.Len(x, all, 1)
	return all[0]
}

// is asserts that an error is that of the limit.
func (x *timed) is(err error, setBy string) {
	late, ok := errors.AsType[*session.TimeoutError](err)
	require.True(x, ok, "%v", err)
	assert.Equal(x, x.limit, late.Limit)
	assert.Equal(x, setBy, late.SetBy)
}

func (x *timed) took(want time.Duration, since time.Duration) {
	assert.Equal(x, want, x.Elapsed()-since)
}

func (x *timed) opens(o *sdk.Options, steps ...scripted.Step) *sdk.Client {
	o.OnEvent = x.saw
	return x.Open(o, &scripted.Script{Turns: []scripted.Turn{{Steps: steps}}, Default: scripted.Steps{scripted.Text("more")}})
}

// tool is a call that waits for the gates, and has an effect.
func tool() *scripted.ToolUse {
	return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "pay"}, Gate: agent.GateAsk, Effect: "paid"}
}

// ran asserts that the tool ran unless it was decided too late, and how long that took. limit
// is what holds for the host.
func (x *timed) ran(began, limit time.Duration) {
	if x.late {
		assert.Empty(x, x.Effects())
	} else {
		assert.Len(x, x.Effects(), 1)
	}
	x.took(min(x.takes, limit), began)
	x.Run()
	failed := once[*session.CallbackFailed](x)
	late := once[*session.LateAnswer](x)
	if x.late {
		assert.Equal(x, failed.RequestID, late.RequestID)
		assert.Equal(x, failed.Kind, late.Kind)
	}
}

// limits are what may take its time, by name.
func limits() map[string]func(x *timed) {
	return map[string]func(x *timed){
		"a permission": func(x *timed) {
			var why error
			c := x.opens(&sdk.Options{PermissionTimeout: x.limit, CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				x.Sleep(x.takes)
				why = context.Cause(ctx)
				return sdk.Allow(), nil
			}}, tool())
			began := x.Elapsed()
			_, _, err := x.Ask(c, "go")
			require.NoError(x, err)
			x.ran(began, x.limit)
			if x.late {
				x.is(once[*session.CallbackFailed](x).Err, "PermissionTimeout")
				x.is(why, "PermissionTimeout")
			} else {
				assert.NoError(x, why)
			}
		},
		"a hook": func(x *timed) {
			forHost := x.limit - min(x.limit/10, time.Second)
			x.late = x.takes > forHost
			c := x.opens(&sdk.Options{CanUseTool: allowAll, Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				x.Sleep(x.takes)
				return sdk.PreToolUseOutput{}, nil
			}, sdk.Timeout(x.limit))}}, tool())
			began := x.Elapsed()
			_, _, err := x.Ask(c, "go")
			require.NoError(x, err)
			x.ran(began, forHost)
		},
		"a tool of the host": func(x *timed) {
			type in struct{}
			s, err := sdk.NewMCPServer("shop", "1", sdk.NewTool("price", "the price", func(context.Context, in) (*sdk.ToolResult, error) {
				x.Sleep(x.takes)
				return sdk.Text("3"), nil
			}, sdk.ToolTimeout(x.limit)))
			require.NoError(x, err)
			c := x.opens(&sdk.Options{SDKMCPServers: []*sdk.MCPServer{s}, AllowedTools: []string{"mcp__shop__price"}}, &scripted.MCPCall{Server: "shop", Tool: "price"})
			began := x.Elapsed()
			messages, _, err := x.Ask(c, "go")
			require.NoError(x, err)
			x.took(x.inTime(), began)
			results := 0
			for _, m := range messages {
				for _, r := range sdk.ToolResults(m) {
					results++
					assert.Equal(x, x.late, r.IsError)
				}
			}
			assert.Equal(x, 1, results)
			x.Run()
			_ = once[*session.CallbackFailed](x)
		},
		"a call of the agent": func(x *timed) {
			s := &scripted.Script{}
			s.Misbehave.AnswerDelay = x.takes
			c := x.Open(&sdk.Options{Limits: session.Limits{Control: x.limit}, OnEvent: x.saw}, s)
			began := x.Elapsed()
			err := c.SetModel(x.Context(), "sonnet")
			x.took(x.inTime(), began)
			if x.late {
				x.is(err, "Limits.Control")
			} else {
				require.NoError(x, err)
			}
		},
		"initialize": func(x *timed) {
			s := &scripted.Script{}
			s.Misbehave.Initialize.Delay = x.takes
			began := x.Elapsed()
			_, err := x.Dial(&sdk.Options{Limits: session.Limits{Initialize: x.limit}}, s)
			if x.late {
				x.is(err, "Limits.Initialize")
				return
			}
			require.NoError(x, err)
			x.took(x.takes, began)
		},
		"the start of the process": func(x *timed) {
			began := x.Elapsed()
			_, err := x.Runtime().Open(x.Context(), runtime.Spec{Dialect: claude.New(), Options: session.Options{Spawner: hesitant{x}, Limits: session.Limits{Start: x.limit}}})
			if x.late {
				x.is(err, "Limits.Start")
				return
			}
			require.ErrorAs(x, err, new(*session.StartError))
			x.took(x.takes, began)
		},
		"progress": func(x *timed) {
			first := x.limit / 2
			c := x.opens(&sdk.Options{Limits: session.Limits{Stall: x.limit}}, scripted.Delay(first), scripted.Text("hm"), scripted.Delay(x.takes), scripted.Text("done"))
			began := x.Elapsed()
			_, result, err := x.Ask(c, "go")
			require.NoError(x, err)
			x.took(first+x.inTime(), began)
			assert.Equal(x, x.late, result.Interrupted())
			if stalled := once[*session.TurnStalled](x); x.late {
				assert.Equal(x, session.TurnStalled{Idle: x.limit, Limit: x.limit}, *stalled)
			}
		},
		"progress after the interrupt": func(x *timed) {
			kill := time.Duration(1+x.Rand().IntN(60)) * time.Second
			s, err := x.Runtime().Open(x.Context(), runtime.Spec{Dialect: claude.New(), Program: silent{}, Options: session.Options{OnEvent: x.saw, Limits: session.Limits{Stall: x.limit, StallKill: kill, Control: -1}}})
			require.NoError(x, err)
			began := x.Elapsed()
			turn, err := s.Send(x.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
			require.NoError(x, err)
			_, err = turn.Result(x.Context())
			x.took(x.limit+kill, began)
			exit, ok := errors.AsType[*session.ExitError](err)
			require.True(x, ok, "%v", err)
			assert.Equal(x, "a turn", exit.During)
			assert.Contains(x, exit.LadderStep, "Limits.StallKill")
			x.late = true
			_ = once[*session.TurnStalled](x)
		},
		"retries": func(x *timed) {
			n := 1 + x.Rand().IntN(9)
			status := []int{401, 429, 529}[x.Rand().IntN(3)]
			each := x.takes / time.Duration(n)
			steps := make(scripted.Steps, n, n+2)
			for i := range steps {
				steps[i] = &scripted.APIRetry{Attempt: i + 1, Delay: each, Status: status}
			}
			text := "overloaded"
			c := x.opens(&sdk.Options{Limits: session.Limits{Retry: x.limit}}, append(steps, &scripted.Result{Subtype: "success", IsError: new(true), Text: &text})...)
			all, limit := each*time.Duration(n), x.limit
			if status == 401 {
				limit = 0
			}
			x.late = all > limit
			began := x.Elapsed()
			_, _, err := x.Ask(c, "go")
			x.took(min(all, limit), began)
			said := once[*session.TurnRetries](x)
			gaveUp, ok := errors.AsType[*session.RetryLimitError](err)
			require.Equal(x, x.late, ok, "%v", err)
			if x.late {
				assert.Equal(x, said.Err, gaveUp)
				assert.Equal(x, session.RetryLimitError{Status: status, Kind: gaveUp.Kind, Attempts: 1 + int(limit/each), For: limit, Limit: x.limit}, *gaveUp)
			}
			_, _, err = x.Ask(c, "and again")
			require.NoError(x, err)
		},
		"the reader": func(x *timed) {
			c := x.opens(&sdk.Options{Limits: session.Limits{Messages: 2, Consumer: x.limit}}, &scripted.Flood{Count: 9, Size: 10})
			began := x.Elapsed()
			turn, err := c.Send(x.Context(), sdk.UserText("go"))
			require.NoError(x, err)
			x.Sleep(x.takes)
			if x.late {
				assert.ErrorIs(x, c.Err(), session.ErrConsumerStalled)
				x.is(c.Err(), "Limits.Consumer")
				ended := eventsOf[*session.StateChanged](x)
				at := slices.IndexFunc(ended, func(e *session.StateChanged) bool { return e.To == session.StateClosing.String() })
				require.Positive(x, at)
				x.Sometimes("a reader came too late", true)
			} else {
				require.Equal(x, session.StateAwaitingConsumer, c.State())
				x.Go(func() { _ = x.Read(c, nil) }) // its error is that of the session
				_, err = turn.Result(x.Context())
				require.NoError(x, err)
			}
			x.took(x.takes, began)
		},
		"idleness": func(x *timed) {
			c := x.opens(&sdk.Options{PassivateAfter: x.limit}, scripted.Text("hello"))
			_, _, err := x.Ask(c, "go")
			require.NoError(x, err)
			x.Sleep(x.takes)
			living, started := x.Agents()
			assert.Equal(x, 1, started)
			if x.late {
				assert.Equal(x, session.StatePassivated, c.State())
				assert.Zero(x, living)
			} else {
				assert.Equal(x, session.StateReady, c.State())
				assert.Equal(x, 1, living)
			}
			_, _, err = x.Ask(c, "and again")
			require.NoError(x, err)
			if _, started = x.Agents(); x.late {
				assert.Equal(x, 2, started)
			} else {
				assert.Equal(x, 1, started)
			}
			x.Sleep(x.limit - time.Millisecond)
			assert.Equal(x, session.StateReady, c.State())
			x.Sleep(2 * time.Millisecond)
			assert.Equal(x, session.StatePassivated, c.State())
		},
		"a caller's patience": func(x *timed) {
			s := &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Delay(x.takes), scripted.Text("done")}}}}
			s.Misbehave.AnswerDelay = x.takes
			c := x.Open(&sdk.Options{Limits: session.Limits{Control: -1}, OnEvent: x.saw}, s)
			ctx, leave := context.WithTimeout(x.Context(), x.limit)
			defer leave()
			began := x.Elapsed()
			var err error
			if x.Rand().IntN(2) == 0 {
				err = c.SetModel(ctx, "sonnet")
			} else {
				var turn *sdk.Turn
				turn, err = c.Send(ctx, sdk.UserText("go"))
				require.NoError(x, err)
				_, err = turn.Result(ctx)
			}
			x.took(x.inTime(), began)
			if x.late {
				assert.ErrorIs(x, err, context.DeadlineExceeded)
			} else {
				assert.NoError(x, err)
			}
			x.Run()
			_, _, err = x.Ask(c, "and again")
			require.NoError(x, err)
		},
		"unread messages": func(x *timed) {
			most, n := 2+x.Rand().IntN(5), 1+x.Rand().IntN(9)
			var steps scripted.Steps
			for range n {
				steps = append(steps, scripted.Delay(time.Second), scripted.Text("word"))
			}
			c := x.opens(&sdk.Options{Limits: session.Limits{Messages: most}}, append(steps, scripted.Delay(time.Hour))...)
			turn, err := c.Send(x.Context(), sdk.UserText("go"))
			require.NoError(x, err)
			all := x.Runtime().Sessions()
			require.Len(x, all, 1)
			x.Sleep(time.Second / 2)
			first := all[0].Tree(x.Context()).Unread // they came at one instant
			x.Sleep(time.Minute)
			shown := all[0].Tree(x.Context())
			assert.Equal(x, shown.Unread >= most, c.State() == session.StateAwaitingConsumer, "%d of %d are unread, and the session is %s", shown.Unread, most, c.State())
			assert.LessOrEqual(x, shown.Unread, max(most, first))
			assert.Equal(x, most, shown.UnreadLimit)
			x.Sometimes("the limit of messages was reached", shown.Unread == most)
			x.Go(func() { _ = x.Read(c, nil) }) // its error is that of the session
			_, err = turn.Result(x.Context())
			require.NoError(x, err)
		},
		"attempts of a store": func(x *timed) {
			store := &failing{x: x, fails: x.Rand().IntN(7)}
			attempts := 1 + x.Rand().IntN(6)
			c := x.opens(&sdk.Options{Cwd: "/work", SessionStore: store, SessionStoreOptions: session.StoreOptions{Attempts: attempts, Append: time.Hour, Flush: session.StoreEager}}, scripted.Text("done"))
			turn, err := c.Send(x.Context(), sdk.UserText("go"))
			require.NoError(x, err)
			_, err = turn.Result(x.Context())
			require.NoError(x, err)
			require.NoError(x, c.Mirrored(x.Context()))
			require.NoError(x, c.Close(x.Context()))
			require.NotEmpty(x, store.calls)
			for i, at := range store.calls[:min(len(store.calls), attempts, store.fails+1)] {
				if i > 0 {
					pause := 200 * time.Millisecond << (2 * (i - 1))
					assert.Equal(x, min(pause, 10*time.Second), at-store.calls[i-1], "attempt %d", i+1)
				}
			}
			x.Run()
			failed, stored := 0, 0
			for _, e := range eventsOf[*session.MirrorFailed](x) {
				failed += e.Entries
				assert.ErrorIs(x, e.Err, errBroken)
			}
			for _, e := range eventsOf[*session.Mirrored](x) {
				stored += e.Entries
			}
			assert.Equal(x, store.stored, stored)
			assert.Equal(x, store.fails >= attempts, failed > 0)
			x.Sometimes("a store was given up", failed > 0)
		},
		"the exit": func(x *timed) {
			term := time.Duration(1+x.Rand().IntN(60)) * time.Second
			s := &scripted.Script{}
			killed := x.late && x.Rand().IntN(2) == 0
			s.Misbehave.ExitDelay, s.Misbehave.TrapTerm, s.Misbehave.IgnoreEOF = x.takes, killed, killed
			c := x.Open(&sdk.Options{CloseTimeout: time.Hour, Graces: session.Graces{EOF: x.limit, Terminate: term}, OnEvent: x.saw}, s)
			began, want := x.Elapsed(), x.inTime()
			if killed {
				want += term
			}
			err := c.Close(x.Context())
			x.took(want, began)
			assert.Equal(x, killed, err != nil, "%v", err)
			x.Sometimes("an agent was killed at its end", killed)
		},
	}
}

// failing is a store whose first appends fail.
type failing struct {
	store.Memory
	x      *timed
	fails  int
	calls  []time.Duration
	stored int // entries
}

func (f *failing) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	f.calls = append(f.calls, f.x.Elapsed())
	if len(f.calls) <= f.fails {
		return errBroken
	}
	f.stored += len(entries)
	return f.Memory.Append(ctx, key, entries)
}

// hesitant is a spawner that takes its time and starts nothing.
type hesitant struct{ x *timed }

func (h hesitant) Spawn(ctx context.Context, _ session.Command) (session.Process, error) {
	if err := idle(ctx, h.x.World, 0); err != nil {
		return nil, err
	}
	h.x.Sleep(h.x.takes)
	return nil, &session.StartError{Path: "/nowhere/claude", Err: errors.New("nothing there")}
}

// silent is an agent that takes everything and says nothing after its start.
type silent struct{}

func (silent) AgentName() string { return "silent" }

func (silent) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	for {
		line, err := port.Next(-1)
		if errors.Is(err, agent.ErrTerminated) || errors.Is(err, agent.ErrKilled) || err != nil && line == nil {
			return agent.Exit{}
		}
		if f, err := protocol.ParseFrame(line); err == nil && f.Type == "control_request" && f.Subtype == "initialize" {
			_ = port.Write([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"` + f.RequestID + `","response":{"commands":[]}}}` + "\n")) // a host that is gone ends Next
		}
	}
}

// TestLimits: each limit is reached at its instant, and not before. What happens then is what
// the option's comment says, once, and the error names the option.
func TestLimits(t *testing.T) {
	t.Parallel()
	all := limits()
	for name, limited := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simtests.Explore(t, simtests.Config{Seeds: 10, Cost: 10}, func(w *simtests.World) {
				x := &timed{World: w, limit: time.Duration(2+w.Rand().IntN(100)) * time.Second}
				x.takes = x.limit + []time.Duration{-time.Millisecond, time.Millisecond, -x.limit / 2, x.limit/2 + time.Millisecond}[w.Rand().IntN(4)]
				x.late = x.takes > x.limit
				limited(x)
			})
		})
	}
}
