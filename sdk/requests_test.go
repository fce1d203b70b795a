package sdk_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
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

// prompter answers one kind of request with a fixed answer, and keeps what was
// asked. Anything else is the scripted agent's.
type prompter struct {
	*scripted.Agent
	like    agent.Dialect
	subtype string
	asked   chan json.RawMessage

	mu     sync.Mutex
	answer json.RawMessage
	refuse string // the error instead of an answer
}

// says what the next request gets: an answer, or an error.
func (p *prompter) says(answer, refuse string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.refuse = nil, refuse
	if answer != "" {
		p.answer = json.RawMessage(answer)
	}
}

// line is the answer to a request.
func (p *prompter) line(id string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != "" {
		return protocol.AppendControlError(nil, id, p.refuse, ""), nil
	}
	return protocol.AppendControlSuccess(nil, id, p.answer)
}

func (p *prompter) Dialect() agent.Dialect { return p.like }

func (p *prompter) Serve(l agent.Launch, port agent.Port) agent.Exit {
	return p.Agent.Serve(l, &tap{port, p})
}

type tap struct {
	agent.Port
	p *prompter
}

func (t *tap) Next(wait time.Duration) ([]byte, error) {
	for {
		line, err := t.Port.Next(wait)
		if err != nil {
			return nil, err
		}
		f, err := protocol.ParseFrame(line)
		if err != nil {
			return nil, err
		}
		if f.Type != protocol.TypeControlRequest || f.Subtype != t.p.subtype {
			return line, nil
		}
		t.p.asked <- f.Body()
		answer, err := t.p.line(f.RequestID)
		if err != nil {
			return nil, err
		}
		if err := t.Port.Write(answer); err != nil {
			return nil, err
		}
	}
}

// one makes a value of what a method returns besides its error.
func one[T any](v T, err error) (any, error) { return v, err }

// requestCase is a method, what it sends, and what it makes of the answer.
type requestCase struct {
	like   agent.Dialect
	call   func(context.Context, *sdk.Client) (any, error)
	asked  string
	answer string
	want   any
}

func (tc requestCase) check(t *testing.T) {
	t.Helper()
	var kind struct{ Subtype string }
	require.NoError(t, json.Unmarshal([]byte(tc.asked), &kind))
	p := &prompter{
		like: tc.like, subtype: kind.Subtype, asked: make(chan json.RawMessage, 2),
		Agent: scripted.New(scripted.WithScript(&scripted.Script{Dialect: tc.like, Capabilities: []string{
			"goal_v1", "goal_max_turns_v1", "plan_mode_v1", "session_rewind_v1", "skill_evolution_v1", "byok_config_management_v1",
			"background_tasks_v1", "side_question_v1", "reload_skills_v1",
		}})),
	}
	p.says(tc.answer, "")
	o := &sdk.Options{Backend: p}
	if tc.like == agent.Qoder {
		o.Auth = sdk.QoderCLIAuth()
	}
	c := sdk.NewClient(o)
	require.NoError(t, c.Connect(t.Context()))
	got, err := tc.call(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, tc.want, got)
	assert.JSONEq(t, tc.asked, string(<-p.asked))
	if yes, ok := got.(bool); ok && tc.answer != "" { // a method that always says yes is found out
		p.says(strings.NewReplacer("true", "false", "false", "true").Replace(tc.answer), "")
		got, err = tc.call(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, !yes, got)
		<-p.asked
	}
	p.says("", "no room")
	_, err = tc.call(t.Context(), c)
	var refused *sdk.ControlError
	if assert.ErrorAs(t, err, &refused, "the agent's refusal is an error") {
		assert.Equal(t, "no room", refused.Message)
	}
	require.NoError(t, c.Close(context.Background()))
}

