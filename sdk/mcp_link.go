package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// wrappedLink is the client's end of the connection: it is the transport and
// the connection that the official SDK is given.
type wrappedLink struct {
	session *mcpsdk.ServerSession
	hello   *wrappedCall

	mu     sync.Mutex
	filled sync.Cond
	inbox  []jsonrpc.Message // for the server
	calls  map[jsonrpc.ID]*wrappedCall
	nextID float64
	closed bool
	cause  error // of what waits when closed
	notify func(method string, params json.RawMessage) error
}

type wrappedCall struct {
	id     jsonrpc.ID
	done   chan struct{}
	result json.RawMessage
	err    error
}

func newWrappedLink() *wrappedLink {
	l := &wrappedLink{calls: make(map[jsonrpc.ID]*wrappedCall)}
	l.filled.L = &l.mu
	return l
}

func (l *wrappedLink) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *wrappedLink) notifyBy(notify func(method string, params json.RawMessage) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify = notify
}

// start sends a request. The hello call is waited for more than once.
func (l *wrappedLink) start(method string, params json.RawMessage) *wrappedCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &wrappedCall{done: make(chan struct{})}
	if l.closed {
		c.err = l.cause
		close(c.done)
		return c
	}
	if len(params) == 0 {
		params = nil // absent, which is not the same as no JSON
	}
	l.nextID++
	c.id, _ = jsonrpc.MakeID(l.nextID) // a number is an id
	l.calls[c.id] = c
	l.put(&jsonrpc.Request{ID: c.id, Method: method, Params: params})
	return c
}

// wait returns the call's result. When ctx ends first it notifies the server that the
// call is cancelled.
func (l *wrappedLink) wait(ctx context.Context, c *wrappedCall) (json.RawMessage, error) {
	if err := (kernel.GoExecutor{}).Await(ctx, c.done); err != nil {
		if c != l.hello {
			l.cancel(c)
		}
		return nil, err
	}
	var wire *jsonrpc.Error
	var panicked *session.PanicError
	switch {
	case errors.As(c.err, &panicked):
		return nil, panicked
	case errors.As(c.err, &wire):
		return nil, &mcp.RPCError{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
	case c.err != nil:
		return nil, &mcp.RPCError{Code: mcp.CodeInternal, Message: c.err.Error()}
	}
	return c.result, nil
}

func (l *wrappedLink) cancel(c *wrappedCall) {
	l.mu.Lock()
	_, open := l.calls[c.id]
	delete(l.calls, c.id)
	l.mu.Unlock()
	if params, err := json.Marshal(map[string]any{"requestId": c.id.Raw()}); open && err == nil {
		l.tell("notifications/cancelled", params)
	}
}

// tell sends a notification.
func (l *wrappedLink) tell(method string, params json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(&jsonrpc.Request{Method: method, Params: params})
}

func (l *wrappedLink) put(m jsonrpc.Message) {
	if !l.closed {
		l.inbox = append(l.inbox, m)
		l.filled.Signal()
	}
}

// Connect implements the official SDK's Transport.
func (l *wrappedLink) Connect(context.Context) (mcpsdk.Connection, error) { return l, nil }

// SessionID implements its Connection.
func (l *wrappedLink) SessionID() string { return "" }

// Read implements its Connection. Close ends it.
func (l *wrappedLink) Read(context.Context) (jsonrpc.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.inbox) == 0 && !l.closed {
		l.filled.Wait()
	}
	if l.closed {
		return nil, mcpsdk.ErrConnectionClosed
	}
	m := l.inbox[0]
	l.inbox = l.inbox[1:]
	return m, nil
}

// Write implements its Connection.
func (l *wrappedLink) Write(_ context.Context, m jsonrpc.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return mcpsdk.ErrConnectionClosed
	}
	switch m := m.(type) {
	case *jsonrpc.Response:
		if c := l.calls[m.ID]; c != nil {
			delete(l.calls, m.ID)
			c.result, c.err = m.Result, m.Error
			close(c.done)
		}
	case *jsonrpc.Request:
		if m.IsCall() {
			l.put(&jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{
				Code: jsonrpc.CodeMethodNotFound, Message: "agents do not serve " + m.Method + " to in-process MCP servers",
			}})
			break
		}
		if notify := l.notify; notify != nil {
			l.mu.Unlock()
			_ = notify(m.Method, m.Params) // it fails when the session is over, and so is the news
			l.mu.Lock()
		}
	}
	return nil
}

// Close implements its Connection: everything that waits, on either end, ends.
func (l *wrappedLink) Close() error {
	l.fail(ErrMCPServerClosed)
	return nil
}

// fail closes the connection. The calls in flight and all later ones end with cause.
func (l *wrappedLink) fail(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed, l.cause = true, cause
	for _, c := range l.calls { //troupe:maporder each ends a wait of its own
		c.err = cause
		close(c.done)
	}
	clear(l.calls)
	l.inbox = nil
	l.filled.Broadcast()
}
