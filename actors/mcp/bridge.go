package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// DefaultTimeout is how long a tool call may take when nothing else is said.
const DefaultTimeout = 10 * time.Minute

// JSON-RPC error codes.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// RPCError is an error of the JSON-RPC level.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message) }

// Server is an in-process MCP server.
type Server interface {
	// Name is the key under which the agent knows it.
	Name() string
	// Manifest is the result of initialize and of tools/list, which agents
	// that trust manifests take instead of the handshake.
	Manifest() (initialize, toolsList json.RawMessage, err error)
	// Timeout bounds one call; zero means 10 min, negative none. tool is
	// empty for anything but tools/call.
	Timeout(tool string) time.Duration
	// Handle serves one request and returns its result. A *RPCError becomes
	// the reply's error; any other error of tools/call becomes a result with
	// isError. The context ends when the agent cancels.
	Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

type rpcMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

// BridgeConfig is what a bridge needs.
type BridgeConfig struct {
	Servers []Server
	Exec    kernel.Executor
	// NotificationReply is what the agent gets in answer to a notification.
	NotificationReply json.RawMessage
	// Notify sends a notification of a server to the agent. It queues and does
	// not wait.
	Notify func(server, method string, params json.RawMessage) error
}

// Bridge routes messages to servers and remembers the calls in flight, so that
// notifications/cancelled finds them. Safe for concurrent use; it survives the
// incarnations of its actor.
type Bridge struct {
	cfg BridgeConfig

	mu      sync.Mutex
	servers map[string]Server
	calls   map[callKey]*inFlight
}

type callKey struct{ server, id string }

// inFlight is a call from its arrival on. The agent's cancel may come before
// the call's task has begun.
type inFlight struct {
	cancelled bool
	cancel    context.CancelCauseFunc // nil before the task has begun
}

// NewBridge returns a bridge to the servers of cfg.
func NewBridge(cfg BridgeConfig) *Bridge {
	b := &Bridge{cfg: cfg, servers: make(map[string]Server), calls: make(map[callKey]*inFlight)}
	for _, s := range cfg.Servers {
		b.servers[s.Name()] = s
	}
	return b
}

// New returns the actor.
func New(l *ledger.Ledger, b *Bridge, changed func()) *dispatch.Actor {
	return &dispatch.Actor{Kind: ledger.MCP, Ledger: l, Prepare: b.prepare, Changed: changed}
}

func (b *Bridge) prepare(r *ledger.Request) (dispatch.Job, error) {
	req, err := protocol.DecodeAgentRequest(r.Frame)
	if err != nil {
		return dispatch.Job{}, fmt.Errorf("mcp_message request: %w", err)
	}
	ask, ok := req.(*protocol.MCPMessageRequest)
	if !ok {
		return dispatch.Job{}, fmt.Errorf("mcp_message request: decoded as %T", req)
	}
	b.mu.Lock()
	server := b.servers[ask.ServerName]
	b.mu.Unlock()
	if server == nil {
		return dispatch.Job{Name: ask.ServerName}, unknownServer(ask.ServerName)
	}
	var m rpcMessage
	if err := json.Unmarshal(ask.Message, &m); err != nil {
		return dispatch.Job{Name: ask.ServerName}, fmt.Errorf("mcp_message for %s: %w", ask.ServerName, err)
	}
	job := dispatch.Job{Name: ask.ServerName + " " + m.Method}
	if len(m.ID) == 0 {
		job.Run = func(context.Context) (json.RawMessage, error) { return b.notify(ask.ServerName, m) }
		return job, nil
	}
	tool := toolName(m)
	if tool != "" {
		job.Name = "mcp__" + ask.ServerName + "__" + tool
	}
	limit := server.Timeout(tool)
	if limit == 0 {
		limit = DefaultTimeout
	}
	job.Limit, job.SetBy = max(limit, 0), "the tool's Timeout"
	var place Place
	if o, ok := server.(Orderer); ok && tool != "" {
		place = o.Enter(tool)
	}
	key := callKey{server.Name(), string(m.ID)}
	flight := &inFlight{}
	b.mu.Lock()
	b.calls[key] = flight
	b.mu.Unlock()
	job.Done = func() {
		b.mu.Lock()
		if b.calls[key] == flight {
			delete(b.calls, key)
		}
		b.mu.Unlock()
		if place != nil {
			place.Leave()
		}
	}
	job.Run = func(ctx context.Context) (json.RawMessage, error) {
		ctx = ContextWithExecutor(ctx, b.cfg.Exec)
		ctx = ContextWithNotifier(ctx, func(method string, params json.RawMessage) error {
			return b.cfg.Notify(server.Name(), method, params)
		})
		if place != nil {
			ctx = ContextWithPlace(ctx, place)
		}
		return b.call(ctx, server, m, flight)
	}
	return job, nil
}

func toolName(m rpcMessage) string {
	if m.Method != "tools/call" {
		return ""
	}
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(m.Params, &p) // the server reports bad params itself
	return p.Name
}

func (b *Bridge) call(ctx context.Context, s Server, m rpcMessage, flight *inFlight) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	b.mu.Lock()
	flight.cancel = cancel
	if flight.cancelled {
		cancel(context.Canceled)
	}
	b.mu.Unlock()
	result, err := safely(ctx, s, m)
	reply := rpcMessage{JSONRPC: "2.0", ID: m.ID, Result: result}
	var rpc *RPCError
	var panicked *kernel.PanicError
	switch {
	case errors.As(err, &panicked):
		reply.Result = ErrorResult(fmt.Sprintf("the tool panicked: %v", panicked.Value))
	case errors.As(err, &rpc):
		reply.Result, reply.Error = nil, rpc
	case err != nil:
		reply.Result = ErrorResult(err.Error())
	case result == nil:
		reply.Result = json.RawMessage("{}")
	}
	answer, wrapErr := wrap(reply)
	if wrapErr != nil {
		return nil, wrapErr
	}
	if panicked != nil {
		return answer, &dispatch.Reported{Err: panicked} // the model has its result, the host its report
	}
	return answer, nil
}