// methodOf is what the vendors call a method of the client: what the cases of
// TestRequests are called, but for those that are another form of one.
func methodOf(name string) string {
	return map[string]string{
		"Interrupt": "interrupt", "SetPermissionMode": "setPermissionMode", "SetModel": "setModel", "SetMaxThinkingTokens": "setMaxThinkingTokens",
		"ApplyFlagSettings": "applyFlagSettings", "UpdateSettings": "updateSettings", "ContextUsage": "getContextUsage", "Usage": "usage_EXPERIMENTAL",
		"ReadFile": "readFile", "RewindFiles": "rewindFiles", "SeedReadState": "seedReadState", "StopTask": "stopTask", "BackgroundTasks": "backgroundTasks",
		"CancelMessage": "cancelAsyncMessage", "GenerateTitle": "generateSessionTitle", "MCPStatus": "mcpServerStatus", "ReconnectMCPServer": "reconnectMcpServer",
		"ToggleMCPServer": "toggleMcpServer", "SetMCPServers": "setMcpServers", "ReadMCPResource": "readMcpResource",
		"OverrideMCPPermissionMode": "setMcpPermissionModeOverride", "ReloadPlugins": "reloadPlugins", "ReloadSkills": "reloadSkills",
		"ReloadOutputStyles": "reloadOutputStyles", "SetGoal": "setGoal", "Goal": "getGoal", "ClearGoal": "clearGoal", "SetGoalMaxTurns": "setGoalMaxTurns",
		"SetPlanMode": "setPlanMode", "PlanMode": "getPlanMode", "SetProxy": "setProxy", "Rewind": "rewind", "AddDirectories": "addDirectories",
		"CurrentModels": "getAvailableModels", "AccountInfo": "accountInfo", "UsageInfo": "getUsageInfo", "Plugins": "listPlugins",
		"FlushMemory": "flushMemory", "RefreshMemory": "refreshMemory", "FlushSkillEvolution": "flushSkillEvolution", "InjectMCPToken": "injectMcpToken",
		"BYOKProviders": "listByokProviders", "CreateBYOKConfig": "createByokConfig", "UpdateBYOKConfig": "updateByokConfig",
		"DeleteBYOKConfig": "deleteByokConfig", "CheckBYOKConfig": "checkByokConfig", "BYOKConfigs": "listByokConfigs",
		"ValidateBYOKModel": "validateByokModel", "EnableRemoteProjection": "enableRemoteProjection", "DisableRemoteProjection": "disableRemoteProjection",
	}[name]
}

