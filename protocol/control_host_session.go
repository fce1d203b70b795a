package protocol

import "encoding/json"

// InterruptRequest ends the running turn. The answer is an
// [InterruptResponse].
type InterruptRequest struct {
	CancelQueued bool `json:"cancel_queued,omitempty"` // also drops queued user lines
}

// SetPermissionModeRequest changes the permission mode. The answer is a
// [SetPermissionModeResponse].
type SetPermissionModeRequest struct {
	Mode PermissionMode `json:"mode"` // qodercli takes camelCase only, and not yolo (observed on 1.1.52)
}

// SetModelRequest changes the model. nil goes back to the default, which Qoder
// spells "". The answer is a [SetModelResponse] or nothing.
type SetModelRequest struct {
	Model *string `json:"model,omitempty"` // an alias or a full id; unknown ones are accepted by Claude Code
}

// SetMaxThinkingTokensRequest limits the thinking; null takes the limit away.
// No answer value.
type SetMaxThinkingTokensRequest struct {
	// MaxThinkingTokens absent changes nothing; null sets the session's default; 0
	// turns thinking off.
	MaxThinkingTokens Nullable[int]    `json:"max_thinking_tokens,omitzero"`
	ThinkingDisplay   Nullable[string] `json:"thinking_display,omitzero"` // summarized, omitted, highlights
}

// ApplyFlagSettingsRequest lays settings over those of the command line. The
// answer is an [ApplyFlagSettingsResponse] or nothing.
type ApplyFlagSettingsRequest struct {
	Settings json.RawMessage `json:"settings"` // an object in the agent's own format
}

// UpdateSettingsRequest writes to a settings file. No answer value.
type UpdateSettingsRequest struct {
	Source   string          `json:"source"`   // localSettings, userSettings
	Settings json.RawMessage `json:"settings"` // an object; userSettings takes effortLevel only
}

// GetSettingsRequest asks for the settings. The answer is a
// [SettingsResponse].
type GetSettingsRequest struct{}

// ContextUsageRequest asks what fills the context. The answer is a
// [ContextUsage].
type ContextUsageRequest struct {
	Detail string `json:"detail,omitempty"` // summary, full
}

// UsageRequest asks for cost and limits. The answer is a [UsageReport].
type UsageRequest struct {
	SkipBehaviors bool `json:"skip_behaviors,omitempty"` // leaves out UsageReport.Behaviors, which reads many transcripts
}

// SessionCostRequest asks for the cost as text. The answer is a
// [TextResponse].
type SessionCostRequest struct{}

// ReadFileRequest reads a file through the agent. The answer is a
// [ReadFileResponse].
type ReadFileRequest struct {
	Path     string `json:"path"`                // absolute, or relative to the session's directory
	MaxBytes int64  `json:"max_bytes,omitempty"` // of the file; 0: the agent's own limit
	Encoding string `json:"encoding,omitempty"`  // utf-8, base64
}

// RewindFilesRequest puts files back to how they were before a user message.
// The answer is a [RewindFilesResponse].
type RewindFilesRequest struct {
	UserMessageID string `json:"user_message_id"`   // a uuid
	DryRun        bool   `json:"dry_run,omitempty"` // only say what would change
}

// SeedReadStateRequest tells the agent that it has read a file. No answer
// value.
type SeedReadStateRequest struct {
	Path  string  `json:"path"`  // of the file
	MTime float64 `json:"mtime"` // ms since the Unix epoch
}

// StopTaskRequest stops a background task. An unknown id succeeds, too
// (observed on both). No answer value.
type StopTaskRequest struct {
	TaskID string `json:"task_id"` // of [TaskStartedMessage]
}

// BackgroundTasksRequest moves running tasks to the background. The answer is
// a [BackgroundTasksResponse].
type BackgroundTasksRequest struct {
	ToolUseID string `json:"tool_use_id,omitempty"` // "" means all
}

// TaskOutputRequest asks for the output of a task. The answer is a
// [TaskOutputResponse].
type TaskOutputRequest struct {
	TaskID string `json:"task_id"` // a shell command or monitor of this session, running or ended
}

// CancelAsyncMessageRequest takes back a queued user line. The answer is a
// [CancelAsyncMessageResponse].
type CancelAsyncMessageRequest struct {
	MessageUUID string `json:"message_uuid"` // the uuid that the host gave the user line
}

// GenerateSessionTitleRequest has the model find a title. The answer is a
// [SessionTitleResponse].
type GenerateSessionTitleRequest struct {
	Description string `json:"description"`       // what the session is about
	Persist     *bool  `json:"persist,omitempty"` // also store the title; nil: the agent's default
}

// RenameSessionRequest sets the title. No answer value is declared.
type RenameSessionRequest struct {
	Title     string `json:"title"`                // the new title
	Source    string `json:"source,omitempty"`     // remote, host
	SessionID string `json:"session_id,omitempty"` // refuses the request if the agent is in another session by now; "": no check
}

// SideQuestionRequest asks the model something aside from the conversation. It
// has no time limit in Qoder's SDK. The answer is a [SideQuestionResponse].
type SideQuestionRequest struct {
	Question string             `json:"question"`          // to the model
	History  []SideQuestionTurn `json:"history,omitempty"` // earlier questions, oldest first; Qoder only
}

