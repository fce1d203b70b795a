package protocol

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declaredLines are lines that no recording holds, in the form that the
// vendors' types declare.
func declaredLines() []string {
	return []string{
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795172971,"rateLimitType":"five_hour","utilization":0.97,"overageStatus":"allowed","overageResetsAt":1,"overageDisabledReason":"out_of_credits","isUsingOverage":true,"overageInUse":true,"surpassedThreshold":0.9,"limitScope":"service","errorCode":"credits_required","canUserPurchaseCredits":true,"hasChargeableSavedPaymentMethod":true},"uuid":"u","session_id":"s"}`,
		`{"type":"tool_progress","tool_use_id":"t-heartbeat-0","tool_name":"Bash","parent_tool_use_id":"t","elapsed_time_seconds":30.5,"task_id":"k","heartbeat":true,"subagent_type":"g","subagent_retry":{"agent_id":"a","attempt":1,"max_retries":2,"retry_delay_ms":3.5,"error_status":529,"error_category":"overloaded"},"uuid":"u","session_id":"s"}`,
		`{"type":"tool_use_summary","summary":"s","preceding_tool_use_ids":["a"],"uuid":"u","session_id":"s"}`,
		`{"type":"auth_status","isAuthenticating":true,"output":["o"],"error":"e","uuid":"u","session_id":"s"}`,
		`{"type":"prompt_suggestion","suggestion":"s","uuid":"u","session_id":"s"}`,
		`{"type":"active_goal","value":{"condition":"c","iterations":2,"set_at":1795172971617,"tokens_at_start":3,"last_reason":"r"},"uuid":"u","session_id":"s"}`,
		`{"type":"cloud_agent_event","event":"agent.message","id":"i","data":{"turn_id":"t"},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"memory_recall","mode":"select","memories":[{"path":"/m","scope":"team","content":"c"}],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"mirror_error","error":"e","key":{"projectKey":"p","sessionId":"s","subpath":"x"},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"model_refusal_fallback","trigger":"refusal","direction":"retry","scope":"session","original_model":"a","fallback_model":"b","request_id":"r","api_refusal_category":"c","api_refusal_explanation":"x","retracted_message_uuids":["m"],"refused_user_message_uuid":"v","content":"t","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"plugin_install","status":"failed","name":"n","error":"e","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"session_writes_lost","error_code":"ENOSPC","lost":["transcript"],"transcript_session_ids":["s"],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"worker_shutting_down","reason":"r","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"vcs_state_changed","kind":"push","cwd":"/w","branch":"main","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"files_persisted","files":[{"filename":"f","file_id":"i"}],"failed":[{"filename":"g","error":"e"}],"processed_at":"2026-01-01T00:00:00Z","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"elicitation_complete","mcp_server_name":"m","elicitation_id":"e","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"hook_progress","hook_id":"h","hook_name":"n","hook_event":"Stop","stdout":"o","stderr":"e","output":"x","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"commands_changed","commands":[{"name":"n","description":"d","argumentHint":"a","aliases":["b"],"builtin":true}],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"local_command_output","content":"c","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"mcp_status_change","servers":[{"name":"n","status":"needs-auth","serverInfo":{"name":"x","version":"1"},"error":"e","config":{"type":"http","url":"u","headers":{"a":"b"}},"scope":"user","tools":[{"name":"t","description":"d","annotations":{"readOnly":true,"destructive":true,"openWorld":true},"_meta":{"a":1}}]}],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"session_title_changed","title":"t","source":"ai","revision":3,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"bridge_state","state":"connected","detail":"d","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"available_models_update","models":[{"value":"v","displayName":"d","isEnabled":false}],"currentModel":"v","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"control_request_progress","request_id":"r","status":"api_retry","attempt":1,"max_retries":2,"retry_delay_ms":1.5,"error_status":500,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":552.9,"error_status":null,"error":"unknown","no_response":{"waited_ms":1,"retry_wait_ms":2},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"task_notification","task_id":"t","status":"stopped","reason":"worker_restart","output_file":"/o","summary":"s","resource_links":[{"uri":"u","name":"n","title":"t","description":"d","mimeType":"m","size":4,"annotations":{"a":1}}],"skip_transcript":true,"ambient":true,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"task_updated","task_id":"t","patch":{"status":"paused","description":"d","end_time":1,"total_paused_ms":2,"error":"e","is_backgrounded":false},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":1,"preserved_segment":{"head_uuid":"a","anchor_uuid":"b","tail_uuid":"c"},"preserved_messages":{"anchor_uuid":"a","uuids":["b"]}},"uuid":"u","session_id":"s"}`,
		`{"type":"stream_event","event":{"type":"message_stop"},"api_message_id":"m","abandoned_blocks":{"api_message_id":"m","from_block_index":2},"text_runs_joined":true,"owed_rows":["r"],"parent_tool_use_id":null,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"status","status":"compacting","compact_output_chars":12,"resume_held_for_plan":true,"user_message_uuids":["v"],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"init","memory_paths":{"auto":"a","team":"t"},"scratchpad_path":"p","synced_skills_path":"k","plugin_warnings":[{"plugin":"p","type":"t","message":"m"}],"plugin_errors":[{"plugin":"p","type":"t","message":"m","managed_lock":{"plugin_enabled":true,"name":"n","marketplace":"k"}}],"mcp_server_errors":[{"name":"n","type":"t","message":"m"}],"startup_timing":{"a":1},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"task_started","task_id":"t","description":"d","is_backgrounded":false,"awaited":true,"parent_task_id":"p","tools":["Read"],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"t","task_type":"local_bash","description":"d","parent_task_id":"p","awaited":true,"off_host":true,"ambient":true}],"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"hook_started","hook_id":"h","hook_name":"n","hook_event":"Stop","origin":"o","label":"l","plugin_name":"p","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"hook_progress","hook_id":"h","hook_name":"n","hook_event":"Stop","stdout":"","stderr":"","output":"","backgrounded":true,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"t","decision_reason_code":"c","message":"m","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"informational","content":"c","level":"info","prompt_submit_outcome":{"kind":"k","no_verdict_kind":"n","prompt_kept":true},"model_restriction":{"requested_model":"a","effective_model":"b","at":"start"},"hook_no_verdict":{"hook_event":"Stop","tool_use_id":"t","timed_out":true,"plugin_id":"p","plugin_root":"r"},"timestamp":"2026-01-01T00:00:00Z","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"model_fallback","trigger":"overloaded","original_model":"a","fallback_model":"b","content":"c","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":1,"messages_summarized":2,"precomputed":true,"user_context":"c","pre_compact_discovered_tools":["t"],"preserved_messages":{"anchor_uuid":"a","uuids":["b"],"all_uuids":["c"]}},"historical":true,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"goal_updated","goal":{"id":"g"},"reason":"blocked","uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"model_queue_status","status":"queued","request_id":"r","request_set_id":"q","model_key":"m","queue_type":"t","queue_count":3,"wait_time_ms":4,"queue_wait_elapsed_ms":5,"queue_max_wait_ms":6,"service_available":true,"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"memory_generation","result":{"status":"partial","attemptId":"a","reason":"r","origin":"dream","sourceRequestIds":["s"],"modelRequestIds":["m"],"writtenFiles":[{"rootId":"r","path":"p"}],"failedFiles":[{"rootId":"r","path":"p","error":"e"}],"indexUpdated":true,"contentUpdated":true,"durationMs":5,"usage":{"input_tokens":1},"credits":0.5},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"memory_consumption","result":{"status":"partial","files":[{"id":"i","path":"p","status":"failed","error":"e"}]},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"skill_evolution","result":{"status":"suggested","attemptId":"a","origin":"turn_complete","reviewScore":0.5,"suggestions":[{"skillName":"n","action":"create","summary":"s","confidence":0.5,"rationale":"r"}],"durationMs":5},"uuid":"u","session_id":"s"}`,
		`{"type":"system","subtype":"artifacts_update","artifacts":[{"kind":"changed","path":"p","display_path":"d","name":"n","group":{"key":"k","name":"g"},"relative_path":"r","size":5,"mime":"m","mtime":6.5,"additions":1,"deletions":2,"is_new":true}],"uuid":"u","session_id":"s"}`,
		`{"type":"command_lifecycle","command_uuid":"c","state":"discarded","wakeup_source":"loop_wakeup","scheduled_for":1,"ran_ahead":true,"uuid":"u","session_id":"s"}`,
		`{"type":"conversation_reset","new_conversation_id":"n","trigger":"clear","user_message_from_human":true,"uuid":"u","session_id":"s"}`,
		`{"type":"result","subtype":"success","is_error":false,"total_credits":2.5,"credential_expires_at":"t","policy_answer":"a","policy_answer_reason":"r","message_undelivered":"send_failed","invalid_config_file":{"path":"p","is_global":true,"backup_searched":true,"backup_path":"b"},"interrupted_by_shutdown":true,"stopped_by_permission_check":true,"usage":{"credits":0.5,"original_credits":1,"billable":false,"context_usage_ratio":0.25,"request_id":"r"},"modelUsage":{"m":{"credits":2.5}},"permission_denials":[{"tool_name":"t","tool_use_id":"i","message":"m","decision_reason_type":"rule","decision_reason":"r"}],"uuid":"u","session_id":"s"}`,
		`{"type":"assistant","message":{"role":"assistant","content":[]},"historical":true,"refused_message_id":"r","api_error":"no_response","tool_use_meta":[{"id":"i","server_id":"s","icon_url":"u"}],"local_command_run":{"command":"c","args":"a","plugin":"p"},"uuid":"u","session_id":"s"}`,
		`{"type":"user","message":{"role":"user","content":"x"},"historical":true,"is_compact_summary":true,"is_meta":true,"plan_content":"p","permission_mode":"plan","interrupted_message_id":"i","retracted_message_uuids":["r"],"mcp_meta":{"_meta":{"a":1},"structured_content":{"b":2},"resource_links":[{"uri":"u","name":"n"}]},"source_tool_use_id":"t","source_tool_assistant_uuid":"a","tool_result_meta":[{"id":"i","user_feedback":"f","built_in_tool":"Bash","run_input":"{}","permission_decision":{"decision":"accept","source":"config","auto_mode_rule":{"list":"allow","name":"n"}}}],"uuid":"u","session_id":"s"}`,
		`{"type":"assistant","message":{"role":"assistant","content":[]},"isApiErrorMessage":true,"uuid":"u","session_id":"s"}`,
		`{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":null,"origin":{"kind":"bridge","sessionId":"s"},"tool_result_meta":[{"id":"i","non_execution_kind":"user-rejected","user_feedback":"f"}],"uuid":"u","session_id":"s"}`,
		`{"type":"user","message":{"role":"user","content":"x"},"parent_tool_use_id":null,"origin":{"kind":"peer","from":"f","fromMode":"bypass","name":"n","fromSession":"s","senderTaskId":"t","body":"b","verifiedPeerPid":7},"priority":"later","pasted_content":["p"],"inline_pastes":["i"],"file_attachments":[1],"uuid":"u","session_id":"s"}`,
		`{"type":"assistant","message":{"role":"assistant","content":[]},"supersedes":["x"],"resumed_from_incomplete_thinking":true,"usage_report":{"session":{"total_cost_usd":1.5,"total_api_duration_ms":2,"total_duration_ms":3,"total_lines_added":4,"total_lines_removed":5,"model_usage":{}},"rate_limits":{"limits":null}},"uuid":"u","session_id":"s"}`,
	}
}

