package sdk_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// TestRequestsOfTheOther has the methods that both agents know, in the words of
// the one that TestRequests does not ask.
func TestRequestsOfTheOther(t *testing.T) {
	t.Parallel()
	nothing := func(err error) (any, error) { return nil, err }
	noon := time.UnixMilli(1_767_268_800_000)
	for row, tc := range map[string]requestCase{
		"claude/method/applyFlagSettings": {agent.Claude, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ApplyFlagSettings(ctx, json.RawMessage(`{"a":1}`)))
		}, `{"subtype":"apply_flag_settings","settings":{"a":1}}`, ``, &protocol.ApplyFlagSettingsResponse{}},
		"qoder/method/interrupt": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Interrupt(ctx)) },
			`{"type":"interrupt","subtype":"interrupt"}`, `{"still_queued":["a"]}`, &protocol.InterruptResponse{StillQueued: []string{"a"}}},
		"qoder/method/setModel": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetModel(ctx, "lite")) },
			`{"type":"set_model","model":"lite","subtype":"set_model"}`, ``, nil},
		"qoder/method/setPermissionMode": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.SetPermissionMode(ctx, sdk.ModeAcceptEdits))
		}, `{"type":"set_permission_mode","mode":"acceptEdits","subtype":"set_permission_mode"}`, ``, nil},
		"qoder/method/stopTask": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.StopTask(ctx, "t")) },
			`{"subtype":"stop_task","task_id":"t"}`, ``, nil},
		"qoder/method/backgroundTasks": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.BackgroundTasks(ctx, "t")) },
			`{"subtype":"background_tasks","tool_use_id":"t"}`, ``, true},
		"qoder/method/generateSessionTitle": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.GenerateTitle(ctx, "d", sdk.Some(true)))
		}, `{"type":"generate_session_title","description":"d","persist":true,"subtype":"generate_session_title"}`, `{"title":"t"}`, "t"},
		"qoder/method/askSideQuestion": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.SideQuestion(ctx, "q")) },
			`{"subtype":"side_question","question":"q"}`, `{"response":"r","synthetic":true}`, &protocol.SideQuestionResponse{Response: "r", Synthetic: true}},
		"qoder/method/mcpServerStatus": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.MCPStatus(ctx)) },
			`{"type":"mcp_status","subtype":"mcp_status"}`, `{"servers":[{"name":"db","status":"disconnected"}]}`, []protocol.MCPServerStatus{{Name: "db", Status: "disconnected"}}},
		"qoder/method/getContextUsage": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ContextUsage(ctx)) },
			`{"type":"get_context_usage","subtype":"get_context_usage"}`, `{}`, &protocol.ContextUsage{}},
		"qoder/method/reloadPlugins": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ReloadPlugins(ctx, protocol.ReloadPluginsRequest{}))
		}, `{"type":"reload_plugins","subtype":"reload_plugins"}`, `{"error_count":1}`, &protocol.ReloadPluginsResponse{ErrorCount: 1}},
		"qoder/method/reloadSkills": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ReloadSkills(ctx)) },
			`{"type":"reload_skills","subtype":"reload_skills"}`, `{"skills":[]}`, []protocol.SlashCommand{}},
		"qoder/method/rewindFiles": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.RewindFiles(ctx, "u", true)) },
			`{"type":"rewind_files","user_message_id":"u","dry_run":true,"subtype":"rewind_files"}`, `{"canRewind":false,"error":"e"}`, &protocol.RewindFilesResponse{Error: "e"}},
		"qoder/method/seedReadState": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SeedReadState(ctx, "a", noon)) },
			`{"type":"seed_read_state","path":"a","mtime":1767268800000,"subtype":"seed_read_state"}`, ``, nil},
		"qoder/method/mcpAuthenticate": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.AuthenticateMCPServer(ctx, "db", "r"))
		}, `{"type":"mcp_authenticate","serverName":"db","redirectUri":"r","subtype":"mcp_authenticate"}`, `{"authUrl":"u","requiresUserAction":true}`,
			&protocol.MCPAuthenticateResponse{AuthURL: "u", RequiresUserAction: true}},
		"qoder/method/mcpSubmitOAuthCallbackUrl": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.FinishMCPLogin(ctx, "db", "u"))
		}, `{"type":"mcp_oauth_callback_url","serverName":"db","callbackUrl":"u","subtype":"mcp_oauth_callback_url"}`, ``, nil},
		"qoder/method/clearMcpAuth": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.ClearMCPLogin(ctx, "db")) },
			`{"type":"mcp_clear_auth","serverName":"db","subtype":"mcp_clear_auth"}`, ``, nil},
		"qoder/method/cancelAsyncMessage": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.CancelMessage(ctx, "u")) },
			`{"subtype":"cancel_async_message","message_uuid":"u"}`, `{"cancelled":true}`, true},
		"qoder/method/setMcpServers": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.SetMCPServers(ctx, map[string]protocol.MCPServerConfig{"db": {Command: "c"}}))
		}, `{"type":"mcp_set_servers","servers":{"db":{"command":"c"}},"subtype":"mcp_set_servers"}`, `{"added":["db"],"removed":[],"errors":{}}`,
			&protocol.MCPSetServersResponse{Added: []string{"db"}, Removed: []string{}, Errors: map[string]string{}}},
		"qoder/method/toggleMcpServer": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.ToggleMCPServer(ctx, "db", true))
		}, `{"type":"mcp_toggle","serverName":"db","enabled":true,"subtype":"mcp_toggle"}`, ``, nil},
		"qoder/method/reconnectMcpServer": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.ReconnectMCPServer(ctx, "db")) },
			`{"type":"mcp_reconnect","serverName":"db","subtype":"mcp_reconnect"}`, ``, nil},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			tc.check(t)
		})
	}
}

