package qoder_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

// TestEveryRequest holds each request of the host against the vendor's form: no
// key of it may be without a field, and the kind is named as the SDK names it.
func TestEveryRequest(t *testing.T) {
	t.Parallel()
	needs := map[string]string{
		"stop_task": "background_tasks_v1", "background_tasks": "background_tasks_v1", "set_goal": "goal_v1", "get_goal": "goal_v1",
		"clear_goal": "goal_v1", "set_goal_max_turns": "goal_max_turns_v1", "set_plan_mode": "plan_mode_v1", "get_plan_mode": "plan_mode_v1",
		"side_question": "side_question_v1", "list_byok_configs": "byok_config_management_v1", "create_byok_config": "byok_config_management_v1",
		"update_byok_config": "byok_config_management_v1", "delete_byok_config": "byok_config_management_v1",
		"check_byok_config": "byok_config_management_v1", "reload_skills": "reload_skills_v1", "rewind": "session_rewind_v1",
		"flush_skill_evolution": "skill_evolution_v1",
	}
	for _, body := range []string{
		`{"type":"initialize","modelPolicyProvider":true,"supportsCommandsChanged":true,"initializeTimeoutMs":120000,"subtype":"initialize"}`,
		`{"type":"interrupt","cancel_queued":true,"subtype":"interrupt"}`,
		`{"type":"set_model","model":"m","subtype":"set_model"}`,
		`{"type":"set_permission_mode","mode":"acceptEdits","subtype":"set_permission_mode"}`,
		`{"type":"set_max_thinking_tokens","max_thinking_tokens":5,"subtype":"set_max_thinking_tokens"}`,
		`{"subtype":"stop_task","task_id":"t"}`,
		`{"subtype":"background_tasks","tool_use_id":"t"}`,
		`{"subtype":"set_goal","objective":"o","status":"active","credits_budget":2.5}`,
		`{"subtype":"get_goal"}`,
		`{"subtype":"clear_goal"}`,
		`{"subtype":"set_goal_max_turns","max_turns":3}`,
		`{"subtype":"set_plan_mode","active":true}`,
		`{"subtype":"get_plan_mode"}`,
		`{"type":"set_proxy","proxy":"http://p","subtype":"set_proxy"}`,
		`{"type":"generate_session_title","description":"d","persist":true,"subtype":"generate_session_title"}`,
		`{"subtype":"side_question","question":"q","history":[{"question":"a","response":"b"}]}`,
		`{"type":"add_directories","directories":["/a"],"subtype":"add_directories"}`,
		`{"type":"apply_flag_settings","settings":{"a":1},"subtype":"apply_flag_settings"}`,
		`{"type":"get_settings","subtype":"get_settings"}`,
		`{"subtype":"get_models","fetchStrategy":"cache","uid":"u"}`,
		`{"type":"get_byok_config","subtype":"get_byok_config"}`,
		`{"type":"validate_byok_model","provider":"p","model":"m","api_key":"k","url":"u","style":"openai","subtype":"validate_byok_model"}`,
		`{"type":"list_byok_configs","subtype":"list_byok_configs"}`,
		`{"type":"create_byok_config","config":{"providerId":"p","baseUrl":"u","apiKey":"k"},"subtype":"create_byok_config"}`,
		`{"type":"update_byok_config","config":{"providerId":"p"},"subtype":"update_byok_config"}`,
		`{"type":"delete_byok_config","target":{"providerId":"p"},"subtype":"delete_byok_config"}`,
		`{"type":"check_byok_config","config":{"providerId":"p"},"subtype":"check_byok_config"}`,
		`{"type":"mcp_status","subtype":"mcp_status"}`,
		`{"type":"get_context_usage","subtype":"get_context_usage"}`,
		`{"type":"get_usage_info","subtype":"get_usage_info"}`,
		`{"type":"reload_plugins","subtype":"reload_plugins"}`,
		`{"type":"reload_skills","subtype":"reload_skills"}`,
		`{"type":"list_plugins","subtype":"list_plugins"}`,
		`{"type":"account_info","subtype":"account_info"}`,
		`{"type":"rewind_files","user_message_id":"u","dry_run":true,"subtype":"rewind_files"}`,
		`{"type":"rewind","user_message_id":"u","scope":"both","dry_run":true,"subtype":"rewind"}`,
		`{"type":"seed_read_state","path":"p","mtime":1767268800000,"subtype":"seed_read_state"}`,
		`{"type":"flush_memory","subtype":"flush_memory"}`,
		`{"type":"refresh_memory","subtype":"refresh_memory"}`,
		`{"type":"flush_skill_evolution","subtype":"flush_skill_evolution"}`,
		`{"type":"mcp_authenticate","serverName":"s","redirectUri":"u","subtype":"mcp_authenticate"}`,
		`{"type":"mcp_oauth_callback_url","serverName":"s","callbackUrl":"u","subtype":"mcp_oauth_callback_url"}`,
		`{"subtype":"cancel_async_message","message_uuid":"u"}`,
		`{"type":"enable_remote_projection","remote_session_id":"r","from_sequence_num":3,"subtype":"enable_remote_projection"}`,
		`{"type":"disable_remote_projection","subtype":"disable_remote_projection"}`,
		`{"type":"mcp_set_servers","servers":{"s":{"command":"c"}},"subtype":"mcp_set_servers"}`,
		`{"type":"mcp_toggle","serverName":"s","enabled":true,"subtype":"mcp_toggle"}`,
		`{"type":"mcp_reconnect","serverName":"s","subtype":"mcp_reconnect"}`,
		`{"type":"mcp_clear_auth","serverName":"s","subtype":"mcp_clear_auth"}`,
		`{"type":"mcp_inject_token","serverName":"s","token":{"accessToken":"t"},"subtype":"mcp_inject_token"}`,
		`{"type":"end_session","subtype":"end_session"}`,
	} {
		f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":` + body + `}`))
		require.NoError(t, err)
		t.Run(f.Subtype, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/request/"+f.Subtype)
			r, err := protocol.DecodeHostRequest(f)
			require.NoError(t, err)
			require.IsNotType(t, &protocol.UnknownHostRequest{}, r)
			assert.Equal(t, needs[f.Subtype], qoder.New().Capability(r))
			both := strings.HasPrefix(body, `{"type":`)
			bare := strings.Count(body, ",") == 1 && both || !strings.Contains(body, ",")
			assert.Equal(t, bare, reflect.ValueOf(r).Elem().IsZero(), "its fields are typed")
			got, err := qoder.New().Encode(r)
			require.NoError(t, err)
			assert.JSONEq(t, body, string(got))
			assert.Equal(t, both, strings.HasPrefix(string(got), `{"type":`), string(got))
		})
	}
}
