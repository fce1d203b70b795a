package protocol

import "encoding/json"

// AssistantMessage is a message of the model. Claude Code writes one line per
// content block, all with the same Message.ID, no StopReason and usage that
// is not final (observed on 2.1.329).
type AssistantMessage struct {
	Common
	// Message is the model's message, or the part of it that this line carries:
	// Content usually holds one block.
	Message APIMessage `json:"message"`
	// RequestID is the model API's id of the request.
	RequestID string `json:"request_id,omitempty"`
	Timestamp string `json:"timestamp,omitempty"` // RFC 3339

	// Error is set on a synthetic message that reports a failed call of the model:
	// authentication_failed, billing_error, rate_limit, overloaded,
	// invalid_request, model_not_found, server_error, max_output_tokens,
	// unknown, …
	Error             string `json:"error,omitempty"`
	IsAPIErrorMessage bool   `json:"is_api_error_message,omitempty"` // no model wrote the text: it describes a failed call
	// QoderAPIError is IsAPIErrorMessage as Qoder's SDK spells it.
	QoderAPIError  bool   `json:"isApiErrorMessage,omitempty"`
	APIErrorStatus int    `json:"api_error_status,omitempty"` // HTTP status of the failed call; 0: no response, or no error
	APIErrorType   string `json:"api_error_type,omitempty"`   // the API's error type, such as invalid_request_error or api_error
	// APIError names an error of the agent's own, such as max_output_tokens.
	APIError string `json:"api_error,omitempty"`

	// Aborted marks the part that an interrupted stream had reached.
	Aborted bool `json:"aborted,omitempty"`
	// Historical marks replayed history.
	Historical       bool   `json:"historical,omitempty"`
	RefusedMessageID string `json:"refused_message_id,omitempty"` // API message id of a refused response that this one follows
	// ResumeReason says why the turn continues after a restart of the agent:
	// interrupted_turn, or the host's CLAUDE_CODE_RESUME_REASON. "" for other turns.
	ResumeReason string `json:"resume_reason,omitempty"`
	// ResumedFromIncompleteThinking says that the turn continues inside the thinking
	// block that the previous message broke off.
	ResumedFromIncompleteThinking bool     `json:"resumed_from_incomplete_thinking,omitempty"`
	Supersedes                    []string `json:"supersedes,omitempty"` // uuids
	// UserMessageUUID is the uuid of the user line that the turn answers, on
	// the first message and on each where the line changes; "" on others, and
	// if the host gave no uuid.
	UserMessageUUID string `json:"user_message_uuid,omitempty"`
	// UserMessageUUIDs are the uuids of all user messages that the turn has included so
	// far, in order, at most 64.
	UserMessageUUIDs   []string `json:"user_message_uuids,omitempty"`
	ThinkingDurationMS Millis   `json:"thinking_duration_ms,omitempty"` // how long the model thought, in milliseconds
	ThinkingDisplay    string   `json:"thinking_display,omitempty"`     // summarized, omitted, highlights, updates, …

	SubagentFields
	ToolUseMeta []ToolUseMeta `json:"tool_use_meta,omitempty"` // one entry for each MCP tool call of the message

	// The output of a local slash command such as /context or /usage.
	// LocalCommandSource is the command's output, between
	// <local-command-stdout> tags.
	LocalCommandSource  string               `json:"local_command_source,omitempty"`
	LocalCommandRun     *LocalCommandRun     `json:"local_command_run,omitempty"`     // which command it was
	LocalCommandOutcome *LocalCommandOutcome `json:"local_command_outcome,omitempty"` // nil: the agent did not send it
	ContextUsage        *ContextUsageSummary `json:"context_usage,omitempty"`         // the figures of /context; nil for other commands
	UsageReport         *UsageSummary        `json:"usage_report,omitempty"`          // the figures of /usage; nil for other commands
}

func (*AssistantMessage) wire() (string, string) { return "assistant", "" }

// SubagentFields are on the lines of a subagent, next to ParentToolUseID.
type SubagentFields struct {
	// AgentID is the subagent, the same as its task id.
	AgentID         string `json:"agent_id,omitempty"`
	SubagentType    string `json:"subagent_type,omitempty"`    // name of the subagent's definition, such as general-purpose
	TaskDescription string `json:"task_description,omitempty"` // the description of the Agent call that started it
}

// ToolUseMeta names an MCP tool call for display.
type ToolUseMeta struct {
	ID                string `json:"id"`                            // id of the [ToolUseBlock] in the same message
	ToolName          string `json:"tool_name,omitempty"`           // the tool's name at its server, without mcp__SERVER__
	DisplayName       string `json:"display_name,omitempty"`        // the tool's title for people, "Echo" for echo
	ServerDisplayName string `json:"server_display_name,omitempty"` // the server's name for people
	ServerID          string `json:"server_id,omitempty"`           // never seen in a recording; meaning not documented
	IconURL           string `json:"icon_url,omitempty"`            // an icon of the tool; never seen in a recording
}

