package protocol

import (
	"encoding/json"
	"fmt"
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
	SDKMCPServerConfigs   map[string]SDKMCPConfig `json:"sdkMcpServerConfigs,omitempty"`   // Claude
	SDKMCPServerManifests map[string]MCPManifest  `json:"sdkMcpServerManifests,omitempty"` // Claude
	SDKMCPManifestsOrigin string                  `json:"sdkMcpServerManifestsOrigin,omitempty"`
	SDKMCPToolOverrides   json.RawMessage         `json:"sdkMcpToolOverrides,omitempty"` // Qoder
	// JSONSchema is the schema of the structured output.
	JSONSchema json.RawMessage `json:"jsonSchema,omitempty"`
	// SystemPrompt nil keeps the agent's own; an empty one is empty.
	SystemPrompt           *SystemPrompt              `json:"systemPrompt,omitempty"`
	AppendSystemPrompt     string                     `json:"appendSystemPrompt,omitempty"`
	SystemPromptSnapshot   bool                       `json:"systemPromptSnapshot,omitempty"`   // Claude
	ExcludeDynamicSections bool                       `json:"excludeDynamicSections,omitempty"` // Claude
	PlanModeInstructions   string                     `json:"planModeInstructions,omitempty"`   // Claude
	ToolAliases            map[string]string          `json:"toolAliases,omitempty"`            // Claude
	Agents                 map[string]AgentDefinition `json:"agents,omitempty"`
	Title                  string                     `json:"title,omitempty"` // Claude
	// Skills nil leaves the choice to the agent; an empty list is none.
	Skills                 Nullable[[]string] `json:"skills,omitzero"`
	PromptSuggestions      bool               `json:"promptSuggestions,omitempty"`
	AgentProgressSummaries bool               `json:"agentProgressSummaries,omitempty"` // Claude
	ForwardSubagentText    bool               `json:"forwardSubagentText,omitempty"`    // Claude
	SupportedDialogKinds   []string           `json:"supportedDialogKinds,omitempty"`   // Claude
	PerTaskStopAffordance  bool               `json:"perTaskStopAffordance,omitempty"`  // Claude
	// MCPServers and Plugins are read only by an agent started with
	// --await-initialize.
	MCPServers map[string]MCPServerConfig `json:"mcpServers,omitempty"` // Claude
	Plugins    []PluginConfig             `json:"plugins,omitempty"`    // Claude

	// The rest is Qoder's.
	ModelPolicyProvider            *bool           `json:"modelPolicyProvider,omitempty"`
	SupportsCatalogReadyInitialize bool            `json:"supportsCatalogReadyInitialize,omitempty"`
	SupportsAvailableModelsUpdate  bool            `json:"supportsAvailableModelsUpdate,omitempty"`
	SupportsCommandsChanged        bool            `json:"supportsCommandsChanged,omitempty"`
	InitializeTimeoutMS            Millis          `json:"initializeTimeoutMs,omitempty"`
	EnableFileCheckpointing        *bool           `json:"enableFileCheckpointing,omitempty"`
	ModelRequestPatches            json.RawMessage `json:"modelRequestPatches,omitempty"`
	Memory                         json.RawMessage `json:"memory,omitempty"`
	Evolution                      json.RawMessage `json:"evolution,omitempty"`
	GoalMaxTurns                   *int            `json:"goalMaxTurns,omitempty"`
}

// SystemPrompt is a prompt of one or more parts.
type SystemPrompt struct {
	Parts []string
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
		return marshal(p.Parts[0])
	case p.Parts == nil:
		return []byte("[]"), nil
	}
	return marshal(p.Parts)
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
	Timeout Millis `json:"timeout,omitempty"`
}

// MCPManifest is what such a server would answer to a handshake: the results
// of MCP's initialize and tools/list, as they are.
type MCPManifest struct {
	InitializeResult json.RawMessage `json:"initializeResult"`
	ToolsListResult  json.RawMessage `json:"toolsListResult,omitempty"`
}

// PluginConfig is a plugin to load.
type PluginConfig struct {
	Type             string `json:"type"` // local
	Path             string `json:"path"`
	SkipMCPDiscovery bool   `json:"skipMcpDiscovery,omitempty"`
}

// MCPServerConfig configures an MCP server. Which fields count depends on Type.
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
	ID      string            `json:"id,omitempty"`      // claudeai-proxy

	Tools      []MCPToolPolicy `json:"tools,omitempty"`
	Timeout    Millis          `json:"timeout,omitempty"`
	AlwaysLoad bool            `json:"alwaysLoad,omitempty"`
	// ToolOverrides is Qoder's.
	ToolOverrides json.RawMessage `json:"toolOverrides,omitempty"`
	// Scope says where the server was configured, in a status.
	Scope string `json:"scope,omitempty"`
}

// MCPToolPolicy is a rule about one tool of an MCP server.
type MCPToolPolicy struct {
	Name             string `json:"name"`
	PermissionPolicy string `json:"permission_policy,omitempty"`  // always_allow, always_ask, always_deny
	OrgMaxPermission string `json:"org_max_permission,omitempty"` // allow, ask, blocked
}

