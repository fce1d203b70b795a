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

// ResultMessage is the result of a turn. One user message can have several results, and
// the agent also starts turns itself; see UserMessageUUID and Origin.
//
// Subtype success and IsError can occur together: an API error that remained after all
// retries (observed on Claude Code 2.1.329 and qodercli 1.1.52). To find out whether the
// turn failed, call [ResultMessage.Failed].
type ResultMessage struct {
	Common
	// Subtype is success or one of the error kinds.
	Subtype string `json:"-"`
	IsError bool   `json:"is_error"` // the turn failed; see [ResultMessage.Failed]
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
	// hook_stopped, prompt_too_long, check_failed (of agent/embedded), …; "" for local commands.
	TerminalReason string `json:"terminal_reason,omitempty"`
	StopReason     string `json:"stop_reason,omitempty"`      // of the last model call, as APIMessage.StopReason; "": none was made
	APIErrorStatus int    `json:"api_error_status,omitempty"` // HTTP status of the call that failed; 0: none
	APIErrorType   string `json:"api_error_type,omitempty"`   // as AssistantMessage.APIErrorType
	// APIError is the kind of a failure of the model's API that the agent could
	// tell, such as connection_failed, stream_idle_timeout or
	// usage_limit_reached; "" for other failures, such as the agent's own
	// time-out (observed on Claude Code 2.1.329).
	APIError string `json:"api_error,omitempty"`
	// ErrorCode is Qoder's, a number on the wire.
	ErrorCode int `json:"error_code,omitempty"`
	// StartupFailureReason is set if the agent ends because it could not start:
	// config_file_invalid, cwd_unavailable, proxy_invalid,
	// session_held_by_background, cli_version_too_old, ….
	StartupFailureReason string `json:"startup_failure_reason,omitempty"`
	// LocalCommand is the slash command that made the turn without a model.
	LocalCommand string `json:"local_command,omitempty"`
	ResumeReason string `json:"resume_reason,omitempty"` // as AssistantMessage.ResumeReason

	// StructuredOutput is the value that the model gave for the JSON schema
	// of the session; nil if it never did, even if Subtype is success.
	StructuredOutput json.RawMessage  `json:"structured_output,omitempty"`
	DeferredToolUse  *DeferredToolUse `json:"deferred_tool_use,omitempty"` // set with TerminalReason tool_deferred

	// NumTurns counts the calls of the model and the tool results.
	NumTurns int `json:"num_turns"`
	// ResultIndex counts the results of this process from 0.
	ResultIndex     int `json:"result_index,omitempty"`
	QueuedTurnCount int `json:"queued_turn_count,omitempty"` // user lines that wait; several may share a turn
	// UserMessageUUID is the user line that the turn answers, if it had a
	// uuid; UserMessageUUIDs are those of all user messages in the turn.
	UserMessageUUID  string   `json:"user_message_uuid,omitempty"`
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"` // in the order in which the turn included them, with UserMessageUUID
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
	ModelUsageSinceLastResult map[string]ModelUsage `json:"model_usage_since_last_result,omitempty"` // nil: not sent
	PermissionDenials         []PermissionDenial    `json:"permission_denials"`                      // of the turn, in order; hooks' denials are included
	SubagentStats             *SubagentStats        `json:"subagent_stats,omitempty"`                // nil: not sent
	// SafetyStops counts the answers of the model that a safety system stopped,
	// in the session so far.
	SafetyStops         int    `json:"safety_stops,omitempty"`
	CredentialExpiresAt string `json:"credential_expires_at,omitempty"` // RFC 3339
	PolicyAnswer        string `json:"policy_answer,omitempty"`         // what the agent knows of its organization's limits
	PolicyAnswerReason  string `json:"policy_answer_reason,omitempty"`  // only with PolicyAnswer
	// The following fields say why a turn failed, for reasons that have their own key.
	MessageUndelivered       string             `json:"message_undelivered,omitempty"`         // session_not_opened, send_failed
	InvalidConfigFile        *InvalidConfigFile `json:"invalid_config_file,omitempty"`         // set with StartupFailureReason config_file_invalid
	InterruptedByShutdown    bool               `json:"interrupted_by_shutdown,omitempty"`     // the shutdown of a hosted worker ended the turn
	StoppedByPermissionCheck bool               `json:"stopped_by_permission_check,omitempty"` // permission mode auto ended the turn by itself
	FastMode

	Timings

	// BackgroundTasks are the background tasks that lived when the result came.
	// In the result of sdk.Run they are those that still lived when Run stopped
	// waiting. The host adds them.
	BackgroundTasks []BackgroundTask `json:"-"`
	// Recovered says that the agent died in the turn and that another process finished it
	// (session.RecoverContinue). Cost and usage are those of the process that finished it.
	// The host sets it.
	Recovered bool `json:"-"`
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
	Path           string `json:"path"`                  // on the agent's machine
	IsGlobal       bool   `json:"is_global"`             // the agent's global file, the only one that has backups
	BackupSearched bool   `json:"backup_searched"`       // false: it is not known whether there is a backup
	BackupPath     string `json:"backup_path,omitempty"` // the backup that Errors names; "": none
}

