package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// InitializeRequest is the first request of a session. The answer is an
// [InitializeResponse]. The fields that only one vendor reads are marked; a
// dialect sends no other's.
type InitializeRequest struct {
	// Hooks names the callbacks by event.
	Hooks map[HookEvent][]HookMatcher `json:"hooks,omitempty"`
	// SDKMCPServers names the MCP servers that live in the host. Claude Code
	// trusts a manifest in place of a handshake (observed on 2.1.329).
	SDKMCPServers         []string                `json:"sdkMcpServers,omitempty"`
	SDKMCPServerConfigs   map[string]SDKMCPConfig `json:"sdkMcpServerConfigs,omitempty"`         // by server, each a name in SDKMCPServers; Claude
	SDKMCPServerManifests map[string]MCPManifest  `json:"sdkMcpServerManifests,omitempty"`       // by server; read once, in place of a handshake; Claude
	SDKMCPManifestsOrigin string                  `json:"sdkMcpServerManifestsOrigin,omitempty"` // host_per_send: needed over a remote transport only
	SDKMCPToolOverrides   json.RawMessage         `json:"sdkMcpToolOverrides,omitempty"`         // by server: exposed names and lazy loading, an object; Qoder
	// JSONSchema is the schema of the structured output.
	JSONSchema json.RawMessage `json:"jsonSchema,omitempty"`
	// SystemPrompt nil keeps the agent's own; an empty one is empty.
	SystemPrompt         *SystemPrompt `json:"systemPrompt,omitempty"`
	AppendSystemPrompt   string        `json:"appendSystemPrompt,omitempty"`   // added to the agent's own prompt; "": nothing
	SystemPromptSnapshot *bool         `json:"systemPromptSnapshot,omitempty"` // the first prompt is recorded and used again on resume; Claude
	// ExcludeDynamicSections moves the working directory and memory paths from
	// the prompt to the first user message, so that sessions share a cached
	// prompt. Claude only.
	ExcludeDynamicSections bool   `json:"excludeDynamicSections,omitempty"`
	PlanModeInstructions   string `json:"planModeInstructions,omitempty"` // replaces the agent's plan mode workflow; "": its own; Claude
	// ToolAliases maps the name that the model calls to the tool that runs.
	// Claude only.
	ToolAliases map[string]string          `json:"toolAliases,omitempty"`
	Agents      map[string]AgentDefinition `json:"agents,omitempty"` // subagents by name
	Title       string                     `json:"title,omitempty"`  // of the session; "": the agent finds one; Claude
	// Skills nil leaves the choice to the agent; an empty list: no skills.
	Skills                 Nullable[[]string] `json:"skills,omitzero"`
	PromptSuggestions      bool               `json:"promptSuggestions,omitempty"`      // brings a [PromptSuggestionMessage] after results
	AgentProgressSummaries bool               `json:"agentProgressSummaries,omitempty"` // brings TaskProgressMessage.Summary; Claude
	ForwardSubagentText    bool               `json:"forwardSubagentText,omitempty"`    // also brings text blocks of subagents; Claude
	SupportedDialogKinds   []string           `json:"supportedDialogKinds,omitempty"`   // kinds that the host can show; the agent asks for no others; Claude
	PerTaskStopAffordance  bool               `json:"perTaskStopAffordance,omitempty"`  // the host offers to stop each task: interrupts then spare them; Claude
	// MCPServers and Plugins are read only by an agent started with
	// --await-initialize.
	MCPServers map[string]MCPServerConfig `json:"mcpServers,omitempty"` // by name; Claude
	Plugins    []PluginConfig             `json:"plugins,omitempty"`    // as --plugin-dir would name them; Claude

	// The rest is Qoder's.
	ModelPolicyProvider            *bool           `json:"modelPolicyProvider,omitempty"`            // the host answers [ModelPolicyRequest]; nil is not sent
	SupportsCatalogReadyInitialize bool            `json:"supportsCatalogReadyInitialize,omitempty"` // set by Qoder's SDK; meaning not documented
	SupportsAvailableModelsUpdate  bool            `json:"supportsAvailableModelsUpdate,omitempty"`  // the host reads [AvailableModelsUpdateMessage]
	SupportsCommandsChanged        bool            `json:"supportsCommandsChanged,omitempty"`        // the host reads [CommandsChangedMessage]
	InitializeTimeoutMS            Millis          `json:"initializeTimeoutMs,omitempty"`            // how long the host waits, in ms; 120,000 in Qoder's SDK
	EnableFileCheckpointing        *bool           `json:"enableFileCheckpointing,omitempty"`        // keeps files for [RewindFilesRequest]; nil is not sent
	ModelRequestPatches            json.RawMessage `json:"modelRequestPatches,omitempty"`            // changes of the model requests, passed on as given
	Memory                         json.RawMessage `json:"memory,omitempty"`                         // an object with requester "sdk"; nil: no memory
	Evolution                      json.RawMessage `json:"evolution,omitempty"`                      // an object with skill.requester "sdk"; nil: none
	GoalMaxTurns                   *int            `json:"goalMaxTurns,omitempty"`                   // in Qoder's types; its SDK 1.0.39 never sends it
}

