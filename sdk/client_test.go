package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// say sends a text and returns the result of its turn.
func (w *world) say(c *sdk.Client, text string) *sdk.ResultMessage {
	w.Helper()
	t, err := c.Send(w.Context(), sdk.UserText(text))
	require.NoError(w, err)
	r, err := t.Result(w.Context())
	require.NoError(w, err)
	return r
}

func TestConversation(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/unstable_v2_createSession", "claude/function/startup")
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one")), turn(scripted.Text("two"))))
		assert.Equal(w, session.StateReady, c.State())
		first, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		all, err := sdk.Collect(first.Messages(w.Context()))
		require.NoError(w, err)
		assert.Equal(w, []string{"init", "assistant", "result/success"}, kinds(all))
		r := all[len(all)-1].(*sdk.ResultMessage)
		assert.Equal(w, "one", r.Result)
		assert.Equal(w, first.UUID(), r.UserMessageUUID)
		assert.NotEmpty(w, c.SessionID())
		assert.Equal(w, "two", w.say(c, "and?").Result)
		require.NoError(w, c.AwaitIdle(w.Context()))
		w.close(c)
		assert.Equal(w, session.StateClosed, c.State())
	})
}

func TestMessagesOfTheWholeSession(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one"))))
		_, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		for m, err := range c.Messages(w.Context()) {
			require.NoError(w, err)
			if r, ok := m.(*sdk.ResultMessage); ok {
				assert.Equal(w, "one", r.Result)
				w.close(c) // ends the loop
			}
		}
	})
}

func TestSecondReaderIsBusy(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one"))))
		defer w.close(c)
		t, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		for m, err := range t.Messages(w.Context()) {
			require.NoError(w, err)
			if _, ok := m.(*sdk.InitMessage); !ok {
				continue
			}
			_, busy := sdk.Collect(c.Messages(w.Context()))
			require.ErrorIs(w, busy, sdk.ErrBusy)
		}
		again, err := c.Send(w.Context(), sdk.UserText("again"))
		require.NoError(w, err)
		_, err = sdk.Collect(again.Messages(w.Context()))
		require.NoError(w, err, "the stream was not given back")
	})
}

func TestInterruptFromInsideTheLoop(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one"), hour, scripted.Text("two"))))
		defer w.close(c)
		t, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		var all []sdk.Message
		for m, err := range t.Messages(w.Context()) {
			require.NoError(w, err)
			all = append(all, m)
			if _, ok := m.(*sdk.AssistantMessage); ok {
				receipt, err := c.Interrupt(w.Context())
				require.NoError(w, err)
				assert.Empty(w, receipt.StillQueued)
			}
		}
		r := all[len(all)-1].(*sdk.ResultMessage)
		assert.True(w, r.Failed())
	})
}

func TestInterruptAllCancelsWhatIsQueued(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options(turn(scripted.Text("one"), hour)))
		defer w.close(c)
		first, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		later, err := c.Send(w.Context(), sdk.UserText("later"))
		require.NoError(w, err)
		for m, err := range first.Messages(w.Context()) {
			require.NoError(w, err)
			if _, ok := m.(*sdk.AssistantMessage); ok {
				receipt, err := c.InterruptAll(w.Context())
				require.NoError(w, err)
				assert.Equal(w, []string{later.UUID()}, receipt.Cancelled)
			}
		}
		_, err = later.Result(w.Context())
		require.ErrorIs(w, err, session.ErrNotRun)
	})
}

func TestCloseAgainAndAgain(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/method/close")
	in(t, func(w *world) {
		c := w.connect(w.options())
		w.close(c)
		w.close(c)
		_, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.ErrorIs(w, err, sdk.ErrClosed)
		require.ErrorIs(w, c.SetModel(w.Context(), "opus"), sdk.ErrClosed)
		require.ErrorIs(w, c.Connect(w.Context()), sdk.ErrClosed)
		_, err = sdk.Collect(c.Messages(w.Context()))
		require.NoError(w, err, "a closed session has a normal end")
	})
}

func TestClientThatIsNotConnected(t *testing.T) {
	t.Parallel()
	c := sdk.NewClient(nil)
	_, err := c.Send(t.Context(), sdk.UserText("hi"))
	require.ErrorIs(t, err, sdk.ErrNotConnected)
	_, err = c.Interrupt(t.Context())
	require.ErrorIs(t, err, sdk.ErrNotConnected)
	_, err = sdk.Collect(c.Messages(t.Context()))
	require.ErrorIs(t, err, sdk.ErrNotConnected)
	require.ErrorIs(t, c.AwaitIdle(t.Context()), sdk.ErrNotConnected)
	_, err = c.Initialized()
	require.ErrorIs(t, err, sdk.ErrNotConnected)
	_, err = c.SideQuestion(t.Context(), "why?")
	require.ErrorIs(t, err, sdk.ErrNotConnected)
	for range c.Events(t.Context()) {
		t.Error("an event of nothing")
	}
	assert.Empty(t, c.SessionID())
	assert.Nil(t, c.Warnings())
	assert.Equal(t, session.StateAdmitting, c.State())
	require.NoError(t, c.Close(t.Context()))
	require.ErrorIs(t, c.Connect(t.Context()), sdk.ErrClosed)
}

