package sdk_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestPlanShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	servers := map[string]sdk.MCPServerConfig{
		"db":  {Command: "db-mcp", Args: []string{"--token", secret}, Env: map[string]string{"K": secret}},
		"web": {Type: "http", URL: "https://u:" + secret + "@h/mcp?k=" + secret + "#" + secret, Headers: map[string]string{"A": secret}},
	}
	settings := json.RawMessage(`{"model":"m","env":{"K":"` + secret + `","N":17},"permissions":{"allow":["Read"]}}`)
	for name, o := range map[string]*sdk.Options{
		"claude": {Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/opt/claude"}), Env: map[string]string{"TOKEN": secret}, MCPServers: servers,
			Settings: settings, ManagedSettings: settings, Agents: map[string]session.AgentDefinition{"a": {Description: "d", Prompt: "p",
				MCPServers: []session.AgentMCPServer{{Name: "own", Config: &sdk.MCPServerConfig{Command: "c", Env: map[string]string{"K": secret}}}}}},
			Sandbox: &session.Sandbox{Enabled: sdk.Some(true), Extra: map[string]json.RawMessage{"newer": json.RawMessage(`["` + secret + `"]`)}}},
		"claude, all in initialize": {Backend: sdk.Claude(sdk.ClaudeConfig{}), MCPServers: servers, MCPServersDelivery: session.DeliverInInitialize},
		"qoder": {Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.AccessToken(secret), Proxy: "http://u:" + secret + "@p:1", MCPServers: servers,
			Settings: settings},
		"qoder with a key": {Backend: sdk.Qoder(sdk.QoderConfig{}), Auth: sdk.ServiceAccountKey(secret)},
	} {
		p, err := sdk.PreviewLaunch(o)
		require.NoError(t, err, name)
		shown, err := json.Marshal(p)
		require.NoError(t, err, name)
		assert.NotContains(t, string(shown), secret, name)
		assert.Contains(t, string(shown), sdk.Masked, name)
		if name == "claude" {
			assert.Equal(t, "/opt/claude", p.Path)
			assert.Empty(t, p.Names)
			assert.JSONEq(t, `{"model":"m","env":{"K":"***","N":"***"},"permissions":{"allow":["Read"]},
				"sandbox":{"enabled":true,"newer":["***"],"failIfUnavailable":true}}`, string(p.Files[1].Content))
			assert.JSONEq(t, `{"mcpServers":{"db":{"command":"db-mcp","args":["***","***"],"env":{"K":"***"}},
				"web":{"type":"http","url":"https://***@h/mcp?***#***","headers":{"A":"***"}}}}`, string(p.Files[0].Content))
		}
	}
}

func TestPlanIsWhatASessionLaunches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prompt.md"), []byte("Be brief."), 0o600))
	o := &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), Cwd: dir, SystemPrompt: sdk.PromptFile("prompt.md"), AllowedTools: []string{"Read"},
		CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{}, nil
		},
		Hooks: []sdk.Hook{sdk.OnNotification(func(context.Context, *protocol.NotificationInput) (sdk.ContextOutput, error) {
			return sdk.ContextOutput{}, nil
		})},
	}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	assert.Equal(t, []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--permission-prompt-tool=stdio", "--allowedTools=Read"}, p.Args)
	assert.Equal(t, []string{"claude"}, p.Names)
	assert.Contains(t, p.Env, sdk.PreviewVar{Name: "CLAUDE_CODE_ENTRYPOINT", Value: "sdk-ts"})
	assert.JSONEq(t, `{"subtype":"initialize","systemPrompt":["Be brief."],"hooks":{"Notification":[{"hookCallbackIds":["hook_0"]}]}}`, string(p.Initialize))
	require.Len(t, p.Warnings, 1)
	assert.Equal(t, "Read", p.Warnings[0].Rule)

	o.SystemPrompt, o.MaxTurns = sdk.PromptFile("none.md"), sdk.Some(-1)
	o.TaskBudget = sdk.Some(0)
	assert.Equal(t, []string{"SystemPrompt.File", "TaskBudget"}, refused(t, o))
	_, err = sdk.PreviewLaunch(o)
	var options []string
	for _, e := range sdk.ConfigErrors(err) {
		options = append(options, e.Option)
	}
	assert.Equal(t, []string{"SystemPrompt.File", "TaskBudget"}, options)
}

func TestServersOfThisProcessHavePolicies(t *testing.T) {
	t.Parallel()
	echo := sdk.NewTool("echo", "Echoes.", func(context.Context, struct{}) (*sdk.ToolResult, error) { return nil, nil })
	server, err := sdk.NewMCPServer("host", "1", echo)
	require.NoError(t, err)
	o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), SDKMCPServers: []*sdk.MCPServer{server},
		SDKMCPServerConfigs: map[string]session.SDKMCPServerConfig{"host": {Timeout: 1500 * time.Millisecond,
			Tools: []session.MCPToolPolicy{{Name: "echo", PermissionPolicy: session.AlwaysDeny}}}}}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	assert.Contains(t, string(p.Initialize), `"sdkMcpServerConfigs":{"host":{"timeout":1500,"tools":[{"name":"echo","permission_policy":"always_deny"}]}}`)
	assert.Contains(t, p.Args, `{"permissions":{"allow":[],"ask":[],"deny":["mcp__host__echo"]}}`)

	o.Backend, o.Auth = sdk.Qoder(sdk.QoderConfig{}), sdk.QoderCLIAuth()
	o.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{"host": {Tools: []session.MCPToolPolicy{{Name: "echo", ExposedName: "say", AlwaysLoad: true}}}}
	p, err = sdk.PreviewLaunch(o)
	require.NoError(t, err)
	assert.Contains(t, string(p.Initialize), `"sdkMcpToolOverrides":{"host":{"echo":{"exposedName":"say","alwaysLoad":true}}}`)

	o.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{"hots": {}}
	_, err = sdk.PreviewLaunch(o)
	require.ErrorContains(t, err, `SDKMCPServerConfigs["hots"]`)
}

func TestQoderRequestsArePlanned(t *testing.T) {
	t.Parallel()
	script := scripted.Script{Dialect: "qoder"}
	o := &sdk.Options{Backend: scripted.New(scripted.WithScript(&script)), Auth: sdk.QoderCLIAuth(), PlanMode: sdk.Some(true)}
	p, err := sdk.PreviewLaunch(o)
	require.NoError(t, err)
	assert.Equal(t, "qoder", p.Backend, "a script says whom it speaks like")
	require.Len(t, p.Requests, 1)
	assert.JSONEq(t, `{"subtype":"set_plan_mode","active":true}`, string(p.Requests[0]))
}
