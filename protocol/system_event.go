package protocol

// PermissionDeniedMessage is system/permission_denied: a tool call was denied
// by rule or mode, without asking.
type PermissionDeniedMessage struct {
	Common
	ToolName           string `json:"tool_name"`                      // as in [ToolUseBlock]
	ToolUseID          string `json:"tool_use_id"`                    // the [ToolUseBlock] that was denied
	AgentID            string `json:"agent_id,omitempty"`             // the subagent that made the call; "" for the main agent
	DecisionReasonType string `json:"decision_reason_type,omitempty"` // rule, mode, classifier, asyncAgent, …; "": not sent
	DecisionReasonCode string `json:"decision_reason_code,omitempty"` // as in [CanUseToolRequest]
	DecisionReason     string `json:"decision_reason,omitempty"`      // for people; "": not sent
	Message            string `json:"message"`                        // what the model reads
}

func (*PermissionDeniedMessage) wire() (string, string) { return "system", "permission_denied" }

// InformationalMessage is system/informational: a text for users.
type InformationalMessage struct {
	Common
	Content             string               `json:"content"`                         // for people
	Level               string               `json:"level"`                           // info, notice, suggestion, warning
	Tag                 string               `json:"tag,omitempty"`                   // for hosts that know it, such as hook_callback_failed; an open set
	ToolUseID           string               `json:"tool_use_id,omitempty"`           // a later message with the same id replaces this one; "": none
	PreventContinuation bool                 `json:"prevent_continuation,omitempty"`  // the turn ends after this message
	PromptSubmitOutcome *PromptSubmitOutcome `json:"prompt_submit_outcome,omitempty"` // nil: not about a prompt that a hook looked at
	ModelRestriction    *ModelRestriction    `json:"model_restriction,omitempty"`     // nil: not about a model
	HookNoVerdict       *HookNoVerdict       `json:"hook_no_verdict,omitempty"`       // nil: not about a hook that did not decide
	Timestamp           string               `json:"timestamp,omitempty"`             // RFC 3339
}

func (*InformationalMessage) wire() (string, string) { return "system", "informational" }

// ModelRestriction is a model that the organization does not allow, and the one
// that is used in its place.
type ModelRestriction struct {
	RequestedModel string `json:"requested_model"` // as it was asked for
	EffectiveModel string `json:"effective_model"` // full id
	At             string `json:"at,omitempty"`    // start, switch, resume
}

// HookNoVerdict is a hook that did not decide.
type HookNoVerdict struct {
	HookEvent  HookEvent `json:"hook_event"`            // such as PreToolUse
	ToolUseID  string    `json:"tool_use_id"`           // the call that the hook was asked about
	TimedOut   bool      `json:"timed_out"`             // false: it failed in another way
	PluginID   string    `json:"plugin_id,omitempty"`   // the plugin of the hook; "": none
	PluginRoot string    `json:"plugin_root,omitempty"` // the plugin's directory; "": none
}

// PromptSubmitOutcome says what became of a prompt that a hook looked at.
type PromptSubmitOutcome struct {
	Kind          string `json:"kind"`                      // blocked_by_hook
	NoVerdictKind string `json:"no_verdict_kind,omitempty"` // why a hook did not decide: remote_run_failed, interrupted, …; "": one did
	PromptKept    bool   `json:"prompt_kept"`               // the prompt is in the history all the same
	Reason        string `json:"reason,omitempty"`          // of the hook; "": none
}

// NotificationMessage is system/notification: a short text for a status line.
type NotificationMessage struct {
	Common
	Key       string `json:"key"`                  // a later message with the same key replaces this one
	Text      string `json:"text"`                 // one line
	Priority  string `json:"priority"`             // low, medium, high, immediate
	Color     string `json:"color,omitempty"`      // a color name of the agent's own; "": none
	TimeoutMS Millis `json:"timeout_ms,omitempty"` // how long to show it, in milliseconds; 0: the host decides
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
	Files       []PersistedFile `json:"files"`        // nil: none
	Failed      []FailedFile    `json:"failed"`       // nil: none
	ProcessedAt string          `json:"processed_at"` // RFC 3339
}

func (*FilesPersistedMessage) wire() (string, string) { return "system", "files_persisted" }

// PersistedFile is a file that was kept.
type PersistedFile struct {
	Filename string `json:"filename"` // the file's path
	FileID   string `json:"file_id"`  // id in the store that keeps it
}

// FailedFile is a file that could not be kept.
type FailedFile struct {
	Filename string `json:"filename"` // the file's path
	Error    string `json:"error"`    // for people
}

