package protocol

import (
	"encoding/json"
	"strings"
)

// Values of [ResultMessage.Subtype].
const (
	ResultSuccess                 = "success"
	ResultErrorDuringExecution    = "error_during_execution"
	ResultErrorMaxTurns           = "error_max_turns"
	ResultErrorMaxBudget          = "error_max_budget_usd"
	ResultErrorMaxStructuredRetry = "error_max_structured_output_retries"
)

// ResultMessage ends a turn. One user message can bring several, and the
// agent starts turns by itself; see UserMessageUUID and Origin.
//
// Subtype success and IsError do come together: an API error that retries did
// not overcome (observed on Claude Code 2.1.329 and qodercli 1.1.52). Ask
// [ResultMessage.Failed].
type ResultMessage struct {
	Common
	// Subtype is success or one of the error kinds.
	Subtype string `json:"-"`
	IsError bool   `json:"is_error"`
	// Result is the final text; only with subtype success.
	Result string `json:"result,omitempty"`
	// Errors describes what went wrong; only with an error subtype. For
	// error_during_execution they can be diagnostics of the agent, which are not for
	// users: those that begin with [ede_diagnostic] (observed on Claude Code 2.1.329
	// and 2.1.197, in an interrupted turn) or [session_crash] (not observed; found in
	// the program of 2.1.329, which leaves both out of what it shows itself).
	// [ResultMessage.Text] leaves them out.
	Errors []string `json:"errors,omitempty"`
	// TerminalReason is completed, api_error, aborted_streaming,
	// aborted_tools, max_turns, budget_exhausted, tool_deferred,
	// hook_stopped, prompt_too_long, …; "" for local commands.
	TerminalReason string `json:"terminal_reason,omitempty"`
	StopReason     string `json:"stop_reason,omitempty"`
	APIErrorStatus int    `json:"api_error_status,omitempty"`
	APIErrorType   string `json:"api_error_type,omitempty"`
	// APIError is the kind of a failure of the model's API that the agent could
	// tell, such as connection_failed, stream_idle_timeout or
	// usage_limit_reached; "" for other failures, such as the agent's own
	// time-out (observed on Claude Code 2.1.329).
	APIError string `json:"api_error,omitempty"`
	// ErrorCode is Qoder's, a number on the wire.
	ErrorCode            int    `json:"error_code,omitempty"`
	StartupFailureReason string `json:"startup_failure_reason,omitempty"`
	// LocalCommand is the slash command that made the turn without a model.
	LocalCommand string `json:"local_command,omitempty"`
	ResumeReason string `json:"resume_reason,omitempty"`

	// StructuredOutput is the value that the model gave for the JSON schema
	// of the session; nil if it never did, even if Subtype is success.
	StructuredOutput json.RawMessage  `json:"structured_output,omitempty"`
	DeferredToolUse  *DeferredToolUse `json:"deferred_tool_use,omitempty"`

	// NumTurns counts the calls of the model and the tool results.
	NumTurns int `json:"num_turns"`
	// ResultIndex counts the results of this process from 0.
	ResultIndex     int `json:"result_index,omitempty"`
	QueuedTurnCount int `json:"queued_turn_count,omitempty"`
	// UserMessageUUID is the user line that the turn answers, if it had a
	// uuid; UserMessageUUIDs are all that the turn took up.
	UserMessageUUID  string   `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"`
	// Origin is set on a turn that no user line started.
	Origin *Origin `json:"origin,omitempty"`

	// TotalCostUSD is the cost of the whole session so far, in US dollars.
	TotalCostUSD float64 `json:"total_cost_usd"`
	// TotalCredits is Qoder's.
	TotalCredits float64 `json:"total_credits,omitempty"`
	// Usage is the main loop's in this turn.
	Usage Usage `json:"usage"`
	// ModelUsage is that of the whole session so far, by model;
	// ModelUsageSinceLastResult that of this turn.
	ModelUsage                map[string]ModelUsage `json:"modelUsage,omitempty"`
	ModelUsageSinceLastResult map[string]ModelUsage `json:"model_usage_since_last_result,omitempty"`
	PermissionDenials         []PermissionDenial    `json:"permission_denials"`
	SubagentStats             *SubagentStats        `json:"subagent_stats,omitempty"`
	SafetyStops               int                   `json:"safety_stops,omitempty"`
	CredentialExpiresAt       string                `json:"credential_expires_at,omitempty"` // RFC 3339
	PolicyAnswer              string                `json:"policy_answer,omitempty"`
	PolicyAnswerReason        string                `json:"policy_answer_reason,omitempty"`
	// Why a turn failed, of those reasons that have a key of their own.
	MessageUndelivered       string             `json:"message_undelivered,omitempty"` // session_not_opened, send_failed
	InvalidConfigFile        *InvalidConfigFile `json:"invalid_config_file,omitempty"`
	InterruptedByShutdown    bool               `json:"interrupted_by_shutdown,omitempty"`
	StoppedByPermissionCheck bool               `json:"stopped_by_permission_check,omitempty"`
	FastMode

	Timings

	// BackgroundTasks are the background tasks that lived when the result came.
	// In the result of sdk.Run they are those that still lived when Run stopped
	// waiting. The host adds them.
	BackgroundTasks []BackgroundTask `json:"-"`
}

