package sdk

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// The inputs of common hooks. Package protocol has the others; the On... functions
// show their names. All embed [protocol.HookBase].
type (
	// PreToolUseInput is the input of [OnPreToolUse]. It is [protocol.PreToolUseInput].
	PreToolUseInput = protocol.PreToolUseInput
	// PostToolUseInput is the input of [OnPostToolUse]. It is
	// [protocol.PostToolUseInput].
	PostToolUseInput = protocol.PostToolUseInput
)

// OnPreToolUse runs before a tool call and can deny it. It is a gate: a handler that
// fails denies the call.
func OnPreToolUse(h func(context.Context, *PreToolUseInput) (PreToolUseOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreToolUse, h, o)
}

// OnPostToolUse runs after a tool call that succeeded.
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

// OnPermissionRequest runs when a tool call needs permission, at the same time as
// CanUseTool. The first of the two answers decides (observed on Claude Code 2.1.329).
// It is a gate: a handler that fails denies the call.
func OnPermissionRequest(h func(context.Context, *protocol.PermissionRequestInput) (PermissionRequestOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPermissionRequest, h, o)
}

// OnPermissionDenied runs after a tool call was denied. On Claude Code it runs only if
// the check of permission mode auto denied the call (observed on 2.1.329).
func OnPermissionDenied(h func(context.Context, *protocol.PermissionDeniedInput) (PermissionDeniedOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPermissionDenied, h, o)
}

// OnUserPromptSubmit runs before the agent processes a prompt, also for the prompts
// that the agent itself writes about its tasks. It is a gate: a handler that fails
// blocks the prompt.
func OnUserPromptSubmit(h func(context.Context, *protocol.UserPromptSubmitInput) (UserPromptSubmitOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookUserPromptSubmit, h, o)
}

// OnUserPromptExpansion runs before a slash command or an MCP prompt is expanded. It is
// a gate: a handler that fails blocks the prompt. Claude.
func OnUserPromptExpansion(h func(context.Context, *protocol.UserPromptExpansionInput) (UserPromptExpansionOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookUserPromptExpansion, h, o)
}

// OnSessionStart runs when a session starts, is resumed, forked, cleared or compacted. Claude
// Code calls it only after a compaction (observed on 2.1.329).
func OnSessionStart(h func(context.Context, *protocol.SessionStartInput) (SessionStartOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSessionStart, h, o)
}

// OnSessionEnd runs when a session ends. Claude Code never calls it (observed on
// 2.1.329).
func OnSessionEnd(h func(context.Context, *protocol.SessionEndInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSessionEnd, h, o)
}

