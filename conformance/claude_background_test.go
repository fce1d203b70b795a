//go:build conformance

package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

func TestSubagentInTheForeground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	all, result := r.ask(c, "delegate [[scn:agentfg]]")
	assert.Equal(t, "Agent fg done.", result.Result)
	assert.Equal(t, []string{"init", "assistant tool_use", "user tool_result", "assistant text", "result success"}, outline(all))

	call := sdk.ToolUses(only[*sdk.AssistantMessage](all)[0])[0].ID
	var nested []string
	for _, m := range all {
		if m.Meta().ParentToolUseID == "" {
			continue
		}
		assert.Equal(t, call, m.Meta().ParentToolUseID)
		for _, use := range sdk.ToolUses(m) {
			nested = append(nested, use.Name)
		}
		for _, told := range sdk.ToolResults(m) {
			nested = append(nested, told.Content.Text())
		}
	}
	assert.Equal(t, []string{"Bash", "hi-from-bash"}, nested)
	started := only[*sdk.TaskStartedMessage](all)
	require.Len(t, started, 1)
	assert.False(t, started[0].IsBackgrounded)
	assert.Equal(t, call, started[0].ToolUseID)
	ended := only[*sdk.TaskNotificationMessage](all)
	require.Len(t, ended, 1)
	assert.Equal(t, started[0].TaskID, ended[0].TaskID)
	assert.Equal(t, "completed", ended[0].Status)
	r.close(c)
}

// One message has two results: its own, and that of the turn which the agent
// starts when the background work is done.
func TestSubagentInTheBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	all, err := sdk.Collect(sdk.Query(r.ctx, sdk.Input("delegate [[scn:agentbg]]"), o))
	require.NoError(t, err)
	r.nothingRuns()
	results := only[*sdk.ResultMessage](all)
	require.Len(t, results, 2)
	assert.Equal(t, "Agent launched.", results[0].Result)
	assert.Nil(t, results[0].Origin)
	assert.Equal(t, "Agent notification handled.", results[1].Result)
	require.NotNil(t, results[1].Origin)
	assert.Equal(t, "task-notification", results[1].Origin.Kind)
	assert.Len(t, only[*sdk.InitMessage](all), 2)
	started := only[*sdk.TaskStartedMessage](all)
	require.Len(t, started, 1)
	assert.True(t, started[0].IsBackgrounded)
	ended := only[*sdk.TaskNotificationMessage](all)
	require.Len(t, ended, 1)
	assert.Equal(t, "completed", ended[0].Status)
}

func TestRunReturnsAfterTheBackgroundWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	result, err := sdk.Run(r.ctx, "delegate [[scn:agentbg]]", o)
	require.NoError(t, err)
	assert.Equal(t, "Agent notification handled.", result.Result)
	r.nothingRuns()
}

func TestShellInTheBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	turn := r.send(c, "in the background [[scn:bgbash]]")
	first, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "Background started.", first.Result)
	rd := r.read(c)
	second := rd.until("the second result", isA[*sdk.ResultMessage])
	assert.Equal(t, "Notified.", sdk.TextOf(second))
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.close(c)
	require.NoError(t, rd.rest())

	assert.Len(t, only[*sdk.ResultMessage](rd.seen), 1)
	ended := only[*sdk.TaskNotificationMessage](rd.seen)
	require.Len(t, ended, 1)
	assert.Equal(t, "completed", ended[0].Status)
	assert.NotEmpty(t, ended[0].OutputFile)
}

// Permission is asked for after the first result, so stdin must be open still.
func TestSubagentInTheBackgroundAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("delegate", modelapi.Say(modelapi.ToolUse("Agent", modelapi.Args{
		"description": "nested", "prompt": r.touch("nested"), "subagent_type": "general-purpose", "run_in_background": true,
	})), modelapi.Say(modelapi.Text("Launched.")), modelapi.Say(modelapi.Text("Notified.")))
	first, asked := make(chan struct{}), make(chan string, 1)
	o := r.options()
	o.CanUseTool = func(ctx context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked <- ask.AgentID
		select {
		case <-first:
			return sdk.Deny("the subagent may not"), nil
		case <-ctx.Done():
			return sdk.Deny(""), ctx.Err()
		}
	}
	var all []sdk.Message
	for m, err := range sdk.Query(r.ctx, sdk.Input("delegate [[scn:delegate]]"), o) {
		require.NoError(t, err)
		all = append(all, m)
		if len(only[*sdk.ResultMessage](all)) == 1 && isA[*sdk.ResultMessage](m) {
			close(first)
		}
	}
	r.nothingRuns()
	assert.NotEmpty(t, await(r, "the question", asked))
	assert.Len(t, only[*sdk.ResultMessage](all), 2)
	assert.NoFileExists(t, r.at("nested"))
	seen := r.modelSaw("touch").ToolResults()
	require.Len(t, seen, 1)
	assert.Equal(t, "the subagent may not", seen[0].Text)
	assert.Empty(t, r.pendingAtEOF())
}

// Background work does not keep a session from being closed.
func TestCloseWhileAShellRunsInTheBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, running := r.hold()
	r.model.Script("bghold", modelapi.Say(r.holding(modelapi.Args{"run_in_background": true})), modelapi.Say(modelapi.Text("Started.")))
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	_, result := r.ask(c, "in the background [[scn:bghold]]")
	assert.Equal(t, "Started.", result.Result)
	running()
	r.close(c)
}