// An agent can be initialized again, and says what there is by then.
func TestInitializedAgain(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/method/reinitialize")
	p := &prompter{Agent: scripted.New(), like: agent.Claude, subtype: "initialize", asked: make(chan json.RawMessage, 2)}
	p.says(`{"output_style":"before"}`, "")
	c := sdk.NewClient(&sdk.Options{Backend: p})
	require.NoError(t, c.Connect(t.Context()))
	assert.JSONEq(t, `{"subtype":"initialize","systemPrompt":[""]}`, string(<-p.asked))
	p.says(`{"output_style":"after"}`, "")
	again, err := sdk.Call[protocol.InitializeResponse](t.Context(), c, protocol.InitializeRequest{PromptSuggestions: true, Title: "t"})
	require.NoError(t, err)
	assert.Equal(t, "after", again.OutputStyle)
	assert.JSONEq(t, `{"subtype":"initialize","promptSuggestions":true,"title":"t"}`, string(<-p.asked))
	require.NoError(t, c.Close(context.Background()))
}

// The agent's answer to initialize is there without another request.
func TestInitializedOnQoder(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/method/initializationResult", "qoder/method/supportedCommands", "qoder/method/supportedAgents")
	in(t, func(w *world) {
		o := w.script(scripted.Script{Dialect: agent.Qoder, Initialize: map[string]any{
			"commands": []any{map[string]any{"name": "help", "description": "d", "argumentHint": ""}},
			"agents":   []any{map[string]any{"name": "reviewer", "description": "d", "model": "lite"}},
		}})
		o.Backend = sdk.InMemory(o.Backend.(*scripted.Agent), agent.Qoder)
		o.Auth = sdk.QoderCLIAuth()
		c := w.connect(o)
		defer w.close(c)
		first, err := c.Initialized()
		require.NoError(w, err)
		commands, err := c.Commands()
		require.NoError(w, err)
		agents, err := c.Agents()
		require.NoError(w, err)
		assert.Equal(w, first.Commands, commands)
		assert.Equal(w, []string{"help", "reviewer", "lite"}, []string{commands[0].Name, agents[0].Name, agents[0].Model})
	})
}
