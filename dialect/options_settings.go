package dialect

import "encoding/json"

// Sandbox confines the shell commands of a session. Its JSON is the "sandbox" key of the settings.
type Sandbox struct {
	Enabled bool `json:"enabled"`
	// FailIfUnavailable refuses to start when the sandbox cannot; absent: true, as the vendor's SDK has it.
	FailIfUnavailable Opt[bool] `json:"failIfUnavailable,omitzero"`
	// AutoAllowBashIfSandboxed lets sandboxed commands run without asking. It hides CanUseTool for them.
	AutoAllowBashIfSandboxed Opt[bool] `json:"autoAllowBashIfSandboxed,omitzero"`
	// ExcludedCommands run outside the sandbox.
	ExcludedCommands []string `json:"excludedCommands,omitempty"`
	// AllowUnsandboxedCommands lets the model ask to run a command outside; absent: true.
	AllowUnsandboxedCommands Opt[bool]          `json:"allowUnsandboxedCommands,omitzero"`
	Network                  *SandboxNetwork    `json:"network,omitempty"`
	Filesystem               *SandboxFilesystem `json:"filesystem,omitempty"`
	// IgnoreViolations leaves violations unreported, by command pattern.
	IgnoreViolations map[string][]string `json:"ignoreViolations,omitempty"`
	// EnableWeakerNestedSandbox works inside unprivileged containers, at a loss.
	EnableWeakerNestedSandbox bool `json:"enableWeakerNestedSandbox,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// MarshalJSON encodes the sandbox with its Extra keys.
func (s Sandbox) MarshalJSON() ([]byte, error) {
	type plain Sandbox
	return MarshalWith(plain(s), s.Extra)
}

// UnmarshalJSON decodes the sandbox, unknown keys into Extra.
func (s *Sandbox) UnmarshalJSON(b []byte) error {
	type plain Sandbox
	return unmarshalWith(b, (*plain)(s), &s.Extra)
}

// SandboxNetwork limits what sandboxed commands may reach.
type SandboxNetwork struct {
	AllowedDomains      []string  `json:"allowedDomains,omitempty"`
	AllowLocalBinding   bool      `json:"allowLocalBinding,omitempty"`
	AllowUnixSockets    []string  `json:"allowUnixSockets,omitempty"`
	AllowAllUnixSockets bool      `json:"allowAllUnixSockets,omitempty"`
	HTTPProxyPort       Opt[int]  `json:"httpProxyPort,omitzero"`
	SOCKSProxyPort      Opt[int]  `json:"socksProxyPort,omitzero"`
	AllowManagedOnly    Opt[bool] `json:"allowManagedDomainsOnly,omitzero"`
}

// SandboxFilesystem limits what sandboxed commands may read and write.
type SandboxFilesystem struct {
	AllowWrite                []string `json:"allowWrite,omitempty"`
	DenyWrite                 []string `json:"denyWrite,omitempty"`
	DenyRead                  []string `json:"denyRead,omitempty"`
	AllowRead                 []string `json:"allowRead,omitempty"`
	AllowManagedReadPathsOnly bool     `json:"allowManagedReadPathsOnly,omitempty"`
}

// SecurityScan chooses the scans of generated code. All three levels are sent. Qoder.
type SecurityScan struct {
	L1StaticCheck     bool `json:"l1StaticCheck"`
	L2LightweightScan bool `json:"l2LightweightScan"`
	L3DeepScan        bool `json:"l3DeepScan"`
}

// Plugin is a directory with skills, agents, hooks and MCP servers.
type Plugin struct {
	// Type is local; empty: local.
	Type string `json:"type"`
	// Path is absolute, or relative to Cwd.
	Path string `json:"path"`
	// SkipMCPDiscovery leaves the plugin's MCP servers alone. Claude.
	SkipMCPDiscovery bool `json:"skipMcpDiscovery,omitempty"`
}
