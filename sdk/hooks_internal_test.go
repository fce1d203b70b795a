package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
)

// answering is a handler that returns out and checks what it is given.
func answering[In any, Out any](t *testing.T, out Out) func(context.Context, *In) (Out, error) {
	return func(_ context.Context, in *In) (Out, error) {
		input, ok := any(in).(HookInput)
		if assert.True(t, ok, "%T is no input of a hook", in) {
			assert.Equal(t, "s", input.Base().SessionID)
		}
		return out, nil
	}
}

// fired is the answer of a hook.
func fired(t *testing.T, h Hook) string {
	t.Helper()
	require.NoError(t, h.problem(0))
	input, err := json.Marshal(map[string]any{"hook_event_name": h.event, "session_id": "s"})
	require.NoError(t, err)
	out, err := h.run(t.Context(), &HookCall{Event: h.event, Input: input})
	require.NoError(t, err)
	return string(out)
}

// eventHooks has a hook for each event: with the zero output, and with one that
// says all it can.
func eventHooks(t *testing.T) []struct {
	zero, full Hook
	want       string // specific part and decision of the full one
} {
	decided := `"decision":"block","reason":"r"`
	specific := func(event, fields string) string {
		return `"hookSpecificOutput":{"hookEventName":"` + event + `",` + fields + `}`
	}
	contextOutput := ContextOutput{AdditionalContext: "c"}
	withContext := func(event string) string { return specific(event, `"additionalContext":"c"`) }
	feedback := FeedbackOutput{Decision: DecisionBlock, Reason: "r", AdditionalContext: "c"}
	withFeedback := func(event string) string { return decided + "," + specific(event, `"additionalContext":"c"`) }
	blocked := BlockOutput{Decision: DecisionBlock, Reason: "r"}
	ended := HookOutput{HookCommon{Continue: Some(false)}}
	stopped := `"continue":false`
	verdict := Deny("no")
	return []struct {
		zero, full Hook
		want       string
	}{
		{OnPreToolUse(answering[PreToolUseInput](t, PreToolUseOutput{})),
			OnPreToolUse(answering[PreToolUseInput](t, PreToolUseOutput{PermissionDecision: HookAsk, PermissionDecisionReason: "r", UpdatedInput: json.RawMessage(`{}`), AdditionalContext: "c"})),
			specific("PreToolUse", `"permissionDecision":"ask","permissionDecisionReason":"r","updatedInput":{},"additionalContext":"c"`)},
		{OnPostToolUse(answering[PostToolUseInput](t, PostToolUseOutput{})),
			OnPostToolUse(answering[PostToolUseInput](t, PostToolUseOutput{Decision: DecisionBlock, Reason: "r", AdditionalContext: "c", ClassifierContext: "k", UpdatedToolOutput: json.RawMessage(`{}`), UpdatedMCPToolOutput: json.RawMessage(`[]`)})),
			decided + "," + specific("PostToolUse", `"additionalContext":"c","classifierContext":"k","updatedToolOutput":{},"updatedMCPToolOutput":[]`)},
		{OnPostToolUseFailure(answering[PostToolUseFailureInput](t, FeedbackOutput{})), OnPostToolUseFailure(answering[PostToolUseFailureInput](t, feedback)), withFeedback("PostToolUseFailure")},
		{OnPostToolBatch(answering[PostToolBatchInput](t, FeedbackOutput{})), OnPostToolBatch(answering[PostToolBatchInput](t, feedback)), withFeedback("PostToolBatch")},
		{OnPermissionRequest(answering[PermissionRequestInput](t, PermissionRequestOutput{})),
			OnPermissionRequest(answering[PermissionRequestInput](t, PermissionRequestOutput{Decision: &verdict})),
			specific("PermissionRequest", `"decision":{"behavior":"deny","message":"no"}`)},
		{OnPermissionDenied(answering[PermissionDeniedInput](t, PermissionDeniedOutput{})),
			OnPermissionDenied(answering[PermissionDeniedInput](t, PermissionDeniedOutput{Retry: true})), specific("PermissionDenied", `"retry":true`)},
		{OnUserPromptSubmit(answering[UserPromptSubmitInput](t, UserPromptSubmitOutput{})),
			OnUserPromptSubmit(answering[UserPromptSubmitInput](t, UserPromptSubmitOutput{Decision: DecisionBlock, Reason: "r", AdditionalContext: "c", SessionTitle: "t", SuppressOriginalPrompt: true})),
			decided + "," + specific("UserPromptSubmit", `"additionalContext":"c","sessionTitle":"t","suppressOriginalPrompt":true`)},
		{OnUserPromptExpansion(answering[UserPromptExpansionInput](t, UserPromptExpansionOutput{})),
			OnUserPromptExpansion(answering[UserPromptExpansionInput](t, UserPromptExpansionOutput{Decision: DecisionBlock, Reason: "r", AdditionalContext: "c", SuppressOriginalPrompt: true})),
			decided + "," + specific("UserPromptExpansion", `"additionalContext":"c","suppressOriginalPrompt":true`)},
		{OnSessionStart(answering[SessionStartInput](t, SessionStartOutput{})),
			OnSessionStart(answering[SessionStartInput](t, SessionStartOutput{AdditionalContext: "c", InitialUserMessage: "m", SessionTitle: "t", WatchPaths: []string{"p"}, ReloadSkills: true})),
			specific("SessionStart", `"additionalContext":"c","initialUserMessage":"m","sessionTitle":"t","watchPaths":["p"],"reloadSkills":true`)},
		{OnSessionEnd(answering[SessionEndInput](t, HookOutput{})), OnSessionEnd(answering[SessionEndInput](t, ended)), stopped},
		{OnStop(answering[StopInput](t, FeedbackOutput{})), OnStop(answering[StopInput](t, feedback)), withFeedback("Stop")},
		{OnStopFailure(answering[StopFailureInput](t, HookOutput{})), OnStopFailure(answering[StopFailureInput](t, ended)), stopped},
		{OnSubagentStart(answering[SubagentStartInput](t, ContextOutput{})), OnSubagentStart(answering[SubagentStartInput](t, contextOutput)), withContext("SubagentStart")},
		{OnSubagentStop(answering[SubagentStopInput](t, FeedbackOutput{})), OnSubagentStop(answering[SubagentStopInput](t, feedback)), withFeedback("SubagentStop")},
		{OnPreCompact(answering[PreCompactInput](t, BlockOutput{})), OnPreCompact(answering[PreCompactInput](t, blocked)), decided},
		{OnPostCompact(answering[PostCompactInput](t, HookOutput{})), OnPostCompact(answering[PostCompactInput](t, ended)), stopped},
		{OnPreModelSwitch(answering[PreModelSwitchInput](t, PreModelSwitchOutput{})),
			OnPreModelSwitch(answering[PreModelSwitchInput](t, PreModelSwitchOutput{PermissionDecision: HookDeny, PermissionDecisionReason: "r"})),
			specific("PreModelSwitch", `"permissionDecision":"deny","permissionDecisionReason":"r"`)},
		{OnPostModelSwitch(answering[PostModelSwitchInput](t, ContextOutput{})), OnPostModelSwitch(answering[PostModelSwitchInput](t, contextOutput)), withContext("PostModelSwitch")},
		{OnNotification(answering[NotificationInput](t, ContextOutput{})), OnNotification(answering[NotificationInput](t, contextOutput)), withContext("Notification")},
		{OnSetup(answering[SetupInput](t, ContextOutput{})), OnSetup(answering[SetupInput](t, contextOutput)), withContext("Setup")},
		{OnTeammateIdle(answering[TeammateIdleInput](t, BlockOutput{})), OnTeammateIdle(answering[TeammateIdleInput](t, blocked)), decided},
		{OnTaskCreated(answering[TaskCreatedInput](t, BlockOutput{})), OnTaskCreated(answering[TaskCreatedInput](t, blocked)), decided},
		{OnTaskCompleted(answering[TaskCompletedInput](t, BlockOutput{})), OnTaskCompleted(answering[TaskCompletedInput](t, blocked)), decided},
		{OnElicitation(answering[ElicitationInput](t, ElicitationOutput{})),
			OnElicitation(answering[ElicitationInput](t, ElicitationOutput{Action: "accept", Content: json.RawMessage(`{}`)})),
			specific("Elicitation", `"action":"accept","content":{}`)},
		{OnElicitationResult(answering[ElicitationResultInput](t, ElicitationOutput{})),
			OnElicitationResult(answering[ElicitationResultInput](t, ElicitationOutput{Action: "decline"})), `"decision":"block",` + specific("ElicitationResult", `"action":"decline"`)},
		{OnConfigChange(answering[ConfigChangeInput](t, BlockOutput{})), OnConfigChange(answering[ConfigChangeInput](t, blocked)), decided},
		{OnWorktreeCreate(answering[WorktreeCreateInput](t, WorktreeCreateOutput{})),
			OnWorktreeCreate(answering[WorktreeCreateInput](t, WorktreeCreateOutput{WorktreePath: "p"})), specific("WorktreeCreate", `"worktreePath":"p"`)},
		{OnWorktreeRemove(answering[WorktreeRemoveInput](t, HookOutput{})), OnWorktreeRemove(answering[WorktreeRemoveInput](t, ended)), stopped},
		{OnInstructionsLoaded(answering[InstructionsLoadedInput](t, HookOutput{})), OnInstructionsLoaded(answering[InstructionsLoadedInput](t, ended)), stopped},
		{OnCwdChanged(answering[CwdChangedInput](t, WatchPathsOutput{})),
			OnCwdChanged(answering[CwdChangedInput](t, WatchPathsOutput{WatchPaths: []string{"p"}})), specific("CwdChanged", `"watchPaths":["p"]`)},
		{OnFileChanged(answering[FileChangedInput](t, WatchPathsOutput{})),
			OnFileChanged(answering[FileChangedInput](t, WatchPathsOutput{WatchPaths: []string{"p"}})), specific("FileChanged", `"watchPaths":["p"]`)},
		{OnDirectoryAdded(answering[DirectoryAddedInput](t, HookOutput{})), OnDirectoryAdded(answering[DirectoryAddedInput](t, ended)), stopped},
		{OnMessageDisplay(answering[MessageDisplayInput](t, MessageDisplayOutput{})),
			OnMessageDisplay(answering[MessageDisplayInput](t, MessageDisplayOutput{DisplayContent: "d"})), specific("MessageDisplay", `"displayContent":"d"`)},
	}
}