// LocalCommandRun is the slash command that a line is the output of.
type LocalCommandRun struct {
	Command string `json:"command"`          // without the slash: context
	Args    string `json:"args"`             // the text after the command; "" if it was empty
	Plugin  string `json:"plugin,omitempty"` // the plugin that the command belongs to; "" for the agent's own
}

// LocalCommandOutcome says how a slash command ended (observed on Claude Code
// 2.1.329).
type LocalCommandOutcome struct {
	Kind string `json:"kind"` // failed, …
}

// APIMessage is the message object of the model's API.
type APIMessage struct {
	ID      string  `json:"id,omitempty"`    // the API's id, msg_…; all lines of one response share it
	Type    string  `json:"type,omitempty"`  // "message"
	Role    string  `json:"role"`            // assistant or user
	Model   string  `json:"model,omitempty"` // "<synthetic>" if no model wrote it
	Content Content `json:"content"`         // the content blocks in order; a plain string decodes as one [TextBlock]

	// StopReason is end_turn, tool_use, max_tokens, stop_sequence, refusal,
	// pause_turn, …; "" while the message is not complete.
	StopReason   string `json:"stop_reason,omitempty"`
	StopSequence string `json:"stop_sequence,omitempty"` // the sequence that stopped the model, with StopReason stop_sequence
	// StopDetails is more on a refusal: an object with category and
	// explanation; null or absent otherwise.
	StopDetails json.RawMessage `json:"stop_details,omitempty"`
	// Usage is the count of tokens; nil: not sent. It is final only on the
	// message_delta event and in a [ResultMessage].
	Usage *Usage `json:"usage,omitempty"`

	// Objects of the API that are passed on as they came.
	Container         json.RawMessage `json:"container,omitempty"`          // the container of the API's code execution
	ContextManagement json.RawMessage `json:"context_management,omitempty"` // what the API removed from the context
	Diagnostics       json.RawMessage `json:"diagnostics,omitempty"`        // only null was observed (Claude Code 2.1.329)
}

// Usage is the API's count of tokens.
type Usage struct {
	// InputTokens are the input tokens without those read from or written to
	// the prompt cache.
	InputTokens              int64 `json:"input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`                         // output tokens, thinking included
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens,omitempty"` // input tokens written to the prompt cache
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens,omitempty"`     // input tokens read from the prompt cache
	// CacheCreation is CacheCreationInputTokens by lifetime; nil: not sent.
	CacheCreation       *CacheCreation `json:"cache_creation,omitempty"`
	ServerToolUse       *ServerToolUse `json:"server_tool_use,omitempty"`       // nil: not sent
	OutputTokensDetails *OutputTokens  `json:"output_tokens_details,omitempty"` // nil: not sent
	ServiceTier         string         `json:"service_tier,omitempty"`          // the API's service tier, such as standard
	// InferenceGeo is where the API ran the model; "" was observed.
	InferenceGeo string `json:"inference_geo,omitempty"`
	Speed        string `json:"speed,omitempty"` // standard, or fast in the agent's fast mode
	// The following fields are Qoder's: the cost of the request in credits, after and
	// before discounts, and the used share of the context window, from 0 to 1.
	Credits           float64 `json:"credits,omitempty"`
	OriginalCredits   float64 `json:"original_credits,omitempty"`    // credits before discounts
	Billable          *bool   `json:"billable,omitempty"`            // nil: not sent; false: not part of the user's bill
	ContextUsageRatio float64 `json:"context_usage_ratio,omitempty"` // 0 to 1
	RequestID         string  `json:"request_id,omitempty"`          // id of the model request, as in [AssistantMessage]
	// Iterations and FallbackCredit are the API's own, as they came.
	Iterations     json.RawMessage `json:"iterations,omitempty"`
	FallbackCredit json.RawMessage `json:"fallback_credit,omitempty"` // null was observed (Claude Code 2.1.329)
}

// CacheCreation splits the tokens written to the prompt cache by lifetime.
type CacheCreation struct {
	Ephemeral1hInputTokens int64 `json:"ephemeral_1h_input_tokens"` // tokens that stay cached for 1 hour
	Ephemeral5mInputTokens int64 `json:"ephemeral_5m_input_tokens"` // tokens that stay cached for 5 minutes
}

// ServerToolUse counts the calls of tools that the API runs.
type ServerToolUse struct {
	WebSearchRequests int64 `json:"web_search_requests"` // calls of the API's web search
	WebFetchRequests  int64 `json:"web_fetch_requests"`  // calls of the API's web fetch
}

// OutputTokens splits the output tokens.
type OutputTokens struct {
	ThinkingTokens int64 `json:"thinking_tokens"` // the part of the output that was thinking
}
