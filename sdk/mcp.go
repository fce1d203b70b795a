package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// ErrMCPServerClosed is the error of calls to an [MCPServer] that was closed.
var ErrMCPServerClosed = errors.New("the in-process MCP server is closed")

// MCPServer is an MCP server that runs in this process and serves agents over
// their session. Make one with [NewMCPServer] or [WrapMCPServer]. It is
// [session.MCPServer], which has the methods.
type MCPServer = session.MCPServer

// ownServer is the handler of the servers that this package makes.
type ownServer struct {
	name   string
	served servant
}

// servant is what stands behind a server's name.
type servant interface {
	manifest() (initialize, tools json.RawMessage, err error)
	timeout(tool string) time.Duration
	enter(tool string) *mcp.Ticket
	handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// fresh is the same servant without connections.
	fresh() servant
	close(ctx context.Context) error
}

// NewMCPServer returns a server with the given tools, listed in this order. name is the
// server's name in the agent: a tool is called mcp__<name>__<tool>. version is only
// informational; empty means "1.0.0", as in the vendors' SDKs.
//
// All mistakes are reported together, each as a *[ConfigError]: a missing name; a tool
// without name, description, handler or usable schema; an option out of range; two tools
// with the same name in the agent; and a name that is too long for the agent.
func NewMCPServer(name, version string, tools ...Tool) (*MCPServer, error) {
	version = cmp.Or(version, "1.0.0")
	var errs []error
	bad := func(option, what, fix string) {
		errs = append(errs, &session.ConfigError{Option: option, Problem: what, Fix: fix})
	}
	option := fmt.Sprintf("SDKMCPServers[%q]", name)
	if name == "" {
		bad(option, "the MCP server has no name", "name it")
	}
	s := &toolServer{info: map[string]string{"name": name, "version": version}, byName: make(map[string]*toolDef)}
	listed := make([]json.RawMessage, 0, len(tools))
	called := map[string]string{} // by the names that agents give them
	for i, t := range tools {
		option := fmt.Sprintf("%s.Tools[%d]", option, i)
		if t.def == nil {
			bad(option, "the tool is empty", "make it with NewTool or RawTool")
			continue
		}
		if t.def.name != "" {
			option += fmt.Sprintf(" (%s)", t.def.name)
		}
		for _, p := range t.def.problems {
			bad(option, p.what, p.fix)
		}
		wire := protocol.MCPToolName(name, t.def.name)
		switch other, taken := called[wire]; {
		case t.def.name == "":
		case taken && other == t.def.name:
			bad(option, "another tool of the server has the same name", "rename one of them")
		case taken: // the agent would list the first alone
			bad(option, fmt.Sprintf("agents call it %s, and the tool %q, too", wire, other), "rename one of them")
		case len(wire) > maxToolName:
			bad(option, fmt.Sprintf("agents would call it by %d characters, and leave out what has more than %d", len(wire), maxToolName), "shorten its name or the server's")
		default:
			called[wire] = t.def.name
		}
		s.byName[t.def.name] = t.def
		if len(errs) > 0 {
			continue
		}
		l, err := t.def.listing()
		if err != nil {
			bad(option, err.Error(), "give values that JSON can hold")
		}
		listed = append(listed, l)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var err error
	if s.list, err = protocol.Marshal(map[string]any{"tools": listed}); err != nil {
		return nil, err
	}
	return &MCPServer{MCPHandler: &ownServer{name: name, served: s}}, nil
}

// maxToolName is how many characters the name of a tool has that the model gets to
// see, mcp__ and the server's name included (observed on Claude Code 2.1.329).
const maxToolName = 128

// Sequential is [session.MCPServer.Sequential]; nil: a wrapped server has its own
// rules.
func (s *ownServer) Sequential() session.MCPHandler {
	tools, ok := s.served.(*toolServer)
	if !ok {
		return nil
	}
	ordered := *tools
	ordered.order = mcp.NewSemaphore(1)
	return &ownServer{name: s.name, served: &ordered}
}

// WrapMCPServer returns an [MCPServer] called name that serves a server of the official
// MCP SDK, with its resources, prompts and middleware.
//
// If a handler or a middleware of s panics while it serves an agent, only that call
// fails, as with a tool of [NewMCPServer]: the model sees that the tool or the server
// failed, and the panic's value and stack go to the session's events. For this purpose
// Troupe adds a receiving middleware to s when it connects, and another one if the
// program has added its own since. The middleware passes on requests of other transports
// unchanged. If the handler of a notification panics, the calls in flight fail, and the
// next call reconnects.
//
// Troupe cannot recover a panic on a goroutine that s or a handler started, in a sending
// middleware outside a handler, in middleware that the program adds while a session is
// connected, or on another transport of s. Such a panic ends the program.
//
// The server is connected at its first use. The official SDK then starts goroutines,
// which [MCPServer.Close] ends. Progress and other notifications of the server go to the
// agent. Requests of the server, such as sampling or elicitation, are refused, because
// agents do not offer them to in-process servers (observed on Claude Code 2.1.329).
func WrapMCPServer(name string, s *mcpsdk.Server) (*MCPServer, error) {
	var errs []error
	option := fmt.Sprintf("SDKMCPServers[%q]", name)
	if name == "" {
		errs = append(errs, &session.ConfigError{Option: option, Problem: "the MCP server has no name", Fix: "name it"})
	}
	if s == nil {
		errs = append(errs, &session.ConfigError{Option: option, Problem: "the MCP server is nil", Fix: "make it with mcp.NewServer"})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &MCPServer{MCPHandler: &ownServer{name: name, served: &wrappedServer{server: s}}}, nil
}

// forSession returns what serves one session, which closes it at its end: a
// wrapped server gets a connection of the session's own.
func forSession(m *MCPServer) *MCPServer {
	if s, ok := m.MCPHandler.(*ownServer); ok {
		return &MCPServer{MCPHandler: &ownServer{name: s.name, served: s.served.fresh()}}
	}
	return m
}

// Close is [session.MCPServer.Close].
func (s *ownServer) Close(ctx context.Context) error {
	if err := s.served.close(ctx); err != nil {
		return fmt.Errorf("close MCP server %s: a handler has not returned: %w", s.name, err)
	}
	return nil
}

// Name implements [session.MCPHandler].
func (s *ownServer) Name() string { return s.name }

// Manifest implements [session.MCPHandler].
func (s *ownServer) Manifest() (initialize, toolsList json.RawMessage, err error) {
	return s.served.manifest()
}

// Timeout implements [session.MCPHandler]. Tools have what [ToolTimeout] says.
func (s *ownServer) Timeout(tool string) time.Duration { return s.served.timeout(tool) }

// Enter implements [mcp.Orderer].
func (s *ownServer) Enter(tool string) mcp.Place {
	if t := s.served.enter(tool); t != nil {
		return t
	}
	return nil
}

// Handle implements [session.MCPHandler]: it serves one JSON-RPC request of the agent.
// A tools/call whose arguments are wrong, or whose tool fails, has a result
// that is marked as an error; that of a tool that panicked is the error of
// Handle, with its stack.
func (s *ownServer) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return s.served.handle(ctx, method, params)
}

// protocolVersions are the versions of MCP that this side speaks, newest first.
var protocolVersions = [...]string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} //nolint:gochecknoglobals // only read

// negotiate picks the version of an initialize request: the one asked for if it
// is known, else the newest.
func negotiate(params json.RawMessage) string {
	var asked struct {
		Version string `json:"protocolVersion"`
	}
	if protocol.Unmarshal(params, &asked) == nil {
		for _, v := range protocolVersions {
			if v == asked.Version {
				return v
			}
		}
	}
	return protocolVersions[0]
}
