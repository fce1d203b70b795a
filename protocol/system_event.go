package protocol

// PermissionDeniedMessage is system/permission_denied: a tool call was denied
// by rule or mode, without asking.
type PermissionDeniedMessage struct {
	Common
	ToolName           string `json:"tool_name"`
	ToolUseID          string `json:"tool_use_id"`
	AgentID            string `json:"agent_id,omitempty"`
	DecisionReasonType string `json:"decision_reason_type,omitempty"`
	DecisionReasonCode string `json:"decision_reason_code,omitempty"`
	DecisionReason     string `json:"decision_reason,omitempty"`
	Message            string `json:"message"`
}

func (*PermissionDeniedMessage) wire() (string, string) { return "system", "permission_denied" }

// InformationalMessage is system/informational: a text for users.
type InformationalMessage struct {
	Common
	Content             string               `json:"content"`
	Level               string               `json:"level"` // info, notice, suggestion, warning
	Tag                 string               `json:"tag,omitempty"`
	ToolUseID           string               `json:"tool_use_id,omitempty"`
	PreventContinuation bool                 `json:"prevent_continuation,omitempty"`
	PromptSubmitOutcome *PromptSubmitOutcome `json:"prompt_submit_outcome,omitempty"`
	ModelRestriction    *ModelRestriction    `json:"model_restriction,omitempty"`
	HookNoVerdict       *HookNoVerdict       `json:"hook_no_verdict,omitempty"`
	Timestamp           string               `json:"timestamp,omitempty"` // RFC 3339
}

func (*InformationalMessage) wire() (string, string) { return "system", "informational" }

// ModelRestriction is a model that the organization does not allow, and the one
// that is used in its place.
type ModelRestriction struct {
	RequestedModel string `json:"requested_model"`
	EffectiveModel string `json:"effective_model"`
	At             string `json:"at,omitempty"` // start, switch, resume
}

// HookNoVerdict is a hook that did not decide.
type HookNoVerdict struct {
	HookEvent  HookEvent `json:"hook_event"`
	ToolUseID  string    `json:"tool_use_id"`
	TimedOut   bool      `json:"timed_out"`
	PluginID   string    `json:"plugin_id,omitempty"`
	PluginRoot string    `json:"plugin_root,omitempty"`
}

// PromptSubmitOutcome says what became of a prompt that a hook looked at.
type PromptSubmitOutcome struct {
	Kind          string `json:"kind"` // blocked_by_hook
	NoVerdictKind string `json:"no_verdict_kind,omitempty"`
	PromptKept    bool   `json:"prompt_kept"`
	Reason        string `json:"reason,omitempty"`
}

// NotificationMessage is system/notification: a short text for a status line.
type NotificationMessage struct {
	Common
	Key       string `json:"key"`
	Text      string `json:"text"`
	Priority  string `json:"priority"` // low, medium, high, immediate
	Color     string `json:"color,omitempty"`
	TimeoutMS Millis `json:"timeout_ms,omitempty"`
}

func (*NotificationMessage) wire() (string, string) { return "system", "notification" }

// VCSStateChangedMessage is system/vcs_state_changed of Claude Code 2.1.329: a
// command of the agent changed the state of a repository. All fields were observed
// for a commit, which the agent recognizes by the output of git: there is no message
// for git commit -q. The other kinds are those of the agent's schema.
type VCSStateChangedMessage struct {
	Common
	Kind   string `json:"kind"`             // commit, push, merge, rebase
	Cwd    string `json:"cwd"`              // where the shell was when the command ended
	Branch string `json:"branch,omitempty"` // if it is known
}

func (*VCSStateChangedMessage) wire() (string, string) { return "system", "vcs_state_changed" }

// FilesPersistedMessage is system/files_persisted: a file checkpoint was kept.
type FilesPersistedMessage struct {
	Common
	Files       []PersistedFile `json:"files"`
	Failed      []FailedFile    `json:"failed"`
	ProcessedAt string          `json:"processed_at"` // RFC 3339
}

func (*FilesPersistedMessage) wire() (string, string) { return "system", "files_persisted" }

// PersistedFile is a file that was kept.
type PersistedFile struct {
	Filename string `json:"filename"`
	FileID   string `json:"file_id"`
}

// FailedFile is a file that could not be kept.
type FailedFile struct {
	Filename string `json:"filename"`
	Error    string `json:"error"`
}

