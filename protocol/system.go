package protocol

import "encoding/json"

// InitMessage is system/init. Claude Code sends it at the start of every turn,
// also of turns that no user line started (observed on 2.1.329); Qoder may
// send it late or never.
type InitMessage struct {
	Common
	Cwd            string         `json:"cwd,omitempty"`            // absolute; follows the agent's shell
	Model          string         `json:"model,omitempty"`          // full id, as resolved by the agent
	PermissionMode PermissionMode `json:"permissionMode,omitempty"` // the mode of the turn that begins
	// APIKeySource is where the key came from: ANTHROPIC_API_KEY, none,
	// user, project, org, temporary, oauth, …
	APIKeySource string `json:"apiKeySource,omitempty"`

	// One of these two is set; ProtocolVersion is Qoder's.
	ClaudeCodeVersion string `json:"claude_code_version,omitempty"` // such as 2.1.329
	QoderCLIVersion   string `json:"qodercli_version,omitempty"`    // such as 1.1.52
	ProtocolVersion   string `json:"protocol_version,omitempty"`    // such as 1.4.0; another major version does not fit

	// Tools lists the tools by name. The subagent tool is listed as Task
	// and called Agent in a tool_use (observed on Claude Code 2.1.329).
	Tools      []string      `json:"tools,omitempty"`
	MCPServers []MCPServer   `json:"mcp_servers,omitempty"`   // as they are at the start of the turn
	Plugins    []Plugin      `json:"plugins,omitempty"`       // those that were loaded
	PluginErrs []PluginError `json:"plugin_errors,omitempty"` // plugins that were not loaded, or not whole
	Agents     []string      `json:"agents,omitempty"`        // names of subagents
	Skills     []string      `json:"skills,omitempty"`        // names
	Betas      []string      `json:"betas,omitempty"`         // the API's beta headers, such as context-1m-2025-08-07
	// SlashCommands are names; Commands, which Qoder sends, are whole.
	SlashCommands         []string       `json:"slash_commands,omitempty"`
	TerminalSlashCommands []string       `json:"terminal_slash_commands,omitempty"` // those of SlashCommands that need a terminal: a host hides them
	Commands              []SlashCommand `json:"commands,omitempty"`                // nil from Claude Code
	// Capabilities name protocol features, such as interrupt_receipt_v1.
	// Absent means none.
	Capabilities []string `json:"capabilities,omitempty"`
	OutputStyle  string   `json:"output_style,omitempty"` // default, or the name of a style
	ViewMode     string   `json:"view_mode,omitempty"`    // default, or focus: people see only the last message of each turn
	Effort       string   `json:"effort,omitempty"`       // low, medium, high, xhigh, max; "": not sent

	OriginalCwd           string          `json:"original_cwd,omitempty"`           // where permission checks begin; does not follow the shell
	AdditionalDirectories []string        `json:"additional_directories,omitempty"` // absolute
	MemoryPaths           *MemoryPaths    `json:"memory_paths,omitempty"`           // nil: no memories, or not said
	ScratchpadPath        string          `json:"scratchpad_path,omitempty"`        // absolute; "": no scratchpad
	SyncedSkillsPath      string          `json:"synced_skills_path,omitempty"`     // absolute; "": no synced skills
	MessagingSocketPath   string          `json:"messaging_socket_path,omitempty"`  // a Unix socket; "": none
	UserMessageUUIDs      []string        `json:"user_message_uuids,omitempty"`     // the user lines that the turn answers; nil if no line had a uuid
	PluginWarnings        []PluginError   `json:"plugin_warnings,omitempty"`        // plugins that were loaded, but want attention
	MCPServerErrors       []MCPStartError `json:"mcp_server_errors,omitempty"`      // servers whose configuration was refused
	// StartupTiming is the agent's own measure, unchanged.
	StartupTiming map[string]json.RawMessage `json:"startup_timing,omitempty"`
	FastMode

	PerTurnEffortActive     bool `json:"per_turn_effort_active,omitempty"`    // a change of the effort keeps the prompt cache
	UltrathinkAvailable     bool `json:"ultrathink_available,omitempty"`      // as AppliedSettings.UltrathinkAvailable
	UltrathinkTypedRaises   bool `json:"ultrathink_typed_raises,omitempty"`   // as UltrathinkAvailable, for a prompt that its client marks
	ServedByAnthropic       bool `json:"served_by_anthropic,omitempty"`       // the model runs at Anthropic's own API
	AnalyticsDisabled       bool `json:"analytics_disabled,omitempty"`        // the agent sends no telemetry
	ProductFeedbackDisabled bool `json:"product_feedback_disabled,omitempty"` // the organization takes no feedback
}

func (*InitMessage) wire() (string, string) { return "system", "init" }

// MCPServer is an MCP server as system/init lists it.
type MCPServer struct {
	Name   string `json:"name"`             // as configured
	Status string `json:"status"`           // as MCPServerStatus.Status
	Source string `json:"source,omitempty"` // as MCPServerProvenance.Source; "": not sent
}

