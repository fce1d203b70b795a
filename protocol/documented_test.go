package protocol

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
)

// TestEveryMessage decodes a line of every type that the vendors' documents and
// types name, in their form: into its own type, and nothing of it is lost.
func TestEveryMessage(t *testing.T) {
	t.Parallel()
	const ids = `"uuid":"u","session_id":"s"`
	system := func(fields string) string { return `{"type":"system",` + fields + `,` + ids + `}` }
	result := func(subtype, fields string) string {
		return `{"type":"result","subtype":"` + subtype + `","duration_ms":5,"duration_api_ms":4,"is_error":true,"num_turns":3,"stop_reason":"end_turn","total_cost_usd":0.5,"permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"c"}}],` + fields + `,` + ids + `}`
	}
	for row, c := range map[string]struct {
		want Message
		line string
	}{
		"both/message/assistant":                          {&AssistantMessage{}, `{"type":"assistant","message":{"id":"m","role":"assistant","model":"x","content":[{"type":"text","text":"t"},{"type":"tool_use","id":"i","name":"Bash","input":{"command":"c"}},{"type":"thinking","thinking":"h"}]},"parent_tool_use_id":"p",` + ids + `}`},
		"both/message/user":                               {&UserMessage{}, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"o","is_error":true}]},"isSynthetic":true,"tool_use_result":{"stdout":"o"},"parent_tool_use_id":null,` + ids + `}`},
		"qoder/message/user-(replay)":                     {&UserMessage{}, `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"t"}]},"isReplay":true,"parent_tool_use_id":null,` + ids + `}`},
		"both/message/stream_event":                       {&PartialAssistantMessage{}, `{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"t"}},"parent_tool_use_id":null,` + ids + `}`},
		"both/message/result":                             {&ResultMessage{}, result("success", `"result":"r","usage":{"input_tokens":1,"output_tokens":2},"modelUsage":{"m":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":4,"webSearchRequests":5,"costUSD":0.5,"contextWindow":6,"maxOutputTokens":7}}`)},
		"both/result/success":                             {&ResultMessage{}, result("success", `"result":"r","structured_output":{"a":1}`)},
		"both/result/error_during_execution":              {&ResultMessage{}, result("error_during_execution", `"errors":["e"]`)},
		"both/result/error_max_turns":                     {&ResultMessage{}, result("error_max_turns", `"errors":["e"]`)},
		"both/result/error_max_structured_output_retries": {&ResultMessage{}, result("error_max_structured_output_retries", `"errors":["e"]`)},
		"claude/result/error_max_budget_usd":              {&ResultMessage{}, result("error_max_budget_usd", `"errors":["e"]`)},
		"both/message/system/init":                        {&InitMessage{}, system(`"subtype":"init","claude_code_version":"2","qodercli_version":"1","protocol_version":"1.4.0","apiKeySource":"user","cwd":"/","model":"m","permissionMode":"plan","tools":["Read"],"slash_commands":["help"],"output_style":"default","agents":["a"],"skills":["k"],"plugins":[{"name":"n","path":"p","source":"o"}],"mcp_servers":[{"name":"n","status":"connected"}],"fast_mode_state":"off","betas":["b"]`)},
		"both/message/system/task_notification":           {&TaskNotificationMessage{}, system(`"subtype":"task_notification","task_id":"t","tool_use_id":"u","status":"completed","output_file":"/o","summary":"s","usage":{"total_tokens":1,"tool_uses":2,"duration_ms":3}`)},
		"both/message/system/compact_boundary":            {&CompactBoundaryMessage{}, system(`"subtype":"compact_boundary","compact_metadata":{"trigger":"manual","pre_tokens":9,"preserved_segment":{"head_uuid":"a","anchor_uuid":"b","tail_uuid":"c"}}`)},
		"both/message/system/status":                      {&StatusMessage{}, system(`"subtype":"status","status":"compacting","permissionMode":"plan"`)},
		"both/message/system/hook_started":                {&HookStartedMessage{}, system(`"subtype":"hook_started","hook_id":"i","hook_name":"n","hook_event":"Stop"`)},
		"both/message/system/hook_progress":               {&HookProgressMessage{}, system(`"subtype":"hook_progress","hook_id":"i","hook_name":"n","hook_event":"Stop","stdout":"o","stderr":"e","output":"oe"`)},
		"both/message/system/hook_response":               {&HookResponseMessage{}, system(`"subtype":"hook_response","hook_id":"i","hook_name":"n","hook_event":"Stop","output":"oe","stdout":"o","stderr":"e","exit_code":2,"outcome":"error"`)},
		"both/message/system/files_persisted":             {&FilesPersistedMessage{}, system(`"subtype":"files_persisted","files":[{"filename":"f","file_id":"i"}],"failed":[{"filename":"g","error":"e"}],"processed_at":"2026-01-01T00:00:00Z"`)},
		"both/message/system/session_state_changed":       {&SessionStateChangedMessage{}, system(`"subtype":"session_state_changed","state":"requires_action"`)},
		"both/message/system/task_started":                {&TaskStartedMessage{}, system(`"subtype":"task_started","task_id":"t","tool_use_id":"u","description":"d","task_type":"local_agent","workflow_name":"w","prompt":"p"`)},
		"both/message/system/task_progress":               {&TaskProgressMessage{}, system(`"subtype":"task_progress","task_id":"t","tool_use_id":"u","description":"d","usage":{"total_tokens":1,"tool_uses":2,"duration_ms":3},"last_tool_name":"Read","summary":"s"`)},
		"both/message/system/api_retry":                   {&APIRetryMessage{}, system(`"subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":600,"error_status":529,"error":"overloaded"`)},
		"both/message/system/permission_denied":           {&PermissionDeniedMessage{}, system(`"subtype":"permission_denied","tool_name":"Bash","tool_use_id":"t","agent_id":"a","decision_reason_type":"rule","decision_reason":"r","message":"m"`)},
		"both/message/system/commands_changed":            {&CommandsChangedMessage{}, system(`"subtype":"commands_changed","commands":[{"name":"n","description":"d","argumentHint":"h"}]`)},
		"both/message/system/control_request_progress":    {&ControlRequestProgressMessage{}, system(`"subtype":"control_request_progress","request_id":"r","status":"api_retry","attempt":1`)},
		"both/message/system/elicitation_complete":        {&ElicitationCompleteMessage{}, system(`"subtype":"elicitation_complete","mcp_server_name":"m","elicitation_id":"e"`)},
		"both/message/system/local_command_output":        {&LocalCommandOutputMessage{}, system(`"subtype":"local_command_output","content":"c"`)},
		"both/message/auth_status":                        {&AuthStatusMessage{}, `{"type":"auth_status","isAuthenticating":true,"output":["o"],"error":"e",` + ids + `}`},
		"both/message/command_lifecycle":                  {&CommandLifecycleMessage{}, `{"type":"command_lifecycle","command_uuid":"c","state":"queued",` + ids + `}`},
		"both/message/prompt_suggestion":                  {&PromptSuggestionMessage{}, `{"type":"prompt_suggestion","suggestion":"s",` + ids + `}`},
		"claude/message/tool_progress":                    {&ToolProgressMessage{}, `{"type":"tool_progress","tool_use_id":"t","tool_name":"Bash","elapsed_time_seconds":30,"heartbeat":true,"parent_tool_use_id":"p",` + ids + `}`},
		"claude/message/tool_use_summary":                 {&ToolUseSummaryMessage{}, `{"type":"tool_use_summary","summary":"s","preceding_tool_use_ids":["t"],` + ids + `}`},
		"claude/message/rate_limit_event":                 {&RateLimitMessage{}, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795172971},` + ids + `}`},
		"claude/message/conversation_reset":               {&ConversationResetMessage{}, `{"type":"conversation_reset","new_conversation_id":"n",` + ids + `}`},
		"claude/message/active_goal":                      {&ActiveGoalMessage{}, `{"type":"active_goal","value":{"condition":"c","iterations":2},` + ids + `}`},
		"claude/message/system/thinking_tokens":           {&ThinkingTokensMessage{}, system(`"subtype":"thinking_tokens","estimated_tokens":5,"estimated_tokens_delta":2`)},
		"claude/message/system/background_tasks_changed":  {&BackgroundTasksChangedMessage{}, system(`"subtype":"background_tasks_changed","tasks":[{"task_id":"t","task_type":"local_bash","description":"d"}]`)},
		"claude/message/system/vcs_state_changed":         {&VCSStateChangedMessage{}, system(`"subtype":"vcs_state_changed","kind":"push","cwd":"/w","branch":"main"`)},
		"claude/message/system/task_updated":              {&TaskUpdatedMessage{}, system(`"subtype":"task_updated","task_id":"t","patch":{"status":"killed","end_time":1}`)},
		"claude/message/system/informational":             {&InformationalMessage{}, system(`"subtype":"informational","content":"c","level":"warning"`)},
		"claude/message/system/notification":              {&NotificationMessage{}, system(`"subtype":"notification","key":"k","text":"t","priority":"high"`)},
		"claude/message/system/memory_recall":             {&MemoryRecallMessage{}, system(`"subtype":"memory_recall","mode":"select","memories":[{"path":"/m","scope":"team","content":"c"}]`)},
		"claude/message/system/mirror_error":              {&MirrorErrorMessage{}, system(`"subtype":"mirror_error","error":"e","key":{"projectKey":"p","sessionId":"s"}`)},
		"claude/message/system/model_refusal_fallback":    {&ModelRefusalFallbackMessage{}, system(`"subtype":"model_refusal_fallback","trigger":"refusal","direction":"retry","original_model":"a","fallback_model":"b"`)},
		"claude/message/system/model_refusal_no_fallback": {&ModelRefusalNoFallbackMessage{}, system(`"subtype":"model_refusal_no_fallback","original_model":"a","content":"c"`)},
		"claude/message/system/model_fallback":            {&ModelFallbackMessage{}, system(`"subtype":"model_fallback","trigger":"overloaded","original_model":"a","fallback_model":"b","content":"c"`)},
		"claude/message/system/plugin_install":            {&PluginInstallMessage{}, system(`"subtype":"plugin_install","status":"failed","name":"n","error":"e"`)},
		"claude/message/system/session_writes_lost":       {&SessionWritesLostMessage{}, system(`"subtype":"session_writes_lost","error_code":"ENOSPC","lost":["transcript"]`)},
		"claude/message/system/worker_shutting_down":      {&WorkerShuttingDownMessage{}, system(`"subtype":"worker_shutting_down","reason":"r"`)},
		"claude/message/system/ui_invalidate":             {&UIInvalidateMessage{}, system(`"subtype":"ui_invalidate","event":"ui.render","prompts_screened":true,"instances":[{"surface":"s","component":"Theme","instance_id":"i"}]`)},
		"qoder/message/system/mcp_status_change":          {&MCPStatusChangeMessage{}, system(`"subtype":"mcp_status_change","servers":[{"name":"n","status":"connected","tools":[{"name":"t"}]}]`)},
		"qoder/message/system/session_title_changed":      {&SessionTitleChangedMessage{}, system(`"subtype":"session_title_changed","title":"t","source":"ai","revision":3`)},
		"qoder/message/system/bridge_state":               {&BridgeStateMessage{}, system(`"subtype":"bridge_state","state":"connected","detail":"d"`)},
		"qoder/message/system/plan_mode_changed":          {&PlanModeChangedMessage{}, system(`"subtype":"plan_mode_changed","plan_mode":{"active":true}`)},
		"qoder/message/system/goal_updated":               {&GoalUpdatedMessage{}, system(`"subtype":"goal_updated","goal":{"objective":"o"}`)},
		"qoder/message/system/goal_cleared":               {&GoalClearedMessage{}, system(`"subtype":"goal_cleared"`)},
		"qoder/message/system/available_models_update":    {&AvailableModelsUpdateMessage{}, system(`"subtype":"available_models_update","models":[{"value":"v","displayName":"d"}],"currentModel":"v"`)},
		"qoder/message/system/model_queue_status":         {&ModelQueueStatusMessage{}, system(`"subtype":"model_queue_status","status":"queued","request_id":"r","request_set_id":"q","model_key":"m"`)},
		"qoder/message/system/memory_generation":          {&MemoryGenerationMessage{}, system(`"subtype":"memory_generation","result":{"status":"partial","attemptId":"a"}`)},
		"qoder/message/system/memory_consumption":         {&MemoryConsumptionMessage{}, system(`"subtype":"memory_consumption","result":{"status":"partial","files":[{"id":"i","path":"p","status":"failed","error":"e"}]}`)},
		"qoder/message/system/skill_evolution":            {&SkillEvolutionMessage{}, system(`"subtype":"skill_evolution","result":{"status":"suggested","attemptId":"a"}`)},
		"qoder/message/system/artifacts_update":           {&ArtifactsUpdateMessage{}, system(`"subtype":"artifacts_update","artifacts":[{"kind":"changed","path":"p","name":"n"}]`)},
		"qoder/message/cloud_agent_event":                 {&CloudAgentEventMessage{}, `{"type":"cloud_agent_event","event":"agent.message","id":"i","data":{"turn_id":"t"},` + ids + `}`},
		"qoder/message/streamlined_text":                  {&StreamlinedTextMessage{}, `{"type":"streamlined_text","text":"t",` + ids + `}`},
		"qoder/message/streamlined_tool_use_summary":      {&StreamlinedToolUseSummaryMessage{}, `{"type":"streamlined_tool_use_summary",` + ids + `}`},
		"qoder/message/post_turn_summary":                 {&PostTurnSummaryMessage{}, `{"type":"post_turn_summary",` + ids + `}`},
		"both/frame/transcript_mirror":                    {&TranscriptMirrorMessage{}, `{"type":"transcript_mirror","filePath":"f","entries":[{"a":1}],` + ids + `}`},
		"both/frame/keep_alive":                           {&KeepAliveMessage{}, `{"type":"keep_alive"}`},
		"qoder/frame/keepalive":                           {&KeepAliveMessage{}, `{"type":"keepalive"}`},
		"both/message/system":                             {&UnknownMessage{}, system(`"subtype":"of_next_week","a":1`)},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			m := decode(t, c.line)
			require.IsType(t, c.want, m, c.line)
			assert.Equal(t, c.line, string(m.Raw()))
			again, err := MarshalMessage(m)
			require.NoError(t, err)
			checkKept(t, []byte(c.line), again, reflect.TypeOf(m), c.line)
		})
	}
}

// TestEveryBlock is about what messages are made of.
func TestEveryBlock(t *testing.T) {
	t.Parallel()
	for row, c := range map[string]struct {
		want ContentBlock
		raw  string
	}{
		"both/block/text":        {&TextBlock{}, `{"type":"text","text":"t"}`},
		"both/block/thinking":    {&ThinkingBlock{}, `{"type":"thinking","thinking":"h","signature":"s"}`},
		"both/block/tool_use":    {&ToolUseBlock{}, `{"type":"tool_use","id":"i","name":"Bash","input":{"command":"c"}}`},
		"both/block/tool_result": {&ToolResultBlock{}, `{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"t"}],"is_error":true}`},
		"qoder/block/image":      {&ImageBlock{}, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			var content Content
			require.NoError(t, json.Unmarshal([]byte(`[`+c.raw+`]`), &content))
			require.Len(t, content, 1)
			require.IsType(t, c.want, content[0])
			again, err := Marshal(content)
			require.NoError(t, err)
			assert.JSONEq(t, `[`+c.raw+`]`, string(again))
		})
	}
}

// TestEveryStreamEvent is about the pieces of a message that is being written.
func TestEveryStreamEvent(t *testing.T) {
	t.Parallel()
	for row, c := range map[string]struct {
		want StreamEvent
		raw  string
	}{
		"both/event/message_start":       {&MessageStart{}, `{"type":"message_start","message":{"id":"m","role":"assistant","model":"x","content":[]}}`},
		"both/event/content_block_start": {&ContentBlockStart{}, `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"i","name":"Bash","input":{}}}`},
		"both/event/content_block_delta": {&ContentBlockDelta{}, `{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"s"}}`},
		"both/event/content_block_stop":  {&ContentBlockStop{}, `{"type":"content_block_stop","index":1}`},
		"both/event/message_delta":       {&MessageDelta{}, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`},
		"both/event/message_stop":        {&MessageStop{}, `{"type":"message_stop"}`},
		"qoder/delta/text_delta":         {&ContentBlockDelta{}, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"t"}}`},
		"qoder/delta/input_json_delta":   {&ContentBlockDelta{}, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`},
		"qoder/delta/thinking_delta":     {&ContentBlockDelta{}, `{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"h"}}`},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			line := `{"type":"stream_event","event":` + c.raw + `,"parent_tool_use_id":null,"uuid":"u","session_id":"s"}`
			m, ok := decode(t, line).(*PartialAssistantMessage)
			require.True(t, ok)
			require.IsType(t, c.want, m.Event)
			slow, ok := decode(t, strings.Replace(line, `"index":1`, `"index":1,"later":null`, 1)).(*PartialAssistantMessage) // past the way for the usual lines
			require.True(t, ok)
			assert.Equal(t, m.Event, slow.Event)
			if d, ok := m.Event.(*ContentBlockDelta); ok {
				assert.NotNil(t, d.Delta)
				assert.IsNotType(t, &DeltaUnknown{}, d.Delta)
			}
			again, err := MarshalMessage(m)
			require.NoError(t, err)
			checkKept(t, []byte(line), again, reflect.TypeOf(m), line)
		})
	}
}

