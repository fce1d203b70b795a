package sdk

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// HookEvent is the name of a moment at which hooks run.
type HookEvent = protocol.HookEvent

// The hook events.
const (
	HookPreToolUse          = protocol.HookPreToolUse
	HookPostToolUse         = protocol.HookPostToolUse
	HookPostToolUseFailure  = protocol.HookPostToolUseFailure
	HookPostToolBatch       = protocol.HookPostToolBatch
	HookPermissionRequest   = protocol.HookPermissionRequest
	HookPermissionDenied    = protocol.HookPermissionDenied
	HookUserPromptSubmit    = protocol.HookUserPromptSubmit
	HookUserPromptExpansion = protocol.HookUserPromptExpansion
	HookSessionStart        = protocol.HookSessionStart
	HookSessionEnd          = protocol.HookSessionEnd
	HookStop                = protocol.HookStop
	HookStopFailure         = protocol.HookStopFailure
	HookSubagentStart       = protocol.HookSubagentStart
	HookSubagentStop        = protocol.HookSubagentStop
	HookPreCompact          = protocol.HookPreCompact
	HookPostCompact         = protocol.HookPostCompact
	HookPreModelSwitch      = protocol.HookPreModelSwitch
	HookPostModelSwitch     = protocol.HookPostModelSwitch
	HookNotification        = protocol.HookNotification
	HookSetup               = protocol.HookSetup
	HookTeammateIdle        = protocol.HookTeammateIdle
	HookTaskCreated         = protocol.HookTaskCreated
	HookTaskCompleted       = protocol.HookTaskCompleted
	HookElicitation         = protocol.HookElicitation
	HookElicitationResult   = protocol.HookElicitationResult
	HookConfigChange        = protocol.HookConfigChange
	HookWorktreeCreate      = protocol.HookWorktreeCreate
	HookWorktreeRemove      = protocol.HookWorktreeRemove
	HookInstructionsLoaded  = protocol.HookInstructionsLoaded
	HookCwdChanged          = protocol.HookCwdChanged
	HookFileChanged         = protocol.HookFileChanged
	HookDirectoryAdded      = protocol.HookDirectoryAdded
	HookMessageDisplay      = protocol.HookMessageDisplay
)

// Inputs of hooks. HookInput is any of them, HookBase what they share.
type (
	// HookInput is what a hook is called with.
	HookInput = protocol.HookInput
	// HookBase is embedded in every hook input.
	HookBase = protocol.HookBase
	// PreToolUseInput comes before a tool call.
	PreToolUseInput = protocol.PreToolUseInput
	// PostToolUseInput comes after a tool call that went well.
	PostToolUseInput = protocol.PostToolUseInput
	// PostToolUseFailureInput comes after a tool call that failed.
	PostToolUseFailureInput = protocol.PostToolUseFailureInput
	// PostToolBatchInput comes once after the tool calls of one model message.
	PostToolBatchInput = protocol.PostToolBatchInput
	// PermissionRequestInput comes when a tool call needs permission, beside the
	// [ToolPermissionRequest]; the first answer wins (observed on Claude Code 2.1.329).
	PermissionRequestInput = protocol.PermissionRequestInput
	// PermissionDeniedInput comes after a tool call was denied.
	PermissionDeniedInput = protocol.PermissionDeniedInput
	// UserPromptSubmitInput comes before a prompt is taken up, also for prompts that
	// the agent writes about its tasks.
	UserPromptSubmitInput = protocol.UserPromptSubmitInput
	// UserPromptExpansionInput comes before a slash command or an MCP prompt is
	// expanded.
	UserPromptExpansionInput = protocol.UserPromptExpansionInput
	// SessionStartInput comes when a session begins, or begins anew.
	SessionStartInput = protocol.SessionStartInput
	// SessionEndInput comes when a session ends.
	SessionEndInput = protocol.SessionEndInput
	// StopInput comes when the agent is about to end its turn.
	StopInput = protocol.StopInput
	// StopFailureInput comes when a turn ends in an error of the model's API.
	StopFailureInput = protocol.StopFailureInput
	// SubagentStartInput comes when a subagent starts.
	SubagentStartInput = protocol.SubagentStartInput
	// SubagentStopInput comes when a subagent is about to stop.
	SubagentStopInput = protocol.SubagentStopInput
	// PreCompactInput comes before a compaction.
	PreCompactInput = protocol.PreCompactInput
	// PostCompactInput comes after a compaction.
	PostCompactInput = protocol.PostCompactInput
	// PreModelSwitchInput comes before the model is changed.
	PreModelSwitchInput = protocol.PreModelSwitchInput
	// PostModelSwitchInput comes after the model was changed.
	PostModelSwitchInput = protocol.PostModelSwitchInput
	// NotificationInput comes when the agent would notify a person.
	NotificationInput = protocol.NotificationInput
	// SetupInput comes on initialization and maintenance runs.
	SetupInput = protocol.SetupInput
	// TeammateIdleInput comes when a teammate has nothing to do.
	TeammateIdleInput = protocol.TeammateIdleInput
	// TaskCreatedInput comes when the model has put a task on its list.
	TaskCreatedInput = protocol.TaskCreatedInput
	// TaskCompletedInput comes when the model would mark a task as done.
	TaskCompletedInput = protocol.TaskCompletedInput
	// ElicitationInput comes when an MCP server asks the person something.
	ElicitationInput = protocol.ElicitationInput
	// ElicitationResultInput comes after the person has answered.
	ElicitationResultInput = protocol.ElicitationResultInput
	// ConfigChangeInput comes when a settings file changed.
	ConfigChangeInput = protocol.ConfigChangeInput
	// WorktreeCreateInput comes when a git worktree is wanted.
	WorktreeCreateInput = protocol.WorktreeCreateInput
	// WorktreeRemoveInput comes when a git worktree is to go.
	WorktreeRemoveInput = protocol.WorktreeRemoveInput
	// InstructionsLoadedInput comes when an instruction file was loaded.
	InstructionsLoadedInput = protocol.InstructionsLoadedInput
	// CwdChangedInput comes when the working directory changed.
	CwdChangedInput = protocol.CwdChangedInput
	// FileChangedInput comes when a watched file changed.
	FileChangedInput = protocol.FileChangedInput
	// DirectoryAddedInput comes when a directory was added to the workspace.
	DirectoryAddedInput = protocol.DirectoryAddedInput
	// MessageDisplayInput comes before text of the main agent is shown.
	MessageDisplayInput = protocol.MessageDisplayInput
)

