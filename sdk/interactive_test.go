package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

func ask(command string) *scripted.ToolUse {
	return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": command}, Gate: agent.GateAsk, Result: command}
}

func (w *world) interact(o *sdk.Options, prompts ...string) *sdk.Interactive {
	w.Helper()
	c := sdk.NewInteractive(o)
	require.NoError(w, c.Connect(w.Context()))
	for _, prompt := range prompts {
		_, err := c.Send(w.Context(), sdk.UserText(prompt))
		require.NoError(w, err)
	}
	return c
}

// updates are the updates up to and with the first result; answer answers.
func (w *world) updates(c *sdk.Interactive, answer func(sdk.Update)) (all []string) {
	w.Helper()
	for u, err := range c.Updates(w.Context()) {
		require.NoError(w, err)
		switch {
		case u.Permission != nil:
			all = append(all, "permission")
		case u.Elicitation != nil:
			all = append(all, "elicitation")
		case u.Dialog != nil:
			all = append(all, "dialog")
		default:
			all = append(all, kinds([]sdk.Message{u.Message})...)
		}
		answer(u)
		if _, over := u.Message.(*sdk.ResultMessage); over {
			return all
		}
	}
	return all
}

func TestQuestionsComeInTheirPlaces(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(scripted.Text("first"), ask("date"), scripted.Text("then"), ask("rm"), scripted.Text("done")))
		c := w.interact(o, "hi")
		defer w.close(c.Client)
		var asked []string
		got := w.updates(c, func(u sdk.Update) {
			if u.Permission == nil {
				return
			}
			asked = append(asked, string(u.Permission.Request.Input))
			answer := sdk.Deny("not that")
			if len(asked) == 1 {
				answer = sdk.Allow()
			}
			assert.True(w, u.Permission.Answer(answer))
			w.await(u.Permission.Done())
			assert.False(w, u.Permission.Answer(sdk.Allow()), "the first answer counts")
		})
		assert.Equal(w, []string{
			"init", "assistant", "assistant", "permission", "user",
			"assistant", "assistant", "permission", "user", "assistant", "result/success",
		}, got)
		assert.Equal(w, []string{`{"command":"date"}`, `{"command":"rm"}`}, asked)
	})
}

func TestAQuestionIsAnsweredOutsideTheLoop(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.interact(w.options(turn(ask("date"), scripted.Text("done"))), "hi")
		defer w.close(c.Client)
		var open *sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]
		for u, err := range c.Updates(w.Context()) {
			require.NoError(w, err)
			if open = u.Permission; open != nil {
				break
			}
		}
		answered := w.Task(func() { assert.True(w, open.Answer(sdk.Allow())) })
		got := w.updates(c, func(sdk.Update) {})
		answered()
		assert.Equal(w, []string{"user", "assistant", "result/success"}, got, "the next loop has the rest")
	})
}

// A question waits for a loop, and comes after the messages that wait, too.
func TestAQuestionWaitsForALoop(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		asked := make(chan struct{})
		o := w.options(turn(scripted.Text("one"), scripted.Text("two"), ask("date")))
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			close(asked)
			return sdk.PreToolUseOutput{}, nil
		})}
		c := w.interact(o, "hi")
		defer w.close(c.Client)
		w.await(asked)
		got := w.updates(c, func(u sdk.Update) {
			if u.Permission != nil {
				u.Permission.Answer(sdk.Allow())
			}
		})
		assert.Equal(w, []string{"init", "assistant", "assistant", "assistant", "permission", "user", "result/success"}, got)
	})
}

func TestWithdrawnQuestions(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.interact(w.options(turn(ask("date")), turn(scripted.Text("next"))), "hi")
		var open *sdk.Ask[sdk.ToolPermissionRequest, sdk.PermissionResult]
		got := w.updates(c, func(u sdk.Update) {
			if open = u.Permission; open != nil {
				_, err := c.Interrupt(w.Context())
				assert.NoError(w, err)
				w.await(open.Done())
				assert.False(w, open.Answer(sdk.Allow()), "nobody waits for it any more")
			}
		})
		assert.Equal(w, "permission", got[2])
		w.close(c.Client)
	})
}

func TestUpdatesEnd(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.interact(w.options(turn(scripted.Text("one"))), "hi")
		ctx, cancel := context.WithCancelCause(w.Context())
		defer cancel(nil)
		enough := errors.New("enough")
		var last error
		for u, err := range c.Updates(ctx) {
			last = err
			if _, over := u.Message.(*sdk.ResultMessage); over {
				for _, busy := range c.Updates(w.Context()) {
					require.ErrorIs(w, busy, sdk.ErrBusy)
				}
				cancel(enough)
			}
		}
		require.ErrorIs(w, last, enough)
		require.ErrorIs(w, last, context.Canceled)
		w.close(c.Client)
		for _, err := range c.Updates(w.Context()) {
			require.NoError(w, err, "a session that was closed just ends")
		}
	})
	for _, err := range sdk.NewInteractive(nil).Updates(t.Context()) {
		require.ErrorIs(t, err, sdk.ErrNotConnected)
	}
}

func TestOtherQuestionsAreUpdates(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(
			&scripted.Elicitation{Server: "shop", Message: "Size?"}, &scripted.Dialog{Kind: "confirm"},
			scripted.Text("done"),
		))
		o.SupportedDialogKinds = []string{"confirm"}
		c := w.interact(o, "hi")
		defer w.close(c.Client)
		got := w.updates(c, func(u sdk.Update) {
			switch {
			case u.Elicitation != nil:
				assert.Equal(w, "Size?", u.Elicitation.Request.Message)
				u.Elicitation.Answer(protocol.ElicitationResult{Action: protocol.ElicitAccept})
			case u.Dialog != nil:
				assert.Equal(w, "confirm", u.Dialog.Request.DialogKind)
				u.Dialog.Answer(protocol.UserDialogResult{})
			}
		})
		assert.Equal(w, []string{"init", "elicitation", "dialog", "assistant", "result/success"}, got)
	})
}

func TestCallbacksOfTheOptionsStay(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(ask("date"), scripted.Text("done")))
		own := 0
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			own++
			return sdk.Allow(), nil
		}
		c := w.interact(o, "hi")
		defer w.close(c.Client)
		assert.NotContains(w, w.updates(c, func(sdk.Update) {}), "permission")
		assert.Equal(w, 1, own)
	})
}
