package session

import (
	"context"
	"encoding/json"
	"time"
)

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
