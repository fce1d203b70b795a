package protocol

import "encoding/json"

// newTopLevelMessage knows the rarer types that are not system/….
func newTopLevelMessage(typ string) Message {
	switch typ {
	case "tool_progress":
		return new(ToolProgressMessage)
	case "tool_use_summary":
		return new(ToolUseSummaryMessage)
	case "auth_status":
		return new(AuthStatusMessage)
	case "rate_limit_event":
		return new(RateLimitMessage)
	case "conversation_reset":
		return new(ConversationResetMessage)
	case "prompt_suggestion":
		return new(PromptSuggestionMessage)
	case "command_lifecycle":
		return new(CommandLifecycleMessage)
	case "active_goal":
		return new(ActiveGoalMessage)
	case "cloud_agent_event":
		return new(CloudAgentEventMessage)
	case "transcript_mirror":
		return new(TranscriptMirrorMessage)
	case "streamlined_text":
		return new(StreamlinedTextMessage)
	case "streamlined_tool_use_summary":
		return new(StreamlinedToolUseSummaryMessage)
	case "post_turn_summary":
		return &PostTurnSummaryMessage{topLevel: true}
	case TypeKeepAlive:
		return new(KeepAliveMessage)
	case typeKeepAliveAlias:
		return &KeepAliveMessage{alias: true}
	}
	return nil
}

// ToolProgressMessage is a sign of life of a tool that runs long. Claude Code
// sends it from 30 s on with Heartbeat and a ToolUseID of its own,
// ParentToolUseID being the real call (observed on 2.1.329).
type ToolProgressMessage struct {
	Common
	ToolUseID          string         `json:"tool_use_id,omitempty"`
	ToolName           string         `json:"tool_name,omitempty"`
	ElapsedTimeSeconds float64        `json:"elapsed_time_seconds"`
	TaskID             string         `json:"task_id,omitempty"`
	Heartbeat          bool           `json:"heartbeat,omitempty"`
	SubagentType       string         `json:"subagent_type,omitempty"`
	SubagentRetry      *SubagentRetry `json:"subagent_retry,omitempty"`
}

func (*ToolProgressMessage) wire() (string, string) { return "tool_progress", "" }

// SubagentRetry is a retry of the model's API inside a subagent.
type SubagentRetry struct {
	AgentID       string `json:"agent_id"`
	Attempt       int    `json:"attempt"`
	MaxRetries    int    `json:"max_retries"`
	RetryDelayMS  Millis `json:"retry_delay_ms"`
	ErrorStatus   int    `json:"error_status,omitempty"`
	ErrorCategory string `json:"error_category"`
}

// ToolUseSummaryMessage sums up several tool calls in one line of text.
type ToolUseSummaryMessage struct {
	Common
	Summary             string   `json:"summary"`
	PrecedingToolUseIDs []string `json:"preceding_tool_use_ids"`
	Timestamp           string   `json:"timestamp,omitempty"` // RFC 3339
}

func (*ToolUseSummaryMessage) wire() (string, string) { return "tool_use_summary", "" }

// AuthStatusMessage reports a login that is under way.
type AuthStatusMessage struct {
	Common
	IsAuthenticating bool     `json:"isAuthenticating"`
	Output           []string `json:"output"`
	Error            string   `json:"error,omitempty"`
}

func (*AuthStatusMessage) wire() (string, string) { return "auth_status", "" }

// RateLimitMessage is rate_limit_event: the limits of a subscription changed.
type RateLimitMessage struct {
	Common
	Info RateLimitInfo `json:"rate_limit_info"`
}

func (*RateLimitMessage) wire() (string, string) { return "rate_limit_event", "" }

// RateLimitInfo is the state of a subscription's limits, as Claude's types
// declare it. ResetsAt and OverageResetsAt are seconds since the Unix epoch.
type RateLimitInfo struct {
	Status                          string  `json:"status"` // allowed, allowed_warning, rejected
	ResetsAt                        float64 `json:"resetsAt,omitempty"`
	RateLimitType                   string  `json:"rateLimitType,omitempty"` // five_hour, seven_day, overage, …
	Utilization                     float64 `json:"utilization,omitempty"`
	OverageStatus                   string  `json:"overageStatus,omitempty"`
	OverageResetsAt                 float64 `json:"overageResetsAt,omitempty"`
	OverageDisabledReason           string  `json:"overageDisabledReason,omitempty"`
	IsUsingOverage                  bool    `json:"isUsingOverage,omitempty"`
	OverageInUse                    bool    `json:"overageInUse,omitempty"`
	SurpassedThreshold              float64 `json:"surpassedThreshold,omitempty"`
	LimitScope                      string  `json:"limitScope,omitempty"`
	ErrorCode                       string  `json:"errorCode,omitempty"`
	CanUserPurchaseCredits          bool    `json:"canUserPurchaseCredits,omitempty"`
	HasChargeableSavedPaymentMethod bool    `json:"hasChargeableSavedPaymentMethod,omitempty"`
}