func TestRequests(t *testing.T) {
	t.Parallel()
	nothing := func(err error) (any, error) { return nil, err }
	noon := time.UnixMilli(1_767_268_800_000)
	for name, tc := range map[string]requestCase{
		"Interrupt": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Interrupt(ctx)) },
			`{"subtype":"interrupt"}`, `{"still_queued":["a"]}`, &protocol.InterruptResponse{StillQueued: []string{"a"}}},
		"InterruptAll": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.InterruptAll(ctx)) },
			`{"subtype":"interrupt","cancel_queued":true}`, `{"still_queued":[],"cancelled":["a"]}`,
			&protocol.InterruptResponse{StillQueued: []string{}, Cancelled: []string{"a"}}},
		"SetPermissionMode": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.SetPermissionMode(ctx, sdk.ModeAcceptEdits))
		}, `{"subtype":"set_permission_mode","mode":"acceptEdits"}`, `{"mode":"acceptEdits"}`, nil},
		"SetModel": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetModel(ctx, "opus")) },
			`{"subtype":"set_model","model":"opus"}`, `{"model":"opus"}`, nil},
		"SetModel to the default": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetModel(ctx, "")) },
			`{"subtype":"set_model"}`, `{}`, nil},
		"SetMaxThinkingTokens": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.SetMaxThinkingTokens(ctx, sdk.Some(0)))
		}, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":0}`, ``, nil},
		"SetMaxThinkingTokens to none": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.SetMaxThinkingTokens(ctx, sdk.Opt[int]{}))
		}, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":null}`, ``, nil},
		"ApplyFlagSettings": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ApplyFlagSettings(ctx, json.RawMessage(`{"a":1}`)))
		}, `{"type":"apply_flag_settings","settings":{"a":1},"subtype":"apply_flag_settings"}`, `{"applied":{"effort":"high"}}`,
			&protocol.ApplyFlagSettingsResponse{Applied: protocol.AppliedSettings{Effort: "high"}}},
		"UpdateSettings": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.UpdateSettings(ctx, "userSettings", json.RawMessage(`{"a":1}`)))
		}, `{"subtype":"update_settings","source":"userSettings","settings":{"a":1}}`, ``, nil},
		"Settings": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Settings(ctx)) },
			`{"subtype":"get_settings"}`, `{"effective":{"a":1}}`, &protocol.SettingsResponse{Effective: json.RawMessage(`{"a":1}`)}},
		"ContextUsage": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ContextUsage(ctx)) },
			`{"subtype":"get_context_usage"}`, `{}`, &protocol.ContextUsage{}},
		"Usage": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Usage(ctx)) },
			`{"subtype":"get_usage"}`, `{}`, &protocol.UsageReport{}},
		"ReadFile": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ReadFile(ctx, protocol.ReadFileRequest{Path: "a", MaxBytes: 9}))
		}, `{"subtype":"read_file","path":"a","max_bytes":9}`, `{"contents":"c","absPath":"/a"}`, &protocol.ReadFileResponse{Contents: "c", AbsPath: "/a"}},
		"RewindFiles": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.RewindFiles(ctx, "u", true)) },
			`{"subtype":"rewind_files","user_message_id":"u","dry_run":true}`, `{"canRewind":true}`, &protocol.RewindFilesResponse{CanRewind: true}},
		"SeedReadState": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SeedReadState(ctx, "a", noon)) },
			`{"subtype":"seed_read_state","path":"a","mtime":1767268800000}`, ``, nil},
		"StopTask": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.StopTask(ctx, "t")) },
			`{"subtype":"stop_task","task_id":"t"}`, ``, nil},
		"BackgroundTasks": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.BackgroundTasks(ctx, "t")) },
			`{"subtype":"background_tasks","tool_use_id":"t"}`, ``, true},
		"BackgroundTasks of none": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.BackgroundTasks(ctx, "")) },
			`{"subtype":"background_tasks"}`, `{"backgrounded":false}`, false},
		"TaskOutput": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.TaskOutputResponse](ctx, c, protocol.TaskOutputRequest{TaskID: "t"}))
		},
			`{"subtype":"get_task_output","task_id":"t"}`, `{"output":"o","total_bytes":1}`, &protocol.TaskOutputResponse{Output: "o", TotalBytes: 1}},
		"CancelMessage": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.CancelMessage(ctx, "u")) },
			`{"subtype":"cancel_async_message","message_uuid":"u"}`, `{"cancelled":true}`, true},
		"GenerateTitle": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.GenerateTitle(ctx, "d", sdk.Some(false)))
		},
			`{"subtype":"generate_session_title","description":"d","persist":false}`, `{"title":"t"}`, "t"},
		"GenerateTitle without one": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.GenerateTitle(ctx, "d", sdk.Opt[bool]{}))
		}, `{"subtype":"generate_session_title","description":"d"}`, `{"title":null}`, ""},
		"Rename": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(heard(sdk.Call[any](ctx, c, protocol.RenameSessionRequest{Title: "t"})))
		},
			`{"subtype":"rename_session","title":"t"}`, ``, nil},
		"SideQuestion": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.SideQuestion(ctx, "q", protocol.SideQuestionTurn{Question: "a", Response: "b"}))
		}, `{"subtype":"side_question","question":"q","history":[{"question":"a","response":"b"}]}`, `{"response":"r"}`,
			&protocol.SideQuestionResponse{Response: "r"}},
		"SetCwd": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.SetCwdResponse](ctx, c, protocol.SetCwdRequest{Path: "/a"}))
		},
			`{"subtype":"set_cwd","path":"/a"}`, `{"status":"ok","cwd":"/a"}`, &protocol.SetCwdResponse{Status: "ok", Cwd: "/a"}},
		"MCPStatus": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.MCPStatus(ctx)) },
			`{"subtype":"mcp_status"}`, `{"mcpServers":[{"name":"db","status":"connected"}]}`, []protocol.MCPServerStatus{{Name: "db", Status: "connected"}}},
		"ReconnectMCPServer": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.ReconnectMCPServer(ctx, "db")) },
			`{"subtype":"mcp_reconnect","serverName":"db"}`, ``, nil},
		"ToggleMCPServer": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.ToggleMCPServer(ctx, "db", false))
		},
			`{"subtype":"mcp_toggle","serverName":"db","enabled":false}`, ``, nil},
		"SetMCPServers": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.SetMCPServers(ctx, nil)) },
			`{"subtype":"mcp_set_servers","servers":{}}`, `{"added":[],"removed":["db"],"errors":{}}`,
			&protocol.MCPSetServersResponse{Added: []string{}, Removed: []string{"db"}, Errors: map[string]string{}}},
		"ReadMCPResource": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ReadMCPResource(ctx, "db", "x:y")) },
			`{"subtype":"mcp_read_resource","serverName":"db","uri":"x:y"}`, `{"contents":[{"uri":"x:y","text":"t"}]}`,
			[]protocol.MCPResource{{URI: "x:y", Text: "t"}}},
		"AuthenticateMCPServer": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.AuthenticateMCPServer(ctx, "db", ""))
		}, `{"subtype":"mcp_authenticate","serverName":"db"}`, `{"authUrl":"u","requiresUserAction":true}`,
			&protocol.MCPAuthenticateResponse{AuthURL: "u", RequiresUserAction: true}},
		"FinishMCPLogin": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.FinishMCPLogin(ctx, "db", "u"))
		},
			`{"subtype":"mcp_oauth_callback_url","serverName":"db","callbackUrl":"u"}`, ``, nil},
		"ClearMCPLogin": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.ClearMCPLogin(ctx, "db")) },
			`{"subtype":"mcp_clear_auth","serverName":"db"}`, ``, nil},
		"OverrideMCPPermissionMode": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.OverrideMCPPermissionMode(ctx, "db", sdk.ModeAuto))
		}, `{"subtype":"set_mcp_permission_mode_override","serverName":"db","mode":"auto"}`, `{"warning":"w"}`, "w"},
		"OverrideMCPPermissionMode taken back": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.OverrideMCPPermissionMode(ctx, "db", ""))
		}, `{"subtype":"set_mcp_permission_mode_override","serverName":"db","mode":null}`, `{}`, ""},
		"ReloadPlugins": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.ReloadPlugins(ctx, protocol.ReloadPluginsRequest{RefuseIfBusy: true}))
		}, `{"subtype":"reload_plugins","refuse_if_busy":true}`, `{"held":true}`, &protocol.ReloadPluginsResponse{Held: true}},
		"ReloadSkills": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ReloadSkills(ctx)) },
			`{"subtype":"reload_skills"}`, `{"skills":[]}`, []protocol.SlashCommand{}},
		"ReloadOutputStyles": {"", func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ReloadOutputStyles(ctx)) },
			`{"subtype":"reload_output_styles"}`, `{"available_output_styles":["a"]}`, []string{"a"}},
		"HooksListing": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.HooksListingResponse](ctx, c, protocol.HooksListingRequest{}))
		},
			`{"subtype":"get_hooks_listing"}`, `{}`, &protocol.HooksListingResponse{}},
		"PermissionRules": {"", func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(sdk.Call[protocol.PermissionRulesResponse](ctx, c, protocol.ListPermissionRulesRequest{}))
		},
			`{"subtype":"list_permission_rules"}`, `{"state":{"originalCwd":"/a"}}`, &protocol.PermissionRulesResponse{State: protocol.PermissionRulesState{OriginalCwd: "/a"}}},

		"SetGoal": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.SetGoal(ctx, protocol.SetGoalRequest{Objective: "o"}))
		},
			`{"subtype":"set_goal","objective":"o"}`, `{"goal":{"objective":"o"}}`, &protocol.Goal{Objective: "o"}},
		"Goal": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Goal(ctx)) },
			`{"subtype":"get_goal"}`, `{"goal":null}`, (*protocol.Goal)(nil)},
		"ClearGoal": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.ClearGoal(ctx)) },
			`{"subtype":"clear_goal"}`, `{"cleared":true}`, true},
		"SetGoalMaxTurns": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.SetGoalMaxTurns(ctx, sdk.Some(3))) },
			`{"subtype":"set_goal_max_turns","max_turns":3}`, `{"goal_max_turns":3}`, 3},
		"SetPlanMode": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetPlanMode(ctx, true)) },
			`{"subtype":"set_plan_mode","active":true}`, `{"plan_mode":{"active":true}}`, nil},
		"PlanMode": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.PlanMode(ctx)) },
			`{"subtype":"get_plan_mode"}`, `{"plan_mode":{"active":true}}`, true},
		"SetProxy": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetProxy(ctx, "http://p")) },
			`{"type":"set_proxy","proxy":"http://p","subtype":"set_proxy"}`, ``, nil},
		"SetProxy to none": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.SetProxy(ctx, "")) },
			`{"type":"set_proxy","proxy":null,"subtype":"set_proxy"}`, ``, nil},
		"Rewind": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.Rewind(ctx, protocol.RewindRequest{UserMessageID: "u"}))
		}, `{"type":"rewind","user_message_id":"u","scope":"both","subtype":"rewind"}`, `{"status":"rejected"}`, &protocol.RewindResponse{Status: "rejected"}},
		"AddDirectories": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.AddDirectories(ctx, "/a")) },
			`{"type":"add_directories","directories":["/a"],"subtype":"add_directories"}`, `{"added":["/a"]}`, &protocol.AddDirectoriesResponse{Added: []string{"/a"}}},
		"CurrentModels": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.CurrentModels(ctx)) },
			`{"subtype":"get_models"}`, `{"models":[{"value":"m"}]}`, []protocol.ModelInfo{{Value: "m"}}},
		"AccountInfo": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.AccountInfo(ctx)) },
			`{"type":"account_info","subtype":"account_info"}`, `{"account":{"userId":"u"}}`, &protocol.AccountInfo{UserID: "u"}},
		"UsageInfo": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.UsageInfo(ctx)) },
			`{"type":"get_usage_info","subtype":"get_usage_info"}`, `{}`, &protocol.UsageInfo{}},
		"Plugins": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.Plugins(ctx)) },
			`{"type":"list_plugins","subtype":"list_plugins"}`, `{"plugins":[]}`, []protocol.Plugin{}},
		"FlushMemory": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.FlushMemory(ctx)) },
			`{"type":"flush_memory","subtype":"flush_memory"}`, ``, nil},
		"RefreshMemory": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.RefreshMemory(ctx)) },
			`{"type":"refresh_memory","subtype":"refresh_memory"}`, ``, nil},
		"FlushSkillEvolution": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.FlushSkillEvolution(ctx)) },
			`{"type":"flush_skill_evolution","subtype":"flush_skill_evolution"}`, ``, nil},
		"InjectMCPToken": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.InjectMCPToken(ctx, "db", "s"))
		},
			`{"type":"mcp_inject_token","serverName":"db","token":{"accessToken":"s"},"subtype":"mcp_inject_token"}`, ``, nil},
		"BYOKProviders": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return one(c.BYOKProviders(ctx)) },
			`{"type":"get_byok_config","subtype":"get_byok_config"}`, `{"providers":[{"key":"k","display_name":"K"}]}`,
			[]protocol.BYOKProvider{{Key: "k", DisplayName: "K"}}},
		"CreateBYOKConfig": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.CreateBYOKConfig(ctx, protocol.BYOKConfig{ProviderID: "p"}))
		}, `{"type":"create_byok_config","config":{"providerId":"p"},"subtype":"create_byok_config"}`, `{}`, nil},
		"UpdateBYOKConfig": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return nothing(c.UpdateBYOKConfig(ctx, protocol.BYOKConfig{ProviderID: "p"}))
		}, `{"type":"update_byok_config","config":{"providerId":"p"},"subtype":"update_byok_config"}`, `{}`, nil},
		"DeleteBYOKConfig": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) { return nothing(c.DeleteBYOKConfig(ctx, "p")) },
			`{"type":"delete_byok_config","target":{"providerId":"p"},"subtype":"delete_byok_config"}`, `{}`, nil},
		"CheckBYOKConfig": {agent.Qoder, func(ctx context.Context, c *sdk.Client) (any, error) {
			return one(c.CheckBYOKConfig(ctx, protocol.BYOKConfig{ProviderID: "p"}))
		}, `{"type":"check_byok_config","config":{"providerId":"p"},"subtype":"check_byok_config"}`, `{"success":true}`, &protocol.SuccessResponse{Success: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if method := methodOf(name); method != "" {
				vendor := "claude"
				if tc.like == agent.Qoder {
					vendor = "qoder"
				}
				parity.Covers(t, vendor+"/method/"+method)
			}
			tc.check(t)
		})
	}
}
