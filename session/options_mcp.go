package session

import (
	"context"
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

// MCPServer is an MCP server that runs in this process and serves agents over
// their session. Make one with sdk.NewMCPServer or sdk.WrapMCPServer, or set
// MCPHandler to your own [MCPHandler]. It may serve any number of sessions at the
// same time, and is safe for concurrent use. A server without a handler is a
// *[ConfigError].
type MCPServer struct {
	MCPHandler
}

// Usable reports whether the server has a handler. It is false for a nil server.
func (s *MCPServer) Usable() bool { return s != nil && s.MCPHandler != nil }

// Sequential returns a server whose tools run one at a time, in the order in which
// the agents called them. Tools that are sdk.ReadOnly still run concurrently. All
// sessions that use the returned server share the order. A wrapped server, and a
// server with your own handler, is returned unchanged.
func (s *MCPServer) Sequential() *MCPServer {
	if h, ok := s.MCPHandler.(interface{ Sequential() MCPHandler }); ok {
		if ordered := h.Sequential(); ordered != nil {
			return &MCPServer{ordered}
		}
	}
	return s
}

// Close stops the goroutines of a wrapped server; for any other server it does
// nothing. A session closes the servers of its options itself, so only programs that
// call Handle directly need Close. It returns when the server's goroutines have
// ended, or with the cause of ctx. It may be called more than once. After it, calls
// of the server fail with sdk.ErrMCPServerClosed.
func (s *MCPServer) Close(ctx context.Context) error {
	if h, ok := s.MCPHandler.(interface{ Close(context.Context) error }); ok {
		return h.Close(ctx)
	}
	return nil
}

// MCPHandler answers the requests of agents to an [MCPServer]. Its methods run on
// their own goroutines and may be called concurrently.
type MCPHandler interface {
	// Name returns the key under which the agent knows the server.
	Name() string
	// Manifest returns the results of initialize and tools/list. Agents that support
	// manifests use them instead of the handshake.
	Manifest() (initialize, toolsList json.RawMessage, err error)
	// Timeout returns the time limit of one call; zero means 10 min, negative no
	// limit. The time starts again at each progress notification of the server. tool
	// is empty for requests other than tools/call.
	Timeout(tool string) time.Duration
	// Handle serves one request and returns its result. A *mcp.RPCError becomes
	// the reply's error; any other error of tools/call becomes a result with
	// isError. ctx ends when the agent cancels the request.
	Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}