// safely turns a panic of a tool into an error that the model can see.
func safely(ctx context.Context, s Server, m rpcMessage) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, &kernel.PanicError{Value: p, Message: m.Method, Stack: debug.Stack()}
		}
	}()
	return s.Handle(ctx, m.Method, m.Params)
}

// notify serves a notification.
func (b *Bridge) notify(server string, m rpcMessage) (json.RawMessage, error) {
	if m.Method == "notifications/cancelled" {
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) == nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			if flight := b.calls[callKey{server, string(bytes.TrimSpace(p.RequestID))}]; flight != nil {
				flight.cancelled = true
				if flight.cancel != nil {
					flight.cancel(context.Canceled)
				}
			}
		}
	}
	return wrap(b.cfg.NotificationReply)
}

func wrap(reply any) (json.RawMessage, error) {
	return json.Marshal(struct {
		Response any `json:"mcp_response"`
	}{reply})
}

// Notification is the message of the host's own mcp_message request.
func Notification(method string, params json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(rpcMessage{JSONRPC: "2.0", Method: method, Params: params})
}

// ErrorResult is a tool result that tells the model what went wrong.
func ErrorResult(text string) json.RawMessage {
	b, _ := json.Marshal(map[string]any{ // strings only: cannot fail, keys are sorted
		"content": []any{map[string]string{"type": "text", "text": text}},
		"isError": true,
	})
	return b
}

// Denial answers a request that no server will: a tool call gets a result with
// isError, anything else an error.
func Denial(r *ledger.Request, reason string) (response json.RawMessage, errText string) {
	req, err := protocol.DecodeAgentRequest(r.Frame)
	if ask, ok := req.(*protocol.MCPMessageRequest); err == nil && ok {
		var m rpcMessage
		if json.Unmarshal(ask.Message, &m) == nil && m.Method == "tools/call" && len(m.ID) > 0 {
			if response, err := wrap(rpcMessage{JSONRPC: "2.0", ID: m.ID, Result: ErrorResult(reason)}); err == nil {
				return response, ""
			}
		}
	}
	return nil, reason
}

func unknownServer(name string) error {
	return &dispatch.Refusal{
		Text: "SDK MCP server not found: " + name,
		Err:  fmt.Errorf("the agent called in-process MCP server %q, which is not configured", name),
	}
}
