package protocol

import "encoding/json"

func newSystemMessage(subtype string) Message {
	switch subtype {
	case "init":
		return new(InitMessage)
	case "status":
		return new(StatusMessage)
	case "session_state_changed":
		return new(SessionStateChangedMessage)
	case "background_tasks_changed":
		return new(BackgroundTasksChangedMessage)
	case "task_started":
		return new(TaskStartedMessage)
	case "task_progress":
		return new(TaskProgressMessage)
	case "task_updated":
		return new(TaskUpdatedMessage)
	case "task_notification":
		return new(TaskNotificationMessage)
	case "hook_started":
		return new(HookStartedMessage)
	case "hook_progress":
		return new(HookProgressMessage)
	case "hook_response":
		return new(HookResponseMessage)
	case "thinking_tokens":
		return new(ThinkingTokensMessage)
	case "api_retry":
		return new(APIRetryMessage)
	case "compact_boundary":
		return new(CompactBoundaryMessage)
	case "permission_denied":
		return new(PermissionDeniedMessage)
	case "informational":
		return new(InformationalMessage)
	case "notification":
		return new(NotificationMessage)
	case "files_persisted":
		return new(FilesPersistedMessage)
	case "vcs_state_changed":
		return new(VCSStateChangedMessage)
	case "elicitation_complete":
		return new(ElicitationCompleteMessage)
	case "local_command_output":
		return new(LocalCommandOutputMessage)
	case "control_request_progress":
		return new(ControlRequestProgressMessage)
	case "commands_changed":
		return new(CommandsChangedMessage)
	case "memory_recall":
		return new(MemoryRecallMessage)
	case "mirror_error":
		return new(MirrorErrorMessage)
	case "model_refusal_fallback":
		return new(ModelRefusalFallbackMessage)
	case "model_refusal_no_fallback":
		return new(ModelRefusalNoFallbackMessage)
	case "model_fallback":
		return new(ModelFallbackMessage)
	case "plugin_install":
		return new(PluginInstallMessage)
	case "session_writes_lost":
		return new(SessionWritesLostMessage)
	case "worker_shutting_down":
		return new(WorkerShuttingDownMessage)
	case "ui_invalidate":
		return new(UIInvalidateMessage)
	}
	return newQoderSystemMessage(subtype)
}

// InitMessage is system/init. Claude Code sends it at the start of every turn,
// also of turns that no user line started (observed on 2.1.329); Qoder may
// send it late or never.
type InitMessage struct {
	Common
	Cwd            string         `json:"cwd,omitempty"`
	Model          string         `json:"model,omitempty"`
	PermissionMode PermissionMode `json:"permissionMode,omitempty"`
	// APIKeySource is where the key came from: ANTHROPIC_API_KEY, none,
	// user, project, org, temporary, oauth, …
	APIKeySource string `json:"apiKeySource,omitempty"`

	// One of these two is set; ProtocolVersion is Qoder's.
	ClaudeCodeVersion string `json:"claude_code_version,omitempty"`
	QoderCLIVersion   string `json:"qodercli_version,omitempty"`
	ProtocolVersion   string `json:"protocol_version,omitempty"`

	// Tools lists the tools by name. The subagent tool is listed as Task
	// and called Agent in a tool_use (observed on Claude Code 2.1.329).
	Tools      []string      `json:"tools,omitempty"`
	MCPServers []MCPServer   `json:"mcp_servers,omitempty"`
	Plugins    []Plugin      `json:"plugins,omitempty"`
	PluginErrs []PluginError `json:"plugin_errors,omitempty"`
	Agents     []string      `json:"agents,omitempty"`
	Skills     []string      `json:"skills,omitempty"`
	Betas      []string      `json:"betas,omitempty"`
	// SlashCommands are names; Commands, which Qoder sends, are whole.
	SlashCommands         []string       `json:"slash_commands,omitempty"`
	TerminalSlashCommands []string       `json:"terminal_slash_commands,omitempty"`
	Commands              []SlashCommand `json:"commands,omitempty"`
	// Capabilities name protocol features, such as interrupt_receipt_v1.
	// Absent means none.
	Capabilities []string `json:"capabilities,omitempty"`
	OutputStyle  string   `json:"output_style,omitempty"`
	ViewMode     string   `json:"view_mode,omitempty"`
	Effort       string   `json:"effort,omitempty"`

	OriginalCwd           string          `json:"original_cwd,omitempty"`
	AdditionalDirectories []string        `json:"additional_directories,omitempty"`
	MemoryPaths           *MemoryPaths    `json:"memory_paths,omitempty"`
	ScratchpadPath        string          `json:"scratchpad_path,omitempty"`
	SyncedSkillsPath      string          `json:"synced_skills_path,omitempty"`
	MessagingSocketPath   string          `json:"messaging_socket_path,omitempty"`
	UserMessageUUIDs      []string        `json:"user_message_uuids,omitempty"`
	PluginWarnings        []PluginError   `json:"plugin_warnings,omitempty"`
	MCPServerErrors       []MCPStartError `json:"mcp_server_errors,omitempty"`
	// StartupTiming is the agent's own measure, as it came.
	StartupTiming map[string]json.RawMessage `json:"startup_timing,omitempty"`
	FastMode

	PerTurnEffortActive     bool `json:"per_turn_effort_active,omitempty"`
	UltrathinkAvailable     bool `json:"ultrathink_available,omitempty"`
	UltrathinkTypedRaises   bool `json:"ultrathink_typed_raises,omitempty"`
	ServedByAnthropic       bool `json:"served_by_anthropic,omitempty"`
	AnalyticsDisabled       bool `json:"analytics_disabled,omitempty"`
	ProductFeedbackDisabled bool `json:"product_feedback_disabled,omitempty"`
}

