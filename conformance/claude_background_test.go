//go:build conformance

package conformance_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func checkSubagentInTheForeground(t *testing.T, rel release) {
	r := rel.rig(t)
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
	started := only[*protocol.TaskStartedMessage](all)
	require.Len(t, started, 1)
	rel.backgrounded(t, false, started[0])
	assert.Equal(t, call, started[0].ToolUseID)
	ended := only[*protocol.TaskNotificationMessage](all)
	require.Len(t, ended, 1)
	assert.Equal(t, started[0].TaskID, ended[0].TaskID)
	assert.Equal(t, "completed", ended[0].Status)
	r.close(c)
}

// waiting is a call of the Bash tool that ends once release was called.
func (r *rig) waiting(more modelapi.Args) (call modelapi.Block, release func()) {
	args := modelapi.Args{"command": "until [ -e released ]; do sleep 0.05; done; echo released", "description": "wait"}
	maps.Copy(args, more)
	return modelapi.ToolUse("Bash", args), func() {
		assert.NoError(r.t, os.WriteFile(r.at("released"), nil, 0o600))
	}
}

// delegate scripts a subagent in the background. It returns the prompt.
func (r *rig) delegate(task string) string {
	r.model.Script("delegate", modelapi.Say(modelapi.ToolUse("Agent", modelapi.Args{
		"description": "nested", "prompt": task, "subagent_type": "general-purpose", "run_in_background": true,
	})), modelapi.Say(modelapi.Text("Launched.")), modelapi.Say(modelapi.Text("Notified.")))
	return "delegate [[scn:delegate]]"
}

// One message has two results: its own, and that of the turn which the agent
// starts when the background work is done.
func checkSubagentInTheBackground(t *testing.T, rel release) {
	r := rel.rig(t)
	call, release := r.waiting(nil)
	r.model.Script("nested", modelapi.Say(call), modelapi.Say(modelapi.Text("Nested done.")))
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	var all []sdk.Message
	for m, err := range sdk.Query(r.ctx, r.delegate("wait [[scn:nested]]"), o) {
		require.NoError(t, err)
		all = append(all, m)
		if isA[*sdk.ResultMessage](m) {
			release()
		}
	}
	r.nothingRuns()
	results := only[*sdk.ResultMessage](all)
	require.Len(t, results, 2)
	assert.Equal(t, "Launched.", results[0].Result)
	assert.Nil(t, results[0].Origin)
	assert.Equal(t, "Notified.", results[1].Result)
	require.NotNil(t, results[1].Origin)
	assert.Equal(t, "task-notification", results[1].Origin.Kind)
	assert.Len(t, only[*sdk.InitMessage](all), 2)
	started := only[*protocol.TaskStartedMessage](all)
	require.Len(t, started, 1)
	rel.backgrounded(t, true, started[0])
	ended := only[*protocol.TaskNotificationMessage](all)
	require.Len(t, ended, 1)
	assert.Equal(t, "completed", ended[0].Status)
}

func checkRunReturnsAfterTheBackgroundWork(t *testing.T, rel release) {
	r := rel.rig(t)
	call, release := r.waiting(nil)
	r.model.Script("nested", modelapi.Say(call), modelapi.Say(modelapi.Text("Nested done.")))
	prompt := r.delegate("wait [[scn:nested]]")
	go func() {
		_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Marker.Scenario == "delegate" && q.Marker.Step == 1 })
		assert.NoError(t, err)
		release()
	}()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	result, err := sdk.Run(r.ctx, prompt, o)
	require.NoError(t, err)
	assert.Equal(t, "Notified.", result.Result)
	r.nothingRuns()
}

// A development server never ends: Run waits no longer than the limit, says what
// still ran, and leaves nothing running.
func checkRunDoesNotWaitForAServer(t *testing.T, rel release) {
	r := rel.rig(t)
	runs := func(q modelapi.Request) bool { return q.Path == "/running" }
	r.model.Script("server", modelapi.Say(r.holding(modelapi.Args{"run_in_background": true})), func(modelapi.Call) modelapi.Reply {
		_, err := r.model.Wait(r.ctx, runs) // the limit begins with the result
		assert.NoError(t, err, "the command never ran")
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("Started.")}}
	})
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	o.Limits.Background = 2 * time.Second
	result, err := sdk.Run(r.ctx, "in the background [[scn:server]]", o)
	require.NoError(t, err)
	assert.Equal(t, "Started.", result.Result)
	require.Len(t, result.BackgroundTasks, 1)
	assert.NotEmpty(t, result.BackgroundTasks[0].TaskID)
	r.eventually("the warning names the task", func(e session.Event) bool {
		w, ok := e.(*session.WarningIssued)
		return ok && strings.Contains(w.Problem, result.BackgroundTasks[0].TaskID)
	})
	r.nothingRuns()
}