func TestDeclaredMessages(t *testing.T) {
	t.Parallel()
	for _, line := range declaredLines() {
		m := decode(t, line)
		require.IsNotType(t, &UnknownMessage{}, m, line)
		again, err := MarshalMessage(m)
		require.NoError(t, err)
		checkKept(t, []byte(line), again, reflect.TypeOf(m), line)
	}
}

// Requests and answers that no recording holds.
func TestDeclaredControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v  any
		in string
	}{
		{&CanUseToolRequest{}, `{"tool_name":"Bash","input":{},"matched_ask_rule":{"source":"s","tool_name":"Bash","rule_content":"r"},"suppress_always_allow_rule":true,"default_to_no":true}`},
		{&SkillEvolutionShouldReviewRequest{}, `{"callbackId":"c","input":{"sessionId":"s","turnIndex":1}}`},
		{&MCPCallRequest{}, `{"tool":"t","arguments":{"a":1},"expires_at":"e","timeout_ms":5,"input_files":[{"name":"n","lane_path":"l"}],"output_files":[{"name":"n","lane_path":"l","if_match":"i"}]}`},
		{&RegisterRepoRootRequest{}, `{"directory":"d","reload_claude_md":true,"reload_plugins":true,"reload_skills":true}`},
		{&SettingsResponse{}, `{"effective":{},"sources":[],"applied":{"model":"m","effort":"high","advisor":"a","ultracode":true,"ultracodeRequested":true,"ultracodeAvailable":true,"ultrathinkAvailable":true,"outsideFileToolReadsBlocked":true,"outsideFileToolWritesBlocked":true,"outsideBlocksCountLaunchFoldersOnly":true,"additionalDirectoryConfigRootsWithheld":[{"dir":"d","root":"r","reads":"nothing","reason":"root_moved","entriesWithheld":1}],"launchEnvLeftOwnFilesInPlace":true}}`},
		{&SetCwdRequest{}, `{"path":"p","trust_accepted":true,"trusted_directory":"d"}`},
		{&RegisterRepoRootResponse{}, `{"directory":"d"}`},
		{&SetCwdResponse{}, `{"status":"needs_trust","directory":"d"}`},
		{&TaskOutputResponse{}, `{"output":"o","total_bytes":5,"truncated":true}`},
		{&PermissionRulesResponse{}, `{"state":{"rules":[{"behavior":"ask","source":"session","rule":"Bash","description":{"prefix":"p","emphasis":"e","suffix":"s"},"editability":"readonly","notInEffect":true}],"workspaceDirectories":[{"path":"p","source":"s"}],"originalCwd":"c","managedOnly":true,"errors":[{"file":"f","path":"p","message":"m"}]}}`},
		{&HooksListingResponse{}, `{"events":[{"name":"Stop","summary":"s","supportsMatcher":true,"hookCount":1}],"hooks":[{"event":"Stop","matcher":"m","source":"s","sourceLabel":"l","pluginName":"p","type":"command","displayText":"d","commandText":"c","contentLabel":"x","condition":"if","timeout":1.5,"statusMessage":"y","runsOnce":true,"runsInBackground":true,"disabled":true,"editable":{"matcher":"m"}}],"eventCatalog":[],"policy":{"disabledByPolicy":true,"managedOnly":true,"pluginOnly":true,"allDisabled":true,"policyHookCount":2,"policyUnreadable":true},"safeMode":{"exitHint":"h"}}`},
		{&ReloadPluginsResponse{}, `{"commands":[],"agents":[],"plugins":[{"name":"n","path":"p","version":"1"}],"mcpServers":[],"error_count":1,"held":true,"cache_impact":{"mcp_servers_added":["a"],"mcp_servers_removed":["b"],"lsp_tool_change":"adds"}}`},
		{&UsageReport{}, `{"session":{"total_cost_usd":1},"rate_limits_available":true,"rate_limits":{"five_hour":{"utilization":5.5,"resets_at":"t"},"seven_day":null,"model_scoped":[{"display_name":"d","utilization":null,"resets_at":null}],"extra_usage":{"is_enabled":true,"monthly_limit":null,"used_credits":2,"utilization":null,"currency":"EUR"}},"behaviors":{"day":{"request_count":1,"session_count":2,"behaviors":[{"key":"cron","pct":3,"count":4}],"agents":[{"name":"n","pct":5}],"skills":[],"plugins":[],"mcp_servers":[]},"week":{"request_count":1}}}`},
		{&BYOKProvidersResponse{}, `{"providers":[{"key":"k","display_name":"d","api_key_url":"a","url":"u","fields":[{"key":"k","display_name":"d","type":"free_input","mandatory":true}],"types":[{"key":"cp","display_name":"d","models":[{"key":"k","display_name":"d","is_vl":true,"is_reasoning":true,"format":"openai","max_input_tokens":9}]}]}]}`},
		{&MCPReadResourceResponse{}, `{"contents":[{"uri":"u","mimeType":"m","text":"t","blob":"b","_meta":{"a":1}}]}`},
		{&FileSuggestionsResponse{}, `{"suggestions":[{"path":"p","score":0.5}],"cwd":"c"}`},
		{&StatusResponse{}, `{"sections":[{"title":"t","rows":[{"label":"l","value":"v"}]}]}`},
		{&ModelPolicyReply{}, `{"type":"get_model_policy","model":"m","custom_model":{"provider":"p","api_key":"k","style":"openai"},"parameters":{"temperature":1}}`},
		{&PostToolUseInput{}, `{"hook_event_name":"PostToolUse","tool_name":"t","mcp_server":{"name":"n","source":"s"},"duration_ms":1.5}`},
		{&PreModelSwitchInput{}, `{"hook_event_name":"PreModelSwitch","from_model":"a","to_model":"b","requested_model":"c","source":"sdk","context_tokens":1,"prompt_cache_warm":true,"cache_ttl":"5m","estimated_cache_write_usd":0.5,"pricing":"default"}`},
		{&InstructionsLoadedInput{}, `{"hook_event_name":"InstructionsLoaded","file_path":"f","memory_type":"User","load_reason":"include","globs":["g"],"trigger_file_path":"t","parent_file_path":"p"}`},
		{&FileChangedInput{}, `{"hook_event_name":"FileChanged","file_path":"f","event":"unlink"}`},
		{&StopInput{}, `{"hook_event_name":"Stop","stop_hook_active":true,"background_tasks":[{"id":"i","type":"t","status":"s","description":"d","command":"c","agent_type":"a","server":"v","tool":"o","name":"n"}],"session_crons":[{"id":"i","schedule":"s","recurring":true,"prompt":"p"}]}`},
		{&SessionStartInput{}, `{"hook_event_name":"SessionStart","source":"resume","model":"m","session_title":"t","seconds_since_last_response":1.5,"context_tokens":2,"prompt_cache_likely_expired":true,"estimated_cache_write_usd":0.1}`},
		{&TaskCreatedInput{}, `{"hook_event_name":"TaskCreated","task_id":"i","task_subject":"s","task_description":"d","teammate_name":"n","team_name":"t"}`},
		{&ElicitationInput{}, `{"hook_event_name":"Elicitation","mcp_server_name":"n","message":"m","mode":"url","url":"u","elicitation_id":"e","requested_schema":{"a":1}}`},
	} {
		require.NoError(t, json.Unmarshal([]byte(c.in), c.v), c.in)
		again, err := Marshal(c.v)
		require.NoError(t, err)
		checkKept(t, []byte(c.in), again, reflect.TypeOf(c.v), c.in)
	}
}

func TestAgentRequestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"can_use_tool", "hook_callback", "mcp_message", "elicitation", "elicitation_response",
		"request_user_dialog", "get_model_policy", "fetch_job_token", "fetch_service_account_token",
		"memory_should_generate", "skill_evolution_should_review", "resolve_session_artifacts",
	} {
		r, err := DecodeAgentRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"type":"`+name+`"}}`))
		require.NoError(t, err, name)
		assert.IsNotType(t, &UnknownAgentRequest{}, r, name)
		assert.Equal(t, name, r.Subtype())
		assert.True(t, reflect.ValueOf(r).Elem().IsZero(), name)
	}
}
