package sdk_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Every limit in force, and who set it.
func TestPlanShowsTimeouts(t *testing.T) {
	t.Parallel()
	allow := func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.PermissionResult{}, nil
	}
	nothing := func(context.Context, struct{}) (*sdk.ToolResult, error) { return nil, nil }
	own, err := sdk.NewMCPServer("own", "1", sdk.NewTool("quick", "d", nothing, sdk.ToolTimeout(time.Second)),
		sdk.NewTool("plain", "d", nothing), sdk.NewTool("endless", "d", nothing, sdk.ToolTimeout(-1)))
	require.NoError(t, err)
	wrapped, err := sdk.WrapMCPServer("wrapped", officialServer())
	require.NoError(t, err)
	hook := func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
		return sdk.FeedbackOutput{}, nil
	}
	o := &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), CanUseTool: allow, PermissionTimeout: time.Hour, InitializeTimeout: time.Minute,
		CloseTimeout: -1, SDKMCPServers: []*sdk.MCPServer{own, wrapped},
		SDKMCPServerConfigs: map[string]session.SDKMCPServerConfig{"wrapped": {Timeout: 2 * time.Hour}},
		Hooks:               []sdk.Hook{sdk.OnStop(hook), sdk.OnStop(hook, sdk.Timeout(5*time.Second))},
		OnElicitation: func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
			return protocol.ElicitationResult{}, nil
		},
		Limits: session.Limits{Control: -1, Consumer: 3 * time.Minute}, Graces: session.Graces{Output: time.Second},
	}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	want := []sdk.PreviewTimeout{
		{"the start of the agent's process", 5 * time.Minute, "Limits.Start", true},
		{"the answer to initialize", time.Minute, "InitializeTimeout", false},
		{"the answer to any other request", 0, "Limits.Control", false},
		{"retries of the model's API in a turn", 30 * time.Minute, "Limits.Retry", true},
		{"progress in a turn", 30 * time.Minute, "Limits.Stall", true},
		{"progress after the interrupt of a stalled turn", 0, "Limits.StallKill", true},
		{"somebody to read the messages", 3 * time.Minute, "Limits.Consumer", false},
		{"a permission", time.Hour, "PermissionTimeout", false},
		{"a hook of Stop", 59 * time.Second, "the hook's Timeout", true},
		{"a hook of Stop", 4500 * time.Millisecond, "the hook's Timeout", false},
		{"a call of mcp__own__endless", 0, "the tool's Timeout", false},
		{"a call of mcp__own__plain", 10 * time.Minute, "the tool's Timeout", true},
		{"a call of mcp__own__quick", time.Second, "the tool's Timeout", false},
		{"a call of mcp__wrapped__wait", 2 * time.Hour, `SDKMCPServerConfigs["wrapped"].Timeout`, false},
		{"an elicitation", 0, "", true},
		{"close: an interrupted turn", 2 * time.Second, "InterruptGrace", true},
		{"close: the exit after the end of stdin", 2 * time.Second, "Graces.EOF", true},
		{"close: the exit after SIGTERM", 5 * time.Second, "Graces.Terminate", true},
		{"close: the rest of the output", time.Second, "Graces.Output", false},
		{"close: the sweep of what is left", 10 * time.Second, "Graces.Sweep", true},
		{"close: all of it", 0, "CloseTimeout", false},
	}
	assert.Equal(t, want, p.Timeouts)

	raw, err := json.Marshal(p.Timeouts)
	require.NoError(t, err)
	assert.Contains(t, string(raw), `{"what":"a hook of Stop","limit":"4.5s","option":"the hook's Timeout"}`)
	var again []sdk.PreviewTimeout
	require.NoError(t, json.Unmarshal(raw, &again))
	assert.Equal(t, want, again)
}

func officialServer() *mcpsdk.Server {
	server := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "wrapped", Version: "1"}, nil)
	mcpsdk.AddTool(server, &mcpsdk.Tool{Name: "wait", Description: "d"},
		func(context.Context, *mcpsdk.CallToolRequest, struct{}) (*mcpsdk.CallToolResult, any, error) {
			return &mcpsdk.CallToolResult{}, nil, nil
		})
	return server
}

// The limit of a server that the agent gets holds on this side, too: a tool may take
// longer than the default, or less.
func TestTheLimitOfAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, tool time.Duration
		ends         bool
		setBy        string
	}{
		"none":                 {0, 0, false, "the tool's Timeout"},
		"the server's":         {time.Hour, 0, true, ""},
		"the tool's own first": {time.Hour, time.Minute, false, "the tool's Timeout"},
		"shorter":              {time.Minute, 0, false, `SDKMCPServerConfigs["host"].Timeout`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				if w.sim == nil {
					return // half an hour
				}
				server, err := sdk.NewMCPServer("host", "1", sdk.NewTool("slow", "Takes half an hour.", func(ctx context.Context, _ struct{}) (*sdk.ToolResult, error) {
					over := make(chan struct{})
					defer w.sim.AfterFunc(30*time.Minute, func() { close(over) }).Stop()
					return sdk.Text("at last"), w.sim.Await(ctx, over)
				}, sdk.ToolTimeout(c.tool)))
				require.NoError(w, err)
				o := w.options(turn(&scripted.MCPCall{Server: "host", Tool: "slow", Gate: agent.GateAllow}, scripted.Text("done")))
				o.SDKMCPServers = []*sdk.MCPServer{server}
				o.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{"host": {Timeout: c.server}}
				l := record(o)
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				var told []string
				for _, m := range all {
					for _, r := range sdk.ToolResults(m) {
						told = append(told, r.Content.Text())
					}
				}
				require.Len(w, told, 1)
				if c.ends {
					assert.Equal(w, "at last", told[0])
				} else {
					assert.Contains(w, told[0], "did not finish within")
					failed := w.failures(l)
					require.Len(w, failed, 1)
					var over *sdk.TimeoutError
					require.ErrorAs(w, failed[0].Err, &over)
					assert.Equal(w, c.setBy, over.SetBy)
				}
			})
		})
	}
}
