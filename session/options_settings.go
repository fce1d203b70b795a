package session

import (
	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/protocol"
)

import "encoding/json"

// Sandbox confines the shell commands of a session. Its JSON is merged into the "sandbox" key of the settings: objects
// are merged key by key, deny lists are joined, and any other value replaces that of the settings. For an absent field
// the value of the settings applies; the defaults below apply if the settings have no value either.
type Sandbox struct {
	// Enabled turns the sandbox on or off; absent: off.
	Enabled Opt[bool] `json:"enabled,omitzero"`
	// FailIfUnavailable makes the agent refuse to start if the sandbox is not available; absent: true if Enabled is true,
	// as in the vendor's SDK.
	FailIfUnavailable Opt[bool] `json:"failIfUnavailable,omitzero"`
	// AutoAllowBashIfSandboxed lets sandboxed commands run without asking, so that CanUseTool is not called for them;
	// absent: true.
	AutoAllowBashIfSandboxed Opt[bool] `json:"autoAllowBashIfSandboxed,omitzero"`
	// ExcludedCommands are commands that run outside the sandbox, such as docker.
	ExcludedCommands []string `json:"excludedCommands,omitzero"`
	// AllowUnsandboxedCommands lets the model ask to run a command outside the sandbox; absent: true.
	AllowUnsandboxedCommands Opt[bool] `json:"allowUnsandboxedCommands,omitzero"`
	// Network limits what commands may reach.
	Network *SandboxNetwork `json:"network,omitempty"`
	// Filesystem limits what commands may read and write.
	Filesystem *SandboxFilesystem `json:"filesystem,omitempty"`
	// IgnoreViolations are violations that are not reported, by kind (file, network) or command pattern.
	IgnoreViolations map[string][]string `json:"ignoreViolations,omitzero"`
	// EnableWeakerNestedSandbox makes the sandbox work inside unprivileged containers, with weaker isolation; absent: false.
	EnableWeakerNestedSandbox Opt[bool] `json:"enableWeakerNestedSandbox,omitzero"`
	// EnableWeakerNetworkIsolation weakens the isolation of the network; absent: false.
	EnableWeakerNetworkIsolation Opt[bool] `json:"enableWeakerNetworkIsolation,omitzero"`
	// AllowNestedUserNamespaces lets commands create user namespaces, which weakens the isolation; absent: false.
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
	// Extra are further keys, passed on unchanged.
	Extra map[string]json.RawMessage `json:"-"`
}

// MarshalJSON encodes the sandbox with its Extra keys.
func (s Sandbox) MarshalJSON() ([]byte, error) {
	type plain Sandbox
	return wire.MarshalWith(plain(s), s.Extra)
}

// UnmarshalJSON decodes the sandbox. Unknown keys go to Extra.
func (s *Sandbox) UnmarshalJSON(b []byte) error {
	type plain Sandbox
	return wire.UnmarshalWith(protocol.Unmarshal, b, (*plain)(s), &s.Extra)
}

// SandboxNetwork limits what sandboxed commands may reach. For an absent field the value of the settings applies.
type SandboxNetwork struct {
	// AllowedDomains are domains that commands may reach.
	AllowedDomains []string `json:"allowedDomains,omitzero"`
	// DeniedDomains are domains that commands may not reach. They take precedence over AllowedDomains.
	DeniedDomains []string `json:"deniedDomains,omitzero"`
	// StrictAllowlist denies all other domains without asking; absent: false.
	StrictAllowlist Opt[bool] `json:"strictAllowlist,omitzero"`
	// AllowManagedDomainsOnly says that only the managed settings can allow domains.
	AllowManagedDomainsOnly Opt[bool] `json:"allowManagedDomainsOnly,omitzero"`
	// AllowLocalBinding lets commands listen on local ports; absent: false.
	AllowLocalBinding Opt[bool] `json:"allowLocalBinding,omitzero"`
	// AllowUnixSockets are the paths of Unix sockets that commands may use.
	AllowUnixSockets []string `json:"allowUnixSockets,omitzero"`
	// AllowAllUnixSockets lets commands use every Unix socket; absent: false.
	AllowAllUnixSockets Opt[bool] `json:"allowAllUnixSockets,omitzero"`
	// HTTPProxyPort is the port of your own HTTP proxy on localhost; absent: the sandbox runs its own.
	HTTPProxyPort Opt[int] `json:"httpProxyPort,omitzero"`
	// SOCKSProxyPort is the port of your own SOCKS proxy on localhost; absent: the sandbox runs its own.
	SOCKSProxyPort Opt[int] `json:"socksProxyPort,omitzero"`
	// AllowMachLookup are Mach services of macOS that commands may look up.
	AllowMachLookup []string `json:"allowMachLookup,omitzero"`
	// TLSTerminate makes the sandbox's proxy decrypt TLS connections; nil if it does
	// not.
	TLSTerminate *SandboxTLS `json:"tlsTerminate,omitempty"`
}