// OnPreToolUse runs before a tool call. It is a gate.
func OnPreToolUse(h func(context.Context, *PreToolUseInput) (PreToolUseOutput, error), o ...HookOption) Hook {
	return typed(HookPreToolUse, h, o)
}

// OnPostToolUse runs after a tool call that went well.
func OnPostToolUse(h func(context.Context, *PostToolUseInput) (PostToolUseOutput, error), o ...HookOption) Hook {
	return typed(HookPostToolUse, h, o)
}

// OnPostToolUseFailure runs after a tool call that failed.
func OnPostToolUseFailure(h func(context.Context, *PostToolUseFailureInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(HookPostToolUseFailure, h, o)
}

// OnPostToolBatch runs once after the tool calls of one model message. Claude.
func OnPostToolBatch(h func(context.Context, *PostToolBatchInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(HookPostToolBatch, h, o)
}

// OnPermissionRequest runs when a tool call needs permission,
// beside CanUseTool; the first answer wins (observed on Claude Code 2.1.329).
func OnPermissionRequest(h func(context.Context, *PermissionRequestInput) (PermissionRequestOutput, error), o ...HookOption) Hook {
	return typed(HookPermissionRequest, h, o)
}

// OnPermissionDenied runs after a tool call was denied; on Claude Code only
// after the check of auto mode denied it (observed on 2.1.329).
func OnPermissionDenied(h func(context.Context, *PermissionDeniedInput) (PermissionDeniedOutput, error), o ...HookOption) Hook {
	return typed(HookPermissionDenied, h, o)
}

// OnUserPromptSubmit runs before a prompt is taken up, also one that the
// agent writes about its tasks. It is a gate.
func OnUserPromptSubmit(h func(context.Context, *UserPromptSubmitInput) (UserPromptSubmitOutput, error), o ...HookOption) Hook {
	return typed(HookUserPromptSubmit, h, o)
}

// OnUserPromptExpansion runs before a slash command or an MCP prompt is
// expanded. Claude.
func OnUserPromptExpansion(h func(context.Context, *UserPromptExpansionInput) (UserPromptExpansionOutput, error), o ...HookOption) Hook {
	return typed(HookUserPromptExpansion, h, o)
}

// OnSessionStart runs when a session begins, or begins anew. Claude Code calls
// it only after a compaction (observed on 2.1.329).
func OnSessionStart(h func(context.Context, *SessionStartInput) (SessionStartOutput, error), o ...HookOption) Hook {
	return typed(HookSessionStart, h, o)
}

// OnSessionEnd runs when a session ends. Claude Code never calls it (observed on
// 2.1.329).
func OnSessionEnd(h func(context.Context, *SessionEndInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookSessionEnd, h, o)
}

// OnStop runs when the agent is about to end its turn; DecisionBlock sends it
// back to work.
func OnStop(h func(context.Context, *StopInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(HookStop, h, o)
}

// OnStopFailure runs when a turn ends in an error of the model's API. Claude.
func OnStopFailure(h func(context.Context, *StopFailureInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookStopFailure, h, o)
}

// OnSubagentStart runs when a subagent starts.
func OnSubagentStart(h func(context.Context, *SubagentStartInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(HookSubagentStart, h, o)
}

// OnSubagentStop runs when a subagent is about to stop; DecisionBlock sends it
// back to work.
func OnSubagentStop(h func(context.Context, *SubagentStopInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(HookSubagentStop, h, o)
}

// OnPreCompact runs before a compaction; DecisionBlock keeps Claude Code from it.
func OnPreCompact(h func(context.Context, *PreCompactInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(HookPreCompact, h, o)
}

// OnPostCompact runs after a compaction.
func OnPostCompact(h func(context.Context, *PostCompactInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookPostCompact, h, o)
}

// OnPreModelSwitch runs before the model is changed. It is a gate. Claude.
func OnPreModelSwitch(h func(context.Context, *PreModelSwitchInput) (PreModelSwitchOutput, error), o ...HookOption) Hook {
	return typed(HookPreModelSwitch, h, o)
}

// OnPostModelSwitch runs after the model was changed. Claude.
func OnPostModelSwitch(h func(context.Context, *PostModelSwitchInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(HookPostModelSwitch, h, o)
}

// OnNotification runs when the agent would notify a person. Claude, which
// heeds nothing of the output (observed on 2.1.329).
func OnNotification(h func(context.Context, *NotificationInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(HookNotification, h, o)
}

// OnSetup runs on initialization and maintenance runs. Claude Code never calls
// it (observed on 2.1.329).
func OnSetup(h func(context.Context, *SetupInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(HookSetup, h, o)
}

// OnTeammateIdle runs in the session of a teammate that has nothing to do;
// DecisionBlock sends it back to work, with the reason. Claude.
func OnTeammateIdle(h func(context.Context, *TeammateIdleInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(HookTeammateIdle, h, o)
}

// OnTaskCreated runs when the model has put a task on its list; DecisionBlock
// takes it off again, and the model reads the reason. Claude.
func OnTaskCreated(h func(context.Context, *TaskCreatedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(HookTaskCreated, h, o)
}

// OnTaskCompleted runs when the model would mark a task as done; DecisionBlock
// leaves it open, and the model reads the reason. Claude.
func OnTaskCompleted(h func(context.Context, *TaskCompletedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(HookTaskCompleted, h, o)
}

// OnElicitation runs when an MCP server asks the person something. It is a gate.
// Claude.
func OnElicitation(h func(context.Context, *ElicitationInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(HookElicitation, h, o)
}

// OnElicitationResult runs after the person has answered. It is a gate. Claude.
func OnElicitationResult(h func(context.Context, *ElicitationResultInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(HookElicitationResult, h, o)
}

// OnConfigChange runs when a settings file changed; DecisionBlock keeps it from
// taking effect. Claude.
func OnConfigChange(h func(context.Context, *ConfigChangeInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(HookConfigChange, h, o)
}

// OnWorktreeCreate runs when a git worktree is wanted.
func OnWorktreeCreate(h func(context.Context, *WorktreeCreateInput) (WorktreeCreateOutput, error), o ...HookOption) Hook {
	return typed(HookWorktreeCreate, h, o)
}

// OnWorktreeRemove runs when a git worktree is to go.
func OnWorktreeRemove(h func(context.Context, *WorktreeRemoveInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookWorktreeRemove, h, o)
}

// OnInstructionsLoaded runs when an instruction file was loaded.
func OnInstructionsLoaded(h func(context.Context, *InstructionsLoadedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookInstructionsLoaded, h, o)
}

// OnCwdChanged runs when the working directory changed. Claude Code calls it
// only if its settings have a hook for it, or for FileChanged, and heeds
// nothing of the output (observed on 2.1.329).
func OnCwdChanged(h func(context.Context, *CwdChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(HookCwdChanged, h, o)
}

// OnFileChanged runs when a watched file changed. Claude Code watches what the
// matcher of a FileChanged hook in its settings or the WatchPaths of a
// SessionStart hook name, and heeds nothing of the output (observed on 2.1.329).
// [Match] is about the file's name without its directory.
func OnFileChanged(h func(context.Context, *FileChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(HookFileChanged, h, o)
}

// OnDirectoryAdded runs when a directory was added to the workspace. Claude.
func OnDirectoryAdded(h func(context.Context, *DirectoryAddedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(HookDirectoryAdded, h, o)
}

// OnMessageDisplay runs before text of the main agent is shown. Claude.
func OnMessageDisplay(h func(context.Context, *MessageDisplayInput) (MessageDisplayOutput, error), o ...HookOption) Hook {
	return typed(HookMessageDisplay, h, o)
}