func checkShellInTheBackground(t *testing.T, rel release) {
	r := rel.rig(t)
	call, release := r.waiting(modelapi.Args{"run_in_background": true})
	r.model.Script("shell", modelapi.Say(call), modelapi.Say(modelapi.Text("Started.")), modelapi.Say(modelapi.Text("Notified.")))
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	first, err := r.send(c, "in the background [[scn:shell]]").Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "Started.", first.Result)
	release()
	rd := r.read(c)
	second := rd.until("the second result", isA[*sdk.ResultMessage])
	assert.Equal(t, "Notified.", sdk.TextOf(second))
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.close(c)
	require.NoError(t, rd.rest())

	assert.Len(t, only[*sdk.ResultMessage](rd.seen), 1)
	ended := only[*protocol.TaskNotificationMessage](rd.seen)
	require.Len(t, ended, 1)
	assert.Equal(t, "completed", ended[0].Status)
	output, err := os.ReadFile(ended[0].OutputFile)
	require.NoError(t, err)
	assert.Contains(t, string(output), "released")
}

// Where a subagent runs that was started without a word on it is a habit of the
// release.
func checkSubagentWithoutAWordOnWhere(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	all, err := sdk.Collect(sdk.Query(r.ctx, "delegate [[scn:agent]]", o))
	require.NoError(t, err)
	r.nothingRuns()
	results := only[*sdk.ResultMessage](all)
	if rel.agentInBackground {
		require.Len(t, results, 2)
		require.NotNil(t, results[1].Origin)
		assert.Equal(t, "task-notification", results[1].Origin.Kind)
	} else {
		require.Len(t, results, 1)
	}
	assert.Equal(t, "Agent done.", results[0].Result)
	assert.Len(t, only[*protocol.TaskNotificationMessage](all), 1)
}

// Permission is asked for after the first result, so stdin must be open still.
func TestSubagentInTheBackgroundAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, asked := make(chan struct{}), make(chan string, 1)
	prompts := make(chan string, 8)
	o := r.options()
	o.Hooks = []sdk.Hook{sdk.OnUserPromptSubmit(func(_ context.Context, in *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
		prompts <- in.Prompt
		return sdk.UserPromptSubmitOutput{}, nil
	})}
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
	for m, err := range sdk.Query(r.ctx, r.delegate(r.touch("nested")), o) {
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
	assert.Len(t, prompts, 2)
	assert.Contains(t, <-prompts, "[[scn:delegate]]")
	assert.Contains(t, <-prompts, "<task-notification>", "the agent's own prompt about the task passes the hook as well")
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

// The end of background work starts a turn, also after the end of stdin. A
// close must not let that happen.
func checkCloseStartsNoTurnForBackgroundWork(t *testing.T, rel release) {
	r := rel.rig(t)
	call, release := r.waiting(modelapi.Args{"run_in_background": true})
	r.model.Script("shell", modelapi.Say(call), modelapi.Say(modelapi.Text("Started.")), modelapi.Say(shell("touch late")))
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	_, result := r.ask(c, "in the background [[scn:shell]]")
	assert.Equal(t, "Started.", result.Result)
	r.eventually("the end of the turn", func(e session.Event) bool {
		s, ok := e.(*session.StateChanged)
		return ok && s.From == "running" && s.To == "ready"
	})
	closed := make(chan error, 1)
	go func() { closed <- c.Close(r.ctx) }()
	require.NoError(t, r.wire.await(r.ctx, func(s spoken) bool { return s.text == stdinClosed || s.text == "SIGTERM" }))
	release()
	require.NoError(t, await(r, "the close", closed))
	r.nothingRuns()
	assert.NoFileExists(t, r.at("late"))
}
