//go:build conformance

package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
)

// untyped are the fields that an agent sends and the protocol package does not
// type, by the kind of the line: what a new release adds shows here first.
func untyped() map[string][]string {
	return map[string][]string{
		"get_settings answer": {".sources[]"}, // a list there, a map by source here
		// said of managed settings and of an apiKeyHelper beside a token
		"initialize answer": {".auth_conflict", ".managed_settings_applied"},
	}
}

// understood checks that all the agent said is of a type that the protocol
// package knows, decodes, and has a field for everything in it.
func (w *wire) understood(t *testing.T) {
	t.Helper()
	log := w.said()
	kinds := map[string]string{} // the host's requests; one may be noted after its answer
	for _, s := range log {
		if c, ok := s.control(); ok && s.who == "host" && c.Type == protocol.TypeControlRequest {
			kinds[c.RequestID] = c.Request.Subtype
		}
	}
	for _, s := range log {
		if s.who != "agent" {
			continue
		}
		f, err := protocol.ParseFrame([]byte(s.text))
		if !assert.NoError(t, err, s.text) {
			continue
		}
		switch f.Type {
		case protocol.TypeControlRequest:
			understoodRequest(t, f)
		case protocol.TypeControlResponse:
			r, err := protocol.DecodeControlResponse(f)
			if assert.NoError(t, err, s.text) && !r.Failed() {
				understoodAnswer(t, kinds[r.RequestID], r)
			}
		case protocol.TypeControlCancel:
		default:
			understoodMessage(t, f)
		}
	}
}

func understoodMessage(t *testing.T, f protocol.Frame) {
	t.Helper()
	m := protocol.DecodeMessage(f)
	if u, unknown := m.(*protocol.UnknownMessage); unknown {
		assert.Fail(t, "unknown message", "%v\n%s", u.Err, f.Raw)
		return
	}
	again, err := protocol.MarshalMessage(m)
	assert.NoError(t, err, "%s", f.Raw)
	kept(t, f.Type+"/"+f.Subtype, f.Raw, again)
}

func understoodRequest(t *testing.T, f protocol.Frame) {
	t.Helper()
	r, err := protocol.DecodeAgentRequest(f)
	if !assert.NoError(t, err, "%s", f.Raw) {
		return
	}
	_, unknown := r.(*protocol.UnknownAgentRequest)
	assert.False(t, unknown, "%s", f.Raw)
	again, err := protocol.MarshalRequest(r, protocol.TypeAndSubtype)
	assert.NoError(t, err)
	kept(t, f.Subtype+" request", f.Body(), again)
	if h, ok := r.(*protocol.HookCallbackRequest); ok {
		in, err := protocol.DecodeHookInput(h.Input)
		if !assert.NoError(t, err, "%s", h.Input) {
			return
		}
		again, err := json.Marshal(in)
		assert.NoError(t, err)
		kept(t, string(in.Event())+" hook", h.Input, again)
	}
}

func understoodAnswer(t *testing.T, kind string, r *protocol.ControlResponse) {
	t.Helper()
	if len(r.Response) == 0 || r.Response[0] != '{' || string(r.Response) == "{}" {
		return
	}
	answer := answerTo(kind)
	if !assert.NotNil(t, answer, "no type for the answer to %s: %s", kind, r.Response) || !assert.NoError(t, r.Decode(answer)) {
		return
	}
	again, err := json.Marshal(answer)
	assert.NoError(t, err)
	kept(t, kind+" answer", r.Response, again)
}

// kept fails for what the typed form of a line has lost.
func kept(t *testing.T, kind string, before, after []byte) {
	t.Helper()
	lost := map[string]bool{}
	compare(lost, "", generic(t, before), generic(t, after))
	for _, known := range untyped()[kind] {
		delete(lost, known)
	}
	assert.Empty(t, slices.Sorted(maps.Keys(lost)), "no field in %s for: %.2000s", kind, before)
}

// compare notes the keys of before that after lacks, unless their value is what
// an absent key means.
func compare(lost map[string]bool, path string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for k, v := range b {
			if got, ok := a[k]; ok {
				compare(lost, path+"."+k, v, got)
			} else if !zero(v) {
				lost[path+"."+k] = true
			}
		}
	case []any:
		a, _ := after.([]any)
		for i, v := range b {
			if i < len(a) {
				compare(lost, path+"[]", v, a[i])
			} else {
				lost[path+"[]"] = true
			}
		}
	default:
		if fmt.Sprint(before) != fmt.Sprint(after) && !zero(before) {
			lost[path] = true
		}
	}
}

