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
	"github.com/agent-troupe/troupe/session"
)

// answering is a handler that returns out and checks what it is given.
func answering[In any, Out any](t *testing.T, out Out) func(context.Context, *In) (Out, error) {
	return func(_ context.Context, in *In) (Out, error) {
		input, ok := any(in).(protocol.HookInput)
		if assert.True(t, ok, "%T is no input of a hook", in) {
			assert.Equal(t, "s", input.Base().SessionID)
		}
		return out, nil
	}
}

// fired is the answer of a hook.
func fired(t *testing.T, h Hook) string {
	t.Helper()
	require.NoError(t, hookProblem(&h, 0))
	input, err := json.Marshal(map[string]any{"hook_event_name": h.Event, "session_id": "s"})
	require.NoError(t, err)
	out, err := h.Func(t.Context(), &session.HookCall{Event: h.Event, Input: input})
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
	feedback := FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "r", AdditionalContext: "c"}
	withFeedback := func(event string) string { return decided + "," + specific(event, `"additionalContext":"c"`) }
	blocked := BlockOutput{Decision: protocol.DecisionBlock, Reason: "r"}
	ended := HookOutput{HookCommon{Continue: Some(false)}}
	stopped := `"continue":false`
	verdict := Deny("no")
	return []struct {
		zero, full Hook
		want       string
	}{
		{OnPreToolUse(answering[PreToolUseInput](t, PreToolUseOutput{})),
			OnPreToolUse(answering[PreToolUseInput](t, PreToolUseOutput{PermissionDecision: protocol.HookAsk, PermissionDecisionReason: "r", UpdatedInput: json.RawMessage(`{}`), AdditionalContext: "c"})),
			specific("PreToolUse", `"permissionDecision":"ask","permissionDecisionReason":"r","updatedInput":{},"additionalContext":"c"`)},
		{OnPostToolUse(answering[PostToolUseInput](t, PostToolUseOutput{})),
			OnPostToolUse(answering[PostToolUseInput](t, PostToolUseOutput{Decision: protocol.DecisionBlock, Reason: "r", AdditionalContext: "c", ClassifierContext: "k", UpdatedToolOutput: json.RawMessage(`{}`), UpdatedMCPToolOutput: json.RawMessage(`[]`)})),
			decided + "," + specific("PostToolUse", `"additionalContext":"c","classifierContext":"k","updatedToolOutput":{},"updatedMCPToolOutput":[]`)},
		{OnPostToolUseFailure(answering[protocol.PostToolUseFailureInput](t, FeedbackOutput{})), OnPostToolUseFailure(answering[protocol.PostToolUseFailureInput](t, feedback)), withFeedback("PostToolUseFailure")},
		{OnPostToolBatch(answering[protocol.PostToolBatchInput](t, FeedbackOutput{})), OnPostToolBatch(answering[protocol.PostToolBatchInput](t, feedback)), withFeedback("PostToolBatch")},
		{OnPermissionRequest(answering[protocol.PermissionRequestInput](t, PermissionRequestOutput{})),
			OnPermissionRequest(answering[protocol.PermissionRequestInput](t, PermissionRequestOutput{Decision: &verdict})),
			specific("PermissionRequest", `"decision":{"behavior":"deny","message":"no"}`)},
		{OnPermissionDenied(answering[protocol.PermissionDeniedInput](t, PermissionDeniedOutput{})),
			OnPermissionDenied(answering[protocol.PermissionDeniedInput](t, PermissionDeniedOutput{Retry: true})), specific("PermissionDenied", `"retry":true`)},
		{OnUserPromptSubmit(answering[protocol.UserPromptSubmitInput](t, UserPromptSubmitOutput{})),
			OnUserPromptSubmit(answering[protocol.UserPromptSubmitInput](t, UserPromptSubmitOutput{Decision: protocol.DecisionBlock, Reason: "r", AdditionalContext: "c", SessionTitle: "t", SuppressOriginalPrompt: true})),
			decided + "," + specific("UserPromptSubmit", `"additionalContext":"c","sessionTitle":"t","suppressOriginalPrompt":true`)},
		{OnUserPromptExpansion(answering[protocol.UserPromptExpansionInput](t, UserPromptExpansionOutput{})),
			OnUserPromptExpansion(answering[protocol.UserPromptExpansionInput](t, UserPromptExpansionOutput{Decision: protocol.DecisionBlock, Reason: "r", AdditionalContext: "c", SuppressOriginalPrompt: true})),
			decided + "," + specific("UserPromptExpansion", `"additionalContext":"c","suppressOriginalPrompt":true`)},
		{OnSessionStart(answering[protocol.SessionStartInput](t, SessionStartOutput{})),
			OnSessionStart(answering[protocol.SessionStartInput](t, SessionStartOutput{AdditionalContext: "c", InitialUserMessage: "m", SessionTitle: "t", WatchPaths: []string{"p"}, ReloadSkills: true})),
			specific("SessionStart", `"additionalContext":"c","initialUserMessage":"m","sessionTitle":"t","watchPaths":["p"],"reloadSkills":true`)},
		{OnSessionEnd(answering[protocol.SessionEndInput](t, HookOutput{})), OnSessionEnd(answering[protocol.SessionEndInput](t, ended)), stopped},
		{OnStop(answering[protocol.StopInput](t, FeedbackOutput{})), OnStop(answering[protocol.StopInput](t, feedback)), withFeedback("Stop")},
		{OnStopFailure(answering[protocol.StopFailureInput](t, HookOutput{})), OnStopFailure(answering[protocol.StopFailureInput](t, ended)), stopped},
		{OnSubagentStart(answering[protocol.SubagentStartInput](t, ContextOutput{})), OnSubagentStart(answering[protocol.SubagentStartInput](t, contextOutput)), withContext("SubagentStart")},
		{OnSubagentStop(answering[protocol.SubagentStopInput](t, FeedbackOutput{})), OnSubagentStop(answering[protocol.SubagentStopInput](t, feedback)), withFeedback("SubagentStop")},
		{OnPreCompact(answering[protocol.PreCompactInput](t, BlockOutput{})), OnPreCompact(answering[protocol.PreCompactInput](t, blocked)), decided},
		{OnPostCompact(answering[protocol.PostCompactInput](t, HookOutput{})), OnPostCompact(answering[protocol.PostCompactInput](t, ended)), stopped},
		{OnPreModelSwitch(answering[protocol.PreModelSwitchInput](t, PreModelSwitchOutput{})),
			OnPreModelSwitch(answering[protocol.PreModelSwitchInput](t, PreModelSwitchOutput{PermissionDecision: protocol.HookDeny, PermissionDecisionReason: "r"})),
			specific("PreModelSwitch", `"permissionDecision":"deny","permissionDecisionReason":"r"`)},
		{OnPostModelSwitch(answering[protocol.PostModelSwitchInput](t, ContextOutput{})), OnPostModelSwitch(answering[protocol.PostModelSwitchInput](t, contextOutput)), withContext("PostModelSwitch")},
		{OnNotification(answering[protocol.NotificationInput](t, ContextOutput{})), OnNotification(answering[protocol.NotificationInput](t, contextOutput)), withContext("Notification")},
		{OnSetup(answering[protocol.SetupInput](t, ContextOutput{})), OnSetup(answering[protocol.SetupInput](t, contextOutput)), withContext("Setup")},
		{OnTeammateIdle(answering[protocol.TeammateIdleInput](t, BlockOutput{})), OnTeammateIdle(answering[protocol.TeammateIdleInput](t, blocked)), decided},
		{OnTaskCreated(answering[protocol.TaskCreatedInput](t, BlockOutput{})), OnTaskCreated(answering[protocol.TaskCreatedInput](t, blocked)), decided},
		{OnTaskCompleted(answering[protocol.TaskCompletedInput](t, BlockOutput{})), OnTaskCompleted(answering[protocol.TaskCompletedInput](t, blocked)), decided},
		{OnElicitationHook(answering[protocol.ElicitationInput](t, ElicitationOutput{})),
			OnElicitationHook(answering[protocol.ElicitationInput](t, ElicitationOutput{Action: "accept", Content: json.RawMessage(`{}`)})),
			specific("Elicitation", `"action":"accept","content":{}`)},
		{OnElicitationResult(answering[protocol.ElicitationResultInput](t, ElicitationOutput{})),
			OnElicitationResult(answering[protocol.ElicitationResultInput](t, ElicitationOutput{Action: "decline"})), `"decision":"block",` + specific("ElicitationResult", `"action":"decline"`)},
		{OnConfigChange(answering[protocol.ConfigChangeInput](t, BlockOutput{})), OnConfigChange(answering[protocol.ConfigChangeInput](t, blocked)), decided},
		{OnWorktreeCreate(answering[protocol.WorktreeCreateInput](t, WorktreeCreateOutput{})),
			OnWorktreeCreate(answering[protocol.WorktreeCreateInput](t, WorktreeCreateOutput{WorktreePath: "p"})), specific("WorktreeCreate", `"worktreePath":"p"`)},
		{OnWorktreeRemove(answering[protocol.WorktreeRemoveInput](t, HookOutput{})), OnWorktreeRemove(answering[protocol.WorktreeRemoveInput](t, ended)), stopped},
		{OnInstructionsLoaded(answering[protocol.InstructionsLoadedInput](t, HookOutput{})), OnInstructionsLoaded(answering[protocol.InstructionsLoadedInput](t, ended)), stopped},
		{OnCwdChanged(answering[protocol.CwdChangedInput](t, WatchPathsOutput{})),
			OnCwdChanged(answering[protocol.CwdChangedInput](t, WatchPathsOutput{WatchPaths: []string{"p"}})), specific("CwdChanged", `"watchPaths":["p"]`)},
		{OnFileChanged(answering[protocol.FileChangedInput](t, WatchPathsOutput{})),
			OnFileChanged(answering[protocol.FileChangedInput](t, WatchPathsOutput{WatchPaths: []string{"p"}})), specific("FileChanged", `"watchPaths":["p"]`)},
		{OnDirectoryAdded(answering[protocol.DirectoryAddedInput](t, HookOutput{})), OnDirectoryAdded(answering[protocol.DirectoryAddedInput](t, ended)), stopped},
		{OnMessageDisplay(answering[protocol.MessageDisplayInput](t, MessageDisplayOutput{})),
			OnMessageDisplay(answering[protocol.MessageDisplayInput](t, MessageDisplayOutput{DisplayContent: "d"})), specific("MessageDisplay", `"displayContent":"d"`)},
	}
}

func TestHookOfEachEvent(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/HOOK_EVENTS")
	var events []protocol.HookEvent
	for _, h := range eventHooks(t) {
		events = append(events, h.zero.Event)
		t.Run(string(h.zero.Event), func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/hook/"+string(h.zero.Event))
			assert.Equal(t, "{}", fired(t, h.zero), "the zero output must let everything go on")
			assert.Equal(t, "{"+h.want+"}", fired(t, h.full))
			assert.Equal(t, h.zero.Event, h.full.Event)
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
		fired(t, OnSessionEnd(answering[protocol.SessionEndInput](t, HookOutput{HookCommon: common}))))
}

func TestHookFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	h := OnStop(func(context.Context, *protocol.StopInput) (FeedbackOutput, error) { return FeedbackOutput{}, broken })
	_, err := h.Func(t.Context(), &session.HookCall{Input: json.RawMessage(`{}`)})
	require.ErrorIs(t, err, broken)
	_, err = h.Func(t.Context(), &session.HookCall{Input: json.RawMessage(`[]`)})
	require.ErrorContains(t, err, "input of hook Stop")
}
