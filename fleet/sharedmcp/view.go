package sharedmcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/mcpclient"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// sharedServer is one server of a [Servers], whether its process runs or not.
type sharedServer struct {
	*mcpclient.Server
	key   [sha256.Size]byte
	name  string
	users int           // under the lock of Servers
	timer session.Timer // of Linger; under the same lock
}

// connected returns the connection to the process, which is started if it does not run.
func (s *sharedServer) connected(ctx context.Context) (mcpclient.Conn, error) {
	conn, err := s.Connected(ctx)
	if e, ok := errors.AsType[*mcpclient.StartError](err); ok {
		return nil, &StartError{Name: s.name, Err: e.Err}
	}
	return conn, err
}

// StartError says that a shared server did not start. A later try may succeed.
type StartError struct {
	Name string // of the server in Options.MCPServers
	Err  error  // a *[sdk.StartError], a *[session.BreakerOpenError], what the server answered, or the end of ctx
}

func (e *StartError) Error() string { return fmt.Sprintf("%s did not start: %v", e.Name, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// sharedView is a shared server as one session sees it.
type sharedView struct {
	server *sharedServer
	opts   *sdk.Options
}

// Name implements [session.MCPHandler].
func (v *sharedView) Name() string { return v.server.name }

// Timeout implements [session.MCPHandler]: SDKMCPServerConfigs has the limit.
func (v *sharedView) Timeout(string) time.Duration { return 0 }

// Manifest implements [session.MCPHandler].
func (v *sharedView) Manifest() (initialize, toolsList json.RawMessage, err error) {
	link, err := v.server.connected(context.Background())
	if err != nil {
		return nil, nil, err
	}
	initialize, toolsList = link.Hello()
	return initialize, toolsList, nil
}

// Handle implements [session.MCPHandler].
func (v *sharedView) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	link, err := v.server.connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("the shared MCP server %w", err)
	}
	notify, _ := mcp.NotifierFromContext(ctx)
	switch method {
	case "initialize": // the process has had its own
		link.Listen(v, notify)
		hello, _ := link.Hello()
		return hello, nil
	case "ping":
		return json.RawMessage("{}"), nil
	}
	result, err := link.Call(ctx, v, notify, method, params)
	if failed, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, &mcp.RPCError{Code: int(failed.Code), Message: failed.Message, Data: failed.Data}
	}
	if died, ok := errors.AsType[*mcpclient.EndedError](err); ok {
		return nil, fmt.Errorf("the shared MCP server %s %w; it starts again with the next call", v.server.name, died)
	}
	return result, err
}