func (*InitMessage) wire() (string, string) { return "system", "init" }

// MCPServer is an MCP server as system/init lists it.
type MCPServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Source string `json:"source,omitempty"`
}

// MemoryPaths are the directories of the agent's memories.
type MemoryPaths struct {
	Auto string `json:"auto,omitempty"`
	Team string `json:"team,omitempty"`
}

// MCPStartError is an MCP server that was left out.
type MCPStartError struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Plugin is a loaded plugin.
type Plugin struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Source  string `json:"source,omitempty"`
	Version string `json:"version,omitempty"`
}

// PluginError is a plugin that did not load.
type PluginError struct {
	Plugin  string `json:"plugin"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	// ManagedLock is set if the organization decides on the plugin.
	ManagedLock *PluginLock `json:"managed_lock,omitempty"`
}

// PluginLock is an organization's decision on a plugin.
type PluginLock struct {
	PluginEnabled bool   `json:"plugin_enabled"`
	Name          string `json:"name"`
	Marketplace   string `json:"marketplace,omitempty"`
}

// SlashCommand is a slash command or a skill.
type SlashCommand struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	Builtin      bool     `json:"builtin,omitempty"`
}

// StatusMessage is system/status: what the agent is busy with, and changes of
// the permission mode.
type StatusMessage struct {
	Common
	// Status is requesting or compacting; "" if nothing is going on.
	Status         string         `json:"status,omitempty"`
	PermissionMode PermissionMode `json:"permissionMode,omitempty"`
	// CompactResult is success or failed, at the end of a compaction.
	CompactResult string `json:"compact_result,omitempty"`
	CompactError  string `json:"compact_error,omitempty"`
	// CompactOutputChars is how much of the summary was written, while an
	// automatic compaction goes on.
	CompactOutputChars int64 `json:"compact_output_chars,omitempty"`
	// ResumeHeldForPlan says that an interrupted turn was not run again,
	// because it was in plan mode.
	ResumeHeldForPlan bool     `json:"resume_held_for_plan,omitempty"`
	UserMessageUUIDs  []string `json:"user_message_uuids,omitempty"`
}

func (*StatusMessage) wire() (string, string) { return "system", "status" }

// SessionState is a state of [SessionStateChangedMessage].
type SessionState string

// The states of a session.
const (
	SessionIdle           SessionState = "idle"
	SessionRunning        SessionState = "running"
	SessionRequiresAction SessionState = "requires_action"
)

// SessionStateChangedMessage is system/session_state_changed.
type SessionStateChangedMessage struct {
	Common
	State SessionState `json:"state"`
	// SDKHostOnly marks a line for the host that its users did not ask for.
	SDKHostOnly bool `json:"sdk_host_only,omitempty"`
}

func (*SessionStateChangedMessage) wire() (string, string) {
	return "system", "session_state_changed"
}

// CompactBoundaryMessage is system/compact_boundary: the history before it has
// been summed up.
type CompactBoundaryMessage struct {
	Common
	Metadata          CompactMetadata `json:"compact_metadata"`
	LogicalParentUUID string          `json:"logical_parent_uuid,omitempty"`
	// Historical marks replayed history.
	Historical bool `json:"historical,omitempty"`
}

func (*CompactBoundaryMessage) wire() (string, string) { return "system", "compact_boundary" }

// CompactMetadata describes a compaction.
type CompactMetadata struct {
	Trigger                 string             `json:"trigger"` // manual, auto
	PreTokens               int64              `json:"pre_tokens"`
	PostTokens              int64              `json:"post_tokens,omitempty"`
	CumulativeDroppedTokens int64              `json:"cumulative_dropped_tokens,omitempty"`
	MessagesSummarized      int                `json:"messages_summarized,omitempty"`
	Precomputed             bool               `json:"precomputed,omitempty"`
	UserContext             string             `json:"user_context,omitempty"`
	DiscoveredTools         []string           `json:"pre_compact_discovered_tools,omitempty"`
	DurationMS              Millis             `json:"duration_ms,omitempty"`
	PreservedSegment        *PreservedSegment  `json:"preserved_segment,omitempty"`
	PreservedMessages       *PreservedMessages `json:"preserved_messages,omitempty"`
}

// PreservedSegment is the part of the history that a compaction kept, by uuid.
type PreservedSegment struct {
	HeadUUID   string `json:"head_uuid"`
	AnchorUUID string `json:"anchor_uuid"`
	TailUUID   string `json:"tail_uuid"`
}

// PreservedMessages are the messages that a compaction kept.
type PreservedMessages struct {
	AnchorUUID string   `json:"anchor_uuid"`
	UUIDs      []string `json:"uuids"`
	AllUUIDs   []string `json:"all_uuids,omitempty"`
}

// APIRetryMessage is system/api_retry: a call of the model failed and is made
// again after RetryDelayMS. Claude Code retries a 401 too (observed on 2.1.329).
type APIRetryMessage struct {
	Common
	Attempt      int         `json:"attempt"`
	MaxRetries   int         `json:"max_retries"`
	RetryDelayMS Millis      `json:"retry_delay_ms"`
	ErrorStatus  int         `json:"error_status,omitempty"` // HTTP; 0 if none
	Error        string      `json:"error"`                  // rate_limit, server_error, overloaded, …
	NoResponse   *NoResponse `json:"no_response,omitempty"`
}

func (*APIRetryMessage) wire() (string, string) { return "system", "api_retry" }

// NoResponse is a call that brought no answer at all.
type NoResponse struct {
	WaitedMS    Millis `json:"waited_ms"`
	RetryWaitMS Millis `json:"retry_wait_ms"`
}

// ThinkingTokensMessage is system/thinking_tokens: an estimate while the model
// thinks.
type ThinkingTokensMessage struct {
	Common
	EstimatedTokens      int64  `json:"estimated_tokens"`
	EstimatedTokensDelta int64  `json:"estimated_tokens_delta"`
	UserMessageUUID      string `json:"user_message_uuid,omitempty"`
}

func (*ThinkingTokensMessage) wire() (string, string) { return "system", "thinking_tokens" }

// ModelRefusalFallbackMessage is system/model_refusal_fallback: another model
// answers what the first refused.
type ModelRefusalFallbackMessage struct {
	Common
	ModelRefusal
	Trigger               string   `json:"trigger,omitempty"`
	Direction             string   `json:"direction,omitempty"` // retry, revert, sticky
	Scope                 string   `json:"scope,omitempty"`     // session, local
	FallbackModel         string   `json:"fallback_model,omitempty"`
	RetractedMessageUUIDs []string `json:"retracted_message_uuids,omitempty"`
}

func (*ModelRefusalFallbackMessage) wire() (string, string) {
	return "system", "model_refusal_fallback"
}

// ModelRefusalNoFallbackMessage is system/model_refusal_no_fallback: the model
// refused and nothing answers in its place.
type ModelRefusalNoFallbackMessage struct {
	Common
	ModelRefusal
}

func (*ModelRefusalNoFallbackMessage) wire() (string, string) {
	return "system", "model_refusal_no_fallback"
}

// ModelFallbackMessage is system/model_fallback: another model answers, for the
// first could not (declared by Claude Code 2.1.329).
type ModelFallbackMessage struct {
	Common
	// Trigger is model_not_found, permission_denied, overloaded,
	// server_error, last_resort or model_blocked.
	Trigger       string `json:"trigger"`
	OriginalModel string `json:"original_model"`
	FallbackModel string `json:"fallback_model"`
	Content       string `json:"content"`
}

func (*ModelFallbackMessage) wire() (string, string) { return "system", "model_fallback" }

// ModelRefusal describes a refusal.
type ModelRefusal struct {
	OriginalModel          string `json:"original_model,omitempty"`
	RequestID              string `json:"request_id,omitempty"`
	APIRefusalCategory     string `json:"api_refusal_category,omitempty"`
	APIRefusalExplanation  string `json:"api_refusal_explanation,omitempty"`
	SawCyberRefusal        bool   `json:"saw_cyber_refusal,omitempty"`
	RefusedUserMessageUUID string `json:"refused_user_message_uuid,omitempty"`
	Content                string `json:"content,omitempty"`
}