// SystemPrompt is a prompt of one or more parts.
type SystemPrompt struct {
	Parts []string // an element __SYSTEM_PROMPT_DYNAMIC_BOUNDARY__ ends the part that is cached
	// Bare writes the first part as a string, as Qoder wants, where Claude
	// Code wants a list.
	Bare bool
}

// MarshalJSON encodes a list, or a string.
func (p SystemPrompt) MarshalJSON() ([]byte, error) {
	switch {
	case p.Bare && len(p.Parts) == 0:
		return []byte(`""`), nil
	case p.Bare:
		return Marshal(p.Parts[0])
	case p.Parts == nil:
		return []byte("[]"), nil
	}
	return Marshal(p.Parts)
}

// UnmarshalJSON decodes a list, or a string.
func (p *SystemPrompt) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		p.Parts, p.Bare = make([]string, 1), true
		return Unmarshal(b, &p.Parts[0])
	}
	p.Bare = false
	return Unmarshal(b, &p.Parts)
}

// SDKMCPConfig configures an MCP server that lives in the host.
type SDKMCPConfig struct {
	Timeout Millis `json:"timeout,omitempty"` // of a tool call, in milliseconds; 0: the agent's default
}

// MCPManifest has the results of such a server for MCP's initialize and tools/list,
// unchanged.
type MCPManifest struct {
	InitializeResult json.RawMessage `json:"initializeResult"`          // an object
	ToolsListResult  json.RawMessage `json:"toolsListResult,omitempty"` // an object; nil: the agent asks for the list
}

// PluginConfig is a plugin to load.
type PluginConfig struct {
	Type             string `json:"type"`                       // local
	Path             string `json:"path"`                       // a directory, absolute or relative to the session's
	SkipMCPDiscovery bool   `json:"skipMcpDiscovery,omitempty"` // leaves out the plugin's MCP servers
}

// MCPServerConfig configures an MCP server. Type says which fields are used.
type MCPServerConfig struct {
	// Type is stdio (the same as ""), sse, http, sdk or claudeai-proxy.
	Type string `json:"type,omitempty"`
	// Name is for sdk: the server lives in the host.
	Name string `json:"name,omitempty"`

	Command string            `json:"command,omitempty"` // stdio
	Args    []string          `json:"args,omitempty"`    // stdio
	Env     map[string]string `json:"env,omitempty"`     // stdio; may hold secrets
	URL     string            `json:"url,omitempty"`     // sse, http, claudeai-proxy
	Headers map[string]string `json:"headers,omitempty"` // sse, http; may hold secrets
	ID      string            `json:"id,omitempty"`      // claudeai-proxy; the server's id at claude.ai

	Tools      []MCPToolPolicy `json:"tools,omitempty"`      // rules by tool; Claude
	Timeout    Millis          `json:"timeout,omitempty"`    // of a tool call, in milliseconds; 0: the agent's default
	AlwaysLoad *bool           `json:"alwaysLoad,omitempty"` // true: the tools stay in the prompt; false: a tool search finds them; nil: the agent's default
	// ToolOverrides is Qoder's.
	ToolOverrides json.RawMessage `json:"toolOverrides,omitempty"`
	// Scope says where the server was configured, in a status.
	Scope string `json:"scope,omitempty"`
}

// MCPToolPolicy is a rule about one tool of an MCP server.
type MCPToolPolicy struct {
	Name             string `json:"name"`                         // at its server, without mcp__SERVER__
	PermissionPolicy string `json:"permission_policy,omitempty"`  // always_allow, always_ask, always_deny
	OrgMaxPermission string `json:"org_max_permission,omitempty"` // allow, ask, blocked
}