// ElicitationCompleteMessage is system/elicitation_complete: the person has
// finished what an MCP server asked for by URL.
type ElicitationCompleteMessage struct {
	Common
	MCPServerName string `json:"mcp_server_name"`
	ElicitationID string `json:"elicitation_id"`
}

func (*ElicitationCompleteMessage) wire() (string, string) {
	return "system", "elicitation_complete"
}

// LocalCommandOutputMessage is system/local_command_output.
type LocalCommandOutputMessage struct {
	Common
	Content string `json:"content"`
}

func (*LocalCommandOutputMessage) wire() (string, string) {
	return "system", "local_command_output"
}

// ControlRequestProgressMessage is system/control_request_progress: a slow
// control request of the host, RequestID, is under way.
type ControlRequestProgressMessage struct {
	Common
	RequestID string `json:"request_id"`
	Status    string `json:"status"` // started, api_retry
	// The rest is set with status api_retry.
	Attempt      int    `json:"attempt,omitempty"`
	MaxRetries   int    `json:"max_retries,omitempty"`
	RetryDelayMS Millis `json:"retry_delay_ms,omitempty"`
	ErrorStatus  int    `json:"error_status,omitempty"`
}

func (*ControlRequestProgressMessage) wire() (string, string) {
	return "system", "control_request_progress"
}

// CommandsChangedMessage is system/commands_changed: all slash commands now.
type CommandsChangedMessage struct {
	Common
	Commands []SlashCommand `json:"commands"`
}

func (*CommandsChangedMessage) wire() (string, string) { return "system", "commands_changed" }

// MemoryRecallMessage is system/memory_recall: memories put into the context.
type MemoryRecallMessage struct {
	Common
	Mode     string   `json:"mode"` // select, synthesize
	Memories []Memory `json:"memories"`
}

func (*MemoryRecallMessage) wire() (string, string) { return "system", "memory_recall" }

// Memory is one memory that was recalled.
type Memory struct {
	Path    string `json:"path"`
	Scope   string `json:"scope"` // personal, team, organization
	Content string `json:"content,omitempty"`
}

// MirrorErrorMessage is system/mirror_error: a transcript line could not be
// mirrored to the host's store.
type MirrorErrorMessage struct {
	Common
	Error string    `json:"error"`
	Key   MirrorKey `json:"key"`
}

func (*MirrorErrorMessage) wire() (string, string) { return "system", "mirror_error" }

// MirrorKey names a mirrored transcript.
type MirrorKey struct {
	ProjectKey string `json:"projectKey"`
	SessionID  string `json:"sessionId"`
	Subpath    string `json:"subpath,omitempty"`
}

// PluginInstallMessage is system/plugin_install.
type PluginInstallMessage struct {
	Common
	Status string `json:"status"` // started, installed, failed, completed
	Name   string `json:"name,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (*PluginInstallMessage) wire() (string, string) { return "system", "plugin_install" }

// SessionWritesLostMessage is system/session_writes_lost: the disk was full, so
// that part of the transcript or of the settings was not written.
type SessionWritesLostMessage struct {
	Common
	ErrorCode            string   `json:"error_code"` // ENOSPC, EDQUOT
	Lost                 []string `json:"lost"`       // transcript, global_config
	TranscriptSessionIDs []string `json:"transcript_session_ids,omitempty"`
}

func (*SessionWritesLostMessage) wire() (string, string) { return "system", "session_writes_lost" }

// WorkerShuttingDownMessage is system/worker_shutting_down.
type WorkerShuttingDownMessage struct {
	Common
	Reason string `json:"reason"`
}

func (*WorkerShuttingDownMessage) wire() (string, string) {
	return "system", "worker_shutting_down"
}

// UIInvalidateMessage is system/ui_invalidate: what plugins draw for an
// attached screen is out of date. A host that draws nothing for plugins passes
// it over. Seen with the setting disableAllHooks (Claude Code 2.1.329).
type UIInvalidateMessage struct {
	Common
	Event string `json:"event"` // ui.render
	// PromptsScreened: a plugin may change what is recorded of a prompt.
	PromptsScreened bool `json:"prompts_screened,omitempty"`
	// Instances are those that are out of date; none given: all of them.
	Instances []UIInstance `json:"instances,omitempty"`
}

func (*UIInvalidateMessage) wire() (string, string) { return "system", "ui_invalidate" }

// UIInstance is something that a plugin has drawn.
type UIInstance struct {
	Surface    string `json:"surface"`
	Component  string `json:"component"`
	InstanceID string `json:"instance_id"`
}