func TestCloseFromACallback(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		var c *sdk.Client
		closed := make(chan struct{})
		o := w.options(turn(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm"}}))
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			defer close(closed)
			assert.NoError(w, c.Close(context.Background()))
			return sdk.Allow(), nil
		}
		c = w.connect(o)
		t, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		_, err = t.Result(w.Context())
		if err != nil { // else the interrupted turn had its result in time
			require.ErrorIs(w, err, sdk.ErrClosed)
		}
		w.await(closed)
	})
}

func TestConnectAgain(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "refuse", Error: "no", Code: "bad"}}})
		c := sdk.NewClient(o)
		err := c.Connect(w.Context())
		var refused *sdk.ControlError
		require.ErrorAs(w, err, &refused)
		assert.Equal(w, "bad", refused.Code)
		assert.Empty(w, open(w.rt), "something is left of a failed start")
		require.Error(w, c.Connect(w.Context()), "a second try is a try")

		o = w.options()
		c = w.connect(o)
		require.NoError(w, c.Connect(w.Context()), "connected already")
		assert.Len(w, open(w.rt), 1)
		w.close(c)
	})
}

func TestConnectAtTheSameTime(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := sdk.NewClient(w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Delay: 10 * time.Millisecond}}}))
		other := make(chan struct{})
		var theirs error
		w.rt.Executor().Go(func() {
			defer close(other)
			theirs = c.Connect(w.Context())
		})
		require.NoError(w, c.Connect(w.Context()))
		w.await(other)
		require.NoError(w, theirs)
		assert.Len(w, open(w.rt), 1)
		w.close(c)
	})
}

func TestCloseWhileConnecting(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := sdk.NewClient(w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}}))
		ended := make(chan struct{})
		var err error
		w.rt.Executor().Go(func() {
			defer close(ended)
			err = c.Connect(w.Context())
		})
		for len(open(w.rt)) == 0 && w.sim == nil { // the attempt is under way
			require.NoError(w, w.Context().Err())
		}
		for w.sim != nil && len(open(w.rt)) == 0 {
			require.True(w, w.sim.Step())
		}
		w.close(c)
		w.await(ended)
		require.ErrorIs(w, err, sdk.ErrClosed)
		assert.Empty(w, open(w.rt))
	})
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/option/abortController", "claude/error/AbortError")
	why := errors.New("the user went home")
	check := func(w *world, err error) {
		w.Helper()
		require.ErrorIs(w, err, context.Canceled)
		require.ErrorIs(w, err, why, "the cause is lost")
	}
	cancelled := func(w *world) context.Context {
		ctx, cancel := context.WithCancelCause(w.Context())
		cancel(why)
		return ctx
	}
	steps := map[string]func(w *world){
		"before a query": func(w *world) {
			_, err := sdk.Collect(sdk.Query(cancelled(w), "hi", w.options()))
			check(w, err)
		},
		"while connecting": func(w *world) {
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			o := w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}})
			o.OnEvent = func(e sdk.EventRecord) {
				if e.Event.String() == "state starting -> initializing" {
					cancel(why)
				}
			}
			check(w, sdk.NewClient(o).Connect(ctx))
		},
		"in a turn": func(w *world) {
			ctx, cancel := context.WithCancelCause(w.Context())
			defer cancel(nil)
			var last error
			for m, err := range sdk.Query(ctx, "hi", w.options(turn(scripted.Text("one"), hour))) {
				if _, ok := m.(*sdk.AssistantMessage); ok {
					cancel(why)
				}
				last = err
			}
			check(w, last)
		},
		"of a turn": func(w *world) {
			c := w.connect(w.options(turn(hour)))
			defer w.close(c)
			t, err := c.Send(w.Context(), sdk.UserText("hi"))
			require.NoError(w, err)
			_, err = t.Result(cancelled(w))
			check(w, err)
			_, err = c.Send(cancelled(w), sdk.UserText("and more"))
			check(w, err)
			check(w, c.AwaitIdle(cancelled(w)))
		},
		"of a request": func(w *world) {
			c := w.connect(w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Ignore: []string{"*"}}}))
			defer w.close(c)
			check(w, c.SetModel(cancelled(w), "opus"))
		},
		"of a close": func(w *world) {
			c := w.connect(w.options())
			err := c.Close(cancelled(w))
			if err != nil { // else the end came first
				check(w, err)
			}
			if err := c.Close(w.Context()); err != nil { // the first had the agent killed
				require.ErrorAs(w, err, new(*session.KilledError))
			}
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, step)
		})
	}
}

func TestRequestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Ignore: []string{"set_model"}}})
		o.Limits.Control = 20 * time.Millisecond
		c := w.connect(o)
		defer w.close(c)
		err := c.SetModel(w.Context(), "opus") // however busy the machine is: there is no answer
		var late *sdk.TimeoutError
		require.ErrorAs(w, err, &late)
		require.ErrorIs(w, err, context.DeadlineExceeded)
		assert.NotErrorIs(w, err, context.Canceled)
		assert.True(w, sdk.Retryable(err))
	})
}

func TestRequestThatIsRefused(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.script(scripted.Script{Misbehave: scripted.Misbehaviour{Refuse: []string{"set_permission_mode"}}}))
		defer w.close(c)
		var refused *sdk.ControlError
		require.ErrorAs(w, c.SetPermissionMode(w.Context(), sdk.ModePlan), &refused)
	})
}

func TestControl(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options())
		defer w.close(c)
		var answer struct{ Mode string }
		require.NoError(w, c.Control(w.Context(), "set_permission_mode", map[string]string{"mode": "plan"}, &answer))
		assert.Equal(w, "plan", answer.Mode)
		var raw json.RawMessage
		require.NoError(w, c.Control(w.Context(), "mcp_status", nil, &raw))
		assert.True(w, json.Valid(raw))
		require.ErrorContains(w, c.Control(w.Context(), "x", []int{1}, nil), "not a JSON object")
		require.ErrorContains(w, c.Control(w.Context(), "x", func() {}, nil), "not a JSON object")
		require.ErrorContains(w, c.Control(w.Context(), "", nil, nil), "empty subtype")
		require.Error(w, heard(sdk.Call[any](w.Context(), c, nil)))
		var refused *sdk.ControlError
		require.ErrorAs(w, c.Control(w.Context(), "no_such_thing", nil, nil), &refused)
	})
}

func TestRequestThatTheBackendLacks(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options())
		defer w.close(c)
		_, err := c.Goal(w.Context())
		var lacks *session.UnsupportedCapabilityError
		require.ErrorAs(w, err, &lacks)
		assert.Equal(w, "claude", lacks.Backend)
	})
}

func TestInitialized(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/method/initializationResult", "claude/method/supportedCommands", "claude/method/supportedModels", "claude/method/supportedAgents", "claude/method/accountInfo", "claude/feature/Account-Info", "claude/feature/Slash-Commands/Skills")
	in(t, func(w *world) {
		c := w.connect(w.script(scripted.Script{Initialize: map[string]any{
			"commands": []any{map[string]any{"name": "compact", "description": "d", "argumentHint": ""}},
			"models":   []any{map[string]any{"value": "opus", "displayName": "Opus", "description": "d"}},
			"agents":   []any{map[string]any{"name": "reviewer", "description": "d"}},
			"account":  map[string]any{"email": "a@example.com"},
		}}))
		defer w.close(c)
		commands, err := c.Commands()
		require.NoError(w, err)
		models, err := c.Models()
		require.NoError(w, err)
		agents, err := c.Agents()
		require.NoError(w, err)
		account, err := c.Account()
		require.NoError(w, err)
		assert.Equal(w, []string{"compact", "opus", "reviewer", "a@example.com"},
			[]string{commands[0].Name, models[0].Value, agents[0].Name, account.Email})
	})
}

func TestWarningsAreToldAsEventsToo(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options()
		l := record(o)
		o.AllowedTools = []string{"Bash"}
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		}
		c := w.connect(o)
		require.Len(w, c.Warnings(), 1)
		assert.Equal(w, "Bash", c.Warnings()[0].Rule)
		w.close(c)
		assert.Contains(w, w.events(l), &session.WarningIssued{Problem: c.Warnings()[0].String()})
	})
}

func TestStderr(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/option/stderr")
	in(t, func(w *world) {
		seen := make(chan struct{})
		o := w.options(turn(scripted.Stderr("look out"), scripted.Text("one")))
		o.Stderr = func(line string) {
			if line == "look out" {
				close(seen)
			}
		}
		c := w.connect(o)
		w.say(c, "hi")
		w.close(c)
		w.await(seen)
	})
}