// AgentDefinition defines a subagent.
type AgentDefinition struct {
	Description     string           `json:"description"`               // tells the model when to use the agent
	Prompt          string           `json:"prompt"`                    // the agent's system prompt
	Tools           []string         `json:"tools,omitempty"`           // the only tools it has; nil: the default set
	DisallowedTools []string         `json:"disallowedTools,omitempty"` // taken from its tools; mcp__SERVER takes a whole server
	Model           string           `json:"model,omitempty"`           // an alias, a full id or inherit; "": the default
	MCPServers      []AgentMCPServer `json:"mcpServers,omitempty"`      // the session's by name, or its own
	Skills          []string         `json:"skills,omitempty"`          // loaded into its context from the start
	InitialPrompt   string           `json:"initialPrompt,omitempty"`   // first prompt, if it is the session's main agent
	MaxTurns        int              `json:"maxTurns,omitempty"`        // model calls; 0: not set
	Effort          Effort           `json:"effort,omitempty"`          // "": not set
	PermissionMode  PermissionMode   `json:"permissionMode,omitempty"`  // of its tool calls; "": not set
	Background      *bool            `json:"background,omitempty"`      // calls of it do not wait; nil: the agent's default
	Memory          string           `json:"memory,omitempty"`          // user, project, local
	Isolation       string           `json:"isolation,omitempty"`       // worktree: in a temporary git worktree; "": none (Qoder)
	OmitClaudeMD    *bool            `json:"omitClaudeMd,omitempty"`    // as a subagent it does not read CLAUDE.md files; Claude
	Observer        string           `json:"observer,omitempty"`        // agents that watch it, at most four, separated by commas; Claude
	ObserverMessage string           `json:"observerMessage,omitempty"` // added to what its observers read; Claude
	// AutoCompactWindow is the number of tokens at which it compacts its
	// conversation as a subagent; 0: inherited. Claude.
	AutoCompactWindow int `json:"autoCompactWindow,omitempty"`
	// CriticalSystemReminder is experimental in Claude's types.
	CriticalSystemReminder string `json:"criticalSystemReminder_EXPERIMENTAL,omitempty"`
}

// AgentMCPServer is an MCP server of a subagent: the name of one of the session's, or
// its own servers by name.
type AgentMCPServer struct {
	Name    string                     // of one of the session's servers; "" with Servers
	Servers map[string]MCPServerConfig // by name; nil with Name
}

// MarshalJSON encodes a name, or an object.
func (s AgentMCPServer) MarshalJSON() ([]byte, error) {
	if s.Servers != nil {
		return Marshal(s.Servers)
	}
	return Marshal(s.Name)
}

// UnmarshalJSON decodes a name, or an object.
func (s *AgentMCPServer) UnmarshalJSON(b []byte) error {
	*s = AgentMCPServer{}
	if len(b) > 0 && b[0] == '"' {
		return Unmarshal(b, &s.Name)
	}
	return Unmarshal(b, &s.Servers)
}

// Effort is how hard the model thinks: low, medium, high, xhigh, max, or
// decimal digits, which are a number on the wire.
type Effort string

// MarshalJSON encodes a string, or a number.
func (e Effort) MarshalJSON() ([]byte, error) {
	if isNumber(string(e)) {
		return []byte(e), nil
	}
	return appendString(nil, string(e)), nil
}

// UnmarshalJSON decodes a string, a number, or null.
func (e *Effort) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*e = ""
	case isNumber(string(b)):
		*e = Effort(b)
	case len(b) > 0 && b[0] == '"':
		*e = Effort(jsonscan.Text(b))
	default:
		return fmt.Errorf("effort is neither a string nor a number: %.20q", b)
	}
	return nil
}

func isNumber(s string) bool {
	return s != "" && json.Valid([]byte(s)) && (s[0] == '-' || s[0] >= '0' && s[0] <= '9')
}

