package sdk_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A development server never ends.
func TestRunDoesNotWaitForEverForBackgroundWork(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(&scripted.Shell{Command: "npm run dev", Description: "server", Gate: agent.GateAllow, Takes: 1000 * time.Hour}, scripted.Text("it runs")))
		o.Limits.Background = 20 * time.Millisecond
		events := record(o)
		result, err := sdk.Run(w.Context(), "start the server", o)
		require.NoError(w, err)
		assert.Equal(w, "it runs", result.Result)
		require.Len(w, result.BackgroundTasks, 1)
		assert.Equal(w, "server", result.BackgroundTasks[0].Description)
		warned := false
		for _, e := range w.events(events) {
			if warning, ok := e.(*session.WarningIssued); ok {
				warned = true
				assert.Contains(w, warning.Problem, "server")
			}
		}
		assert.True(w, warned)
	})
}

func TestLostWritesAreAnErrorOfTheEnd(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		script := turn(&scripted.System{Subtype: "session_writes_lost", Fields: map[string]any{"error_code": "ENOSPC", "lost": []string{"transcript"}}}, scripted.Text("one"))
		var lost *session.WritesLostError
		result, err := sdk.Run(w.Context(), "hi", w.options(script))
		require.ErrorAs(w, err, &lost)
		assert.Equal(w, "ENOSPC", lost.Code)
		assert.Equal(w, "one", result.Result)

		c := w.connect(w.options(script))
		first, err := c.Send(w.Context(), sdk.UserText("hi"))
		require.NoError(w, err)
		_, err = first.Result(w.Context())
		require.NoError(w, err)
		require.ErrorAs(w, c.Close(w.Context()), &lost)
	})
}

func TestCloseSaysThatTheAgentWasKilled(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		s := scripted.Script{Turns: []scripted.Turn{turn(scripted.Text("one"))}}
		s.Misbehave.IgnoreEOF, s.Misbehave.TrapTerm = true, true
		o := w.script(s)
		o.Graces = session.Graces{EOF: time.Millisecond, Terminate: time.Millisecond}
		var killed *session.KilledError
		c := w.connect(o)
		require.ErrorAs(w, c.Close(w.Context()), &killed)
		require.ErrorAs(w, c.Close(w.Context()), &killed, "and again")
		c = w.connect(o)
		require.ErrorAs(w, c.Drain(w.Context()), &killed, "a drain ends with a close")
		result, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err, "the run went well")
		assert.Equal(w, "one", result.Result)
	})
}
