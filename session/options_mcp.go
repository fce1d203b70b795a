package session

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/protocol"
)

// MCPServerConfig is an external MCP server: a process on stdio, or a URL.
type MCPServerConfig struct {
	// Type is stdio, sse or http; empty: stdio.
	Type string `json:"type,omitempty"`

	// Command is the program of a stdio server.
	Command string `json:"command,omitempty"`
	// Args are the arguments of Command.
	Args []string `json:"args,omitempty"`
	// Env is added to the environment of Command. Treated as secret.
	Env map[string]string `json:"env,omitempty"`

	// URL is the address of an sse or http server.
	URL string `json:"url,omitempty"`
	// Headers are sent with each HTTP request to URL. Treated as secret.
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersHelper is a command that prints headers as a JSON object. Claude.
	HeadersHelper string `json:"headersHelper,omitempty"`
	// OAuth is the vendor's configuration of OAuth, passed on unchanged. Claude.
	OAuth json.RawMessage `json:"oauth,omitempty"`

	// Timeout limits one tool call. 0: the agent's default, which agents also use for values below 1 s. It is sent in
	// milliseconds.
	Timeout time.Duration `json:"-"`
	// AlwaysLoad keeps the server's tools in the prompt from the start; with Some(false) the model has to find all of
	// them by tool search. Absent: the agent's default. Claude; for Qoder set MCPToolPolicy.AlwaysLoad.
	AlwaysLoad Opt[bool] `json:"alwaysLoad,omitzero"`
	// Tools are policies for single tools.
	Tools []MCPToolPolicy `json:"-"`
	// Shared lets package fleet start a stdio server once for all sessions with the same configuration, see
	// sharedmcp.Servers. It is never sent to an agent, and has no effect on a session outside of a fleet. Default: false,
	// each agent starts its own server.
	Shared bool `json:"-"`
	// Extra are further keys, passed on unchanged.
	Extra map[string]json.RawMessage `json:"-"`
}

// MCPToolPolicy is the policy for one tool of an MCP server.
type MCPToolPolicy struct {
	// Name is the tool's name as the server lists it.
	Name string `json:"name"`
	// PermissionPolicy is AlwaysAllow, AlwaysAsk or AlwaysDeny; empty: the session's rules decide. With AlwaysAllow
	// CanUseTool is not called for the tool.
	PermissionPolicy string `json:"permission_policy,omitempty"`
	// OrgMaxPermission is the most that the organization's administrator allows: allow, ask or blocked; empty: not sent.
	// With ask, permission mode auto asks a person, too. Claude; only for servers with a URL.
	OrgMaxPermission string `json:"org_max_permission,omitempty"`
	// ExposedName is the name under which the model sees the tool; empty: Name. Qoder.
	ExposedName string `json:"exposedName,omitempty"`
	// AlwaysLoad keeps the tool in the prompt from the start. Qoder; for Claude set MCPServerConfig.AlwaysLoad.
	AlwaysLoad bool `json:"alwaysLoad,omitempty"`
}

// Values of MCPToolPolicy.PermissionPolicy.
const (
	AlwaysAllow = "always_allow"
	AlwaysAsk   = "always_ask"
	AlwaysDeny  = "always_deny"
)

// SDKMCPServerConfig configures an MCP server that runs in this process.
type SDKMCPServerConfig struct {
	// Timeout limits one tool call; 0: the agent's default. Claude: initialize.sdkMcpServerConfigs, in milliseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Tools are policies for single tools. They become permission rules in the settings. Qoder: ExposedName and
	// AlwaysLoad are sent in initialize.sdkMcpToolOverrides.
	Tools []MCPToolPolicy `json:"tools,omitempty"`
}

// mcpServerJSON is MCPServerConfig as the vendors write it: the timeout in milliseconds.
type mcpServerJSON struct {
	plainServer
	TimeoutMS float64         `json:"timeout,omitempty"`
	Policies  []MCPToolPolicy `json:"tools,omitempty"`
	Shared    bool            `json:"shared,omitempty"` // read only
}

type plainServer MCPServerConfig

// MarshalJSON encodes the server as the vendors write it, with its Extra keys and without Shared.
func (s MCPServerConfig) MarshalJSON() ([]byte, error) {
	return wire.MarshalWith(mcpServerJSON{plainServer: plainServer(s), TimeoutMS: float64(wire.WholeMillis(s.Timeout)), Policies: s.Tools}, s.Extra)
}

// UnmarshalJSON decodes the vendors' form. Unknown keys go to Extra.
func (s *MCPServerConfig) UnmarshalJSON(b []byte) error {
	var w mcpServerJSON
	if err := wire.UnmarshalWith(protocol.Unmarshal, b, &w, &w.Extra); err != nil {
		return err
	}
	timeout := w.TimeoutMS * float64(time.Millisecond)
	if timeout < 0 || timeout >= 1<<63 {
		return fmt.Errorf("session: MCP server: timeout of %v ms is out of range", w.TimeoutMS)
	}
	*s = MCPServerConfig(w.plainServer)
	s.Timeout, s.Tools, s.Shared = time.Duration(timeout), w.Policies, w.Shared
	return nil
}
