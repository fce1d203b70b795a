package sdk_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// limited is a context that ends after d on the world's clock.
func (w *world) limited(d time.Duration) context.Context {
	ctx, cancel := kernel.WithTimeout(w.Context(), w.rt.Clock(), &session.TimeoutError{What: "the test", Limit: d})
	w.Cleanup(cancel)
	return ctx
}

func whats(waits []session.Wait) []string {
	var all []string
	for _, wait := range waits {
		all = append(all, strings.NewReplacer(" written", "", " started", "").Replace(wait.What))
	}
	return all
}

// What a run that has no end waits for when its context ends.
var endless = map[string]struct {
	options func(w *world) *sdk.Options
	state   session.State
	waits   []string
	tools   []string
	called  int
	text    string
}{
	"the agent's start": {
		options: func(w *world) *sdk.Options {
			o := &sdk.Options{Runtime: w.rt, Backend: sdk.Claude(sdk.ClaudeConfig{})}
			o.Spawner = spawnerFunc(func(ctx context.Context, _ session.Command) (session.Process, error) {
				return nil, w.rt.Executor().Await(ctx, nil)
			})
			return o
		},
		state: session.StateStarting,
		waits: []string{"start of the agent"},
	},
	"initialize": {
		options: func(w *world) *sdk.Options {
			return w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}})
		},
		state: session.StateInitializing,
		waits: []string{"control request initialize"},
	},
	"the model": {
		options: func(w *world) *sdk.Options { return w.options(turn(scripted.Text("one"), hour)) },
		state:   session.StateRunning,
		waits:   []string{"turn", "progress of the turn"},
		text:    "one",
	},
	"a tool": {
		options: func(w *world) *sdk.Options {
			return w.options(turn(
				&scripted.ToolUse{ID: "toolu_1", Name: "Read", Gate: agent.GateAllow, Result: "x"},
				scripted.Text("now the long one"),
				&scripted.ToolUse{ID: "toolu_2", Name: "Bash", Gate: agent.GateAllow, Takes: 1000 * time.Hour}))
		},
		state:  session.StateRunning,
		waits:  []string{"turn"},
		tools:  []string{"Bash toolu_2"},
		called: 2,
		text:   "now the long one",
	},
	"the permission callback": {
		options: func(w *world) *sdk.Options {
			o := w.options(turn(&scripted.ToolUse{ID: "toolu_1", Name: "Bash", Gate: agent.GateAsk}))
			o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.PermissionResult{}, w.rt.Executor().Await(ctx, nil)
			}
			return o
		},
		state:  session.StateAwaitingHost,
		waits:  []string{"permission request Bash", "turn"},
		tools:  []string{"Bash toolu_1"},
		called: 1,
	},
	"a background task": {
		options: func(w *world) *sdk.Options {
			o := w.options(turn(&scripted.Shell{Command: "npm run dev", Description: "server", Gate: agent.GateAllow, Takes: 1000 * time.Hour}, scripted.Text("it runs")))
			o.Limits.Background = -1
			return o
		},
		state:  session.StateReady,
		waits:  []string{"background task server"},
		called: 1,
		text:   "it runs",
	},
}

func TestEndedContextSaysWhatWasWaitedFor(t *testing.T) {
	t.Parallel()
	calls := map[string]func(ctx context.Context, o *sdk.Options) error{
		"Run": func(ctx context.Context, o *sdk.Options) error {
			_, err := sdk.Run(ctx, "hi", o)
			return err
		},
		"RunAs": func(ctx context.Context, o *sdk.Options) error {
			_, _, err := sdk.RunAs[struct{ A int }](ctx, "hi", o)
			return err
		},
		"Query": func(ctx context.Context, o *sdk.Options) error {
			_, err := sdk.Collect(sdk.Query(ctx, "hi", o))
			return err
		},
	}
	for name, test := range endless {
		for call, run := range calls {
			t.Run(name+"/"+call, func(t *testing.T) {
				t.Parallel()
				in(t, func(w *world) {
					if w.sim == nil {
						return // in virtual time everything has happened when the context ends
					}
					ctx := w.limited(time.Minute)
					err := run(ctx, test.options(w))
					require.ErrorIs(w, err, context.DeadlineExceeded)
					require.ErrorIs(w, err, context.Cause(ctx))
					var unfinished *session.UnfinishedError
					require.ErrorAs(w, err, &unfinished)
					assert.Equal(w, test.state, unfinished.State)
					assert.Equal(w, test.waits, whats(unfinished.Waits))
					var tools []string
					for _, tool := range unfinished.Tools {
						tools = append(tools, tool.Name+" "+tool.ID)
					}
					assert.Equal(w, test.tools, tools)
					assert.Equal(w, test.called, unfinished.Called)
					assert.Equal(w, test.text, unfinished.Text)
					assert.Equal(w, test.text != "" || test.called > 0, unfinished.Messages > 0)
					for _, what := range append(test.tools, test.waits...) {
						assert.ErrorContains(w, err, what)
					}
					assert.Empty(w, open(w.rt))
				})
			})
		}
	}
}