// ElicitationCompleteMessage is system/elicitation_complete: the person has
// finished what an MCP server asked for by URL.
type ElicitationCompleteMessage struct {
	Common
	MCPServerName string `json:"mcp_server_name"` // the server that asked
	ElicitationID string `json:"elicitation_id"`  // as in [ElicitationRequest]
}

func (*ElicitationCompleteMessage) wire() (string, string) {
	return "system", "elicitation_complete"
}

// LocalCommandOutputMessage is system/local_command_output.
type LocalCommandOutputMessage struct {
	Common
	Content string `json:"content"` // what the command printed; Markdown or plain text
}

func (*LocalCommandOutputMessage) wire() (string, string) {
	return "system", "local_command_output"
}

// ControlRequestProgressMessage is system/control_request_progress: a slow
// control request of the host, RequestID, is under way.
type ControlRequestProgressMessage struct {
	Common
	RequestID string `json:"request_id"` // of the control_request, still to be answered
	Status    string `json:"status"`     // started, api_retry
	// The rest is set with status api_retry.
	Attempt      int    `json:"attempt,omitempty"`        // from 1
	MaxRetries   int    `json:"max_retries,omitempty"`    // how often the call is made again at most
	RetryDelayMS Millis `json:"retry_delay_ms,omitempty"` // until the next attempt, in milliseconds
	ErrorStatus  int    `json:"error_status,omitempty"`   // HTTP; 0: none
}

func (*ControlRequestProgressMessage) wire() (string, string) {
	return "system", "control_request_progress"
}

// CommandsChangedMessage is system/commands_changed: all slash commands now.
type CommandsChangedMessage struct {
	Common
	Commands []SlashCommand `json:"commands"` // they replace those known before
}

func (*CommandsChangedMessage) wire() (string, string) { return "system", "commands_changed" }

// MemoryRecallMessage is system/memory_recall: memories put into the context.
type MemoryRecallMessage struct {
	Common
	Mode     string   `json:"mode"`     // select, synthesize
	Memories []Memory `json:"memories"` // what the model reads
}

func (*MemoryRecallMessage) wire() (string, string) { return "system", "memory_recall" }

// Memory is one memory that was recalled.
type Memory struct {
	Path    string `json:"path"`              // absolute; <synthesis:DIR> with mode synthesize; https with scope organization
	Scope   string `json:"scope"`             // personal, team, organization
	Content string `json:"content,omitempty"` // the text; "": read Path
}

// MirrorErrorMessage is system/mirror_error: a transcript line could not be
// mirrored to the host's store.
type MirrorErrorMessage struct {
	Common
	Error string    `json:"error"` // for people
	Key   MirrorKey `json:"key"`   // what was to be written
}

func (*MirrorErrorMessage) wire() (string, string) { return "system", "mirror_error" }

// MirrorKey names a mirrored transcript.
type MirrorKey struct {
	ProjectKey string `json:"projectKey"`        // the project, made from the working directory
	SessionID  string `json:"sessionId"`         // the agent's session
	Subpath    string `json:"subpath,omitempty"` // subagents/agent-ID; "": the session's own transcript
}

// PluginInstallMessage is system/plugin_install.
type PluginInstallMessage struct {
	Common
	Status string `json:"status"`          // started, installed, failed, completed
	Name   string `json:"name,omitempty"`  // the plugin; "" for the whole run
	Error  string `json:"error,omitempty"` // for people, with status failed
}

func (*PluginInstallMessage) wire() (string, string) { return "system", "plugin_install" }

// SessionWritesLostMessage is system/session_writes_lost: the disk was full, so
// that part of the transcript or of the settings was not written.
type SessionWritesLostMessage struct {
	Common
	ErrorCode            string   `json:"error_code"`                       // ENOSPC, EDQUOT
	Lost                 []string `json:"lost"`                             // transcript, global_config
	TranscriptSessionIDs []string `json:"transcript_session_ids,omitempty"` // sessions that cannot be resumed whole; with lost transcript
}

func (*SessionWritesLostMessage) wire() (string, string) { return "system", "session_writes_lost" }

// WorkerShuttingDownMessage is system/worker_shutting_down.
type WorkerShuttingDownMessage struct {
	Common
	Reason string `json:"reason"` // host_exit, remote_control_disabled, …
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
	Surface    string `json:"surface"`     // where it was drawn; a name of the plugin interface
	Component  string `json:"component"`   // what was drawn, such as Theme
	InstanceID string `json:"instance_id"` // which one
}
