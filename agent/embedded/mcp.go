package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/mcpclient"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	startLimit = 30 * time.Second      // of a server, unless MCP_TIMEOUT says otherwise
	callLimit  = 100_000 * time.Second // of a call of a tool, unless MCP_TOOL_TIMEOUT does
	loginLimit = 10 * time.Minute      // for a person
	closeLimit = 2 * sweepLimit        // of all servers of a session
)

// errServersOver is why calls of servers fail in a session that has ended.
var errServersOver = errors.New("the session has ended, and its MCP servers with it")

// servers are the MCP servers of a session.
type servers struct {
	hands  *hands
	seams  backend.Seams
	logins *logins

	mu  sync.Mutex
	all []*server // in the order in which they were made
}

// env is the environment of servers that are processes: that of commands, without what says that
// an agent has started them. It has no keys.
func (s *servers) env() []string {
	all := s.hands.env
	return slices.Clone(all[:len(all)-len(ofCommands())])
}

// roots are the session's directories, as URLs.
func (s *servers) roots() (all []string) {
	for _, dir := range append([]string{s.hands.root}, s.hands.options...) {
		all = append(all, (&url.URL{Scheme: "file", Path: dir}).String())
	}
	return all
}

// millis is a time in the environment.
func millis(text string, otherwise time.Duration) time.Duration {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < 1<<40 {
		return time.Duration(n) * time.Millisecond
	}
	return otherwise
}

// startLimit limits a start, and each later tools/list.
func (s *servers) startLimit() time.Duration {
	return millis(s.hands.getenv("MCP_TIMEOUT"), startLimit)
}

// of makes the servers of a configuration, in the order of their names. Variables in it may be
// keys: it is the user's.
func (s *servers) of(configs map[string]session.MCPServerConfig, getenv func(string) string) (all []agent.MCPServer) {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		all = append(all, s.add(name, configs[name], expander(getenv)))
	}
	return all
}

// replace makes the server of a configuration that the host has sent.
func (s *servers) replace(name string, c protocol.MCPServerConfig, old agent.MCPServer) (agent.MCPServer, error) {
	raw, err := protocol.Marshal(c)
	if err != nil {
		return nil, err
	}
	var config session.MCPServerConfig
	if err := protocol.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	if field, what := unusable(name, &config); what != "" {
		return nil, errors.New(strings.TrimSpace(field + " " + what))
	}
	if before, ok := old.(*server); ok && before != nil {
		a, _ := protocol.Marshal(before.config) // it was JSON, or is plain data
		b, _ := protocol.Marshal(config)
		if string(a) == string(b) {
			return old, nil
		}
	}
	return s.add(name, config, expander(s.hands.getenv)), nil
}

// add makes a server. It starts nothing.
func (s *servers) add(name string, c session.MCPServerConfig, expand func(string) string) *server {
	m := &server{of: s, name: name, config: c}
	how := mcpclient.Config{Name: name, Title: "MCP server " + name, Closed: errServersOver, Owner: m, Limit: s.startLimit()}
	switch c.Type {
	case "sse", "http":
		m.remote = &mcpclient.Remote{
			Exec: s.seams.Exec, URL: expand(c.URL), SSE: c.Type == "sse", Headers: map[string]string{}, Owner: m,
			Roots: s.roots,
		}
		authorized := false
		for name, value := range c.Headers { //troupe:maporder it becomes a map
			m.remote.Headers[name] = expand(value)
			authorized = authorized || strings.EqualFold(name, "Authorization")
		}
		if !m.remote.SSE && !authorized {
			m.remote.Login = s.logins.of(s.seams.Exec, m.remote.URL, c.OAuth)
		}
		how.Dial = m.remote.Dial
	default:
		how.Command = &mcpclient.Command{Name: expand(c.Command), Dir: s.hands.root, Env: s.env()}
		for _, a := range c.Args {
			how.Command.Args = append(how.Command.Args, expand(a))
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			env := slices.DeleteFunc(how.Command.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
			how.Command.Env = append(env, name+"="+expand(c.Env[name]))
		}
	}
	m.client = mcpclient.New(mcpclient.Seams{Exec: s.seams.Exec, Clock: s.seams.Clock, Rand: s.seams.Rand, Spawner: s.seams.Spawner}, how)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, m)
	return m
}

// noteTools notes in the log which tools servers have, if that has changed: a later life of the
// session begins with the same list, also if a server cannot be connected to then.
func (t *talk) noteTools(l *agent.Lane, tools []agent.MCPToolInfo) {
	servers := map[string][]json.RawMessage{}
	for _, tool := range tools {
		if l.OwnMCP(tool.Server) {
			servers[tool.Server] = append(servers[tool.Server], tool.Tool)
		}
	}
	same := func(a, b []json.RawMessage) bool {
		return slices.EqualFunc(a, b, func(a, b json.RawMessage) bool { return string(a) == string(b) })
	}
	if !t.log.stores() || maps.EqualFunc(servers, t.log.servers, same) {
		return
	}
	l.Attach(serverTools, agent.Object{"servers": servers})
}

// end ends all servers, and none starts any more: the session has ended.
func (s *servers) end() {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer s.seams.Clock.AfterFunc(closeLimit, cancel).Stop()
	gone := make([]chan struct{}, len(all))
	for i, m := range all {
		gone[i] = make(chan struct{})
		m.mu.Lock()
		if m.endLogin != nil {
			m.endLogin()
		}
		m.mu.Unlock()
		s.seams.Exec.Go(func() {
			defer close(gone[i])
			_ = m.client.Stop() // the runtime sweeps the rest
		})
	}
	for _, g := range gone {
		_ = s.seams.Exec.Await(ctx, g)
	}
}

