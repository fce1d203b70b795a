package sdk

import "github.com/agent-troupe/troupe/protocol"

// Messages of the agent. [Message] is any of the rest; a type switch over it needs
// a default, for what agents say next week ([UnknownMessage]).
type (
	Message                          = protocol.Message
	APIRetryMessage                  = protocol.APIRetryMessage
	ActiveGoalMessage                = protocol.ActiveGoalMessage
	AssistantMessage                 = protocol.AssistantMessage
	AuthStatusMessage                = protocol.AuthStatusMessage
	AvailableModelsUpdateMessage     = protocol.AvailableModelsUpdateMessage
	BackgroundTasksChangedMessage    = protocol.BackgroundTasksChangedMessage
	BridgeStateMessage               = protocol.BridgeStateMessage
	CloudAgentEventMessage           = protocol.CloudAgentEventMessage
	CommandLifecycleMessage          = protocol.CommandLifecycleMessage
	CommandsChangedMessage           = protocol.CommandsChangedMessage
	CompactBoundaryMessage           = protocol.CompactBoundaryMessage
	ControlRequestProgressMessage    = protocol.ControlRequestProgressMessage
	ConversationResetMessage         = protocol.ConversationResetMessage
	ElicitationCompleteMessage       = protocol.ElicitationCompleteMessage
	FilesPersistedMessage            = protocol.FilesPersistedMessage
	GoalClearedMessage               = protocol.GoalClearedMessage
	GoalUpdatedMessage               = protocol.GoalUpdatedMessage
	HookProgressMessage              = protocol.HookProgressMessage
	HookResponseMessage              = protocol.HookResponseMessage
	HookStartedMessage               = protocol.HookStartedMessage
	InformationalMessage             = protocol.InformationalMessage
	InitMessage                      = protocol.InitMessage
	LocalCommandOutputMessage        = protocol.LocalCommandOutputMessage
	MCPStatusChangeMessage           = protocol.MCPStatusChangeMessage
	MemoryRecallMessage              = protocol.MemoryRecallMessage
	MirrorErrorMessage               = protocol.MirrorErrorMessage
	ModelRefusalFallbackMessage      = protocol.ModelRefusalFallbackMessage
	ModelRefusalNoFallbackMessage    = protocol.ModelRefusalNoFallbackMessage
	NotificationMessage              = protocol.NotificationMessage
	PartialAssistantMessage          = protocol.PartialAssistantMessage
	PermissionDeniedMessage          = protocol.PermissionDeniedMessage
	PlanModeChangedMessage           = protocol.PlanModeChangedMessage
	PluginInstallMessage             = protocol.PluginInstallMessage
	PostTurnSummaryMessage           = protocol.PostTurnSummaryMessage
	PromptSuggestionMessage          = protocol.PromptSuggestionMessage
	RateLimitMessage                 = protocol.RateLimitMessage
	ResultMessage                    = protocol.ResultMessage
	SessionStateChangedMessage       = protocol.SessionStateChangedMessage
	SessionTitleChangedMessage       = protocol.SessionTitleChangedMessage
	SessionWritesLostMessage         = protocol.SessionWritesLostMessage
	StatusMessage                    = protocol.StatusMessage
	StreamlinedTextMessage           = protocol.StreamlinedTextMessage
	StreamlinedToolUseSummaryMessage = protocol.StreamlinedToolUseSummaryMessage
	TaskNotificationMessage          = protocol.TaskNotificationMessage
	TaskProgressMessage              = protocol.TaskProgressMessage
	TaskStartedMessage               = protocol.TaskStartedMessage
	TaskUpdatedMessage               = protocol.TaskUpdatedMessage
	ThinkingTokensMessage            = protocol.ThinkingTokensMessage
	ToolProgressMessage              = protocol.ToolProgressMessage
	ToolUseSummaryMessage            = protocol.ToolUseSummaryMessage
	UnknownMessage                   = protocol.UnknownMessage
	UserMessage                      = protocol.UserMessage
	WorkerShuttingDownMessage        = protocol.WorkerShuttingDownMessage
)

// Parts of messages.
type (
	Common           = protocol.Common
	APIMessage       = protocol.APIMessage
	UserContent      = protocol.UserContent
	SubagentFields   = protocol.SubagentFields
	Usage            = protocol.Usage
	ModelUsage       = protocol.ModelUsage
	Origin           = protocol.Origin
	PermissionDenial = protocol.PermissionDenial
	DeferredToolUse  = protocol.DeferredToolUse
	RateLimitInfo    = protocol.RateLimitInfo
	BackgroundTask   = protocol.BackgroundTask
	TaskUsage        = protocol.TaskUsage
)

// Content of messages. [ContentBlock] is any of the blocks.
type (
	Content               = protocol.Content
	ContentBlock          = protocol.ContentBlock
	ContainerUploadBlock  = protocol.ContainerUploadBlock
	DocumentBlock         = protocol.DocumentBlock
	ImageBlock            = protocol.ImageBlock
	MCPToolResultBlock    = protocol.MCPToolResultBlock
	MCPToolUseBlock       = protocol.MCPToolUseBlock
	RedactedThinkingBlock = protocol.RedactedThinkingBlock
	SearchResultBlock     = protocol.SearchResultBlock
	ServerToolResultBlock = protocol.ServerToolResultBlock
	ServerToolUseBlock    = protocol.ServerToolUseBlock
	TextBlock             = protocol.TextBlock
	ThinkingBlock         = protocol.ThinkingBlock
	ToolResultBlock       = protocol.ToolResultBlock
	ToolUseBlock          = protocol.ToolUseBlock
	UnknownBlock          = protocol.UnknownBlock
)

// Events of a message while it is written, in [PartialAssistantMessage].
// [StreamEvent] is any of the events, [Delta] any of the deltas.
type (
	StreamEvent       = protocol.StreamEvent
	MessageStart      = protocol.MessageStart
	ContentBlockStart = protocol.ContentBlockStart
	ContentBlockDelta = protocol.ContentBlockDelta
	ContentBlockStop  = protocol.ContentBlockStop
	MessageDelta      = protocol.MessageDelta
	MessageStop       = protocol.MessageStop
	Ping              = protocol.Ping
	StreamError       = protocol.StreamError
	UnknownEvent      = protocol.UnknownEvent
	Delta             = protocol.Delta
	DeltaCitations    = protocol.DeltaCitations
	DeltaInputJSON    = protocol.DeltaInputJSON
	DeltaSignature    = protocol.DeltaSignature
	DeltaText         = protocol.DeltaText
	DeltaThinking     = protocol.DeltaThinking
	DeltaUnknown      = protocol.DeltaUnknown
)
