package sdk

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// The inputs of the usual hooks. Package protocol has the others under the names
// that the On... functions show. All embed [protocol.HookBase].
type (
	// PreToolUseInput comes before a tool call. It is [protocol.PreToolUseInput].
	PreToolUseInput = protocol.PreToolUseInput
	// PostToolUseInput comes after a tool call that succeeded. It is
	// [protocol.PostToolUseInput].
	PostToolUseInput = protocol.PostToolUseInput
	// UserPromptSubmitInput comes before the agent processes a prompt, also for
	// prompts that it writes about its tasks. It is [protocol.UserPromptSubmitInput].
	UserPromptSubmitInput = protocol.UserPromptSubmitInput
	// StopInput comes when the agent is about to end its turn. It is
	// [protocol.StopInput].
	StopInput = protocol.StopInput
)

// OnPreToolUse runs before a tool call. It is a gate.
func OnPreToolUse(h func(context.Context, *PreToolUseInput) (PreToolUseOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreToolUse, h, o)
}

// OnPostToolUse runs after a tool call that went well.
func OnPostToolUse(h func(context.Context, *PostToolUseInput) (PostToolUseOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostToolUse, h, o)
}

// OnPostToolUseFailure runs after a tool call that failed.
func OnPostToolUseFailure(h func(context.Context, *protocol.PostToolUseFailureInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostToolUseFailure, h, o)
}

// OnPostToolBatch runs once after the tool calls of one model message. Claude.
func OnPostToolBatch(h func(context.Context, *protocol.PostToolBatchInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostToolBatch, h, o)
}

// OnPermissionRequest runs when a tool call needs permission,
// beside CanUseTool; the first answer wins (observed on Claude Code 2.1.329).
func OnPermissionRequest(h func(context.Context, *protocol.PermissionRequestInput) (PermissionRequestOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPermissionRequest, h, o)
}

// OnPermissionDenied runs after a tool call was denied; on Claude Code only
// after the check of auto mode denied it (observed on 2.1.329).
func OnPermissionDenied(h func(context.Context, *protocol.PermissionDeniedInput) (PermissionDeniedOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPermissionDenied, h, o)
}

// OnUserPromptSubmit runs before a prompt is taken up, also one that the
// agent writes about its tasks. It is a gate.
func OnUserPromptSubmit(h func(context.Context, *UserPromptSubmitInput) (UserPromptSubmitOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookUserPromptSubmit, h, o)
}

// OnUserPromptExpansion runs before a slash command or an MCP prompt is
// expanded. Claude.
func OnUserPromptExpansion(h func(context.Context, *protocol.UserPromptExpansionInput) (UserPromptExpansionOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookUserPromptExpansion, h, o)
}

// OnSessionStart runs when a session begins, or begins anew. Claude Code calls
// it only after a compaction (observed on 2.1.329).
func OnSessionStart(h func(context.Context, *protocol.SessionStartInput) (SessionStartOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSessionStart, h, o)
}

// OnSessionEnd runs when a session ends. Claude Code never calls it (observed on
// 2.1.329).
func OnSessionEnd(h func(context.Context, *protocol.SessionEndInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSessionEnd, h, o)
}

// OnStop runs when the agent is about to end its turn; DecisionBlock sends it
// back to work.
func OnStop(h func(context.Context, *StopInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookStop, h, o)
}

// OnStopFailure runs when a turn ends in an error of the model's API. Claude.
func OnStopFailure(h func(context.Context, *protocol.StopFailureInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookStopFailure, h, o)
}

// OnSubagentStart runs when a subagent starts.
func OnSubagentStart(h func(context.Context, *protocol.SubagentStartInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSubagentStart, h, o)
}

// OnSubagentStop runs when a subagent is about to stop; DecisionBlock sends it
// back to work.
func OnSubagentStop(h func(context.Context, *protocol.SubagentStopInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSubagentStop, h, o)
}

// OnPreCompact runs before a compaction; DecisionBlock keeps Claude Code from it.
func OnPreCompact(h func(context.Context, *protocol.PreCompactInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreCompact, h, o)
}

