package sdk

import "github.com/agent-troupe/troupe/protocol"

// Messages of the agent. [Message] is any of the rest; a type switch over it needs
// a default, for what agents say next week ([UnknownMessage]).
type (
	// Message is one content line of the stream.
	Message = protocol.Message
	// APIRetryMessage is system/api_retry.
	APIRetryMessage = protocol.APIRetryMessage
	// ActiveGoalMessage is Claude's active_goal; a nil Value means there is none.
	ActiveGoalMessage = protocol.ActiveGoalMessage
	// ArtifactsUpdateMessage is Qoder's system/artifacts_update.
	ArtifactsUpdateMessage = protocol.ArtifactsUpdateMessage
	// AssistantMessage is a message of the model.
	AssistantMessage = protocol.AssistantMessage
	// AuthStatusMessage reports a login that is under way.
	AuthStatusMessage = protocol.AuthStatusMessage
	// AvailableModelsUpdateMessage is Qoder's system/available_models_update.
	AvailableModelsUpdateMessage = protocol.AvailableModelsUpdateMessage
	// BackgroundTasksChangedMessage is system/background_tasks_changed.
	BackgroundTasksChangedMessage = protocol.BackgroundTasksChangedMessage
	// BridgeStateMessage is Qoder's system/bridge_state.
	BridgeStateMessage = protocol.BridgeStateMessage
	// CloudAgentEventMessage is an event of Qoder's cloud runtime.
	CloudAgentEventMessage = protocol.CloudAgentEventMessage
	// CommandLifecycleMessage follows one user line that has a uuid.
	CommandLifecycleMessage = protocol.CommandLifecycleMessage
	// CommandsChangedMessage is system/commands_changed.
	CommandsChangedMessage = protocol.CommandsChangedMessage
	// CompactBoundaryMessage is system/compact_boundary.
	CompactBoundaryMessage = protocol.CompactBoundaryMessage
	// ControlRequestProgressMessage is system/control_request_progress.
	ControlRequestProgressMessage = protocol.ControlRequestProgressMessage
	// ConversationResetMessage says that the history was dropped; the session id
	// changes with it.
	ConversationResetMessage = protocol.ConversationResetMessage
	// ElicitationCompleteMessage is system/elicitation_complete.
	ElicitationCompleteMessage = protocol.ElicitationCompleteMessage
	// FilesPersistedMessage is system/files_persisted.
	FilesPersistedMessage = protocol.FilesPersistedMessage
	// GoalClearedMessage is Qoder's system/goal_cleared.
	GoalClearedMessage = protocol.GoalClearedMessage
	// GoalUpdatedMessage is Qoder's system/goal_updated.
	GoalUpdatedMessage = protocol.GoalUpdatedMessage
	// HookProgressMessage is system/hook_progress.
	HookProgressMessage = protocol.HookProgressMessage
	// HookResponseMessage is system/hook_response.
	HookResponseMessage = protocol.HookResponseMessage
	// HookStartedMessage is system/hook_started.
	HookStartedMessage = protocol.HookStartedMessage
	// InformationalMessage is system/informational.
	InformationalMessage = protocol.InformationalMessage
	// InitMessage is system/init.
	InitMessage = protocol.InitMessage
	// LocalCommandOutputMessage is system/local_command_output.
	LocalCommandOutputMessage = protocol.LocalCommandOutputMessage
	// MCPStatusChangeMessage is Qoder's system/mcp_status_change.
	MCPStatusChangeMessage = protocol.MCPStatusChangeMessage
	// MemoryConsumptionMessage is Qoder's system/memory_consumption.
	MemoryConsumptionMessage = protocol.MemoryConsumptionMessage
	// MemoryGenerationMessage is Qoder's system/memory_generation.
	MemoryGenerationMessage = protocol.MemoryGenerationMessage
	// MemoryRecallMessage is system/memory_recall.
	MemoryRecallMessage = protocol.MemoryRecallMessage
	// MirrorErrorMessage is system/mirror_error.
	MirrorErrorMessage = protocol.MirrorErrorMessage
	// ModelFallbackMessage is system/model_fallback.
	ModelFallbackMessage = protocol.ModelFallbackMessage
	// ModelQueueStatusMessage is Qoder's system/model_queue_status.
	ModelQueueStatusMessage = protocol.ModelQueueStatusMessage
	// ModelRefusalFallbackMessage is system/model_refusal_fallback.
	ModelRefusalFallbackMessage = protocol.ModelRefusalFallbackMessage
	// ModelRefusalNoFallbackMessage is system/model_refusal_no_fallback.
	ModelRefusalNoFallbackMessage = protocol.ModelRefusalNoFallbackMessage
	// NotificationMessage is system/notification.
	NotificationMessage = protocol.NotificationMessage
	// PartialAssistantMessage is a stream_event line.
	PartialAssistantMessage = protocol.PartialAssistantMessage
	// PermissionDeniedMessage is system/permission_denied.
	PermissionDeniedMessage = protocol.PermissionDeniedMessage
	// PlanModeChangedMessage is Qoder's system/plan_mode_changed.
	PlanModeChangedMessage = protocol.PlanModeChangedMessage
	// PluginInstallMessage is system/plugin_install.
	PluginInstallMessage = protocol.PluginInstallMessage
	// PostTurnSummaryMessage is post_turn_summary, top-level or under system.
	PostTurnSummaryMessage = protocol.PostTurnSummaryMessage
	// PromptSuggestionMessage is a guess at the next prompt, after a result.
	PromptSuggestionMessage = protocol.PromptSuggestionMessage
	// RateLimitMessage is rate_limit_event.
	RateLimitMessage = protocol.RateLimitMessage
	// ResultMessage ends a turn.
	ResultMessage = protocol.ResultMessage
	// SessionStateChangedMessage is system/session_state_changed.
	SessionStateChangedMessage = protocol.SessionStateChangedMessage
	// SessionTitleChangedMessage is Qoder's system/session_title_changed.
	SessionTitleChangedMessage = protocol.SessionTitleChangedMessage
	// SessionWritesLostMessage is system/session_writes_lost.
	SessionWritesLostMessage = protocol.SessionWritesLostMessage
	// SkillEvolutionMessage is Qoder's system/skill_evolution.
	SkillEvolutionMessage = protocol.SkillEvolutionMessage
	// StatusMessage is system/status.
	StatusMessage = protocol.StatusMessage
	// StreamlinedTextMessage is text for another output mode.
	StreamlinedTextMessage = protocol.StreamlinedTextMessage
	// StreamlinedToolUseSummaryMessage belongs to the same output mode.
	StreamlinedToolUseSummaryMessage = protocol.StreamlinedToolUseSummaryMessage
	// TaskNotificationMessage is system/task_notification.
	TaskNotificationMessage = protocol.TaskNotificationMessage
	// TaskProgressMessage is system/task_progress.
	TaskProgressMessage = protocol.TaskProgressMessage
	// TaskStartedMessage is system/task_started.
	TaskStartedMessage = protocol.TaskStartedMessage
	// TaskUpdatedMessage is system/task_updated.
	TaskUpdatedMessage = protocol.TaskUpdatedMessage
	// ThinkingTokensMessage is system/thinking_tokens.
	ThinkingTokensMessage = protocol.ThinkingTokensMessage
	// ToolProgressMessage is a sign of life of a tool that runs long.
	ToolProgressMessage = protocol.ToolProgressMessage
	// ToolUseSummaryMessage sums up several tool calls in one line of text.
	ToolUseSummaryMessage = protocol.ToolUseSummaryMessage
	// UIInvalidateMessage is system/ui_invalidate.
	UIInvalidateMessage = protocol.UIInvalidateMessage
	// OversizeMessage has the place of a message above MaxLine, which was skipped.
	OversizeMessage = protocol.OversizeMessage
	// UnknownMessage is a line of a type or subtype that this package does not know,
	// or of one it knows whose fields do not decode.
	UnknownMessage = protocol.UnknownMessage
	// UserMessage is a user line, in both directions.
	UserMessage = protocol.UserMessage
	// VCSStateChangedMessage is system/vcs_state_changed.
	VCSStateChangedMessage = protocol.VCSStateChangedMessage
	// WorkerShuttingDownMessage is system/worker_shutting_down.
	WorkerShuttingDownMessage = protocol.WorkerShuttingDownMessage
)

