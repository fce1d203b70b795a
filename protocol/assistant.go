package protocol

import "encoding/json"

// AssistantMessage is a message of the model. Claude Code writes one line per
// content block, all with the same Message.ID, no StopReason and usage that
// is not final (observed on 2.1.329).
type AssistantMessage struct {
	Common
	Message APIMessage `json:"message"`
	// RequestID is the model API's id of the request.
	RequestID string `json:"request_id,omitempty"`
	Timestamp string `json:"timestamp,omitempty"` // RFC 3339

	// Error is set on a synthetic message that stands for a failed call:
	// authentication_failed, billing_error, rate_limit, overloaded,
	// invalid_request, model_not_found, server_error, max_output_tokens,
	// unknown, …
	Error             string `json:"error,omitempty"`
	IsAPIErrorMessage bool   `json:"is_api_error_message,omitempty"`
	// QoderAPIError is IsAPIErrorMessage as Qoder's SDK spells it.
	QoderAPIError  bool   `json:"isApiErrorMessage,omitempty"`
	APIErrorStatus int    `json:"api_error_status,omitempty"`
	APIErrorType   string `json:"api_error_type,omitempty"`
	// APIError names an error of the agent's own, such as max_output_tokens.
	APIError string `json:"api_error,omitempty"`

	// Aborted marks the part that an interrupted stream had reached.
	Aborted bool `json:"aborted,omitempty"`
	// Historical marks replayed history.
	Historical                    bool     `json:"historical,omitempty"`
	RefusedMessageID              string   `json:"refused_message_id,omitempty"`
	ResumeReason                  string   `json:"resume_reason,omitempty"`
	ResumedFromIncompleteThinking bool     `json:"resumed_from_incomplete_thinking,omitempty"`
	Supersedes                    []string `json:"supersedes,omitempty"` // uuids
	UserMessageUUID               string   `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs              []string `json:"user_message_uuids,omitempty"`
	ThinkingDurationMS            Millis   `json:"thinking_duration_ms,omitempty"`
	ThinkingDisplay               string   `json:"thinking_display,omitempty"`

	SubagentFields
	ToolUseMeta []ToolUseMeta `json:"tool_use_meta,omitempty"`

	// The output of a local slash command such as /context or /usage.
	LocalCommandSource  string               `json:"local_command_source,omitempty"`
	LocalCommandRun     *LocalCommandRun     `json:"local_command_run,omitempty"`
	LocalCommandOutcome *LocalCommandOutcome `json:"local_command_outcome,omitempty"`
	ContextUsage        *ContextUsageSummary `json:"context_usage,omitempty"`
	UsageReport         *UsageSummary        `json:"usage_report,omitempty"`
}

func (*AssistantMessage) wire() (string, string) { return "assistant", "" }

// SubagentFields are on the lines of a subagent, next to ParentToolUseID.
type SubagentFields struct {
	// AgentID is the subagent, the same as its task id.
	AgentID         string `json:"agent_id,omitempty"`
	SubagentType    string `json:"subagent_type,omitempty"`
	TaskDescription string `json:"task_description,omitempty"`
}

// ToolUseMeta names an MCP tool call for display.
type ToolUseMeta struct {
	ID                string `json:"id"`
	ToolName          string `json:"tool_name,omitempty"`
	DisplayName       string `json:"display_name,omitempty"`
	ServerDisplayName string `json:"server_display_name,omitempty"`
	ServerID          string `json:"server_id,omitempty"`
	IconURL           string `json:"icon_url,omitempty"`
}

// LocalCommandRun is the slash command that a line is the output of.
type LocalCommandRun struct {
	Command string `json:"command"`
	Args    string `json:"args"`
	Plugin  string `json:"plugin,omitempty"`
}

// LocalCommandOutcome says how a slash command ended (observed on Claude Code
// 2.1.329).
type LocalCommandOutcome struct {
	Kind string `json:"kind"` // failed, …
}

// APIMessage is the message object of the model's API.
type APIMessage struct {
	ID      string  `json:"id,omitempty"`
	Type    string  `json:"type,omitempty"` // "message"
	Role    string  `json:"role"`
	Model   string  `json:"model,omitempty"` // "<synthetic>" if no model wrote it
	Content Content `json:"content"`

	// StopReason is end_turn, tool_use, max_tokens, stop_sequence, refusal,
	// pause_turn, …; "" while the message is not complete.
	StopReason   string          `json:"stop_reason,omitempty"`
	StopSequence string          `json:"stop_sequence,omitempty"`
	StopDetails  json.RawMessage `json:"stop_details,omitempty"`
	Usage        *Usage          `json:"usage,omitempty"`

	// Objects of the API that are passed on as they came.
	Container         json.RawMessage `json:"container,omitempty"`
	ContextManagement json.RawMessage `json:"context_management,omitempty"`
	Diagnostics       json.RawMessage `json:"diagnostics,omitempty"`
}

// Usage is the API's count of tokens.
type Usage struct {
	InputTokens              int64          `json:"input_tokens"`
	OutputTokens             int64          `json:"output_tokens"`
	CacheCreationInputTokens int64          `json:"cache_creation_input_tokens,omitempty"`
	CacheReadInputTokens     int64          `json:"cache_read_input_tokens,omitempty"`
	CacheCreation            *CacheCreation `json:"cache_creation,omitempty"`
	ServerToolUse            *ServerToolUse `json:"server_tool_use,omitempty"`
	OutputTokensDetails      *OutputTokens  `json:"output_tokens_details,omitempty"`
	ServiceTier              string         `json:"service_tier,omitempty"`
	InferenceGeo             string         `json:"inference_geo,omitempty"`
	Speed                    string         `json:"speed,omitempty"`
	// Qoder's: what the request was metered at, after and before discounts,
	// and the share of the context window that is used, 0 to 1.
	Credits           float64 `json:"credits,omitempty"`
	OriginalCredits   float64 `json:"original_credits,omitempty"`
	Billable          *bool   `json:"billable,omitempty"`
	ContextUsageRatio float64 `json:"context_usage_ratio,omitempty"`
	RequestID         string  `json:"request_id,omitempty"`
	// Iterations and FallbackCredit are the API's own, as they came.
	Iterations     json.RawMessage `json:"iterations,omitempty"`
	FallbackCredit json.RawMessage `json:"fallback_credit,omitempty"`
}

// CacheCreation splits the tokens written to the prompt cache by lifetime.
type CacheCreation struct {
	Ephemeral1hInputTokens int64 `json:"ephemeral_1h_input_tokens"`
	Ephemeral5mInputTokens int64 `json:"ephemeral_5m_input_tokens"`
}

// ServerToolUse counts the calls of tools that the API runs.
type ServerToolUse struct {
	WebSearchRequests int64 `json:"web_search_requests"`
	WebFetchRequests  int64 `json:"web_fetch_requests"`
}

// OutputTokens splits the output tokens.
type OutputTokens struct {
	ThinkingTokens int64 `json:"thinking_tokens"`
}
