package protocol

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func frame(t testing.TB, line string) Frame {
	t.Helper()
	f, err := ParseFrame([]byte(line))
	require.NoError(t, err, line)
	return f
}

func TestMarshalRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    Request
		d    Discriminator
		want string
	}{
		{InterruptRequest{}, SubtypeOnly, `{"subtype":"interrupt"}`},
		{&InterruptRequest{CancelQueued: true}, SubtypeOnly, `{"subtype":"interrupt","cancel_queued":true}`},
		{InterruptRequest{}, TypeAndSubtype, `{"type":"interrupt","subtype":"interrupt"}`},
		{SetPermissionModeRequest{Mode: ModePlan}, TypeAndSubtype, `{"type":"set_permission_mode","mode":"plan","subtype":"set_permission_mode"}`},
		{SetModelRequest{}, SubtypeOnly, `{"subtype":"set_model"}`},
		{SetMaxThinkingTokensRequest{MaxThinkingTokens: Null[int]()}, SubtypeOnly, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":null}`},
		{SetMaxThinkingTokensRequest{MaxThinkingTokens: Some(0)}, SubtypeOnly, `{"subtype":"set_max_thinking_tokens","max_thinking_tokens":0}`},
		{SetMaxThinkingTokensRequest{}, SubtypeOnly, `{"subtype":"set_max_thinking_tokens"}`},
		{SetProxyRequest{}, TypeAndSubtype, `{"type":"set_proxy","proxy":null,"subtype":"set_proxy"}`},
		{SetGoalRequest{Objective: "<o>", CreditsBudget: Null[float64]()}, SubtypeOnly, `{"subtype":"set_goal","objective":"<o>","credits_budget":null}`},
		{&UnknownHostRequest{Name: "x", Raw: json.RawMessage(`{"subtype":"x","a":1}`)}, TypeAndSubtype, `{"subtype":"x","a":1}`},
		{InitializeRequest{}, SubtypeOnly, `{"subtype":"initialize"}`},
		{InitializeRequest{SystemPrompt: &SystemPrompt{Parts: []string{""}}}, SubtypeOnly, `{"subtype":"initialize","systemPrompt":[""]}`},
		{InitializeRequest{SystemPrompt: &SystemPrompt{Bare: true}, Skills: Some([]string{})}, TypeAndSubtype, `{"type":"initialize","systemPrompt":"","skills":[],"subtype":"initialize"}`},
		{InitializeRequest{Hooks: map[HookEvent][]HookMatcher{
			HookStop: {{HookCallbackIDs: []string{"hook_1"}, Timeout: 0.5}}, HookPreToolUse: {{Matcher: "Bash", HookCallbackIDs: []string{"hook_0"}}},
		}}, SubtypeOnly, `{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0"]}],"Stop":[{"hookCallbackIds":["hook_1"],"timeout":0.5}]}}`},
	} {
		got, err := MarshalRequest(c.r, c.d)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got))
	}
	_, err := MarshalRequest(UpdateSettingsRequest{Settings: json.RawMessage(`{`)}, SubtypeOnly)
	require.ErrorContains(t, err, "encode update_settings request")
}

