package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// wrappedServer serves a server of the official SDK over one connection, made
// at the first use.
type wrappedServer struct {
	server *mcpsdk.Server

	mu     sync.Mutex
	link   *wrappedLink
	closed bool
}

func (w *wrappedServer) fresh() servant               { return &wrappedServer{server: w.server} }
func (w *wrappedServer) timeout(string) time.Duration { return 0 }
func (w *wrappedServer) enter(string) *mcp.Ticket     { return nil }

// connected returns the connection. The handshake is on its way, ahead of
// whatever the caller asks.
func (w *wrappedServer) connected() (*wrappedLink, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrMCPServerClosed
	}
	if w.link == nil || w.link.isClosed() { // a server may hang up
		link := newWrappedLink()
		guard(w.server)
		session, err := w.server.Connect(context.WithValue(context.Background(), guarded{}, link), link, nil)
		if err != nil {
			return nil, err
		}
		link.session = session
		link.hello = link.start("initialize", json.RawMessage(fmt.Sprintf(
			`{"capabilities":{},"clientInfo":{"name":"troupe","version":"1.0.0"},"protocolVersion":%q}`, protocolVersions[0])))
		link.tell("notifications/initialized", nil)
		w.link = link
	}
	return w.link, nil
}

func (w *wrappedServer) close(ctx context.Context) error {
	w.mu.Lock()
	link := w.link
	w.closed = true
	w.mu.Unlock()
	if link == nil {
		return nil
	}
	_ = link.Close()
	// These goroutines are the official SDK's: they are waited for in real
	// time, whatever the session's executor is.
	done := make(chan struct{})
	kernel.GoExecutor{}.Go(func() {
		defer close(done)
		_ = link.session.Close() // the broken link is what it complains of
	})
	return kernel.GoExecutor{}.Await(ctx, done)
}

// manifest asks for all tools, page by page.
func (w *wrappedServer) manifest() (initialize, tools json.RawMessage, err error) {
	link, err := w.connected()
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background() // a server in this process, and only lists
	if initialize, err = link.wait(ctx, link.hello); err != nil {
		return nil, nil, err
	}
	all := []json.RawMessage{}
	for cursor := ""; ; {
		params, err := protocol.Marshal(map[string]string{"cursor": cursor})
		if err != nil {
			return nil, nil, err
		}
		page, err := link.wait(ctx, link.start("tools/list", params))
		if err != nil {
			return nil, nil, err
		}
		var p struct {
			Tools []json.RawMessage `json:"tools"`
			Next  string            `json:"nextCursor"`
		}
		if err := protocol.Unmarshal(page, &p); err != nil {
			return nil, nil, fmt.Errorf("tools/list: %w", err)
		}
		all = append(all, p.Tools...)
		if p.Next == "" || p.Next == cursor {
			break
		}
		cursor = p.Next
	}
	tools, err = protocol.Marshal(map[string]any{"tools": all})
	return initialize, tools, err
}

func (w *wrappedServer) handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	link, err := w.connected()
	if err != nil {
		return nil, &mcp.RPCError{Code: mcp.CodeInternal, Message: err.Error()}
	}
	if notify, ok := mcp.NotifierFromContext(ctx); ok {
		link.notifyBy(notify)
	}
	if method == "initialize" {
		return link.greet(ctx, params)
	}
	result, err := link.wait(ctx, link.start(method, params))
	if rpc, ok := errors.AsType[*mcp.RPCError](err); ok && method == "tools/call" && rpc.Code == mcp.CodeInvalidParams {
		return refusal("%s", rpc.Message), nil // so that the model sees it
	}
	return result, err
}

// greet answers the agent's initialize. The official SDK takes only one, and
// agents send more, so the answer is that of the connection's own handshake
// with the version that the agent asked for.
func (l *wrappedLink) greet(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	result, err := l.wait(ctx, l.hello)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := protocol.Unmarshal(result, &fields); err != nil {
		return nil, &mcp.RPCError{Code: mcp.CodeInternal, Message: "initialize: " + err.Error()}
	}
	if fields["protocolVersion"], err = json.Marshal(negotiate(params)); err != nil {
		return nil, err
	}
	return protocol.Marshal(fields)
}