func TestHookOfEachEvent(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/HOOK_EVENTS")
	var events []HookEvent
	for _, h := range eventHooks(t) {
		events = append(events, h.zero.event)
		t.Run(string(h.zero.event), func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/hook/"+string(h.zero.event))
			assert.Equal(t, "{}", fired(t, h.zero), "the zero output must let everything go on")
			assert.Equal(t, "{"+h.want+"}", fired(t, h.full))
			assert.Equal(t, h.zero.event, h.full.event)
		})
	}
	assert.ElementsMatch(t, protocol.HookEvents(), events, "events without a constructor of their own")
}

func TestWhatEveryHookCanSay(t *testing.T) {
	t.Parallel()
	common := HookCommon{
		Continue: Some(false), StopReason: "s", SuppressOutput: true, SystemMessage: "m", TerminalSequence: "q",
		Async: true, AsyncTimeout: 1500 * time.Millisecond,
	}
	assert.JSONEq(t, `{"async":true,"asyncTimeout":1500,"continue":false,"stopReason":"s","suppressOutput":true,"systemMessage":"m","terminalSequence":"q"}`,
		fired(t, OnSessionEnd(answering[SessionEndInput](t, HookOutput{HookCommon: common}))))
}

func TestHookFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	h := OnStop(func(context.Context, *StopInput) (FeedbackOutput, error) { return FeedbackOutput{}, broken })
	_, err := h.run(t.Context(), &HookCall{Input: json.RawMessage(`{}`)})
	require.ErrorIs(t, err, broken)
	_, err = h.run(t.Context(), &HookCall{Input: json.RawMessage(`[]`)})
	require.ErrorContains(t, err, "input of hook Stop")
}