func TestEndedContextNamesTheCallback(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		o := endless["the permission callback"].options(w)
		ask := o.CanUseTool
		var cancelled time.Time
		o.CanUseTool = func(ctx context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			cancelled = w.rt.Clock().Now()
			cancel()
			return ask(ctx, r)
		}
		_, err := sdk.Run(ctx, "hi", o)
		require.ErrorIs(w, err, context.Canceled)
		var unfinished *session.UnfinishedError
		require.ErrorAs(w, err, &unfinished)
		if w.promptly(cancelled) {
			assert.Contains(w, whats(unfinished.Waits), "permission request Bash")
		}
	})
}

func TestEndedContextSaysThatThePromptWasWaitedFor(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		if w.sim == nil {
			return
		}
		ctx := w.limited(time.Minute)
		_, err := sdk.Collect(sdk.Stream(ctx, stream(ctx, func(ctx context.Context) (sdk.UserMessage, error) {
			return sdk.UserMessage{}, w.rt.Executor().Await(ctx, nil)
		}), w.options()))
		var unfinished *session.UnfinishedError
		require.ErrorAs(w, err, &unfinished)
		assert.Equal(w, []string{"the prompt's next message"}, whats(unfinished.Waits))
	})
}

// Every way out is bounded by CloseTimeout, whatever the agent does.
func TestEndedContextEndsARunWithinCloseTimeout(t *testing.T) {
	t.Parallel()
	stubborn := scripted.Misbehaviour{TrapTerm: true, IgnoreEOF: true, Ignore: []string{"interrupt"}}
	mute := stubborn
	mute.Initialize = scripted.InitializeFault{Mode: "never"}
	slow := func(o *sdk.Options) *sdk.Options {
		o.Graces, o.InterruptGrace = session.Graces{EOF: time.Hour, Terminate: time.Hour}, time.Hour
		return o
	}
	for name, options := range map[string]func(w *world) *sdk.Options{
		"a turn": func(w *world) *sdk.Options {
			return slow(w.script(scripted.Script{Turns: []scripted.Turn{turn(scripted.Text("one"), hour)}, Misbehave: stubborn}))
		},
		"initialize": func(w *world) *sdk.Options { return slow(w.script(scripted.Script{Misbehave: mute})) },
		"a spawner that does not return": func(w *world) *sdk.Options {
			o := &sdk.Options{Runtime: w.rt, Backend: sdk.Claude(sdk.ClaudeConfig{})}
			o.Spawner = spawnerFunc(func(context.Context, session.Command) (session.Process, error) {
				_ = w.rt.Executor().Await(w.limited(time.Hour), nil)
				return nil, io.ErrUnexpectedEOF
			})
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				if w.sim == nil {
					return // in virtual time only
				}
				o := options(w)
				o.CloseTimeout = 7 * time.Second
				began := w.rt.Clock().Now()
				_, err := sdk.Run(w.limited(time.Second), "hi", o)
				var unfinished *session.UnfinishedError
				require.ErrorAs(w, err, &unfinished)
				assert.LessOrEqual(w, w.rt.Clock().Now().Sub(began), 8*time.Second)
			})
		})
	}
}

// There is always a next message, and who writes the prompt does not look at the
// context.
func TestEndedContextEndsTheRunOfAnAgentThatNeverFallsSilent(t *testing.T) {
	t.Parallel()
	w := production(t)
	options := func() *sdk.Options {
		o := w.script(scripted.Script{Turns: []scripted.Turn{turn(&scripted.Flood{Count: 1 << 40, Size: 10})}})
		o.InterruptGrace = time.Millisecond
		return o
	}
	var unfinished *session.UnfinishedError
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := options()
	o.OnEvent = func(e sdk.EventRecord) {
		if e.Event.String() == "state ready -> running" {
			cancel()
		}
	}
	_, _, err := sdk.RunAs[struct{ A int }](ctx, "hi", o)
	require.ErrorAs(t, err, &unfinished)

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	sent, release := false, make(chan struct{})
	defer close(release)
	for _, err = range sdk.Stream(ctx, stream(ctx, func(context.Context) (sdk.UserMessage, error) {
		if sent {
			<-release
		}
		sent = true
		return sdk.UserText("hi"), nil
	}), options()) {
		cancel()
	}
	require.ErrorAs(t, err, &unfinished)
	assert.Positive(t, unfinished.Messages)
}

type spawnerFunc func(context.Context, session.Command) (session.Process, error)

func (f spawnerFunc) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	return f(ctx, c)
}