// Parts of messages.
type (
	// Common is embedded in every message.
	Common = protocol.Common
	// APIMessage is the message object of the model's API.
	APIMessage = protocol.APIMessage
	// UserContent is the message object of a user line.
	UserContent = protocol.UserContent
	// SubagentFields are on the lines of a subagent, next to ParentToolUseID.
	SubagentFields = protocol.SubagentFields
	// Usage is the API's count of tokens.
	Usage = protocol.Usage
	// ModelUsage is what one model used.
	ModelUsage = protocol.ModelUsage
	// Origin says where a turn or a user line comes from.
	Origin = protocol.Origin
	// PermissionDenial is a tool call that was denied in the turn.
	PermissionDenial = protocol.PermissionDenial
	// DeferredToolUse is the tool call that a hook deferred, which ended the turn.
	DeferredToolUse = protocol.DeferredToolUse
	// RateLimitInfo is the state of a subscription's limits, as Claude's types
	// declare it.
	RateLimitInfo = protocol.RateLimitInfo
	// BackgroundTask is a task that runs in the background.
	BackgroundTask = protocol.BackgroundTask
	// TaskUsage is what a task used so far.
	TaskUsage = protocol.TaskUsage
)

// Content of messages. [ContentBlock] is any of the blocks.
type (
	// Content is the content of a message or of a tool result.
	Content = protocol.Content
	// ContentBlock is one block of content.
	ContentBlock = protocol.ContentBlock
	// ContainerUploadBlock is a file put into the API's container.
	ContainerUploadBlock = protocol.ContainerUploadBlock
	// DocumentBlock is a document, such as a PDF.
	DocumentBlock = protocol.DocumentBlock
	// ImageBlock is an image.
	ImageBlock = protocol.ImageBlock
	// MCPToolResultBlock is the result of such a call.
	MCPToolResultBlock = protocol.MCPToolResultBlock
	// MCPToolUseBlock is a call of an MCP tool that the API itself makes.
	MCPToolUseBlock = protocol.MCPToolUseBlock
	// RedactedThinkingBlock is thinking that the API encrypted.
	RedactedThinkingBlock = protocol.RedactedThinkingBlock
	// SearchResultBlock is a search result that the model may cite.
	SearchResultBlock = protocol.SearchResultBlock
	// ServerToolResultBlock is the result of such a call.
	ServerToolResultBlock = protocol.ServerToolResultBlock
	// ServerToolUseBlock is a call of a tool that the API itself runs.
	ServerToolUseBlock = protocol.ServerToolUseBlock
	// TextBlock is text of the model or of the user.
	TextBlock = protocol.TextBlock
	// ThinkingBlock is the model's thinking.
	ThinkingBlock = protocol.ThinkingBlock
	// ToolResultBlock is the result of a tool call, on a user line.
	ToolResultBlock = protocol.ToolResultBlock
	// ToolUseBlock is a tool call of the model.
	ToolUseBlock = protocol.ToolUseBlock
	// UnknownBlock is a block that this package does not know, or a known one that
	// does not decode.
	UnknownBlock = protocol.UnknownBlock
)