// server is one MCP server of a session.
type server struct {
	of     *servers
	name   string
	config session.MCPServerConfig
	client *mcpclient.Server
	remote *mcpclient.Remote // nil if the server is a process

	mu    sync.Mutex
	known mcpclient.Conn // the one whose tools the model has
	list  json.RawMessage
	stale bool            // it has said that its tools have changed
	asks  []*asking       // of the calls that are open, the last one last
	open  context.Context // ends when no call is open any more
	shut  context.CancelFunc

	endLogin func() // ends the login that this session has begun; nil if it has begun no login
}

// asking is how an open call asks the host.
type asking struct {
	ask func(context.Context, agent.Object) (agent.Answer, error)
}

// asksWith notes how a call asks the host until it has ended, which is when the caller calls closed.
func (m *server) asksWith(ask func(context.Context, agent.Object) (agent.Answer, error)) (closed func()) {
	a := &asking{ask}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asks) == 0 {
		m.open, m.shut = context.WithCancel(context.Background())
	}
	m.asks = append(m.asks, a)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asks = slices.DeleteFunc(m.asks, func(o *asking) bool { return o == a })
		if len(m.asks) == 0 {
			m.shut()
		}
	}
}

// Name implements [agent.MCPServer].
func (m *server) Name() string { return m.name }

// Transport implements [agent.MCPServer].
func (m *server) Transport() string {
	if m.remote == nil {
		return "stdio"
	}
	return m.config.Type
}

// Connect implements [agent.MCPServer].
func (m *server) Connect(ctx context.Context) (info json.RawMessage, tools []json.RawMessage, err error) {
	conn, err := m.client.Connected(ctx)
	if err != nil {
		return nil, nil, m.failed(err)
	}
	hello, list := conn.Hello()
	m.mu.Lock()
	again := m.stale
	if m.known == conn {
		list = m.list
	} else {
		m.known, again = conn, false
	}
	m.list, m.stale = list, false
	m.mu.Unlock()
	conn.Listen(m, m.heard)
	if again {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := &session.TimeoutError{What: "tools/list of the MCP server " + m.name, Limit: m.of.startLimit()}
		defer m.of.seams.Clock.AfterFunc(late.Limit, func() { cancel(late) }).Stop()
		list, err = conn.Tools(ctx)
		m.mu.Lock()
		if m.stale = m.stale || err != nil; err == nil {
			m.list = list
		}
		m.mu.Unlock()
		if err != nil {
			return nil, nil, m.failed(err)
		}
	}
	var in struct {
		Info json.RawMessage `json:"serverInfo"`
	}
	var of struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := errors.Join(protocol.Unmarshal(hello, &in), protocol.Unmarshal(list, &of)); err != nil {
		return nil, nil, err
	}
	return in.Info, of.Tools, nil
}

// failed is what is said of an error. Errors of requests have the URL, in which keys may be.
func (m *server) failed(err error) error {
	if errors.Is(err, mcpclient.ErrNeedsLogin) {
		return &loginError{m.name}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}

// heard is called with changes of the server's lists.
func (m *server) heard(method string, _ json.RawMessage) error {
	if method == "notifications/tools/list_changed" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.stale = true
	}
	return nil
}

// Changed implements [agent.MCPServer].
func (m *server) Changed() bool {
	conn := m.client.Conn()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stale || conn != nil && conn != m.known // it has started again
}

// Alive implements [agent.MCPServer].
func (m *server) Alive() bool { return m.client.Conn() != nil }

// Disconnect implements [agent.MCPServer].
func (m *server) Disconnect(context.Context) error { return m.client.Disconnect() }

// Request implements [agent.MCPServer].
func (m *server) Request(ctx context.Context, ask func(context.Context, agent.Object) (agent.Answer, error), method string, params agent.Object) (json.RawMessage, error) {
	raw, err := params.MarshalJSON()
	if err != nil {
		return nil, err
	}
	limit := millis(m.of.hands.getenv("MCP_TOOL_TIMEOUT"), callLimit)
	if m.config.Timeout >= time.Second {
		limit = m.config.Timeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer m.of.seams.Clock.AfterFunc(limit, func() { cancel(errTimedOut) }).Stop()
	defer m.asksWith(ask)()
	conn, err := m.client.Connected(ctx)
	if err == nil {
		var result json.RawMessage
		if result, err = conn.Call(ctx, m, nil, method, raw); err == nil {
			return result, nil
		}
	}
	start, unstarted := errors.AsType[*mcpclient.StartError](err)
	ended, died := errors.AsType[*mcpclient.EndedError](err)
	refused, isRefusal := errors.AsType[*jsonrpc.Error](err)
	switch {
	case errors.Is(context.Cause(ctx), errTimedOut):
		return nil, errors.New("MCP error -32001: Request timed out")
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case unstarted && !errors.Is(err, mcpclient.ErrNeedsLogin):
		return nil, fmt.Errorf("MCP server %s did not start: %w", m.name, m.failed(start))
	case isRefusal:
		return nil, errors.New(refused.Message)
	case died:
		return nil, fmt.Errorf("MCP server %s %w; it starts again with the next call", m.name, ended)
	case errors.Is(err, mcpclient.ErrNeedsLogin):
		return nil, m.failed(err)
	}
	return nil, fmt.Errorf("MCP server %s: %w", m.name, m.failed(err))
}