// SetCwdRequest changes the working directory. The answer is a
// [SetCwdResponse].
type SetCwdRequest struct {
	Path             string `json:"path"`                        // the new directory
	TrustAccepted    bool   `json:"trust_accepted,omitempty"`    // a person trusts TrustedDirectory
	TrustedDirectory string `json:"trusted_directory,omitempty"` // SetCwdResponse.Directory of the refusal before
}

// ClaimSessionRequest turns a parked Claude Code, which was started with --await-claim,
// into a session. The agent moves to Cwd as if it had been started there, and then runs
// its SessionStart hooks. It accepts the request once, before any turn. After a refusal
// the process stays parked. The answer is a [ClaimSessionResponse]. The fields are those
// that Claude Code 2.1.329 declares.
type ClaimSessionRequest struct {
	// Cwd is the session's directory; ~ is expanded.
	Cwd string `json:"cwd"`
	// Env are environment variables of the session, such as a token. The agent refuses
	// variables that it has read at its start.
	Env map[string]string `json:"env,omitempty"`
	// AdditionalDirectories are further ones that the session may work in.
	AdditionalDirectories []string       `json:"additional_directories,omitempty"`
	PermissionMode        PermissionMode `json:"permission_mode,omitempty"`      // as in [SetPermissionModeRequest]
	SystemPrompt          []string       `json:"system_prompt,omitempty"`        // the parts of a [SystemPrompt], in order
	AppendSystemPrompt    string         `json:"append_system_prompt,omitempty"` // as in [InitializeRequest]
	// Agents are definitions by name, as initialize takes them.
	Agents json.RawMessage `json:"agents,omitempty"`
	Title  string          `json:"title,omitempty"` // as in [InitializeRequest]
	// SDKMCPServers are the names of the in-process servers that the session has;
	// nil keeps those of the parked process.
	SDKMCPServers []string `json:"sdk_mcp_servers,omitempty"`
	// IncludeInitialize adds the initialize response for Cwd to the answer.
	IncludeInitialize bool            `json:"include_initialize,omitempty"`
	WorkspaceTrust    *WorkspaceTrust `json:"workspace_trust,omitempty"` // nil: not sent
}

// WorkspaceTrust is the host's word that the user trusts a directory.
type WorkspaceTrust struct {
	Accepted bool `json:"accepted"` // the person's answer to the trust question
	// Directory is an absolute path.
	Directory string `json:"directory"`
}

// EndSessionRequest ends the session. Claude Code 2.1.329 then exits with code 0;
// an initialized qodercli 1.1.52 leaves, too, and one that refused to be stays
// until its input ends (observed). No answer value.
type EndSessionRequest struct{}

// SideQuestionTurn is an earlier side question and its answer.
type SideQuestionTurn struct {
	Question string `json:"question"` // of the host
	Response string `json:"response"` // of the model
}

// Subtype implements [Request].
func (InterruptRequest) Subtype() string { return "interrupt" }

// Subtype implements [Request].
func (SetPermissionModeRequest) Subtype() string { return "set_permission_mode" }

// Subtype implements [Request].
func (SetModelRequest) Subtype() string { return "set_model" }

// Subtype implements [Request].
func (SetMaxThinkingTokensRequest) Subtype() string { return "set_max_thinking_tokens" }

// Subtype implements [Request].
func (ApplyFlagSettingsRequest) Subtype() string { return "apply_flag_settings" }

// Subtype implements [Request].
func (UpdateSettingsRequest) Subtype() string { return "update_settings" }

// Subtype implements [Request].
func (GetSettingsRequest) Subtype() string { return "get_settings" }

// Subtype implements [Request].
func (ContextUsageRequest) Subtype() string { return "get_context_usage" }

// Subtype implements [Request].
func (UsageRequest) Subtype() string { return "get_usage" }

// Subtype implements [Request].
func (SessionCostRequest) Subtype() string { return "get_session_cost" }

// Subtype implements [Request].
func (ReadFileRequest) Subtype() string { return "read_file" }

// Subtype implements [Request].
func (RewindFilesRequest) Subtype() string { return "rewind_files" }

// Subtype implements [Request].
func (SeedReadStateRequest) Subtype() string { return "seed_read_state" }

// Subtype implements [Request].
func (StopTaskRequest) Subtype() string { return "stop_task" }

// Subtype implements [Request].
func (BackgroundTasksRequest) Subtype() string { return "background_tasks" }

// Subtype implements [Request].
func (TaskOutputRequest) Subtype() string { return "get_task_output" }

// Subtype implements [Request].
func (CancelAsyncMessageRequest) Subtype() string { return "cancel_async_message" }

// Subtype implements [Request].
func (GenerateSessionTitleRequest) Subtype() string { return "generate_session_title" }

// Subtype implements [Request].
func (RenameSessionRequest) Subtype() string { return "rename_session" }

// Subtype implements [Request].
func (SideQuestionRequest) Subtype() string { return "side_question" }

// Subtype implements [Request].
func (SetCwdRequest) Subtype() string { return "set_cwd" }

// Subtype implements [Request].
func (ClaimSessionRequest) Subtype() string { return "claim_session" }

// Subtype implements [Request].
func (EndSessionRequest) Subtype() string { return "end_session" }
