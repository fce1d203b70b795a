package protocol

import "encoding/json"

// ToolProgressMessage is a sign of life of a tool that runs long. Claude Code sends it
// from 30 s on with Heartbeat and its own ToolUseID; ParentToolUseID is the real call
// (observed on 2.1.329).
type ToolProgressMessage struct {
	Common
	ToolUseID          string         `json:"tool_use_id,omitempty"`    // the call, or CALL-heartbeat-N with Heartbeat
	ToolName           string         `json:"tool_name,omitempty"`      // as in [ToolUseBlock]
	ElapsedTimeSeconds float64        `json:"elapsed_time_seconds"`     // since the call began
	TaskID             string         `json:"task_id,omitempty"`        // of the task that the call waits for; "": none
	Heartbeat          bool           `json:"heartbeat,omitempty"`      // nothing new but the time
	SubagentType       string         `json:"subagent_type,omitempty"`  // of a subagent's call; "" for the main agent
	SubagentRetry      *SubagentRetry `json:"subagent_retry,omitempty"` // nil: no retry
}

func (*ToolProgressMessage) wire() (string, string) { return "tool_progress", "" }

// SubagentRetry is a retry of the model's API inside a subagent.
type SubagentRetry struct {
	AgentID       string `json:"agent_id"`               // as SubagentFields.AgentID
	Attempt       int    `json:"attempt"`                // from 1
	MaxRetries    int    `json:"max_retries"`            // how often the call is made again at most
	RetryDelayMS  Millis `json:"retry_delay_ms"`         // until the next attempt, in milliseconds
	ErrorStatus   int    `json:"error_status,omitempty"` // HTTP; 0: none
	ErrorCategory string `json:"error_category"`         // as APIRetryMessage.Error
}

// ToolUseSummaryMessage sums up several tool calls in one line of text.
type ToolUseSummaryMessage struct {
	Common
	Summary             string   `json:"summary"`                // for people
	PrecedingToolUseIDs []string `json:"preceding_tool_use_ids"` // the calls that it sums up
	Timestamp           string   `json:"timestamp,omitempty"`    // RFC 3339
}

func (*ToolUseSummaryMessage) wire() (string, string) { return "tool_use_summary", "" }

// AuthStatusMessage reports a login that is under way.
type AuthStatusMessage struct {
	Common
	IsAuthenticating bool     `json:"isAuthenticating"` // false: the login has ended
	Output           []string `json:"output"`           // lines for people, such as a URL to open
	Error            string   `json:"error,omitempty"`  // for people; "": no error
}

func (*AuthStatusMessage) wire() (string, string) { return "auth_status", "" }

// RateLimitMessage is rate_limit_event: the limits of a subscription changed.
type RateLimitMessage struct {
	Common
	Info RateLimitInfo `json:"rate_limit_info"` // the state from now on
}

func (*RateLimitMessage) wire() (string, string) { return "rate_limit_event", "" }

// RateLimitInfo is the state of a subscription's limits, as Claude's types
// declare it. ResetsAt and OverageResetsAt are seconds since the Unix epoch.
type RateLimitInfo struct {
	Status                          string  `json:"status"`                                    // allowed, allowed_warning, rejected
	ResetsAt                        float64 `json:"resetsAt,omitempty"`                        // 0: not sent
	RateLimitType                   string  `json:"rateLimitType,omitempty"`                   // five_hour, seven_day, overage, …
	Utilization                     float64 `json:"utilization,omitempty"`                     // share of the limit that is used, 0 to 1 and above; 0: not sent
	OverageStatus                   string  `json:"overageStatus,omitempty"`                   // as Status, for usage beyond the subscription; "": none
	OverageResetsAt                 float64 `json:"overageResetsAt,omitempty"`                 // 0: not sent
	OverageDisabledReason           string  `json:"overageDisabledReason,omitempty"`           // org_level_disabled, overage_not_provisioned, …; "": none
	IsUsingOverage                  bool    `json:"isUsingOverage,omitempty"`                  // the subscription's limit is used up
	OverageInUse                    bool    `json:"overageInUse,omitempty"`                    // calls are charged beyond the subscription
	SurpassedThreshold              float64 `json:"surpassedThreshold,omitempty"`              // share that was passed, 0 to 1; 0: none
	LimitScope                      string  `json:"limitScope,omitempty"`                      // service, channel, group_pool; "": the member's own limit
	ErrorCode                       string  `json:"errorCode,omitempty"`                       // credits_required; "": none
	CanUserPurchaseCredits          bool    `json:"canUserPurchaseCredits,omitempty"`          // the person may buy credits
	HasChargeableSavedPaymentMethod bool    `json:"hasChargeableSavedPaymentMethod,omitempty"` // buying needs no new payment method
}