// OnStop runs when the agent is about to end its turn. DecisionBlock makes it continue
// with the turn.
func OnStop(h func(context.Context, *protocol.StopInput) (FeedbackOutput, error), o ...HookOption) Hook {
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

// OnSubagentStop runs when a subagent is about to stop. DecisionBlock makes it
// continue.
func OnSubagentStop(h func(context.Context, *protocol.SubagentStopInput) (FeedbackOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSubagentStop, h, o)
}

// OnPreCompact runs before a compaction. DecisionBlock prevents it on Claude Code.
func OnPreCompact(h func(context.Context, *protocol.PreCompactInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreCompact, h, o)
}

// OnPostCompact runs after a compaction.
func OnPostCompact(h func(context.Context, *protocol.PostCompactInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostCompact, h, o)
}

// OnPreModelSwitch runs before the model is changed and can deny the change. It is a
// gate: a handler that fails denies it. Claude.
func OnPreModelSwitch(h func(context.Context, *protocol.PreModelSwitchInput) (PreModelSwitchOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPreModelSwitch, h, o)
}

// OnPostModelSwitch runs after the model was changed. Claude.
func OnPostModelSwitch(h func(context.Context, *protocol.PostModelSwitchInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookPostModelSwitch, h, o)
}

// OnNotification runs when the agent notifies a person. Claude Code ignores the output
// (observed on 2.1.329).
func OnNotification(h func(context.Context, *protocol.NotificationInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookNotification, h, o)
}

// OnSetup runs during initialization and maintenance. Claude Code never calls it
// (observed on 2.1.329).
func OnSetup(h func(context.Context, *protocol.SetupInput) (ContextOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookSetup, h, o)
}

// OnTeammateIdle runs in the session of a teammate that has nothing to do.
// DecisionBlock makes the teammate continue, and the model reads the reason. Claude.
func OnTeammateIdle(h func(context.Context, *protocol.TeammateIdleInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTeammateIdle, h, o)
}

// OnTaskCreated runs when the model has added a task to its list. DecisionBlock
// removes the task, and the model reads the reason. Claude.
func OnTaskCreated(h func(context.Context, *protocol.TaskCreatedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTaskCreated, h, o)
}

// OnTaskCompleted runs before a task of the model's list is marked as done.
// DecisionBlock leaves the task open, and the model reads the reason. Claude.
func OnTaskCompleted(h func(context.Context, *protocol.TaskCompletedInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookTaskCompleted, h, o)
}

// OnElicitationHook runs when an MCP server asks the person a question. It is a gate:
// a handler that fails declines the question. Claude.
func OnElicitationHook(h func(context.Context, *protocol.ElicitationInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookElicitation, h, o)
}

// OnElicitationResult runs after the person has answered the question of an MCP server.
// It is a gate: if the handler fails, the answer is not passed on. Claude.
func OnElicitationResult(h func(context.Context, *protocol.ElicitationResultInput) (ElicitationOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookElicitationResult, h, o)
}

// OnConfigChange runs when a settings file has changed. DecisionBlock prevents the
// change from taking effect. It is a gate: a handler that fails prevents it, too.
// Claude.
func OnConfigChange(h func(context.Context, *protocol.ConfigChangeInput) (BlockOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookConfigChange, h, o)
}

// OnWorktreeCreate runs when the agent needs a git worktree. The output has the path of
// the worktree.
func OnWorktreeCreate(h func(context.Context, *protocol.WorktreeCreateInput) (WorktreeCreateOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookWorktreeCreate, h, o)
}

// OnWorktreeRemove runs when a git worktree is to be removed.
func OnWorktreeRemove(h func(context.Context, *protocol.WorktreeRemoveInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookWorktreeRemove, h, o)
}

// OnInstructionsLoaded runs after an instruction file, such as CLAUDE.md, was loaded.
func OnInstructionsLoaded(h func(context.Context, *protocol.InstructionsLoadedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookInstructionsLoaded, h, o)
}

// OnCwdChanged runs after the working directory has changed. Claude Code calls it only
// if its settings have a hook for CwdChanged or FileChanged, and ignores the output
// (observed on 2.1.329).
func OnCwdChanged(h func(context.Context, *protocol.CwdChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookCwdChanged, h, o)
}

// OnFileChanged runs after a watched file has changed. [Match] compares the file's name
// without its directory. Claude Code watches the files that the matcher of a
// FileChanged hook in its settings names, or the WatchPaths of a SessionStart hook. It
// ignores the output (observed on 2.1.329).
func OnFileChanged(h func(context.Context, *protocol.FileChangedInput) (WatchPathsOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookFileChanged, h, o)
}

// OnDirectoryAdded runs after a directory was added to the workspace. Claude.
func OnDirectoryAdded(h func(context.Context, *protocol.DirectoryAddedInput) (HookOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookDirectoryAdded, h, o)
}

// OnMessageDisplay runs before text of the main agent is shown. Claude.
func OnMessageDisplay(h func(context.Context, *protocol.MessageDisplayInput) (MessageDisplayOutput, error), o ...HookOption) Hook {
	return typed(protocol.HookMessageDisplay, h, o)
}