// Every request comes back as its own type, with nothing set.
func TestHostRequestNames(t *testing.T) {
	t.Parallel()
	names := []string{
		"initialize", "interrupt", "set_permission_mode", "set_model", "set_max_thinking_tokens",
		"set_mcp_permission_mode_override", "apply_flag_settings", "update_settings", "mcp_status",
		"get_context_usage", "get_usage", "read_file", "reload_plugins", "reload_skills",
		"reload_output_styles", "rewind_files", "seed_read_state", "mcp_reconnect", "mcp_toggle",
		"mcp_read_resource", "mcp_set_servers", "mcp_message", "stop_task", "background_tasks",
		"cancel_async_message", "generate_session_title", "file_suggestions", "get_binary_version",
		"get_hooks_listing", "get_session_cost", "get_settings", "get_task_output", "list_models",
		"list_permission_rules", "mcp_call", "register_repo_root", "rename_session", "set_color",
		"get_plan", "get_status", "export_conversation", "submit_feedback", "set_has_subscribers", "set_cwd", "side_question", "mcp_authenticate", "mcp_clear_auth",
		"mcp_oauth_callback_url", "remote_control",
		"set_goal", "get_goal", "clear_goal", "set_goal_max_turns", "set_plan_mode", "get_plan_mode",
		"set_proxy", "add_directories", "get_models", "get_byok_config", "validate_byok_model",
		"list_byok_configs", "create_byok_config", "update_byok_config", "delete_byok_config",
		"check_byok_config", "get_usage_info", "list_plugins", "account_info", "rewind",
		"flush_memory", "refresh_memory", "flush_skill_evolution", "enable_remote_projection",
		"disable_remote_projection", "mcp_inject_token", "end_session",
	}
	for _, name := range names {
		r, err := DecodeHostRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"subtype":"`+name+`"}}`))
		require.NoError(t, err, name)
		assert.IsNotType(t, &UnknownHostRequest{}, r, name)
		assert.Equal(t, name, r.Subtype())
		assert.True(t, reflect.ValueOf(r).Elem().IsZero(), name)
	}
}

func TestDecodeRequestErrors(t *testing.T) {
	t.Parallel()
	_, err := DecodeAgentRequest(frame(t, `{"type":"user"}`))
	require.NoError(t, err, "an unknown kind is not an error")
	_, err = DecodeAgentRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":7}}`))
	require.ErrorContains(t, err, `decode can_use_tool request "r"`)
	_, err = DecodeHostRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"subtype":"set_model","model":{}}}`))
	require.ErrorContains(t, err, `decode set_model request "r"`)
	_, err = DecodeControlResponse(frame(t, `{"type":"user"}`))
	require.ErrorContains(t, err, "not a control_response")
	_, err = DecodeControlResponse(frame(t, `{"type":"control_response","response":"x"}`))
	require.ErrorContains(t, err, "not an object")
	f := frame(t, `{"type":"assistant","subtype":"can_use_tool"}`)
	_, err = DecodeAgentRequest(f)
	require.ErrorContains(t, err, "not a control_request")

	r, err := DecodeAgentRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"subtype":"later","a":1}}`))
	require.NoError(t, err)
	u, ok := r.(*UnknownAgentRequest)
	require.True(t, ok)
	assert.Equal(t, "later", u.Subtype())
	raw, err := MarshalRequest(u, SubtypeOnly)
	require.NoError(t, err)
	assert.JSONEq(t, `{"subtype":"later","a":1}`, string(raw))
}

func TestDecodeControlResponse(t *testing.T) {
	t.Parallel()
	get := func(body string) *ControlResponse {
		r, err := DecodeControlResponse(frame(t, `{"type":"control_response","response":`+body+`}`))
		require.NoError(t, err)
		return r
	}
	r := get(`{"subtype":"error","request_id":"r","error":"e","error_code":"c"}`)
	assert.Equal(t, &ControlResponse{Subtype: "error", RequestID: "r", Error: "e", ErrorCode: "c"}, r)
	r = get(`{"subtype":"error","request_id":"r","error":"e","code":"q","retryable":true,"details":{"a":1}}`)
	assert.Equal(t, &ControlResponse{Subtype: "error", RequestID: "r", Error: "e", ErrorCode: "q", Retryable: true, Details: json.RawMessage(`{"a":1}`)}, r)
	assert.Equal(t, "c", get(`{"subtype":"error","code":"q","error_code":"c"}`).ErrorCode)
	assert.Equal(t, "500", get(`{"subtype":"error","code":500}`).ErrorCode)
	assert.JSONEq(t, `{"m":1}`, get(`{"subtype":"error","error":{"m":1}}`).Error)
	assert.True(t, get(`{}`).Failed(), "what is not a success has failed")

	r = get(`{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":[{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash"}},7],"pending_user_dialog_requests":[{"type":"control_request","request_id":"d","request":{"subtype":"request_user_dialog"}}]}`)
	require.Len(t, r.PendingPermissionRequests, 1)
	assert.Equal(t, "p", r.PendingPermissionRequests[0].RequestID)
	require.Len(t, r.PendingUserDialogRequests, 1)
	assert.Equal(t, "request_user_dialog", r.PendingUserDialogRequests[0].Subtype)

	var in InterruptResponse
	require.NoError(t, get(`{"subtype":"success","response":{"still_queued":["a"]}}`).Decode(&in))
	assert.Equal(t, []string{"a"}, in.StillQueued)
	require.NoError(t, get(`{"subtype":"success"}`).Decode(&in))
	require.NoError(t, get(`{"subtype":"success","response":null}`).Decode(&in))
	assert.Equal(t, []string{"a"}, in.StillQueued)
	var model SetModelResponse
	require.ErrorContains(t, get(`{"subtype":"success","request_id":"r","response":"text"}`).Decode(&model), `answer to "r"`)
}

