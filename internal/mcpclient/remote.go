package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Remote is a server at a URL.
type Remote struct {
	Exec session.Executor
	URL  string
	SSE  bool // with the transport of 2024-11-05; false: streamable HTTP
	// Headers are sent with each request to the URL's host, and to no other.
	Headers map[string]string
	// Transport makes the requests; nil: http.DefaultTransport.
	Transport http.RoundTripper
	Owner     Caller
	// Roots are URLs of directories that the server may ask for.
	Roots func() []string
	// Login is that of the server. Without a Login, the status 401 is an error like others.
	Login *Login
}

// Dial connects to the server. ctx ends with the time for it.
func (r *Remote) Dial(ctx context.Context) (Conn, error) {
	if r.Login == nil {
		return r.dial(ctx, nil)
	}
	conn, err := r.dial(ctx, r.Login)
	if err != nil && (errors.Is(err, ErrNeedsLogin) || r.Login.wanted()) {
		return nil, fmt.Errorf("%w: %s", ErrNeedsLogin, r.URL)
	}
	return conn, err
}

func (r *Remote) dial(ctx context.Context, login *Login) (Conn, error) {
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	// The stream of an SSE server lives as long as the context with which it was opened.
	live, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	connected := make(chan struct{})
	defer close(connected)
	r.Exec.Go(func() {
		err := r.Exec.Await(ctx, connected)
		select {
		case <-connected: // ctx may have ended since
		default:
			cancel(err)
		}
	})
	c := &remoteConn{cancel: cancel, exec: r.Exec, over: kernel.NewPromise[struct{}](), calls: map[*context.CancelCauseFunc]struct{}{}}
	var transport mcp.Transport
	if r.SSE {
		transport = &mcp.SSEClientTransport{Endpoint: r.URL, HTTPClient: client, MaxEventSize: maxLine}
	} else {
		t := &mcp.StreamableClientTransport{Endpoint: r.URL, HTTPClient: client, MaxEventSize: maxLine}
		if login != nil {
			t.OAuthHandler = login
		}
		transport = t
	}
	own := mcp.NewClient(&mcp.Implementation{Name: "troupe", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}}, //nolint:staticcheck // servers of today ask for roots
		ElicitationHandler:     r.elicit,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.heard() },
	})
	for _, at := range r.roots() {
		own.AddRoots(&mcp.Root{URI: at}) //nolint:staticcheck // as above
	}
	c.session, err = own.Connect(live, transport, nil)
	if err == nil {
		err = c.greet(live)
	}
	if err != nil {
		cancel(err)
		if c.session != nil {
			_ = c.session.Close()
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	r.Exec.Go(func() {
		_ = c.fail(c.session.Wait())
		c.over.Resolve(struct{}{})
	})
	return c, nil
}

func (r *Remote) roots() []string {
	if r.Roots == nil {
		return nil
	}
	return r.Roots()
}

func (r *Remote) elicit(ctx context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	refused := &mcp.ElicitResult{Action: "decline"}
	params, err := json.Marshal(q.Params)
	if err != nil || r.Owner == nil {
		return refused, err
	}
	raw, err := r.Owner.Asked(ctx, &jsonrpc.Request{Method: "elicitation/create", Params: params})
	if err != nil {
		return nil, err
	}
	var answer mcp.ElicitResult
	return &answer, json.Unmarshal(raw, &answer)
}

// client sends the headers to the host of the URL alone: they may have keys.
func (r *Remote) client() (*http.Client, error) {
	at, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	base := r.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	return &http.Client{Transport: &withHeaders{base, at.Scheme, at.Host, r.Headers}}, nil
}

type withHeaders struct {
	base         http.RoundTripper
	scheme, host string
	headers      map[string]string
}

// RoundTrip implements [http.RoundTripper].
func (t *withHeaders) RoundTrip(q *http.Request) (*http.Response, error) {
	if len(t.headers) > 0 && q.URL.Host == t.host && q.URL.Scheme == t.scheme {
		q = q.Clone(q.Context())
		for name, value := range t.headers { //troupe:maporder a header is a map
			q.Header.Set(name, value)
		}
	}
	return t.base.RoundTrip(q)
}

// remoteConn is a connection of go-sdk's client.
type remoteConn struct {
	exec    session.Executor
	cancel  context.CancelCauseFunc
	session *mcp.ClientSession
	over    *kernel.Promise[struct{}]

	initialize, tools json.RawMessage // written before anybody else has the connection

	mu      sync.Mutex
	ended   *EndedError
	calls   map[*context.CancelCauseFunc]struct{} // what ends those under way
	notify  Notify                                // of the one caller
	unheard bool                                  // the tools have changed before anybody listened
}

// greet asks for the tools.
func (c *remoteConn) greet(ctx context.Context) (err error) {
	hello := c.session.InitializeResult()
	if c.initialize, err = json.Marshal(hello); err != nil {
		return err
	}
	c.tools = json.RawMessage(`{"tools":[]}`)
	if hello.Capabilities != nil && hello.Capabilities.Tools != nil {
		c.tools, err = c.Tools(ctx)
	}
	return err
}

// Tools implements [Conn].
func (c *remoteConn) Tools(ctx context.Context) (json.RawMessage, error) {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	all := []*mcp.Tool{}
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return json.Marshal(map[string]any{"tools": all})
}

// Hello implements [Conn].
func (c *remoteConn) Hello() (initialize, tools json.RawMessage) { return c.initialize, c.tools }

// Call implements [Conn], for tools/call and resources/read. It passes no progress on.
func (c *remoteConn) Call(ctx context.Context, _ Caller, _ Notify, method string, params json.RawMessage) (json.RawMessage, error) {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var result any
	switch method {
	case "tools/call":
		var in struct {
			Meta      mcp.Meta        `json:"_meta"`
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if err = json.Unmarshal(params, &in); err == nil {
			result, err = c.session.CallTool(ctx, &mcp.CallToolParams{Meta: in.Meta, Name: in.Name, Arguments: in.Arguments})
		}
	case "resources/read":
		var in mcp.ReadResourceParams
		if err = json.Unmarshal(params, &in); err == nil {
			result, err = c.session.ReadResource(ctx, &in)
		}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method: " + method}
	}
	switch failed, ok := errors.AsType[*jsonrpc.Error](err); {
	case ok:
		return nil, failed
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, mcp.ErrSessionMissing):
		return nil, c.fail(err)
	case err != nil:
		return nil, err
	}
	return json.Marshal(result)
}

// begin returns a context for a call, which ends with the connection: go-sdk's Close waits for the
// calls under way. The error is an *[EndedError].
func (c *remoteConn) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, nil, c.ended
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.calls[&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.calls, &cancel)
	}, nil
}