// TestControlLines is about the lines that carry requests and answers.
func TestControlLines(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/frame/control_request", "claude/frame/control_response", "both/frame/control_cancel_request", "qoder/frame/control_cancel")
	line, err := AppendControlRequest(nil, "r", json.RawMessage(`{"subtype":"interrupt"}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}`, string(line))
	f := frame(t, string(line))
	assert.Equal(t, [3]string{TypeControlRequest, "interrupt", "r"}, [3]string{f.Type, f.Subtype, f.RequestID})

	line, err = AppendControlSuccess(nil, "r", json.RawMessage(`{"mode":"plan"}`))
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"mode":"plan"}}}`, string(line))
	answer, err := DecodeControlResponse(frame(t, string(line)))
	require.NoError(t, err)
	assert.False(t, answer.Failed())
	assert.JSONEq(t, `{"mode":"plan"}`, string(answer.Response))

	for _, typ := range []string{"control_cancel_request", "control_cancel"} {
		f = frame(t, `{"type":"`+typ+`","request_id":"r"}`)
		assert.Contains(t, []string{TypeControlCancel, TypeControlCancelAlias}, f.Type)
		assert.Equal(t, "r", f.RequestID)
		assert.IsType(t, &UnknownMessage{}, DecodeMessage(f), "it is no message")
	}
}

// TestEveryCallbackType is about the types that Qoder's documents give to
// callbacks and answers: no key of theirs is without a field.
func TestEveryCallbackType(t *testing.T) {
	t.Parallel()
	const models = `"models":[{"key":"k","display_name":"d","is_vl":true,"is_reasoning":true,"format":"openai","max_input_tokens":9}]`
	const types = `"types":[{"key":"cp","display_name":"d",` + models + `}]`
	provider := func(more string) string {
		return `{"providers":[{"key":"k","display_name":"d","api_key_url":"a","url":"u",` + more + `}]}`
	}
	for row, c := range map[string]struct {
		v  any
		in string
	}{
		"qoder/callback/ModelPolicyContext": {&ModelPolicyRequest{}, `{"purpose":"main","sessionId":"s","agentId":"a","turnIndex":3,"models":[{"value":"v","displayName":"d","isEnabled":true}]}`},
		"qoder/callback/ModelPolicyResult":  {&ModelPolicyReply{}, `{"type":"get_model_policy","model":"m","parameters":{"temperature":1}}`},
		"qoder/callback/CustomModel":        {&ModelPolicyReply{}, `{"type":"get_model_policy","model":"m","custom_model":{"provider":"p","api_key":"k","url":"u","style":"anthropic"}}`},
		"qoder/callback/BYOKProviderInfo":   {&BYOKProvidersResponse{}, provider(types)},
		"qoder/callback/BYOKFieldInfo":      {&BYOKProvidersResponse{}, provider(`"fields":[{"key":"k","display_name":"d","type":"free_input","mandatory":true}]`)},
		"qoder/callback/BYOKModelTypeInfo":  {&BYOKProvidersResponse{}, provider(types)},
		"qoder/callback/BYOKModelInfo":      {&BYOKProvidersResponse{}, provider(types)},
		"qoder/callback/ModelInfo":          {&ModelsResponse{}, `{"models":[{"value":"v","displayName":"d","isEnabled":true}]}`},
		"qoder/callback/McpToolInfo":        {&MCPStatusResponse{}, `{"servers":[{"name":"n","status":"connected","tools":[{"name":"t","description":"d","annotations":{"readOnly":true,"destructive":true,"openWorld":true}}]}]}`},
		"qoder/callback/BaseHookInput":      {&HookBase{}, `{"hook_event_name":"Stop","session_id":"s","transcript_path":"/t","cwd":"/c"}`},
		"qoder/callback/HookJSONOutput":     {&HookJSONOutput{}, `{"continue":false,"stopReason":"s","decision":"block","reason":"r","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer","permissionDecisionReason":"r","updatedInput":{"a":1},"additionalContext":"c"}}`},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, row)
			require.NoError(t, json.Unmarshal([]byte(c.in), c.v))
			again, err := Marshal(c.v)
			require.NoError(t, err)
			assert.JSONEq(t, c.in, string(again))
		})
	}
}

// The purposes of the documents; the set is open, so each comes through as it is.
func TestEveryPurpose(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/callback/QoderModelPurpose")
	for _, purpose := range []string{"main", "plan", "task", "compact", "title", "suggestion", "generate", "hook_prompt", "subagent",
		"web_fetch", "image_gen", "compression", "utility", "of_next_week"} {
		r, err := DecodeAgentRequest(frame(t, `{"type":"control_request","request_id":"r","request":{"type":"get_model_policy","purpose":"`+purpose+`"}}`))
		require.NoError(t, err)
		policy, ok := r.(*ModelPolicyRequest)
		require.True(t, ok)
		assert.Equal(t, purpose, policy.Purpose)
	}
}

// Why a session ended is one of a few words, and what comes next week.
func TestExitReasons(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/EXIT_REASONS")
	for _, reason := range []string{"clear", "logout", "prompt_input_exit", "other", "bypass_permissions_disabled", "of_next_week"} {
		in, err := DecodeHookInput(json.RawMessage(`{"hook_event_name":"SessionEnd","session_id":"s","reason":"` + reason + `"}`))
		require.NoError(t, err)
		end, ok := in.(*SessionEndInput)
		require.True(t, ok)
		assert.Equal(t, reason, end.Reason)
	}
}

// TestEveryPermissionUpdate is about what a decision can change besides, and where it is kept.
func TestEveryPermissionUpdate(t *testing.T) {
	t.Parallel()
	rules := `"rules":[{"toolName":"Bash","ruleContent":"git:*"}],"behavior":"deny"`
	for kind, fields := range map[string]string{
		"addRules": rules, "replaceRules": rules, "removeRules": rules, "setMode": `"mode":"plan"`,
		"addDirectories": `"directories":["/a"]`, "removeDirectories": `"directories":["/a"]`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "both/permission/update."+kind)
			for _, to := range []PermissionDestination{ToUserSettings, ToProjectSettings, ToLocalSettings, ToSession, ToCLIArg} {
				raw := `{"type":"` + kind + `",` + fields + `,"destination":"` + string(to) + `"}`
				var update PermissionUpdate
				require.NoError(t, json.Unmarshal([]byte(raw), &update))
				assert.Equal(t, PermissionUpdateType(kind), update.Type)
				assert.Equal(t, to, update.Destination)
				again, err := Marshal(update)
				require.NoError(t, err)
				assert.JSONEq(t, raw, string(again))
			}
		})
	}
}