// An interrupt that worked is not an error, with any receipt.
func TestInterruptReceipt(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]InterruptResponse{
		`{"still_queued":["u1",3]}`:                       {StillQueued: []string{"u1"}, Unread: []string{"3"}},
		`{"still_queued":[],"cancelled":["a",null,{}]}`:   {StillQueued: []string{}, Cancelled: []string{"a"}, Unread: []string{"null", "{}"}},
		`{"still_queued":"u1","cancelled":true}`:          {Unread: []string{`"u1"`, "true"}},
		`{"still_queued":null,"Cancelled":["a"],"x":[1]}`: {},
		`["u1"]`: {Unread: []string{`["u1"]`}},
	} {
		var got InterruptResponse
		require.NoError(t, (&ControlResponse{Response: []byte(response)}).Decode(&got), response)
		assert.Equal(t, want, got, response)
	}
}

func TestOddForms(t *testing.T) {
	t.Parallel()
	var a AgentDefinition
	in := `{"description":"d","prompt":"p","mcpServers":["x",{"y":{"command":"c"}}],"effort":7}`
	require.NoError(t, json.Unmarshal([]byte(in), &a))
	assert.Equal(t, []AgentMCPServer{{Name: "x"}, {Servers: map[string]MCPServerConfig{"y": {Command: "c"}}}}, a.MCPServers)
	assert.Equal(t, Effort("7"), a.Effort)
	out, err := Marshal(a)
	require.NoError(t, err)
	assert.JSONEq(t, in, string(out))
	require.NoError(t, json.Unmarshal([]byte(`{"effort":"hi\u0067h"}`), &a))
	assert.Equal(t, Effort("high"), a.Effort)
	require.NoError(t, json.Unmarshal([]byte(`{"effort":null}`), &a))
	assert.Empty(t, a.Effort)
	require.Error(t, json.Unmarshal([]byte(`{"effort":[]}`), &a))

	var p SystemPrompt
	require.NoError(t, json.Unmarshal([]byte(`"s"`), &p))
	assert.Equal(t, SystemPrompt{Parts: []string{"s"}, Bare: true}, p)
	require.NoError(t, json.Unmarshal([]byte(`["a","b"]`), &p))
	assert.Equal(t, SystemPrompt{Parts: []string{"a", "b"}}, p)
	out, err = Marshal(SystemPrompt{})
	require.NoError(t, err)
	assert.Equal(t, `[]`, string(out))

	assert.Equal(t, []MCPServerStatus{{Name: "q"}}, (&MCPStatusResponse{Servers: []MCPServerStatus{{Name: "q"}}}).All())
	assert.Equal(t, []MCPServerStatus{{Name: "c"}}, (&MCPStatusResponse{MCPServers: []MCPServerStatus{{Name: "c"}}}).All())

	alt := []PermissionUpdate{{Type: SetMode}}
	assert.Equal(t, alt, (&CanUseToolRequest{AltSuggestions: alt}).Suggestions())
	assert.Empty(t, (&CanUseToolRequest{PermissionSuggestions: []PermissionUpdate{}, AltSuggestions: alt}).Suggestions())
}

