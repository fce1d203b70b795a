//go:build conformance

package conformance_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// TestACPAgentThatDies kills the agent while its tool runs: the editor's call is closed,
// its prompt has one answer, and the tool's shell is gone.
func TestACPAgentThatDies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var held atomic.Bool
	done := modelapi.Say(modelapi.Text("Hold done."))
	r.model.Script("hold", func(c modelapi.Call) modelapi.Reply {
		if held.CompareAndSwap(false, true) {
			return modelapi.Say(r.holding(nil))(c)
		}
		return done(c)
	}, done)
	go func() {
		if _, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Path == "/running" }); err == nil {
			r.kill()
		}
	}()
	told := outlineACP(acpEditor(r, "take your time [[scn:hold]]"))
	told = told[:slices.Index(told, "history")]
	assert.Equal(t, []string{
		"tool_call pending", "tool_call_update", "permission", "tool_call_update in_progress", "tool_call_update failed", "agent_message_chunk", "end_turn",
	}, told)
	assert.Empty(t, r.held())
}