// MemoryPaths are the directories of the agent's memories.
type MemoryPaths struct {
	Auto string `json:"auto,omitempty"` // of the agent's own memories, absolute
	Team string `json:"team,omitempty"` // shared by a team, absolute; "": none
}

// MCPStartError is an MCP server that was left out.
type MCPStartError struct {
	Name    string `json:"name"`    // as configured
	Type    string `json:"type"`    // which kind of error; an open set
	Message string `json:"message"` // for people
}

// Plugin is a loaded plugin.
type Plugin struct {
	Name    string `json:"name"`              // from its manifest
	Path    string `json:"path"`              // of its directory; "builtin" for those of the agent (observed on 2.1.329)
	Source  string `json:"source,omitempty"`  // NAME@MARKETPLACE, or where it is from; "": not sent
	Version string `json:"version,omitempty"` // from its manifest: untrusted; "": none
}

// PluginError is a plugin that did not load.
type PluginError struct {
	Plugin  string `json:"plugin"`         // name, or the path if the name is not known
	Type    string `json:"type"`           // which kind of error; an open set
	Message string `json:"message"`        // for people
	Path    string `json:"path,omitempty"` // set if the whole plugin was not loaded
	// ManagedLock is set if the organization decides on the plugin.
	ManagedLock *PluginLock `json:"managed_lock,omitempty"`
}

// PluginLock is an organization's decision on a plugin.
type PluginLock struct {
	PluginEnabled bool   `json:"plugin_enabled"`        // true: the organization wants its own copy; false: none
	Name          string `json:"name"`                  // from its manifest
	Marketplace   string `json:"marketplace,omitempty"` // of the organization's copy; "": none
}

// SlashCommand is a slash command or a skill.
type SlashCommand struct {
	Name         string   `json:"name"`              // without the slash; PLUGIN:NAME for a plugin's
	Description  string   `json:"description"`       // for people and the model
	ArgumentHint string   `json:"argumentHint"`      // for people, such as <file>; "": no arguments
	Aliases      []string `json:"aliases,omitempty"` // other names, without the slash
	Builtin      bool     `json:"builtin,omitempty"` // Claude Code's own
}

// StatusMessage is system/status: what the agent is busy with, and changes of
// the permission mode.
type StatusMessage struct {
	Common
	// Status is requesting or compacting; "" if the agent does neither.
	Status         string         `json:"status,omitempty"`
	PermissionMode PermissionMode `json:"permissionMode,omitempty"` // the mode from now on; "": unchanged
	// CompactResult is success or failed, at the end of a compaction.
	CompactResult string `json:"compact_result,omitempty"`
	CompactError  string `json:"compact_error,omitempty"` // why the compaction failed; "": it did not
	// CompactOutputChars is how much of the summary was written, while an automatic
	// compaction runs.
	CompactOutputChars int64 `json:"compact_output_chars,omitempty"`
	// ResumeHeldForPlan says that an interrupted turn was not run again,
	// because it was in plan mode.
	ResumeHeldForPlan bool     `json:"resume_held_for_plan,omitempty"`
	UserMessageUUIDs  []string `json:"user_message_uuids,omitempty"` // the user lines of the turn that waits for the model
}

func (*StatusMessage) wire() (string, string) { return "system", "status" }

// SessionState is a state of [SessionStateChangedMessage]: idle, running or requires_action.
type SessionState string

// SessionStateChangedMessage is system/session_state_changed.
type SessionStateChangedMessage struct {
	Common
	State SessionState `json:"state"` // idle: the turn and all that it waits for have ended
	// SDKHostOnly marks a line that Claude's SDK reads and does not pass on.
	// Troupe passes it on.
	SDKHostOnly bool `json:"sdk_host_only,omitempty"`
}

func (*SessionStateChangedMessage) wire() (string, string) {
	return "system", "session_state_changed"
}

// CompactBoundaryMessage is system/compact_boundary: the history before it has
// been summed up.
type CompactBoundaryMessage struct {
	Common
	Metadata          CompactMetadata `json:"compact_metadata"`              // what was summed up
	LogicalParentUUID string          `json:"logical_parent_uuid,omitempty"` // uuid of the last line before the compaction
	// Historical marks replayed history.
	Historical bool `json:"historical,omitempty"`
}

func (*CompactBoundaryMessage) wire() (string, string) { return "system", "compact_boundary" }

