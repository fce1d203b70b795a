package session

import (
	"github.com/agent-troupe/troupe/internal/wire"
)

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
	// EnableWeakerNetworkIsolation gives up a part of the isolation of the network; absent: false.
	EnableWeakerNetworkIsolation Opt[bool] `json:"enableWeakerNetworkIsolation,omitzero"`
	// AllowNestedUserNamespaces lets commands make user namespaces, which weakens the isolation; absent: false.
	AllowNestedUserNamespaces Opt[bool] `json:"allowNestedUserNamespaces,omitzero"`
	// AllowAppleEvents lets commands control other programs on macOS, which weakens the isolation; absent: false.
	AllowAppleEvents Opt[bool] `json:"allowAppleEvents,omitzero"`
	// Credentials hides credentials from commands.
	Credentials *SandboxCredentials `json:"credentials,omitempty"`
	// Ripgrep is the ripgrep that the sandbox uses; absent: the one on PATH.
	Ripgrep *SandboxRipgrep `json:"ripgrep,omitempty"`
	// BwrapPath is the bubblewrap that the sandbox uses on Linux; empty: the one on PATH.
	BwrapPath string `json:"bwrapPath,omitempty"`
	// SocatPath is the socat that the sandbox uses on Linux; empty: the one on PATH.
	SocatPath string `json:"socatPath,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// MarshalJSON encodes the sandbox with its Extra keys.
func (s Sandbox) MarshalJSON() ([]byte, error) {
	type plain Sandbox
	return wire.MarshalWith(plain(s), s.Extra)
}

// UnmarshalJSON decodes the sandbox, unknown keys into Extra.
func (s *Sandbox) UnmarshalJSON(b []byte) error {
	type plain Sandbox
	return wire.UnmarshalWith(b, (*plain)(s), &s.Extra)
}

// SandboxNetwork limits what sandboxed commands may reach. What is absent is what the settings say.
type SandboxNetwork struct {
	// AllowedDomains may be reached.
	AllowedDomains []string `json:"allowedDomains,omitzero"`
	// DeniedDomains may not be reached; they win over AllowedDomains.
	DeniedDomains []string `json:"deniedDomains,omitzero"`
	// StrictAllowlist denies what is not allowed without asking; absent: false.
	StrictAllowlist Opt[bool] `json:"strictAllowlist,omitzero"`
	// AllowManagedDomainsOnly leaves it to the managed settings to allow domains.
	AllowManagedDomainsOnly Opt[bool] `json:"allowManagedDomainsOnly,omitzero"`
	// AllowLocalBinding lets commands listen on local ports; absent: false.
	AllowLocalBinding Opt[bool] `json:"allowLocalBinding,omitzero"`
	// AllowUnixSockets are paths of sockets that may be used.
	AllowUnixSockets []string `json:"allowUnixSockets,omitzero"`
	// AllowAllUnixSockets lets commands use every socket; absent: false.
	AllowAllUnixSockets Opt[bool] `json:"allowAllUnixSockets,omitzero"`
	// HTTPProxyPort is the port of your own HTTP proxy on localhost; absent: the sandbox's.
	HTTPProxyPort Opt[int] `json:"httpProxyPort,omitzero"`
	// SOCKSProxyPort is the port of your own SOCKS proxy on localhost; absent: the sandbox's.
	SOCKSProxyPort Opt[int] `json:"socksProxyPort,omitzero"`
	// AllowMachLookup are services of macOS that may be looked up.
	AllowMachLookup []string `json:"allowMachLookup,omitzero"`
	// TLSTerminate has the sandbox's proxy look into TLS.
	TLSTerminate *SandboxTLS `json:"tlsTerminate,omitempty"`
}

// SandboxFilesystem limits what sandboxed commands may read and write. Entries are paths or patterns.
type SandboxFilesystem struct {
	// AllowWrite may be written.
	AllowWrite []string `json:"allowWrite,omitzero"`
	// DenyWrite are exceptions from AllowWrite.
	DenyWrite []string `json:"denyWrite,omitzero"`
	// DenyRead may not be read.
	DenyRead []string `json:"denyRead,omitzero"`
	// AllowRead are exceptions from DenyRead.
	AllowRead []string `json:"allowRead,omitzero"`
	// AllowManagedReadPathsOnly leaves it to the managed settings to make such exceptions; absent: false.
	AllowManagedReadPathsOnly Opt[bool] `json:"allowManagedReadPathsOnly,omitzero"`
	// Disabled leaves files alone; absent: false.
	Disabled Opt[bool] `json:"disabled,omitzero"`
}

// SandboxCredentials hides credentials from sandboxed commands.
type SandboxCredentials struct {
	// Files are hidden. A deny wins over a mask for the same file.
	Files []SandboxCredential `json:"files,omitzero"`
	// EnvVars are hidden. A deny wins over a mask for the same variable.
	EnvVars []SandboxCredential `json:"envVars,omitzero"`
	// AllowPlaintextInject lets a masked value be sent without TLS; absent: false.
	AllowPlaintextInject Opt[bool] `json:"allowPlaintextInject,omitzero"`
	// AWSPairs are keys that sign requests together, as the vendor's types have them.
	AWSPairs json.RawMessage `json:"awsPairs,omitempty"`
	// SigV4 says what becomes of signed requests, as the vendor's types have it.
	SigV4 json.RawMessage `json:"sigv4,omitempty"`
}

// SandboxCredential is a file (Path) or a variable (Name) with a credential in it.
type SandboxCredential struct {
	// Path is the file. Not together with Name.
	Path string `json:"path,omitempty"`
	// Name is the environment variable. Not together with Path.
	Name string `json:"name,omitempty"`
	// Mode is deny, or mask: the command sees another value, and the real one goes to InjectHosts.
	Mode string `json:"mode"`
	// Extract is a pattern for the part that is masked.
	Extract string `json:"extract,omitempty"`
	// OnExtractNoMatch says what follows when Extract matches nothing: deny, error or warn.
	OnExtractNoMatch string `json:"onExtractNoMatch,omitempty"`
	// Decode is jwt, with MaskClaims.
	Decode string `json:"decode,omitempty"`
	// MaskClaims are the claims of the token that Decode hides.
	MaskClaims []string `json:"maskClaims,omitzero"`
	// MaskDuplicates masks the value wherever it stands in a file.
	MaskDuplicates Opt[bool] `json:"maskDuplicates,omitzero"`
	// InjectHosts get the real value when Mode is mask.
	InjectHosts []string `json:"injectHosts,omitzero"`
}

// SandboxRipgrep is the ripgrep that the sandbox uses.
type SandboxRipgrep struct {
	// Command is the program, by name or path.
	Command string `json:"command"`
	// Args come before the sandbox's own arguments.
	Args []string `json:"args,omitzero"`
}

// SandboxTLS is the certificate authority that ends TLS in the sandbox's proxy.
type SandboxTLS struct {
	// CACertPath is the file with the certificate.
	CACertPath string `json:"caCertPath,omitempty"`
	// CAKeyPath is the file with the private key of the certificate.
	CAKeyPath string `json:"caKeyPath,omitempty"`
}

// SecurityScan chooses the scans of generated code. All three levels are sent. Qoder.
type SecurityScan struct {
	L1StaticCheck     bool `json:"l1StaticCheck"`     // the level that the vendor calls static check
	L2LightweightScan bool `json:"l2LightweightScan"` // the level that the vendor calls lightweight scan
	L3DeepScan        bool `json:"l3DeepScan"`        // the level that the vendor calls deep scan
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

// Delivery says how a list reaches the agent.
type Delivery string

const (
	// DeliverByLaunch is the zero value: arguments and files.
	DeliverByLaunch Delivery = ""
	// DeliverInArgv is the vendor's word for the same.
	DeliverInArgv Delivery = "argv"
	// DeliverInInitialize is the initialize request. The first user line then waits for its response, and an
	// agent too old to read it is found out by CheckInitialize.
	DeliverInInitialize Delivery = "initialize"
)