// InitializeResponse is the answer to an [InitializeRequest].
type InitializeResponse struct {
	Commands              []SlashCommand `json:"commands"`                          // slash commands and skills
	Agents                []AgentInfo    `json:"agents"`                            // subagents that can be used
	OutputStyle           string         `json:"output_style,omitempty"`            // the name in effect
	AvailableOutputStyles []string       `json:"available_output_styles,omitempty"` // names
	UserOutputStylesDir   string         `json:"user_output_styles_dir,omitempty"`  // a directory of the agent's user, for own styles
	Models                []ModelInfo    `json:"models"`                            // those that [SetModelRequest] takes
	Account               AccountInfo    `json:"account"`                           // {} without a login
	// Capabilities name protocol features; absent means none.
	Capabilities []string `json:"capabilities,omitempty"`

	PID               int    `json:"pid,omitempty"`                 // of the agent; 0: not sent
	ClaudeCodeVersion string `json:"claude_code_version,omitempty"` // such as 2.1.329; "" from qodercli
	// CurrentPermissionMode is Claude's, PermissionMode Qoder's.
	CurrentPermissionMode PermissionMode `json:"current_permission_mode,omitempty"`
	PermissionMode        PermissionMode `json:"permissionMode,omitempty"` // see CurrentPermissionMode
	SessionState          SessionState   `json:"session_state,omitempty"`  // "": not sent
	FastMode

	// The parts of the request that were applied; false also for parts that it did not
	// have.
	HooksApplied      bool `json:"hooks_applied,omitempty"`
	PluginsApplied    bool `json:"plugins_applied,omitempty"`     // every plugin of the request is loaded
	MCPServersApplied bool `json:"mcp_servers_applied,omitempty"` // the servers of the request are those of the session
	// SDKMCPManifestsParked says by server what became of its manifest:
	// parked, already_connected, protocol_version_mismatch, malformed, ….
	SDKMCPManifestsParked map[string]string `json:"sdk_mcp_manifests_parked,omitempty"`

	HookOnFailureSupported     bool            `json:"hook_on_failure_supported,omitempty"`           // the agent knows onFailure in a [HookMatcher]
	HooksWhenUnansweredKept    int             `json:"hooks_when_unanswered_kept,omitempty"`          // 0 was observed (2.1.329); meaning not documented
	OtherHookAskOutranksHost   bool            `json:"other_hook_ask_outranks_host,omitempty"`        // true was observed (2.1.329); meaning not documented
	FeedbackMode               json.RawMessage `json:"feedback_mode,omitempty"`                       // {"kind":"disabled"} was observed (2.1.329)
	AnalyticsDisabled          bool            `json:"analytics_disabled,omitempty"`                  // the agent sends no telemetry
	RemoteControlAutoEnable    bool            `json:"remote_control_auto_enable,omitempty"`          // for Claude's own applications
	RemoteControlAutoConnect   bool            `json:"remote_control_auto_connect_default,omitempty"` // for Claude's own applications
	RemoteControlAvailable     bool            `json:"remote_control_available,omitempty"`            // for Claude's own applications
	RemoteControlAutoOnDefault bool            `json:"remote_control_auto_on_by_default,omitempty"`   // for Claude's own applications
	IDERCAutoEnableGate        bool            `json:"ide_rc_auto_enable_gate,omitempty"`             // for Claude's own applications

	// Memory and Evolution are Qoder's.
	Memory    *MemoryState    `json:"memory,omitempty"`
	Evolution json.RawMessage `json:"evolution,omitempty"` // enabled and requester, an object
}

// MemoryState is the state of Qoder's memory.
type MemoryState struct {
	Enabled   bool   `json:"enabled"`             // memory requests are answered
	Requester string `json:"requester,omitempty"` // sdk: the host asked for it
	Mode      string `json:"mode,omitempty"`      // as in the request
}

// AgentInfo is a subagent that can be used.
type AgentInfo struct {
	Name        string `json:"name"`            // what an Agent call names
	Description string `json:"description"`     // tells the model when to use it
	Model       string `json:"model,omitempty"` // an alias, a full id or inherit; "": the default
}

// ModelInfo is a model that can be used.
type ModelInfo struct {
	Value                    string   `json:"value"`                              // what [SetModelRequest] and [ModelPolicyReply] take
	ResolvedModel            string   `json:"resolvedModel,omitempty"`            // the full id; "": not sent
	DisplayName              string   `json:"displayName"`                        // for people
	Description              string   `json:"description,omitempty"`              // for people; "": none
	SupportsEffort           bool     `json:"supportsEffort,omitempty"`           // SupportedEffortLevels can be set
	SupportedEffortLevels    []string `json:"supportedEffortLevels,omitempty"`    // low, medium, high, xhigh, max
	SupportsAdaptiveThinking bool     `json:"supportsAdaptiveThinking,omitempty"` // the model decides how much it thinks
	SupportsFastMode         bool     `json:"supportsFastMode,omitempty"`         // see [FastMode]
	SupportsAutoMode         bool     `json:"supportsAutoMode,omitempty"`         // permission mode auto can be set
	SupportsThinkingOff      bool     `json:"supportsThinkingOff,omitempty"`      // the thinking can be turned off
	// IsEnabled is Qoder's; nil means it can be used.
	IsEnabled *bool `json:"isEnabled,omitempty"`
}

// AccountInfo is the account that the agent runs under. UserID is Qoder's.
type AccountInfo struct {
	Email            string `json:"email,omitempty"`            // "": no login of a person
	Organization     string `json:"organization,omitempty"`     // its name; "": none
	SubscriptionType string `json:"subscriptionType,omitempty"` // pro, max, team, enterprise, …; "": none
	TokenSource      string `json:"tokenSource,omitempty"`      // where a login token is from; "none": no login
	APIKeySource     string `json:"apiKeySource,omitempty"`     // as InitMessage.APIKeySource
	APIProvider      string `json:"apiProvider,omitempty"`      // firstParty, bedrock, vertex, foundry, anthropicAws, mantle, gateway, …
	UserID           string `json:"userId,omitempty"`           // "" from Claude Code
}
