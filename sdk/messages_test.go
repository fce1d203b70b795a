package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// The error of a session that failed matches the types of its reasons.
func TestAFailureMatchesItsReasons(t *testing.T) {
	t.Parallel()
	crash := &session.PanicError{Value: errors.New("boom"), Message: "hook"}
	failed := fmt.Errorf("session failed: %w", &supervisor.Failure{Supervisor: "session", Child: "router", Reason: crash})
	var p *session.PanicError
	require.ErrorAs(t, failed, &p)
	assert.Equal(t, "hook", p.Message)
	var s *supervisor.Failure
	require.ErrorAs(t, failed, &s)
	assert.Equal(t, "router", s.Child)
	assert.NotErrorIs(t, failed, session.ErrNoRoom)
}

func allowed(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Allow(), nil
}

// The views of a running session.
func TestViewsOfASession(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(
			&scripted.Partial{Chunks: []string{"Let me ", "look."}},
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}, Result: "a.txt"},
			scripted.Text("There is a file.")))
		o.IncludePartialMessages = true
		o.CanUseTool = allowed
		var drafts view.Drafts
		var calls view.ToolCalls
		var costs view.Costs
		for m, err := range sdk.Query(w.Context(), "What is here?", o) {
			require.NoError(w, err)
			drafts.Add(m)
			calls.Add(m)
			costs.Add(m)
			assert.False(w, view.Replayed(m))
		}
		var text []string
		for _, d := range drafts.All() {
			if s := d.Content().Text(); s != "" {
				text = append(text, s)
			}
		}
		assert.Equal(w, []string{"Let me look.", "There is a file."}, text)
		require.Len(w, calls.All(), 1)
		call := calls.All()[0]
		assert.Equal(w, view.CallDone, call.State)
		bash, err := call.Input()
		require.NoError(w, err)
		assert.Equal(w, "ls", bash.(*tools.BashInput).Command)
		assert.Len(w, costs.Turns(), 1)
		assert.Zero(w, costs.Gap())
	})
}