// AgentDefinition defines a subagent.
type AgentDefinition struct {
	Description     string           `json:"description"`
	Prompt          string           `json:"prompt"`
	Tools           []string         `json:"tools,omitempty"`
	DisallowedTools []string         `json:"disallowedTools,omitempty"`
	Model           string           `json:"model,omitempty"`
	MCPServers      []AgentMCPServer `json:"mcpServers,omitempty"`
	Skills          []string         `json:"skills,omitempty"`
	InitialPrompt   string           `json:"initialPrompt,omitempty"`
	MaxTurns        int              `json:"maxTurns,omitempty"`
	Effort          Effort           `json:"effort,omitempty"`
	PermissionMode  PermissionMode   `json:"permissionMode,omitempty"`
	Background      bool             `json:"background,omitempty"`
	Memory          string           `json:"memory,omitempty"` // user, project, local
	Isolation       string           `json:"isolation,omitempty"`
	OmitClaudeMD    bool             `json:"omitClaudeMd,omitempty"`
	Observer        string           `json:"observer,omitempty"`
	ObserverMessage string           `json:"observerMessage,omitempty"`
	// CriticalSystemReminder is experimental in Claude's types.
	CriticalSystemReminder string `json:"criticalSystemReminder_EXPERIMENTAL,omitempty"`
}

// AgentMCPServer is an MCP server of a subagent: the name of one of the
// session's, or servers of its own by name.
type AgentMCPServer struct {
	Name    string
	Servers map[string]MCPServerConfig
}

// MarshalJSON encodes a name, or an object.
func (s AgentMCPServer) MarshalJSON() ([]byte, error) {
	if s.Servers != nil {
		return marshal(s.Servers)
	}
	return marshal(s.Name)
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
		*e = Effort(stringOf(b))
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
	Commands              []SlashCommand `json:"commands"`
	Agents                []AgentInfo    `json:"agents"`
	OutputStyle           string         `json:"output_style,omitempty"`
	AvailableOutputStyles []string       `json:"available_output_styles,omitempty"`
	UserOutputStylesDir   string         `json:"user_output_styles_dir,omitempty"`
	Models                []ModelInfo    `json:"models"`
	Account               AccountInfo    `json:"account"`
	// Capabilities name protocol features; absent means none.
	Capabilities []string `json:"capabilities,omitempty"`

	PID               int    `json:"pid,omitempty"`
	ClaudeCodeVersion string `json:"claude_code_version,omitempty"`
	// CurrentPermissionMode is Claude's, PermissionMode Qoder's.
	CurrentPermissionMode PermissionMode `json:"current_permission_mode,omitempty"`
	PermissionMode        PermissionMode `json:"permissionMode,omitempty"`
	SessionState          SessionState   `json:"session_state,omitempty"`
	FastMode

	// What was applied of the request; false also if it was not asked for.
	HooksApplied      bool `json:"hooks_applied,omitempty"`
	PluginsApplied    bool `json:"plugins_applied,omitempty"`
	MCPServersApplied bool `json:"mcp_servers_applied,omitempty"`
	// SDKMCPManifestsParked says by server what became of its manifest:
	// parked, already_connected, protocol_version_mismatch, malformed, ….
	SDKMCPManifestsParked map[string]string `json:"sdk_mcp_manifests_parked,omitempty"`

	HookOnFailureSupported     bool            `json:"hook_on_failure_supported,omitempty"`
	HooksWhenUnansweredKept    int             `json:"hooks_when_unanswered_kept,omitempty"`
	OtherHookAskOutranksHost   bool            `json:"other_hook_ask_outranks_host,omitempty"`
	FeedbackMode               json.RawMessage `json:"feedback_mode,omitempty"`
	AnalyticsDisabled          bool            `json:"analytics_disabled,omitempty"`
	RemoteControlAutoEnable    bool            `json:"remote_control_auto_enable,omitempty"`
	RemoteControlAutoConnect   bool            `json:"remote_control_auto_connect_default,omitempty"`
	RemoteControlAvailable     bool            `json:"remote_control_available,omitempty"`
	RemoteControlAutoOnDefault bool            `json:"remote_control_auto_on_by_default,omitempty"`
	IDERCAutoEnableGate        bool            `json:"ide_rc_auto_enable_gate,omitempty"`

	// Memory and Evolution are Qoder's.
	Memory    *MemoryState    `json:"memory,omitempty"`
	Evolution json.RawMessage `json:"evolution,omitempty"`
}

// MemoryState is the state of Qoder's memory.
type MemoryState struct {
	Enabled   bool   `json:"enabled"`
	Requester string `json:"requester,omitempty"`
	Mode      string `json:"mode,omitempty"`
}

// AgentInfo is a subagent that can be used.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"`
}

// ModelInfo is a model that can be used.
type ModelInfo struct {
	Value                    string   `json:"value"`
	ResolvedModel            string   `json:"resolvedModel,omitempty"`
	DisplayName              string   `json:"displayName"`
	Description              string   `json:"description,omitempty"`
	SupportsEffort           bool     `json:"supportsEffort,omitempty"`
	SupportedEffortLevels    []string `json:"supportedEffortLevels,omitempty"`
	SupportsAdaptiveThinking bool     `json:"supportsAdaptiveThinking,omitempty"`
	SupportsFastMode         bool     `json:"supportsFastMode,omitempty"`
	SupportsAutoMode         bool     `json:"supportsAutoMode,omitempty"`
	SupportsThinkingOff      bool     `json:"supportsThinkingOff,omitempty"`
	// IsEnabled is Qoder's; nil means it can be used.
	IsEnabled *bool `json:"isEnabled,omitempty"`
}

// AccountInfo is the account that the agent runs under. UserID is Qoder's.
type AccountInfo struct {
	Email            string `json:"email,omitempty"`
	Organization     string `json:"organization,omitempty"`
	SubscriptionType string `json:"subscriptionType,omitempty"`
	TokenSource      string `json:"tokenSource,omitempty"`
	APIKeySource     string `json:"apiKeySource,omitempty"`
	APIProvider      string `json:"apiProvider,omitempty"`
	UserID           string `json:"userId,omitempty"`
}