// Timings are a result's measured times. Those that end in WallMS are
// milliseconds since the Unix epoch.
type Timings struct {
	DurationMS                 Millis  `json:"duration_ms"`                                     // of the whole turn, in milliseconds
	DurationAPIMS              Millis  `json:"duration_api_ms"`                                 // of the model's calls in it, in milliseconds
	TTFTMS                     Millis  `json:"ttft_ms,omitempty"`                               // from the turn's start to the model's first token
	TTFTStreamMS               Millis  `json:"ttft_stream_ms,omitempty"`                        // from the turn's start to the first stream event
	TimeToRequestMS            Millis  `json:"time_to_request_ms,omitempty"`                    // from the turn's start to the first model call
	TimeToRequestFromSpawnMS   Millis  `json:"time_to_request_from_spawn_ms,omitempty"`         // from the agent's start to the first model call
	RequestSentWallMS          float64 `json:"request_sent_wall_ms,omitempty"`                  // when the first model call was made
	FirstContentFrameMS        Millis  `json:"first_content_frame_ms,omitempty"`                // from the turn's start to the first line with content
	FirstRequestInputTokens    int64   `json:"first_request_input_tokens,omitempty"`            // tokens of the first model call
	FirstRequestCacheReadInput int64   `json:"first_request_cache_read_input_tokens,omitempty"` // of these, tokens read from the prompt cache
	FirstStreamPostMS          Millis  `json:"first_stream_post_ms,omitempty"`                  // of a remote session: to the first event sent
	FirstStreamPostAckMS       Millis  `json:"first_stream_post_ack_ms,omitempty"`              // of a remote session: to its acknowledgement
	FirstStreamPostQueueWaitMS Millis  `json:"first_stream_post_queue_wait_ms,omitempty"`       // of a remote session: how long it was queued
	FirstStreamPostQueuedAfter string  `json:"first_stream_post_queued_behind,omitempty"`       // durable_post, ephemeral_post, retry_backoff, hold, none
	FirstStreamPostWallMS      float64 `json:"first_stream_post_wall_ms,omitempty"`             // of a remote session: when it was sent
	FirstTextPostMS            Millis  `json:"first_text_post_ms,omitempty"`                    // of a remote session: to the first text sent
	FirstTextPostQueueWaitMS   Millis  `json:"first_text_post_queue_wait_ms,omitempty"`         // of a remote session: how long it was queued
	FirstTextPostQueuedAfter   string  `json:"first_text_post_queued_behind,omitempty"`         // as FirstStreamPostQueuedAfter
	FirstTextPostWallMS        float64 `json:"first_text_post_wall_ms,omitempty"`               // of a remote session: when it was sent
	WarmSpareClaimed           bool    `json:"warm_spare_claimed,omitempty"`                    // the process had been parked, see [ClaimSessionRequest]
	TimeOriginMS               float64 `json:"time_origin_ms,omitempty"`                        // start of the process, milliseconds since the Unix epoch
}

// FastMode is the state of the agent's fast mode.
type FastMode struct {
	// FastModeState is off, cooldown or on; "" if unknown.
	FastModeState          string `json:"fast_mode_state,omitempty"`
	FastModeDisabledReason string `json:"fast_mode_disabled_reason,omitempty"` // why it is off, such as sdk_opt_in_required; "": not sent
}