func (m *ResultMessage) wire() (string, string) { return "result", m.Subtype }

// Failed reports whether the turn ended in an error of any kind.
func (m *ResultMessage) Failed() bool {
	return m.IsError || m.Subtype != ResultSuccess
}

// Text returns the result's text, or its errors joined by newlines, without the
// agent's diagnostics. An interrupted turn as a rule has neither: "".
func (m *ResultMessage) Text() string {
	if m.Result != "" {
		return m.Result
	}
	var texts []string
	for _, e := range m.Errors {
		if !diagnostic(e) {
			texts = append(texts, e)
		}
	}
	return strings.Join(texts, "\n")
}

func diagnostic(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[ede_diagnostic]") || strings.HasPrefix(text, "[session_crash]")
}

// Interrupted reports whether the turn ended because it was interrupted:
// TerminalReason is aborted_streaming or aborted_tools (observed on Claude Code
// 2.1.329).
func (m *ResultMessage) Interrupted() bool {
	return strings.HasPrefix(m.TerminalReason, "aborted_")
}

// InvalidConfigFile is a configuration that could not be read, which kept the
// agent from starting.
type InvalidConfigFile struct {
	Path           string `json:"path"`
	IsGlobal       bool   `json:"is_global"`
	BackupSearched bool   `json:"backup_searched"`
	BackupPath     string `json:"backup_path,omitempty"`
}

// Timings are a result's measured times. Those that end in WallMS are
// milliseconds since the Unix epoch.
type Timings struct {
	DurationMS                 Millis  `json:"duration_ms"`
	DurationAPIMS              Millis  `json:"duration_api_ms"`
	TTFTMS                     Millis  `json:"ttft_ms,omitempty"`
	TTFTStreamMS               Millis  `json:"ttft_stream_ms,omitempty"`
	TimeToRequestMS            Millis  `json:"time_to_request_ms,omitempty"`
	TimeToRequestFromSpawnMS   Millis  `json:"time_to_request_from_spawn_ms,omitempty"`
	RequestSentWallMS          float64 `json:"request_sent_wall_ms,omitempty"`
	FirstContentFrameMS        Millis  `json:"first_content_frame_ms,omitempty"`
	FirstRequestInputTokens    int64   `json:"first_request_input_tokens,omitempty"`
	FirstRequestCacheReadInput int64   `json:"first_request_cache_read_input_tokens,omitempty"`
	FirstStreamPostMS          Millis  `json:"first_stream_post_ms,omitempty"`
	FirstStreamPostAckMS       Millis  `json:"first_stream_post_ack_ms,omitempty"`
	FirstStreamPostQueueWaitMS Millis  `json:"first_stream_post_queue_wait_ms,omitempty"`
	FirstStreamPostQueuedAfter string  `json:"first_stream_post_queued_behind,omitempty"`
	FirstStreamPostWallMS      float64 `json:"first_stream_post_wall_ms,omitempty"`
	FirstTextPostMS            Millis  `json:"first_text_post_ms,omitempty"`
	FirstTextPostQueueWaitMS   Millis  `json:"first_text_post_queue_wait_ms,omitempty"`
	FirstTextPostQueuedAfter   string  `json:"first_text_post_queued_behind,omitempty"`
	FirstTextPostWallMS        float64 `json:"first_text_post_wall_ms,omitempty"`
	WarmSpareClaimed           bool    `json:"warm_spare_claimed,omitempty"`
	TimeOriginMS               float64 `json:"time_origin_ms,omitempty"`
}