// zero reports whether a value is the zero of its type.
func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

func generic(t *testing.T, b []byte) (v any) {
	t.Helper()
	assert.NoError(t, json.NewDecoder(bytes.NewReader(b)).Decode(&v), "%s", b)
	return v
}

// answerTo is the type of the answer to a request of the host; nil for one
// without a value.
func answerTo(kind string) any {
	switch kind {
	case "initialize":
		return new(protocol.InitializeResponse)
	case "interrupt":
		return new(protocol.InterruptResponse)
	case "set_permission_mode":
		return new(protocol.SetPermissionModeResponse)
	case "set_model":
		return new(protocol.SetModelResponse)
	case "apply_flag_settings":
		return new(protocol.ApplyFlagSettingsResponse)
	case "get_settings":
		return new(protocol.SettingsResponse)
	case "get_context_usage":
		return new(protocol.ContextUsage)
	case "get_usage":
		return new(protocol.UsageReport)
	case "get_usage_info":
		return new(protocol.UsageInfo)
	case "read_file":
		return new(protocol.ReadFileResponse)
	case "rewind_files":
		return new(protocol.RewindFilesResponse)
	case "rewind":
		return new(protocol.RewindResponse)
	case "background_tasks":
		return new(protocol.BackgroundTasksResponse)
	case "get_task_output":
		return new(protocol.TaskOutputResponse)
	case "cancel_async_message":
		return new(protocol.CancelAsyncMessageResponse)
	case "generate_session_title":
		return new(protocol.SessionTitleResponse)
	case "side_question":
		return new(protocol.SideQuestionResponse)
	case "set_cwd":
		return new(protocol.SetCwdResponse)
	case "claim_session":
		return new(protocol.ClaimSessionResponse)
	case "get_models", "list_models":
		return new(protocol.ModelsResponse)
	case "reload_plugins":
		return new(protocol.ReloadPluginsResponse)
	case "reload_skills":
		return new(protocol.ReloadSkillsResponse)
	case "reload_output_styles":
		return new(protocol.ReloadOutputStylesResponse)
	case "list_plugins":
		return new(protocol.PluginsResponse)
	case "account_info":
		return new(protocol.AccountInfoResponse)
	case "register_repo_root":
		return new(protocol.RegisterRepoRootResponse)
	case "add_directories":
		return new(protocol.AddDirectoriesResponse)
	case "set_proxy":
		return new(protocol.ProxyResponse)
	case "mcp_status":
		return new(protocol.MCPStatusResponse)
	case "mcp_set_servers":
		return new(protocol.MCPSetServersResponse)
	case "mcp_read_resource":
		return new(protocol.MCPReadResourceResponse)
	case "mcp_authenticate":
		return new(protocol.MCPAuthenticateResponse)
	case "set_goal", "get_goal":
		return new(protocol.GoalResponse)
	case "clear_goal":
		return new(protocol.ClearGoalResponse)
	case "set_goal_max_turns":
		return new(protocol.GoalMaxTurnsResponse)
	case "set_plan_mode", "get_plan_mode":
		return new(protocol.PlanModeResponse)
	case "get_byok_config":
		return new(protocol.BYOKProvidersResponse)
	case "list_byok_configs":
		return new(protocol.BYOKConfigsResponse)
	case "validate_byok_model", "check_byok_config":
		return new(protocol.SuccessResponse)
	case "mcp_call":
		return new(protocol.MCPCallResponse)
	case "set_mcp_permission_mode_override":
		return new(protocol.MCPPermissionModeOverrideResponse)
	case "get_session_cost", "export_conversation":
		return new(protocol.TextResponse)
	case "get_plan":
		return new(protocol.PlanResponse)
	case "get_status":
		return new(protocol.StatusResponse)
	case "file_suggestions":
		return new(protocol.FileSuggestionsResponse)
	case "get_binary_version":
		return new(protocol.BinaryVersionResponse)
	case "get_hooks_listing":
		return new(protocol.HooksListingResponse)
	case "list_permission_rules":
		return new(protocol.PermissionRulesResponse)
	}
	return nil
}