// OnPostCompact runs after a compaction.
func OnPostCompact(h func(context.Context, *protocol.PostCompactInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostCompact, h, o)
}

// OnPreModelSwitch runs before the model is changed. It is a gate. Claude.
func OnPreModelSwitch(h func(context.Context, *protocol.PreModelSwitchInput) (PreModelSwitchOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreModelSwitch, h, o)
}

// OnPostModelSwitch runs after the model was changed. Claude.
func OnPostModelSwitch(h func(context.Context, *protocol.PostModelSwitchInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostModelSwitch, h, o)
}

// OnNotification runs when the agent would notify a person. Claude ignores
// the output (observed on 2.1.329).
func OnNotification(h func(context.Context, *protocol.NotificationInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookNotification, h, o)
}

// OnSetup runs on initialization and maintenance runs. Claude Code never calls
// it (observed on 2.1.329).
func OnSetup(h func(context.Context, *protocol.SetupInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSetup, h, o)
}

// OnTeammateIdle runs in the session of a teammate that has nothing to do;
// DecisionBlock sends it back to work, with the reason. Claude.
func OnTeammateIdle(h func(context.Context, *protocol.TeammateIdleInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTeammateIdle, h, o)
}

// OnTaskCreated runs when the model has put a task on its list; DecisionBlock
// takes it off again, and the model reads the reason. Claude.
func OnTaskCreated(h func(context.Context, *protocol.TaskCreatedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTaskCreated, h, o)
}

// OnTaskCompleted runs when the model would mark a task as done; DecisionBlock
// leaves it open, and the model reads the reason. Claude.
func OnTaskCompleted(h func(context.Context, *protocol.TaskCompletedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTaskCompleted, h, o)
}

// OnElicitationHook runs when an MCP server asks the person something. It is a gate.
// Claude.
func OnElicitationHook(h func(context.Context, *protocol.ElicitationInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookElicitation, h, o)
}

// OnElicitationResult runs after the person has answered. It is a gate. Claude.
func OnElicitationResult(h func(context.Context, *protocol.ElicitationResultInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookElicitationResult, h, o)
}

// OnConfigChange runs when a settings file changed; DecisionBlock keeps it from
// taking effect. Claude.
func OnConfigChange(h func(context.Context, *protocol.ConfigChangeInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookConfigChange, h, o)
}

// OnWorktreeCreate runs when a git worktree is wanted.
func OnWorktreeCreate(h func(context.Context, *protocol.WorktreeCreateInput) (WorktreeCreateOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookWorktreeCreate, h, o)
}

// OnWorktreeRemove runs when a git worktree is to go.
func OnWorktreeRemove(h func(context.Context, *protocol.WorktreeRemoveInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookWorktreeRemove, h, o)
}

// OnInstructionsLoaded runs when an instruction file was loaded.
func OnInstructionsLoaded(h func(context.Context, *protocol.InstructionsLoadedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookInstructionsLoaded, h, o)
}

// OnCwdChanged runs when the working directory changed. Claude Code calls it
// only if its settings have a hook for it, or for FileChanged, and
// ignores the output (observed on 2.1.329).
func OnCwdChanged(h func(context.Context, *protocol.CwdChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookCwdChanged, h, o)
}

// OnFileChanged runs when a watched file changed. Claude Code watches what the
// matcher of a FileChanged hook in its settings or the WatchPaths of a
// SessionStart hook name, and ignores the output (observed on 2.1.329).
// [Match] is about the file's name without its directory.
func OnFileChanged(h func(context.Context, *protocol.FileChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookFileChanged, h, o)
}

// OnDirectoryAdded runs when a directory was added to the workspace. Claude.
func OnDirectoryAdded(h func(context.Context, *protocol.DirectoryAddedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookDirectoryAdded, h, o)
}

// OnMessageDisplay runs before text of the main agent is shown. Claude.
func OnMessageDisplay(h func(context.Context, *protocol.MessageDisplayInput) (MessageDisplayOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookMessageDisplay, h, o)
}