func FuzzDecodeControl(f *testing.F) {
	for _, s := range []string{
		`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"permission_suggestions":[{"type":"setMode","mode":"plan"}]}}`,
		`{"type":"control_request","request_id":"r","request":{"type":"hook_callback","callback_id":"h","input":{"hook_event_name":"Stop"}}}`,
		`{"type":"control_request","request_id":"r","request":{"subtype":"initialize","systemPrompt":["a"],"agents":{"x":{"effort":3,"mcpServers":["y"]}}}}`,
		`{"type":"control_request","request_id":"r","request":{"subtype":"set_goal","credits_budget":null}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow"}}}`,
		`{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"e","pending_permission_requests":[{"type":"control_request"}]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fr, err := ParseFrame(line)
		if err != nil {
			return
		}
		if r, err := DecodeControlResponse(fr); err == nil {
			var p PermissionResult
			if r.Decode(&p) == nil {
				b, err := Marshal(p)
				require.NoError(t, err)
				var again PermissionResult
				require.NoError(t, json.Unmarshal(b, &again))
				require.Equal(t, p.Allowed(), again.Allowed())
			}
			var h HookJSONOutput
			_ = r.Decode(&h)
		}
		if !json.Valid(line) {
			return
		}
		if r, err := DecodeAgentRequest(fr); err == nil {
			requireRoundTrip(t, r, func(g Frame) (Request, error) { return DecodeAgentRequest(g) })
			if h, ok := r.(*HookCallbackRequest); ok {
				_, _ = DecodeHookInput(h.Input)
			}
		}
		if r, err := DecodeHostRequest(fr); err == nil {
			requireRoundTrip(t, r, DecodeHostRequest)
		}
	})
}

// requireRoundTrip encodes r, decodes it again and wants the same type.
func requireRoundTrip(t testing.TB, r Request, decode func(Frame) (Request, error)) {
	t.Helper()
	if r.Subtype() == "" {
		return
	}
	raw, err := MarshalRequest(r, SubtypeOnly)
	require.NoError(t, err)
	if _, ok := r.(rawRequest); ok {
		return
	}
	line, err := AppendControlRequest(nil, "id", raw)
	require.NoError(t, err)
	g, err := ParseFrame(line)
	require.NoError(t, err)
	again, err := decode(g)
	require.NoError(t, err)
	require.IsType(t, r, again)
}

// TestAnOddRequest: keys that are new or in another case change nothing, and what was not
// understood is an error, which no gate answers.
func TestAnOddRequest(t *testing.T) {
	t.Parallel()
	decode := func(request string) (Request, error) {
		f, err := ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":` + request + `}`))
		require.NoError(t, err)
		return DecodeAgentRequest(f)
	}
	r, err := decode(`{"subtype":"can_use_tool","tool_name":"a","tool_use_id":"t","TOOL_USE_ID":"u","input":{"x":1},"new":[]}`)
	require.NoError(t, err)
	assert.Equal(t, &CanUseToolRequest{ToolName: "a", ToolUseID: "t", Input: json.RawMessage(`{"x":1}`)}, r)
	r, err = decode(`{"subtype":"can_use_tool","tool_name":"a","tool_use_id":null,"title":"a\u0041\n"}`)
	require.NoError(t, err)
	assert.Equal(t, &CanUseToolRequest{ToolName: "a", Title: "aA\n"}, r)
	for _, bad := range []string{`{"subtype":"can_use_tool","tool_name":1}`, `{"subtype":"can_use_tool","input":{"a":tru}}`} {
		_, err = decode(bad)
		require.Error(t, err, bad)
	}
	var in PreToolUseInput
	require.NoError(t, Unmarshal([]byte(`{"tool_name":"a","mcp_server":{"name":"x"},"session_id":"s","SESSION_ID":"t"}`), &in))
	assert.Equal(t, PreToolUseInput{ToolName: "a", HookBase: HookBase{SessionID: "s"}, MCPServer: &MCPServerProvenance{Name: "x"}}, in)
}