// FastMode is the state of the agent's fast mode.
type FastMode struct {
	// FastModeState is off, cooldown or on; "" if unknown.
	FastModeState          string `json:"fast_mode_state,omitempty"`
	FastModeDisabledReason string `json:"fast_mode_disabled_reason,omitempty"`
}

// ModelUsage is what one model used.
type ModelUsage struct {
	InputTokens                         int64   `json:"inputTokens"`
	OutputTokens                        int64   `json:"outputTokens"`
	ThinkingTokens                      int64   `json:"thinkingTokens,omitempty"`
	CacheReadInputTokens                int64   `json:"cacheReadInputTokens"`
	CacheCreationInputTokens            int64   `json:"cacheCreationInputTokens"`
	CacheCreationEphemeral1hInputTokens int64   `json:"cacheCreationEphemeral1hInputTokens,omitempty"`
	CacheCreationEphemeral5mInputTokens int64   `json:"cacheCreationEphemeral5mInputTokens,omitempty"`
	WebSearchRequests                   int64   `json:"webSearchRequests"`
	CostUSD                             float64 `json:"costUSD"`
	ContextWindow                       int64   `json:"contextWindow"`
	MaxOutputTokens                     int64   `json:"maxOutputTokens"`
	CanonicalModel                      string  `json:"canonicalModel,omitempty"`
	Provider                            string  `json:"provider,omitempty"`
	CostBasis                           string  `json:"costBasis,omitempty"` // list, managed, unknown
	// Credits is Qoder's, of the whole session so far.
	Credits float64 `json:"credits,omitempty"`
}

// PermissionDenial is a tool call that was denied in the turn.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	ToolInput json.RawMessage `json:"tool_input,omitempty"`
	// The rest is Qoder's, as its SDK declares it.
	Message            string `json:"message,omitempty"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
}

// DeferredToolUse is the tool call that a hook deferred, which ended the turn.
type DeferredToolUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
}

// SubagentStats counts the subagents of the turn.
type SubagentStats struct {
	Spawned             int               `json:"spawned"`
	Requested           SubagentRequested `json:"requested"`
	StartedInBackground int               `json:"started_in_background"`
	MaxDepth            int               `json:"max_depth"`
	SpawnedBySubagents  int               `json:"spawned_by_subagents"`
	Completed           int               `json:"completed"`
	Failed              int               `json:"failed"`
	Killed              SubagentKilled    `json:"killed"`
	Refused             SubagentRefused   `json:"refused"`
	ByType              map[string]int    `json:"by_type,omitempty"`
}

// SubagentRequested splits the spawns by what the model asked for.
type SubagentRequested struct {
	Background int `json:"background"`
	Foreground int `json:"foreground"`
	Unset      int `json:"unset"`
}

// SubagentKilled splits the kills by who asked for them.
type SubagentKilled struct {
	Parent int `json:"parent"`
	User   int `json:"user"`
	System int `json:"system"`
}

// SubagentRefused splits the refused spawns by why.
type SubagentRefused struct {
	DepthLimit       int `json:"depth_limit"`
	ConcurrencyLimit int `json:"concurrency_limit"`
	Budget           int `json:"budget"`
}
