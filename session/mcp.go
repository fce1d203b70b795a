package session

import (
	"context"
	"encoding/json"
	"time"
)

// MCPServer is an MCP server that runs in this process and serves agents over
// their session. Make one with sdk.NewMCPServer or sdk.WrapMCPServer, or put an
// [MCPHandler] of your own into it. It may serve any number of sessions at once, and
// is safe for concurrent use. One without a handler is refused.
type MCPServer struct {
	MCPHandler
}

// Usable reports whether the server has been made, and not just declared.
func (s *MCPServer) Usable() bool { return s != nil && s.MCPHandler != nil }

// Sequential returns the server with an order: those of its tools that are not
// sdk.ReadOnly run one at a time, in the order in which the agents called them.
// Read-only tools still run concurrently. All sessions of the returned server
// share the order. A wrapped server, and a handler that is not Troupe's, has its own
// rules and is returned as it is.
func (s *MCPServer) Sequential() *MCPServer {
	if h, ok := s.MCPHandler.(interface{ Sequential() MCPHandler }); ok {
		if ordered := h.Sequential(); ordered != nil {
			return &MCPServer{ordered}
		}
	}
	return s
}

// Close ends what the server has started. Only a wrapped server has started
// anything, and one in the options of a session is closed with the session; so
// Close is for those who call Handle themselves. It returns when the server's
// goroutines have ended, or with the cause of ctx. It may be called again; a
// closed server fails with sdk.ErrMCPServerClosed.
func (s *MCPServer) Close(ctx context.Context) error {
	if h, ok := s.MCPHandler.(interface{ Close(context.Context) error }); ok {
		return h.Close(ctx)
	}
	return nil
}

// MCPHandler answers the requests that agents make of an [MCPServer]. Its methods
// run on tasks of the session, never on its actors, and may be called concurrently.
type MCPHandler interface {
	// Name is the key under which the agent knows it.
	Name() string
	// Manifest is the result of initialize and of tools/list, which agents
	// that trust manifests take instead of the handshake.
	Manifest() (initialize, toolsList json.RawMessage, err error)
	// Timeout bounds one call, and starts anew with each progress that the
	// server tells; zero means 10 min, negative none. tool is empty for anything
	// but tools/call.
	Timeout(tool string) time.Duration
	// Handle serves one request and returns its result. A *mcp.RPCError becomes
	// the reply's error; any other error of tools/call becomes a result with
	// isError. The context ends when the agent cancels.
	Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}
