package protocol

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every event has an input type that keeps all fields.
func TestHookInputs(t *testing.T) {
	t.Parallel()
	events := HookEvents()
	assert.Len(t, events, 33)
	seen := map[string]bool{}
	for _, e := range events {
		raw := json.RawMessage(`{"hook_event_name":"` + string(e) + `","session_id":"s","transcript_path":"/t","cwd":"/c","prompt_id":"p","permission_mode":"plan","agent_id":"a","agent_type":"g","effort":{"level":"high"}}`)
		in, err := DecodeHookInput(raw)
		require.NoError(t, err, e)
		assert.IsNotType(t, &UnknownHookInput{}, in, e)
		assert.Equal(t, e, in.Event())
		assert.Equal(t, &HookBase{HookEventName: e, SessionID: "s", TranscriptPath: "/t", Cwd: "/c", PromptID: "p",
			PermissionMode: ModePlan, AgentID: "a", AgentType: "g", Effort: &HookEffort{Level: "high"}}, in.Base())
		b, err := Marshal(in)
		require.NoError(t, err)
		lost := differ{}.diff("", generic(t, raw), generic(t, b))
		assert.Empty(t, lost, e)
		assert.False(t, seen[string(e)])
		seen[string(e)] = true
	}

	in, err := DecodeHookInput(json.RawMessage(`{"hook_event_name":"NextWeek","session_id":"s","x":1}`))
	require.NoError(t, err)
	u, ok := in.(*UnknownHookInput)
	require.True(t, ok)
	assert.Equal(t, HookEvent("NextWeek"), u.Event())
	assert.JSONEq(t, `{"hook_event_name":"NextWeek","session_id":"s","x":1}`, string(u.Raw))
	_, err = DecodeHookInput(json.RawMessage(`{"hook_event_name":"Stop","stop_hook_active":"odd"}`))
	require.ErrorContains(t, err, `input of hook "Stop"`)
	_, err = DecodeHookInput(nil)
	require.Error(t, err)
}

func TestHookJSONOutput(t *testing.T) {
	t.Parallel()
	no := false
	for _, c := range []struct {
		o    HookJSONOutput
		want string
	}{
		{HookJSONOutput{}, `{}`},
		{HookJSONOutput{Async: true, AsyncTimeout: 500}, `{"async":true,"asyncTimeout":500}`},
		{HookJSONOutput{Continue: &no, StopReason: "r", SystemMessage: "<s>"}, `{"continue":false,"stopReason":"r","systemMessage":"<s>"}`},
		{HookJSONOutput{Decision: DecisionBlock, Reason: "r"}, `{"decision":"block","reason":"r"}`},
		{HookJSONOutput{Specific: &PreToolUseOutput{PermissionDecision: HookDeny, PermissionDecisionReason: "why"}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"why"}}`},
		{HookJSONOutput{Specific: &PreToolUseOutput{UpdatedInput: json.RawMessage(`{"a":1}`)}}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":1}}}`},
		{HookJSONOutput{Specific: &PostToolUseOutput{UpdatedMCPToolOutput: json.RawMessage(`[]`)}}, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedMCPToolOutput":[]}}`},
		{HookJSONOutput{Specific: &PermissionRequestOutput{}}, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"The host denied this tool call."}}}`},
		{HookJSONOutput{Specific: &ContextOutput{Name: HookStop, AdditionalContext: "c"}}, `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"c"}}`},
		{HookJSONOutput{Specific: &ElicitationOutput{Name: HookElicitationResult, Action: "decline"}}, `{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}`},
		{HookJSONOutput{Specific: &WatchPathsOutput{Name: HookFileChanged, WatchPaths: []string{"/a"}}}, `{"hookSpecificOutput":{"hookEventName":"FileChanged","watchPaths":["/a"]}}`},
		{HookJSONOutput{Specific: &UserPromptSubmitOutput{SessionTitle: "t"}}, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","sessionTitle":"t"}}`},
		{HookJSONOutput{Specific: &UserPromptExpansionOutput{AdditionalContext: "a"}}, `{"hookSpecificOutput":{"hookEventName":"UserPromptExpansion","additionalContext":"a"}}`},
		{HookJSONOutput{Specific: &SessionStartOutput{ReloadSkills: true}}, `{"hookSpecificOutput":{"hookEventName":"SessionStart","reloadSkills":true}}`},
		{HookJSONOutput{Specific: &PreModelSwitchOutput{PermissionDecision: HookAsk}}, `{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"ask"}}`},
		{HookJSONOutput{Specific: &PermissionDeniedOutput{Retry: true}}, `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`},
		{HookJSONOutput{Specific: &WorktreeCreateOutput{WorktreePath: "/w"}}, `{"hookSpecificOutput":{"hookEventName":"WorktreeCreate","worktreePath":"/w"}}`},
		{HookJSONOutput{Specific: &MessageDisplayOutput{DisplayContent: "d"}}, `{"hookSpecificOutput":{"hookEventName":"MessageDisplay","displayContent":"d"}}`},
		{HookJSONOutput{Specific: &UnknownHookOutput{Name: "NextWeek", Raw: json.RawMessage(`{"hookEventName":"NextWeek","x":1}`)}}, `{"hookSpecificOutput":{"hookEventName":"NextWeek","x":1}}`},
	} {
		b, err := Marshal(c.o)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(b))
		var back HookJSONOutput
		require.NoError(t, json.Unmarshal(b, &back), "%s", b)
		again, err := Marshal(back)
		require.NoError(t, err)
		assert.Equal(t, c.want, string(again))
		if c.o.Specific != nil {
			assert.IsType(t, c.o.Specific, back.Specific)
			assert.Equal(t, c.o.Specific.Event(), back.Specific.Event())
		}
	}
	var o HookJSONOutput
	require.ErrorContains(t, json.Unmarshal([]byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":7}}`), &o), "PreToolUse")
	require.NoError(t, json.Unmarshal([]byte(`{"hookSpecificOutput":null}`), &o))
	_, err := Marshal(HookJSONOutput{Specific: &PreToolUseOutput{UpdatedInput: json.RawMessage(`{`)}})
	require.Error(t, err)
}