// ConversationResetMessage says that the history was dropped; the session id
// changes with it.
type ConversationResetMessage struct {
	Common
	NewConversationID string `json:"new_conversation_id"`         // the session id from now on
	Trigger           string `json:"trigger,omitempty"`           // clear, plan_mode_exit, fresh_session, …
	UserMessageUUID   string `json:"user_message_uuid,omitempty"` // the user line with /clear; "": none
	Timestamp         string `json:"timestamp,omitempty"`         // RFC 3339
	// UserMessageFromHuman: a person typed the command that reset it.
	UserMessageFromHuman bool `json:"user_message_from_human,omitempty"`
}

func (*ConversationResetMessage) wire() (string, string) { return "conversation_reset", "" }

// PromptSuggestionMessage is a guess at the next prompt, after a result.
type PromptSuggestionMessage struct {
	Common
	Suggestion string `json:"suggestion"` // text for the input line
}

func (*PromptSuggestionMessage) wire() (string, string) { return "prompt_suggestion", "" }

// The states of a [CommandLifecycleMessage] after "queued".
const (
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
// result (observed on Claude Code 2.1.329). Troupe gives every user line a uuid, so
// this message comes for each; it comes through Claude's SDK only for lines
// whose writer gave a uuid.
type CommandLifecycleMessage struct {
	Common
	CommandUUID string `json:"command_uuid"` // the uuid of the user line
	State       string `json:"state"`        // queued, started, completed, cancelled, discarded, …
	// Of a line that the agent wrote for itself: a scheduled wakeup. The time
	// is milliseconds since the Unix epoch.
	WakeupSource string  `json:"wakeup_source,omitempty"` // loop_wakeup, schedule_wakeup; "" for a line of the host
	ScheduledFor float64 `json:"scheduled_for,omitempty"` // only with loop_wakeup
	RanAhead     bool    `json:"ran_ahead,omitempty"`     // plugin hooks of the command have run before its turn
}

func (*CommandLifecycleMessage) wire() (string, string) { return "command_lifecycle", "" }

// ActiveGoalMessage is Claude's active_goal; a nil Value means that no goal is set.
type ActiveGoalMessage struct {
	Common
	Value *ActiveGoal `json:"value"` // replaces the goal known before
}

func (*ActiveGoalMessage) wire() (string, string) { return "active_goal", "" }

// ActiveGoal is a condition that the agent works towards.
type ActiveGoal struct {
	Condition     string  `json:"condition"`             // in words; an evaluator checks it
	Iterations    int     `json:"iterations"`            // how often it was checked
	SetAt         float64 `json:"set_at"`                // ms since the Unix epoch
	TokensAtStart int64   `json:"tokens_at_start"`       // tokens of the session when the goal was set
	LastReason    string  `json:"last_reason,omitempty"` // why it was not reached at the last check; "": none yet
}

// CloudAgentEventMessage is an event of Qoder's cloud runtime.
type CloudAgentEventMessage struct {
	Common
	Event string `json:"event"`        // user.message, agent.message, session.status_idle, …
	ID    string `json:"id,omitempty"` // where a new stream can begin, stream.afterId in Qoder's SDK; "": none
	// The shape of Data depends on Event.
	Data json.RawMessage `json:"data,omitempty"`
}

func (*CloudAgentEventMessage) wire() (string, string) { return "cloud_agent_event", "" }

// TranscriptMirrorMessage hands transcript lines to the host's store.
type TranscriptMirrorMessage struct {
	Common
	FilePath string `json:"filePath,omitempty"` // the transcript's file, which names project and session
	// Entries are lines of the agent's transcript format.
	Entries []json.RawMessage `json:"entries,omitempty"`
}

func (*TranscriptMirrorMessage) wire() (string, string) { return "transcript_mirror", "" }

// StreamlinedTextMessage is text for another output mode. The vendors' SDKs
// keep it from their users.
type StreamlinedTextMessage struct {
	Common
	Text string `json:"text,omitempty"` // of the model
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