// SandboxFilesystem limits what sandboxed commands may read and write. Entries are paths or patterns.
type SandboxFilesystem struct {
	// AllowWrite are paths that commands may write.
	AllowWrite []string `json:"allowWrite,omitzero"`
	// DenyWrite are paths that commands may not write although AllowWrite has them.
	DenyWrite []string `json:"denyWrite,omitzero"`
	// DenyRead are paths that commands may not read.
	DenyRead []string `json:"denyRead,omitzero"`
	// AllowRead are paths that commands may read although DenyRead has them.
	AllowRead []string `json:"allowRead,omitzero"`
	// AllowManagedReadPathsOnly says that only the managed settings can set AllowRead; absent: false.
	AllowManagedReadPathsOnly Opt[bool] `json:"allowManagedReadPathsOnly,omitzero"`
	// Disabled turns the limits on files off; absent: false.
	Disabled Opt[bool] `json:"disabled,omitzero"`
}

// SandboxCredentials hides credentials from sandboxed commands.
type SandboxCredentials struct {
	// Files are the files to hide. For the same file, mode deny takes precedence over mask.
	Files []SandboxCredential `json:"files,omitzero"`
	// EnvVars are the environment variables to hide. For the same variable, mode deny takes precedence over mask.
	EnvVars []SandboxCredential `json:"envVars,omitzero"`
	// AllowPlaintextInject lets a masked value be sent without TLS; absent: false.
	AllowPlaintextInject Opt[bool] `json:"allowPlaintextInject,omitzero"`
	// AWSPairs are keys that sign requests together, in the form of the vendor's types.
	AWSPairs json.RawMessage `json:"awsPairs,omitempty"`
	// SigV4 configures signed requests, in the form of the vendor's types.
	SigV4 json.RawMessage `json:"sigv4,omitempty"`
}

// SandboxCredential is a file (Path) or an environment variable (Name) with a credential in it.
type SandboxCredential struct {
	// Path is the path of the file. Set either Path or Name.
	Path string `json:"path,omitempty"`
	// Name is the name of the environment variable. Set either Path or Name.
	Name string `json:"name,omitempty"`
	// Mode is deny or mask. With mask, commands see another value, and requests to InjectHosts get the real one.
	Mode string `json:"mode"`
	// Extract is a pattern for the part that is masked.
	Extract string `json:"extract,omitempty"`
	// OnExtractNoMatch says what happens when Extract matches nothing: deny, error or warn.
	OnExtractNoMatch string `json:"onExtractNoMatch,omitempty"`
	// Decode is empty, or jwt together with MaskClaims.
	Decode string `json:"decode,omitempty"`
	// MaskClaims are the claims of the token that Decode hides.
	MaskClaims []string `json:"maskClaims,omitzero"`
	// MaskDuplicates masks the value at every place in a file.
	MaskDuplicates Opt[bool] `json:"maskDuplicates,omitzero"`
	// InjectHosts are the hosts that get the real value when Mode is mask.
	InjectHosts []string `json:"injectHosts,omitzero"`
}

// SandboxRipgrep is the ripgrep that the sandbox uses.
type SandboxRipgrep struct {
	// Command is the program, by name or path.
	Command string `json:"command"`
	// Args are arguments that are placed before the sandbox's own.
	Args []string `json:"args,omitzero"`
}

// SandboxTLS is the certificate authority with which the sandbox's proxy decrypts TLS.
type SandboxTLS struct {
	// CACertPath is the path of the certificate's file.
	CACertPath string `json:"caCertPath,omitempty"`
	// CAKeyPath is the path of the file with the certificate's private key.
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
	// Type must be local or empty, which means local.
	Type string `json:"type,omitempty"`
	// Path is the plugin's directory, absolute or relative to Cwd.
	Path string `json:"path"`
	// SkipMCPDiscovery makes the agent ignore the plugin's MCP servers. Claude.
	SkipMCPDiscovery bool `json:"skipMcpDiscovery,omitempty"`
}

// Delivery is how a list of servers or plugins reaches the agent.
type Delivery string

const (
	// DeliverByLaunch is the zero value: delivery by arguments and files.
	DeliverByLaunch Delivery = ""
	// DeliverInArgv is the vendor's name for DeliverByLaunch.
	DeliverInArgv Delivery = "argv"
	// DeliverInInitialize delivers in the initialize request. The first user message then waits for the response. An
	// agent that is too old for it is an [UnsupportedCapabilityError] at the start. Claude.
	DeliverInInitialize Delivery = "initialize"
)