// Events of a message while it is written, in [PartialAssistantMessage].
// [StreamEvent] is any of the events, [Delta] any of the deltas.
type (
	// StreamEvent is one event of the model's stream.
	StreamEvent = protocol.StreamEvent
	// MessageStart begins a message; its content is empty.
	MessageStart = protocol.MessageStart
	// ContentBlockStart begins the content block Index.
	ContentBlockStart = protocol.ContentBlockStart
	// ContentBlockDelta adds to the content block Index.
	ContentBlockDelta = protocol.ContentBlockDelta
	// ContentBlockStop ends the content block Index.
	ContentBlockStop = protocol.ContentBlockStop
	// MessageDelta carries what is known at the end of a message.
	MessageDelta = protocol.MessageDelta
	// MessageStop ends a message.
	MessageStop = protocol.MessageStop
	// Ping carries nothing.
	Ping = protocol.Ping
	// StreamError is an error of the model's API in mid stream.
	StreamError = protocol.StreamError
	// UnknownEvent is an event that this package does not know, or a known one that
	// does not decode.
	UnknownEvent = protocol.UnknownEvent
	// Delta is what a [ContentBlockDelta] adds.
	Delta = protocol.Delta
	// DeltaCitations adds one citation, as it came.
	DeltaCitations = protocol.DeltaCitations
	// DeltaInputJSON adds a piece of a tool's input.
	DeltaInputJSON = protocol.DeltaInputJSON
	// DeltaSignature is the signature of the thinking.
	DeltaSignature = protocol.DeltaSignature
	// DeltaText adds text.
	DeltaText = protocol.DeltaText
	// DeltaThinking adds thinking.
	DeltaThinking = protocol.DeltaThinking
	// DeltaUnknown is a delta that this package does not know, or a known one that
	// does not decode.
	DeltaUnknown = protocol.DeltaUnknown
)

// Parts of messages that user interfaces show.
type (
	// AbandonedBlocks says which blocks of a response never come as a message.
	AbandonedBlocks = protocol.AbandonedBlocks
	// CompactMetadata describes a compaction.
	CompactMetadata = protocol.CompactMetadata
	// PermissionDecision is what was decided on a tool call, and by whom.
	PermissionDecision = protocol.PermissionDecision
	// ToolResultMeta says how a tool call came to run, or why it did not.
	ToolResultMeta = protocol.ToolResultMeta
	// SubagentStats counts the subagents of a session so far.
	SubagentStats = protocol.SubagentStats
	// SessionState is what an agent says that it is doing.
	SessionState = protocol.SessionState
	// TaskPatch is the change of a task.
	TaskPatch = protocol.TaskPatch
)

// The states in a [SessionStateChangedMessage].
const (
	SessionIdle           = protocol.SessionIdle
	SessionRunning        = protocol.SessionRunning
	SessionRequiresAction = protocol.SessionRequiresAction
)