// fail ends the connection for new calls, and all calls under way.
func (c *remoteConn) fail(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = &EndedError{err}
	}
	for cancel := range c.calls { //troupe:maporder each ends a call
		(*cancel)(c.ended)
	}
	return c.ended
}

// Listen implements [Conn]: the caller is the only one.
func (c *remoteConn) Listen(_ Caller, notify Notify) {
	c.mu.Lock()
	missed := c.unheard && notify != nil
	c.notify, c.unheard = notify, false
	c.mu.Unlock()
	if missed {
		c.heard()
	}
}

// Forget implements [Conn].
func (c *remoteConn) Forget(Caller) { c.Listen(nil, nil) }

// heard says that the server's tools have changed.
func (c *remoteConn) heard() {
	c.mu.Lock()
	notify := c.notify
	c.unheard = notify == nil
	c.mu.Unlock()
	if notify != nil {
		_ = notify(toolsChanged, nil) // an error here has no reader
	}
}

// Ended implements [Conn].
func (c *remoteConn) Ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		return nil
	}
	return c.ended
}

// End implements [Conn].
func (c *remoteConn) End(bool) error {
	_ = c.fail(nil)
	err := c.session.Close()
	c.cancel(nil)
	_, _ = c.over.Wait(context.Background(), c.exec)
	return err
}

// Said implements [Conn].
func (c *remoteConn) Said() string { return "" }
