package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// started is an endpoint with one scenario, "mine", and options for the agent that talks to it.
func started(t *testing.T, steps ...modelapi.Step) (*modelapi.Server, *sdk.Options) {
	t.Helper()
	server, err := modelapi.Start(modelapi.Config{Scenarios: map[string]modelapi.Scenario{"mine": steps}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1"}})
	return server, &sdk.Options{Backend: embedded.New(embedded.Config{Model: m, Name: "claude-sonnet-4-5", Dir: t.TempDir()}), Cwd: dir}
}

const mine = "[[scn:mine]]"

func run(t *testing.T, o *sdk.Options) *protocol.ResultMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := sdk.Run(ctx, mine, o)
	require.NoError(t, err)
	return r
}

func TestOneAnswer(t *testing.T) {
	t.Parallel()
	_, o := started(t, modelapi.Say(modelapi.Thinking("hm"), modelapi.Text("hello")))
	r := run(t, o)
	assert.Equal(t, "hello", r.Result)
	assert.Equal(t, 1, r.NumTurns)
	assert.InDelta(t, (10*3+5*15)/1e6, r.TotalCostUSD, 1e-12)
}

func TestToolsRun(t *testing.T) {
	t.Parallel()
	server, o := started(t,
		modelapi.Say(modelapi.ToolUse("Read", map[string]any{"file_path": "a.txt"}), modelapi.ToolUse("Bash", map[string]any{"command": "echo hi; pwd"})),
		modelapi.Say(modelapi.Text("done")))
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\ntwo\n"), 0o600))
	r := run(t, o)
	assert.Equal(t, "done", r.Result)
	assert.Empty(t, r.PermissionDenials)
	requests := server.Requests()
	require.Len(t, requests, 2)
	assert.Equal(t, []string{"Agent", "Bash", "Edit", "Glob", "Grep", "Read", "TaskCreate", "TaskGet", "TaskList", "TaskStop", "TaskUpdate", "Write"}, requests[0].Tools)
	last := requests[1].Messages[len(requests[1].Messages)-1]
	assert.Equal(t, "user", last.Role)
	require.Len(t, last.Content, 2)
	var texts []string
	for _, b := range last.Content {
		texts = append(texts, b.Text)
	}
	assert.ElementsMatch(t, []string{"1\tone\n2\ttwo\n3\t", "hi\n" + o.Cwd}, texts)
}
