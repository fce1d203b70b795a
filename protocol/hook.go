package protocol

// HookEvent is the name of a moment at which hooks run.
type HookEvent string

// The hook events. Those that Qoder has too are so marked; the rest are Claude
// Code's alone. Claude Code never calls a host back for Setup, SessionEnd, nor
// for SessionStart except after a compaction (observed on 2.1.197 and 2.1.329).
const (
	HookPreToolUse          HookEvent = "PreToolUse"         // Qoder too
	HookPostToolUse         HookEvent = "PostToolUse"        // Qoder too
	HookPostToolUseFailure  HookEvent = "PostToolUseFailure" // Qoder too
	HookPostToolBatch       HookEvent = "PostToolBatch"
	HookNotification        HookEvent = "Notification"
	HookUserPromptSubmit    HookEvent = "UserPromptSubmit" // Qoder too
	HookUserPromptExpansion HookEvent = "UserPromptExpansion"
	HookSessionStart        HookEvent = "SessionStart" // Qoder too
	HookSessionEnd          HookEvent = "SessionEnd"   // Qoder too
	HookStop                HookEvent = "Stop"         // Qoder too
	HookStopFailure         HookEvent = "StopFailure"
	HookSubagentStart       HookEvent = "SubagentStart" // Qoder too
	HookSubagentStop        HookEvent = "SubagentStop"  // Qoder too
	HookPreCompact          HookEvent = "PreCompact"    // Qoder too
	HookPostCompact         HookEvent = "PostCompact"   // Qoder too
	HookPreModelSwitch      HookEvent = "PreModelSwitch"
	HookPostModelSwitch     HookEvent = "PostModelSwitch"
	HookPermissionRequest   HookEvent = "PermissionRequest" // Qoder too
	HookPermissionDenied    HookEvent = "PermissionDenied"  // Qoder too
	HookSetup               HookEvent = "Setup"
	HookTeammateIdle        HookEvent = "TeammateIdle"
	HookTaskCreated         HookEvent = "TaskCreated"
	HookTaskCompleted       HookEvent = "TaskCompleted"
	HookElicitation         HookEvent = "Elicitation"
	HookElicitationResult   HookEvent = "ElicitationResult"
	HookConfigChange        HookEvent = "ConfigChange"
	HookWorktreeCreate      HookEvent = "WorktreeCreate"     // Qoder too
	HookWorktreeRemove      HookEvent = "WorktreeRemove"     // Qoder too
	HookInstructionsLoaded  HookEvent = "InstructionsLoaded" // Qoder too
	HookCwdChanged          HookEvent = "CwdChanged"         // Qoder too
	HookFileChanged         HookEvent = "FileChanged"        // Qoder too
	HookDirectoryAdded      HookEvent = "DirectoryAdded"
	HookMessageDisplay      HookEvent = "MessageDisplay"
)

// HookEvents returns all known hook events, in the vendors' order.
func HookEvents() []HookEvent {
	return []HookEvent{
		HookPreToolUse, HookPostToolUse, HookPostToolUseFailure, HookPostToolBatch,
		HookNotification, HookUserPromptSubmit, HookUserPromptExpansion,
		HookSessionStart, HookSessionEnd, HookStop, HookStopFailure,
		HookSubagentStart, HookSubagentStop, HookPreCompact, HookPostCompact,
		HookPreModelSwitch, HookPostModelSwitch, HookPermissionRequest,
		HookPermissionDenied, HookSetup, HookTeammateIdle, HookTaskCreated,
		HookTaskCompleted, HookElicitation, HookElicitationResult, HookConfigChange,
		HookWorktreeCreate, HookWorktreeRemove, HookInstructionsLoaded,
		HookCwdChanged, HookFileChanged, HookDirectoryAdded, HookMessageDisplay,
	}
}

// HookMatcher registers callbacks for an event in an initialize request.
type HookMatcher struct {
	// Matcher is a pattern over the tool name or its like; "" matches all.
	Matcher         string   `json:"matcher,omitempty"`
	HookCallbackIDs []string `json:"hookCallbackIds"` // chosen by the host; HookCallbackRequest.CallbackID names one
	// Timeout is in seconds, fractions allowed; 0 is the agent's default.
	Timeout float64 `json:"timeout,omitempty"`
}
