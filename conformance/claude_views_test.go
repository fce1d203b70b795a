//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
)

// TestViews: what the views make of a turn with streaming and many tools.
func TestViews(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := func(name string, input modelapi.Args) modelapi.Step {
		return modelapi.Say(modelapi.ToolUse(name, input))
	}
	file := r.at("a.txt")
	r.model.Script("tour",
		modelapi.Always(modelapi.Reply{Chunks: 7, Blocks: []modelapi.Block{
			modelapi.Thinking("Erst überlegen …"), modelapi.Text("Grüße, 世界 👋."),
			modelapi.ToolUse("Write", modelapi.Args{"file_path": file, "content": "alpha\nbeta\n"}),
			modelapi.ToolUse("TaskCreate", modelapi.Args{"subject": "One", "description": "first", "activeForm": "Doing one"}),
		}}),
		one("TaskCreate", modelapi.Args{"subject": "Two", "description": "second"}),
		one("TaskUpdate", modelapi.Args{"taskId": "1", "status": "in_progress", "addBlocks": []string{"2"}}),
		one("Read", modelapi.Args{"file_path": file}),
		one("Edit", modelapi.Args{"file_path": file, "old_string": "alpha", "new_string": "omega"}),
		one("Glob", modelapi.Args{"pattern": "*.txt"}),
		one("Grep", modelapi.Args{"pattern": "omega", "output_mode": "content", "-C": 1}),
		one("Bash", modelapi.Args{"command": "echo out; echo err >&2", "description": "say it"}),
		one("Bash", modelapi.Args{"command": "exit 3"}),
		one("TaskList", modelapi.Args{}),
		one("TaskUpdate", modelapi.Args{"taskId": "1", "status": "completed"}),
		modelapi.Say(modelapi.Text("Done.")),
	)
	o := r.options()
	o.IncludePartialMessages = true
	o.Tools = sdk.Only("Write", "Read", "Edit", "Glob", "Grep", "Bash", "TaskCreate", "TaskUpdate", "TaskList")
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil
	}
	all, result := r.once(o, "go [[scn:tour]]")

	var calls view.ToolCalls
	var costs view.Costs
	for _, m := range all {
		calls.Add(m)
		costs.Add(m)
	}
	assembled(t, all)
	require.Len(t, calls.All(), 12)
	for i, call := range calls.All() {
		in, err := call.Input()
		require.NoError(t, err)
		assert.IsNotType(t, &tools.UnknownInput{}, in)
		again, err := tools.EncodeInput(in)
		require.NoError(t, err)
		twice, err := tools.DecodeInput(call.Name, again)
		require.NoError(t, err)
		assert.Equal(t, in, twice, call.Name)
		out, err := call.Output()
		require.NoError(t, err)
		if i == 9 { // exit 3
			assert.Equal(t, view.CallFailed, call.State)
			assert.IsType(t, new(tools.Text), out)
			continue
		}
		assert.Equal(t, view.CallDone, call.State, call.Name)
		assert.NotNil(t, out, call.Name)
		assert.IsNotType(t, &tools.UnknownOutput{}, out)
	}
	assert.Equal(t, []view.TodoEntry{
		{ID: "1", Content: "One", Description: "first", ActiveForm: "Doing one", Status: tools.StatusCompleted},
		{ID: "2", Content: "Two", Description: "second", Status: tools.StatusPending, BlockedBy: []string{"1"}},
	}, view.TodoEntries(all...))
	require.Len(t, costs.Turns(), 1)
	assert.InDelta(t, result.TotalCostUSD, costs.Spent().USD, 1e-9)
	assert.Zero(t, costs.Gap())
}

// TestViewsOfABrokenStream: an answer that breaks off is made again, and what
// there was of it does not stay.
func TestViewsOfABrokenStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("cut", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Text("first, whole."), modelapi.Text("second, in pieces.")}, Chunks: 6,
		Cut: &modelapi.Cut{After: 8, Times: 1, Stall: 2 * time.Second}, // so that pieces are read before the end
	}))
	o := r.options()
	o.IncludePartialMessages = true
	all, result := r.once(o, "go [[scn:cut]]")
	assert.False(t, result.Failed())
	var abandoned []*protocol.AbandonedBlocks
	for _, m := range only[*sdk.PartialAssistantMessage](all) {
		if m.AbandonedBlocks != nil {
			abandoned = append(abandoned, m.AbandonedBlocks)
		}
	}
	require.Len(t, abandoned, 1)
	assert.Equal(t, 1, abandoned[0].FromBlockIndex, "the first block was whole")
	assembled(t, all)
}

// assembled compares what is made of the pieces of each message with its
// assistant lines.
func assembled(t *testing.T, all []sdk.Message) {
	t.Helper()
	var drafts view.Drafts
	whole := map[string]protocol.Content{}
	for _, m := range all {
		drafts.Add(m)
		if a, ok := m.(*sdk.AssistantMessage); ok {
			whole[a.Message.ID] = append(whole[a.Message.ID], a.Message.Content...)
		}
	}
	seen := map[string]bool{}
	for _, d := range drafts.All() {
		seen[d.ID] = true
		for _, b := range d.Blocks {
			assert.True(t, b.Complete)
			assert.Empty(t, b.PartialInput)
		}
		assert.JSONEq(t, encodedContent(t, whole[d.ID]), encodedContent(t, d.Content()), "message %s, aborted=%t", d.ID, d.Aborted)
	}
	for id := range whole {
		assert.True(t, seen[id], "message %s is missing", id)
	}
}

func encodedContent(t *testing.T, c protocol.Content) string {
	t.Helper()
	b, err := json.Marshal(append(protocol.Content{}, c...))
	require.NoError(t, err)
	return string(b)
}