// ModelUsage is what one model used.
type ModelUsage struct {
	InputTokens                         int64   `json:"inputTokens"`                                   // input tokens, without those of the prompt cache
	OutputTokens                        int64   `json:"outputTokens"`                                  // output tokens, thinking included
	ThinkingTokens                      int64   `json:"thinkingTokens,omitempty"`                      // part of OutputTokens; 0 if no turn was counted
	CacheReadInputTokens                int64   `json:"cacheReadInputTokens"`                          // input tokens read from the prompt cache
	CacheCreationInputTokens            int64   `json:"cacheCreationInputTokens"`                      // input tokens written to the prompt cache
	CacheCreationEphemeral1hInputTokens int64   `json:"cacheCreationEphemeral1hInputTokens,omitempty"` // part of CacheCreationInputTokens, cached for 1 hour
	CacheCreationEphemeral5mInputTokens int64   `json:"cacheCreationEphemeral5mInputTokens,omitempty"` // part of CacheCreationInputTokens, cached for 5 minutes
	WebSearchRequests                   int64   `json:"webSearchRequests"`                             // calls of the API's web search
	CostUSD                             float64 `json:"costUSD"`                                       // US dollars, estimated by the agent
	ContextWindow                       int64   `json:"contextWindow"`                                 // tokens
	MaxOutputTokens                     int64   `json:"maxOutputTokens"`                               // tokens of one answer
	CanonicalModel                      string  `json:"canonicalModel,omitempty"`                      // the id that prices are looked up by
	Provider                            string  `json:"provider,omitempty"`                            // firstParty, bedrock, vertex, foundry, gateway, …
	CostBasis                           string  `json:"costBasis,omitempty"`                           // list, managed, unknown
	// Credits is Qoder's, of the whole session so far.
	Credits float64 `json:"credits,omitempty"`
}

// PermissionDenial is a tool call that was denied in the turn.
type PermissionDenial struct {
	ToolName  string          `json:"tool_name"`            // as in [ToolUseBlock]
	ToolUseID string          `json:"tool_use_id"`          // the [ToolUseBlock] that was denied
	ToolInput json.RawMessage `json:"tool_input,omitempty"` // the arguments, an object
	// The rest is Qoder's, as its SDK declares it.
	Message            string `json:"message,omitempty"`              // what the model reads
	DecisionReasonType string `json:"decision_reason_type,omitempty"` // as in [CanUseToolRequest]
	DecisionReason     string `json:"decision_reason,omitempty"`      // as in [CanUseToolRequest]
}

// DeferredToolUse is the tool call that a hook deferred, which ended the turn.
type DeferredToolUse struct {
	ID    string          `json:"id"`              // of the [ToolUseBlock]
	Name  string          `json:"name"`            // as in [ToolUseBlock]
	Input json.RawMessage `json:"input,omitempty"` // the arguments, an object
}

// SubagentStats counts the subagents of the session so far: the turn that follows
// the end of a background subagent has it among Completed (observed on Claude Code
// 2.1.329).
type SubagentStats struct {
	Spawned             int               `json:"spawned"`               // those that were started
	Requested           SubagentRequested `json:"requested"`             // what the calls asked for
	StartedInBackground int               `json:"started_in_background"` // those of Spawned that began in the background
	MaxDepth            int               `json:"max_depth"`             // 1: started by the main agent; 2: by a subagent; …
	SpawnedBySubagents  int               `json:"spawned_by_subagents"`  // those of Spawned that subagents started
	Completed           int               `json:"completed"`             // ended by themselves
	Failed              int               `json:"failed"`                // ended with an error
	Killed              SubagentKilled    `json:"killed"`                // ended by others
	Refused             SubagentRefused   `json:"refused"`               // calls that started nothing
	ByType              map[string]int    `json:"by_type,omitempty"`     // Spawned by the name of the definition
}

// SubagentRequested splits the spawns by what the model asked for.
type SubagentRequested struct {
	Background int `json:"background"` // run_in_background true
	Foreground int `json:"foreground"` // run_in_background false
	Unset      int `json:"unset"`      // run_in_background absent, or not offered to the model
}

// SubagentKilled splits the kills by who asked for them.
type SubagentKilled struct {
	Parent int `json:"parent"` // by the agent that started it
	User   int `json:"user"`   // by a person or the host
	System int `json:"system"` // by the agent program itself
}

// SubagentRefused splits the refused spawns by why.
type SubagentRefused struct {
	DepthLimit       int `json:"depth_limit"`       // too deep
	ConcurrencyLimit int `json:"concurrency_limit"` // too many at once
	Budget           int `json:"budget"`            // no budget left
}
