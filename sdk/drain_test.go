package sdk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// held is a session in whose first turn a tool waits for a permission. release gives
// it; held returns when the tool waits.
func (w *world) held() (c *sdk.Client, first *sdk.Turn, release func()) {
	w.Helper()
	asked, free := make(chan struct{}), make(chan struct{})
	o := w.options(turn(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm"}}, scripted.Text("one")))
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		close(asked)
		return sdk.Allow(), w.rt.Executor().Await(ctx, free)
	}
	c = w.connect(o)
	first, err := c.Send(w.Context(), sdk.UserText("hi"))
	require.NoError(w, err)
	w.await(asked)
	return c, first, func() { close(free) }
}

// beginDrain makes a drain begin whose context has ended already.
func (w *world) beginDrain(drain func(context.Context) error) error {
	w.Helper()
	over, cancel := context.WithCancel(w.Context())
	cancel()
	err := drain(over)
	require.ErrorIs(w, err, context.Canceled)
	return err
}

func TestDrainLetsTurnsEnd(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c, first, release := w.held()
		second, err := c.Send(w.Context(), sdk.UserText("and?"))
		require.NoError(w, err)
		var unfinished *session.UnfinishedError
		began := w.rt.Clock().Now()
		require.ErrorAs(w, w.beginDrain(c.Drain), &unfinished)
		if w.promptly(began) {
			assert.NotEmpty(w, unfinished.Waits)
		}
		_, err = c.Send(w.Context(), sdk.UserText("more"))
		require.ErrorIs(w, err, session.ErrDraining)
		assert.False(w, sdk.Retryable(err))
		// The callback may run before the session has heard that it is asked.
		assert.Contains(w, []session.State{session.StateRunning, session.StateAwaitingHost}, c.State(), "the turn goes on")
		require.NoError(w, c.Err())
		drained := w.Task(func() { assert.NoError(w, c.Drain(w.Context())) })
		release()
		r, err := first.Result(w.Context())
		require.NoError(w, err)
		assert.Equal(w, "one", r.Result)
		_, err = second.Result(w.Context())
		require.NoError(w, err, "what was sent before the drain is answered")
		drained()
		w.await(c.Done())
		require.NoError(w, c.Err())
		assert.Equal(w, session.StateClosed, c.State())
		require.NoError(w, c.Drain(w.Context()), "again")
	})
}

func TestDrainOfARuntime(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		busy, first, release := w.held()
		idle := w.connect(w.options())
		require.ErrorContains(w, w.beginDrain(w.rt.Drain), "not ended") // the idle one may have ended already
		w.await(idle.Done())                                            // it had nothing to do
		require.ErrorIs(w, sdk.NewClient(w.options()).Connect(w.Context()), session.ErrShutdown)
		_, err := busy.Send(w.Context(), sdk.UserText("more"))
		require.ErrorIs(w, err, session.ErrDraining)
		drained := w.Task(func() { assert.NoError(w, w.rt.Drain(w.Context())) })
		release()
		_, err = first.Result(w.Context())
		require.NoError(w, err)
		drained()
		assert.Empty(w, open(w.rt))
		require.NoError(w, w.rt.Drain(w.Context()), "again")
	})
}

func TestDoneAndErr(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := sdk.NewClient(w.script(scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{&scripted.Exit{Code: 3}}}}}))
		assert.Nil(w, c.Done())
		require.NoError(w, c.Err())
		require.NoError(w, c.Connect(w.Context()))
		select {
		case <-c.Done():
			assert.Fail(w, "it lives")
		default:
		}
		_, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		w.await(c.Done())
		var exit *sdk.ExitError
		require.ErrorAs(w, c.Err(), &exit)
		assert.Equal(w, 3, exit.Status.Code)
		require.NoError(w, c.Drain(w.Context()), "nothing is left to wait for")
		require.ErrorAs(w, c.Err(), &exit, "and the reason stays")

		unused := sdk.NewClient(nil)
		require.NoError(w, unused.Drain(w.Context()))
		w.await(unused.Done())
		require.ErrorIs(w, unused.Connect(w.Context()), sdk.ErrClosed)
	})
}
