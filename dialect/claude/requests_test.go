package claude_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

// TestEveryRequest holds each request of the host against the form that the
// vendor's SDK gives it, or its types do: no key of it may be without a field.
func TestEveryRequest(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"subtype":"initialize","systemPrompt":["s"],"hooks":{"Stop":[{"hookCallbackIds":["hook_0"],"timeout":1.5}]},"sdkMcpServers":["h"],"agents":{"a":{"description":"d","prompt":"p"}}}`,
		`{"subtype":"interrupt","cancel_queued":true}`,
		`{"subtype":"set_permission_mode","mode":"plan"}`,
		`{"subtype":"set_model","model":"m"}`,
		`{"subtype":"set_max_thinking_tokens","max_thinking_tokens":5,"thinking_display":"omitted"}`,
		`{"subtype":"set_mcp_permission_mode_override","serverName":"s","mode":"auto"}`,
		`{"subtype":"apply_flag_settings","settings":{"a":1}}`,
		`{"subtype":"update_settings","source":"userSettings","settings":{"a":1}}`,
		`{"subtype":"mcp_status"}`,
		`{"subtype":"get_context_usage","detail":"full"}`,
		`{"subtype":"get_usage","skip_behaviors":true}`,
		`{"subtype":"get_settings"}`,
		`{"subtype":"get_session_cost"}`,
		`{"subtype":"read_file","path":"p","max_bytes":9,"encoding":"base64"}`,
		`{"subtype":"reload_plugins","hold_on_cache_impact":true,"add_plugins":[{"type":"local","path":"p"}],"refuse_if_busy":true}`,
		`{"subtype":"reload_skills"}`,
		`{"subtype":"reload_output_styles"}`,
		`{"subtype":"rewind_files","user_message_id":"u","dry_run":true}`,
		`{"subtype":"seed_read_state","path":"p","mtime":1767268800000}`,
		`{"subtype":"mcp_reconnect","serverName":"s"}`,
		`{"subtype":"mcp_toggle","serverName":"s","enabled":true}`,
		`{"subtype":"mcp_read_resource","serverName":"s","uri":"u"}`,
		`{"subtype":"mcp_set_servers","servers":{"s":{"type":"stdio","command":"c"},"h":{"type":"sdk","name":"h"}}}`,
		`{"subtype":"mcp_call","tool":"t","arguments":{"a":1}}`,
		`{"subtype":"mcp_authenticate","serverName":"s","redirectUri":"u"}`,
		`{"subtype":"mcp_clear_auth","serverName":"s"}`,
		`{"subtype":"mcp_oauth_callback_url","serverName":"s","callbackUrl":"u"}`,
		`{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","method":"notifications/progress"}}`,
		`{"subtype":"stop_task","task_id":"t"}`,
		`{"subtype":"background_tasks","tool_use_id":"t"}`,
		`{"subtype":"get_task_output","task_id":"t"}`,
		`{"subtype":"cancel_async_message","message_uuid":"u"}`,
		`{"subtype":"generate_session_title","description":"d","persist":true}`,
		`{"subtype":"rename_session","title":"t"}`,
		`{"subtype":"side_question","question":"q","history":[{"question":"a","response":"b"}]}`,
		`{"subtype":"set_cwd","path":"p"}`,
		`{"subtype":"claim_session","cwd":"p","env":{"A":"b"},"additional_directories":["d"],"permission_mode":"plan","system_prompt":["s"],"append_system_prompt":"a","agents":{"a":{"description":"d","prompt":"p"}},"title":"t","sdk_mcp_servers":["s"],"include_initialize":true,"workspace_trust":{"accepted":true,"directory":"/d"}}`,
		`{"subtype":"list_models"}`,
		`{"subtype":"file_suggestions","query":"q"}`,
		`{"subtype":"get_binary_version"}`,
		`{"subtype":"get_hooks_listing"}`,
		`{"subtype":"list_permission_rules"}`,
		`{"subtype":"register_repo_root","directory":"d","reload_skills":true}`,
		`{"subtype":"set_color","color":"red"}`,
		`{"subtype":"set_has_subscribers","has_subscribers":true}`,
		`{"subtype":"get_plan"}`,
		`{"subtype":"get_status"}`,
		`{"subtype":"export_conversation"}`,
		`{"subtype":"submit_feedback","description":"d","surface":"sdk"}`,
		`{"subtype":"remote_control","enabled":true}`,
	} {
		f, err := protocol.ParseFrame([]byte(`{"type":"control_request","request_id":"r","request":` + body + `}`))
		require.NoError(t, err)
		t.Run(f.Subtype, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/request/"+f.Subtype)
			r, err := protocol.DecodeHostRequest(f)
			require.NoError(t, err)
			require.IsNotType(t, &protocol.UnknownHostRequest{}, r)
			assert.Equal(t, strings.Contains(body, ","), !reflect.ValueOf(r).Elem().IsZero(), "its fields are typed")
			got, err := claude.New().Encode(r)
			require.NoError(t, err)
			assert.JSONEq(t, body, string(got))
		})
	}
}
