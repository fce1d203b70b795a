package dialect

import "encoding/json"

// Sandbox confines the shell commands of a session. Its JSON is the "sandbox" key of the settings, into which it is
// merged: objects key by key, lists of what is denied joined, anything else replaced. An absent field says nothing, and
// the settings' own value stands.
type Sandbox struct {
	// Enabled turns the sandbox on or off; absent: what the settings say, off without them.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// FailIfUnavailable refuses to start when the sandbox cannot; absent: true when Enabled is, as the vendor's SDK has it.
	FailIfUnavailable Opt[bool] `json:"failIfUnavailable,omitzero"`
	// AutoAllowBashIfSandboxed lets sandboxed commands run without asking; absent: true. It hides CanUseTool for them.
	AutoAllowBashIfSandboxed Opt[bool] `json:"autoAllowBashIfSandboxed,omitzero"`
	// ExcludedCommands run outside the sandbox, such as docker.
	ExcludedCommands []string `json:"excludedCommands,omitzero"`
	// AllowUnsandboxedCommands lets the model ask to run a command outside; absent: true.
	AllowUnsandboxedCommands Opt[bool] `json:"allowUnsandboxedCommands,omitzero"`
	// Network limits what commands may reach.
	Network *SandboxNetwork `json:"network,omitempty"`
	// Filesystem limits what commands may read and write.
	Filesystem *SandboxFilesystem `json:"filesystem,omitempty"`
	// IgnoreViolations leaves violations unreported, by kind (file, network) or command pattern.
	IgnoreViolations map[string][]string `json:"ignoreViolations,omitzero"`
	// EnableWeakerNestedSandbox works inside unprivileged containers, at a loss; absent: false.
	EnableWeakerNestedSandbox Opt[bool] `json:"enableWeakerNestedSandbox,omitzero"`
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

// SandboxNetwork limits what sandboxed commands may reach. What is absent is what the settings say.
type SandboxNetwork struct {
	// AllowedDomains may be reached; DeniedDomains not, which wins.
	AllowedDomains []string `json:"allowedDomains,omitzero"`
	DeniedDomains  []string `json:"deniedDomains,omitzero"`
	// AllowManagedDomainsOnly leaves it to the managed settings to allow domains.
	AllowManagedDomainsOnly Opt[bool] `json:"allowManagedDomainsOnly,omitzero"`
	// AllowLocalBinding lets commands listen on local ports; absent: false.
	AllowLocalBinding Opt[bool] `json:"allowLocalBinding,omitzero"`
	// AllowUnixSockets are paths of sockets that may be used.
	AllowUnixSockets []string `json:"allowUnixSockets,omitzero"`
	// AllowAllUnixSockets lets commands use every socket; absent: false.
	AllowAllUnixSockets Opt[bool] `json:"allowAllUnixSockets,omitzero"`
	// HTTPProxyPort and SOCKSProxyPort are ports of your own proxies on localhost.
	HTTPProxyPort  Opt[int] `json:"httpProxyPort,omitzero"`
	SOCKSProxyPort Opt[int] `json:"socksProxyPort,omitzero"`
}

// SandboxFilesystem limits what sandboxed commands may read and write. Entries are paths or patterns.
type SandboxFilesystem struct {
	AllowWrite []string `json:"allowWrite,omitzero"`
	DenyWrite  []string `json:"denyWrite,omitzero"`
	DenyRead   []string `json:"denyRead,omitzero"`
	// AllowRead are exceptions from DenyRead.
	AllowRead []string `json:"allowRead,omitzero"`
	// AllowManagedReadPathsOnly leaves it to the managed settings to make such exceptions; absent: false.
	AllowManagedReadPathsOnly Opt[bool] `json:"allowManagedReadPathsOnly,omitzero"`
}

// SecurityScan chooses the scans of generated code. All three levels are sent. Qoder.
type SecurityScan struct {
	L1StaticCheck     bool `json:"l1StaticCheck"`
	L2LightweightScan bool `json:"l2LightweightScan"`
	L3DeepScan        bool `json:"l3DeepScan"`
}

// Plugin is a directory with skills, agents, hooks and MCP servers.
type Plugin struct {
	// Type is local; empty: local, which is what goes to the agent.
	Type string `json:"type,omitempty"`
	// Path is absolute, or relative to Cwd.
	Path string `json:"path"`
	// SkipMCPDiscovery leaves the plugin's MCP servers alone. Claude.
	SkipMCPDiscovery bool `json:"skipMcpDiscovery,omitempty"`
}
