package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every name that was observed, or that the vendors' types and packages have,
// has a type. The one exception is claim_session, which hands a spare process
// to a session.
func TestNamesAreTyped(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields(`
			apply_flag_settings background_tasks cancel_async_message elicitation file_suggestions get_binary_version
			get_context_usage get_hooks_listing get_session_cost get_settings get_task_output get_usage list_models
			list_permission_rules mcp_call mcp_read_resource read_file register_repo_root reload_output_styles
			reload_plugins reload_skills rename_session request_user_dialog seed_read_state set_color set_has_subscribers
			stop_task update_settings generate_session_title get_plan get_status set_cwd side_question mcp_authenticate
			mcp_clear_auth mcp_oauth_callback_url remote_control submit_feedback export_conversation
			set_mcp_permission_mode_override interrupt set_permission_mode set_model set_max_thinking_tokens mcp_status
			mcp_reconnect mcp_toggle mcp_set_servers rewind_files set_goal get_goal clear_goal set_goal_max_turns
			set_plan_mode get_plan_mode set_proxy add_directories get_models get_byok_config validate_byok_model
			list_byok_configs create_byok_config update_byok_config delete_byok_config check_byok_config get_usage_info
			list_plugins account_info rewind flush_memory refresh_memory flush_skill_evolution enable_remote_projection
			disable_remote_projection mcp_inject_token end_session`) {
		f := frame(t, `{"type":"control_request","request_id":"r","request":{"subtype":"`+name+`"}}`)
		host, err := DecodeHostRequest(f)
		require.NoError(t, err, name)
		if _, unknown := host.(*UnknownHostRequest); unknown {
			agent, err := DecodeAgentRequest(f)
			require.NoError(t, err, name)
			assert.IsNotType(t, &UnknownAgentRequest{}, agent, name)
		}
	}
	for _, name := range strings.Fields(`
			PostToolBatch UserPromptExpansion StopFailure PostCompact PreModelSwitch PostModelSwitch PermissionDenied
			TeammateIdle TaskCreated TaskCompleted Elicitation ElicitationResult ConfigChange WorktreeCreate WorktreeRemove
			InstructionsLoaded CwdChanged FileChanged DirectoryAdded MessageDisplay PreToolUse PostToolUse
			PostToolUseFailure Notification UserPromptSubmit SessionStart SessionEnd Stop SubagentStart SubagentStop
			PreCompact PermissionRequest Setup`) {
		in, err := DecodeHookInput([]byte(`{"hook_event_name":"` + name + `"}`))
		require.NoError(t, err, name)
		assert.IsNotType(t, &UnknownHookInput{}, in, name)
	}
	for _, name := range strings.Fields(`
			api_retry background_tasks_changed commands_changed control_request_progress elicitation_complete informational
			local_command_output memory_recall mirror_error model_refusal_fallback model_refusal_no_fallback notification
			permission_denied plugin_install session_state_changed session_writes_lost task_started task_progress
			task_updated thinking_tokens worker_shutting_down task_notification compact_boundary status hook_started
			hook_progress hook_response files_persisted init mcp_status_change session_title_changed bridge_state
			model_queue_status memory_generation memory_consumption skill_evolution artifacts_update plan_mode_changed
			goal_updated goal_cleared available_models_update post_turn_summary model_fallback ui_invalidate vcs_state_changed`) {
		assert.IsNotType(t, &UnknownMessage{}, decode(t, `{"type":"system","subtype":"`+name+`"}`), name)
	}
	for _, name := range strings.Fields(`assistant user result stream_event tool_progress tool_use_summary auth_status rate_limit_event
			conversation_reset prompt_suggestion command_lifecycle active_goal cloud_agent_event transcript_mirror
			streamlined_text streamlined_tool_use_summary post_turn_summary keep_alive keepalive`) {
		assert.IsNotType(t, &UnknownMessage{}, decode(t, `{"type":"`+name+`"}`), name)
	}
}