// ConversationResetMessage says that the history was dropped; the session id
// changes with it.
type ConversationResetMessage struct {
	Common
	NewConversationID string `json:"new_conversation_id"`
	Trigger           string `json:"trigger,omitempty"` // clear, plan_mode_exit, fresh_session, …
	UserMessageUUID   string `json:"user_message_uuid,omitempty"`
	Timestamp         string `json:"timestamp,omitempty"` // RFC 3339
	// UserMessageFromHuman: a person typed the command that reset it.
	UserMessageFromHuman bool `json:"user_message_from_human,omitempty"`
}

func (*ConversationResetMessage) wire() (string, string) { return "conversation_reset", "" }

// PromptSuggestionMessage is a guess at the next prompt, after a result.
type PromptSuggestionMessage struct {
	Common
	Suggestion string `json:"suggestion"`
}

func (*PromptSuggestionMessage) wire() (string, string) { return "prompt_suggestion", "" }

// The states of a [CommandLifecycleMessage].
const (
	LifecycleQueued    = "queued"
	LifecycleStarted   = "started"
	LifecycleCompleted = "completed"
	LifecycleCancelled = "cancelled"
	// LifecycleDiscarded and LifecycleRefused also end a line that was never
	// started. Declared by Claude Code 2.1.329, the first by Qoder's SDK, too.
	LifecycleDiscarded = "discarded"
	LifecycleRefused   = "refused"
)

// CommandLifecycleMessage follows one user line that has a uuid. A line whose
// uuid was seen before is completed without being started, and brings no
// result (observed on Claude Code 2.1.329).
type CommandLifecycleMessage struct {
	Common
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"`
	// Of a line that the agent wrote for itself: a scheduled wakeup. The time
	// is milliseconds since the Unix epoch.
	WakeupSource string  `json:"wakeup_source,omitempty"`
	ScheduledFor float64 `json:"scheduled_for,omitempty"`
	RanAhead     bool    `json:"ran_ahead,omitempty"`
}

func (*CommandLifecycleMessage) wire() (string, string) { return "command_lifecycle", "" }

// ActiveGoalMessage is Claude's active_goal; a nil Value means there is none.
type ActiveGoalMessage struct {
	Common
	Value *ActiveGoal `json:"value"`
}

func (*ActiveGoalMessage) wire() (string, string) { return "active_goal", "" }

// ActiveGoal is a condition that the agent works towards.
type ActiveGoal struct {
	Condition     string  `json:"condition"`
	Iterations    int     `json:"iterations"`
	SetAt         float64 `json:"set_at"` // ms since the Unix epoch
	TokensAtStart int64   `json:"tokens_at_start"`
	LastReason    string  `json:"last_reason,omitempty"`
}

// CloudAgentEventMessage is an event of Qoder's cloud runtime.
type CloudAgentEventMessage struct {
	Common
	Event string `json:"event"` // user.message, agent.message, session.status_idle, …
	ID    string `json:"id,omitempty"`
	// Data has a shape of its own for each Event.
	Data json.RawMessage `json:"data,omitempty"`
}

func (*CloudAgentEventMessage) wire() (string, string) { return "cloud_agent_event", "" }

// TranscriptMirrorMessage hands transcript lines to the host's store.
type TranscriptMirrorMessage struct {
	Common
	FilePath string `json:"filePath,omitempty"`
	// Entries are lines of the agent's transcript format.
	Entries []json.RawMessage `json:"entries,omitempty"`
}

func (*TranscriptMirrorMessage) wire() (string, string) { return "transcript_mirror", "" }

// StreamlinedTextMessage is text for another output mode. The vendors' SDKs
// keep it from their users.
type StreamlinedTextMessage struct {
	Common
	Text string `json:"text,omitempty"`
}

func (*StreamlinedTextMessage) wire() (string, string) { return "streamlined_text", "" }

// StreamlinedToolUseSummaryMessage belongs to the same output mode. Its fields
// have not been observed, see Raw.
type StreamlinedToolUseSummaryMessage struct{ Common }

func (*StreamlinedToolUseSummaryMessage) wire() (string, string) {
	return "streamlined_tool_use_summary", ""
}

// typeKeepAliveAlias is what Qoder's SDK takes as TypeKeepAlive.
const typeKeepAliveAlias = "keepalive"

// KeepAliveMessage carries nothing. A host swallows it.
type KeepAliveMessage struct {
	Common
	alias bool
}

func (m *KeepAliveMessage) wire() (string, string) {
	if m.alias {
		return typeKeepAliveAlias, ""
	}
	return TypeKeepAlive, ""
}