// CompactMetadata describes a compaction.
type CompactMetadata struct {
	Trigger                 string             `json:"trigger"`                                // manual, auto
	PreTokens               int64              `json:"pre_tokens"`                             // tokens of the context before
	PostTokens              int64              `json:"post_tokens,omitempty"`                  // tokens of the context after; 0: not sent
	CumulativeDroppedTokens int64              `json:"cumulative_dropped_tokens,omitempty"`    // tokens that this and all earlier compactions removed
	MessagesSummarized      int                `json:"messages_summarized,omitempty"`          // 0: not sent
	Precomputed             bool               `json:"precomputed,omitempty"`                  // the summary was written ahead, in the background
	UserContext             string             `json:"user_context,omitempty"`                 // the person's instructions for the summary; "": none
	DiscoveredTools         []string           `json:"pre_compact_discovered_tools,omitempty"` // tools found by a tool search, which stay in the prompt
	DurationMS              Millis             `json:"duration_ms,omitempty"`                  // how long it took, in milliseconds; 0: not sent
	PreservedSegment        *PreservedSegment  `json:"preserved_segment,omitempty"`            // nil: everything was summed up
	PreservedMessages       *PreservedMessages `json:"preserved_messages,omitempty"`           // if set, it counts and PreservedSegment does not
}

// PreservedSegment is the part of the history that a compaction kept, by uuid.
type PreservedSegment struct {
	HeadUUID   string `json:"head_uuid"`   // its first line
	AnchorUUID string `json:"anchor_uuid"` // the line that it follows from now on
	TailUUID   string `json:"tail_uuid"`   // its last line
}

// PreservedMessages are the messages that a compaction kept.
type PreservedMessages struct {
	AnchorUUID string   `json:"anchor_uuid"`         // the line that the first of them follows from now on
	UUIDs      []string `json:"uuids"`               // those in the transcript, in order
	AllUUIDs   []string `json:"all_uuids,omitempty"` // those and the ones that are not written to the transcript
}

// APIRetryMessage is system/api_retry: a call of the model failed and is made
// again after RetryDelayMS. Claude Code retries a 401 too (observed on 2.1.329).
type APIRetryMessage struct {
	Common
	Attempt      int         `json:"attempt"`                // from 1
	MaxRetries   int         `json:"max_retries"`            // 10 by default (observed on Claude Code 2.1.329)
	RetryDelayMS Millis      `json:"retry_delay_ms"`         // milliseconds
	ErrorStatus  int         `json:"error_status,omitempty"` // HTTP; 0 if none
	Error        string      `json:"error"`                  // rate_limit, server_error, overloaded, …
	NoResponse   *NoResponse `json:"no_response,omitempty"`  // nil if the model responded
}

func (*APIRetryMessage) wire() (string, string) { return "system", "api_retry" }

// NoResponse is a call that brought no answer at all.
type NoResponse struct {
	WaitedMS    Millis `json:"waited_ms"`     // how long the call waited, in milliseconds
	RetryWaitMS Millis `json:"retry_wait_ms"` // how long the retry will wait, in milliseconds
}

// ThinkingTokensMessage is system/thinking_tokens: an estimate while the model
// thinks.
type ThinkingTokensMessage struct {
	Common
	EstimatedTokens      int64  `json:"estimated_tokens"`            // of the response so far
	EstimatedTokensDelta int64  `json:"estimated_tokens_delta"`      // since the message before
	UserMessageUUID      string `json:"user_message_uuid,omitempty"` // as ResultMessage.UserMessageUUID
}

func (*ThinkingTokensMessage) wire() (string, string) { return "system", "thinking_tokens" }

// ModelRefusalFallbackMessage is system/model_refusal_fallback: another model
// answers what the first refused.
type ModelRefusalFallbackMessage struct {
	Common
	ModelRefusal
	Trigger               string   `json:"trigger,omitempty"`                 // refusal
	Direction             string   `json:"direction,omitempty"`               // retry, revert, sticky
	Scope                 string   `json:"scope,omitempty"`                   // session, local
	FallbackModel         string   `json:"fallback_model,omitempty"`          // full id
	RetractedMessageUUIDs []string `json:"retracted_message_uuids,omitempty"` // lines that no longer count: remove them from what is shown
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
	OriginalModel string `json:"original_model"` // full id
	FallbackModel string `json:"fallback_model"` // full id
	Content       string `json:"content"`        // a notice for people
}

func (*ModelFallbackMessage) wire() (string, string) { return "system", "model_fallback" }

// ModelRefusal describes a refusal.
type ModelRefusal struct {
	OriginalModel          string `json:"original_model,omitempty"`            // full id of the model that refused
	RequestID              string `json:"request_id,omitempty"`                // the API's id of the refused call
	APIRefusalCategory     string `json:"api_refusal_category,omitempty"`      // cyber, bio, …; an open set; "": not sent
	APIRefusalExplanation  string `json:"api_refusal_explanation,omitempty"`   // the API's words, for people: the text changes
	SawCyberRefusal        bool   `json:"saw_cyber_refusal,omitempty"`         // one of several refusals in a row had category cyber
	RefusedUserMessageUUID string `json:"refused_user_message_uuid,omitempty"` // the user line that was refused, to edit and send again; "": none
	Content                string `json:"content,omitempty"`                   // a notice for people
}
