package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// MCPServer is an MCP server that an agent with a real model connects to itself. Methods that
// have a context run as tasks, several at once; the others return at once.
type MCPServer interface {
	// Name is that of the configuration.
	Name() string
	// Transport is stdio, sse or http.
	Transport() string
	// Connect connects to the server, unless it is connected, and returns what the server says of
	// itself and the entries of its tools/list. The error is [ErrNeedsLogin] if a person has to
	// log in first.
	Connect(ctx context.Context) (info json.RawMessage, tools []json.RawMessage, err error)
	// Changed reports whether the tools may not be those of the last Connect any more.
	Changed() bool
	// Alive reports whether it is connected.
	Alive() bool
	// Disconnect ends the connection, and the server's process.
	Disconnect(ctx context.Context) error
	// Request sends the server a request, such as tools/call, for which it is connected again if it
	// has died. ask asks the host what the server asks meanwhile, and waits for the answer, at most
	// until its context ends: the question is withdrawn then.
	Request(ctx context.Context, ask func(context.Context, Object) (Answer, error), method string, params Object) (json.RawMessage, error)
	// Login begins a login; authURL is what a person has to open, "" if no login is needed. FinishLogin
	// ends it with the URL to which the browser was sent, and Logout forgets it.
	Login(ctx context.Context, redirectURI string) (authURL string, err error)
	FinishLogin(ctx context.Context, callbackURL string) error
	Logout(ctx context.Context) error
}

// ErrNeedsLogin says that a server wants a login.
var ErrNeedsLogin = errors.New("agent: the MCP server wants a login")

// ownServers are the servers of the configuration.
func ownServers(live *Live) (all []*mcpServer) {
	if live == nil {
		return nil
	}
	for _, s := range live.Servers {
		all = append(all, &mcpServer{name: s.Name(), own: s, lasting: true})
	}
	return all
}

// connectOwn connects to the servers of the configuration, all at once, when the agent begins.
func (e *engine) connectOwn() {
	for _, m := range e.own {
		e.spawnApart(func(s *Strand) { _ = s.connect(m) }) // its state says how it went
	}
}

// source says in frames whose the server is (observed on Claude Code 2.1.329).
func (m *mcpServer) source() string {
	if m.own != nil {
		return "dynamic"
	}
	return "sdk"
}

// sourceOf is that of the server whose tool a model calls by name.
func (e *engine) sourceOf(tool string) string {
	for _, m := range e.own {
		for _, t := range m.tools {
			if e.mcpToolName(m.name, t) == tool {
				return m.source()
			}
		}
	}
	return "sdk"
}

// connect connects to a server of the agent's own. The model sees its tools from the next turn
// on: a list that changes within a turn would be another beginning of each request.
func (s *Strand) connect(m *mcpServer) error {
	var info json.RawMessage
	var tools []json.RawMessage
	err := s.Do(func(ctx context.Context) (err error) {
		info, tools, err = m.own.Connect(ctx)
		return err
	})
	switch {
	case err == nil && m.state == "disabled": // meanwhile
		return s.Do(m.own.Disconnect)
	case errors.Is(err, errOver) || s.scope.cause() != nil || m.state == "disabled":
		return err
	case errors.Is(err, ErrNeedsLogin):
		m.state, m.failure = "needs-auth", ""
	case err != nil:
		m.state, m.failure = "failed", err.Error()
	default:
		m.state, m.failure, m.info = "connected", "", info
		m.offer(s.e, tools)
	}
	if known := s.e.cfg.Live.KnownTools; err != nil && known != nil && len(m.tools) == 0 && !m.fresh {
		m.offer(s.e, known(m.name)) // the list stays as it was in the session's former life
	}
	return err
}

// offer sets which tools the model sees: at once between turns, else from the next one on.
func (m *mcpServer) offer(e *engine, tools []json.RawMessage) {
	m.next, m.fresh = tools, true
	if e.turn == nil {
		m.adopt()
	}
}

func (m *mcpServer) adopt() {
	if m.fresh {
		m.take(m.next)
		m.next, m.fresh = nil, false
	}
}

// adoptTools is the one point of a turn at which the list of tools changes: its beginning.
func (t *Turn) adoptTools() error {
	for _, m := range slices.Clone(t.e.host.servers) {
		if m.own != nil && m.state == "connected" && m.own.Changed() {
			if err := t.s.connect(m); t.scope.cause() != nil {
				return err
			}
		}
		m.adopt()
	}
	return nil
}

// OwnMCP reports whether the agent itself connects to the server.
func (l *Lane) OwnMCP(server string) bool {
	m := l.e.server(server)
	return m != nil && m.own != nil
}

// RequestMCP sends a request to a server of the agent's own, in the Run function of a [ToolCall].
// The error of a server is a text for the model. After an interrupt the request is cancelled; the
// server lives on.
func (s *Strand) RequestMCP(server, method string, params Object) (json.RawMessage, error) {
	m := s.e.server(server)
	if m == nil || m.own == nil || m.state == "disabled" {
		return nil, &rpcError{"MCP server " + server + " is not there any more"}
	}
	var result json.RawMessage
	err := s.DoReporting(func(ctx context.Context, report func(func())) (err error) {
		result, err = m.own.Request(ctx, s.asker(report), method, params)
		return err
	})
	switch {
	case s.Err() != nil: // the task may still write to result
		return nil, err
	case errors.Is(err, ErrNeedsLogin):
		m.state, m.failure = "needs-auth", ""
	case err == nil && m.state != "connected" && m.state != "disabled":
		m.state, m.failure = "connected", ""
	}
	return result, err
}

// asker lets a task ask the host by way of its strand.
func (s *Strand) asker(report func(func())) func(context.Context, Object) (Answer, error) {
	return func(ctx context.Context, request Object) (Answer, error) {
		var a Answer
		var err error
		answered := make(chan struct{})
		report(func() {
			defer close(answered)
			p := s.e.ask(s.scope, request)
			if err = s.wait(-1, func() bool { return p.settled || ctx.Err() != nil }); err == nil && !p.settled {
				err = context.Cause(ctx)
			}
			s.e.withdraw(p)
			a = p.answer()
		})
		if err := s.e.outside.exec.Await(ctx, answered); err != nil {
			return Answer{}, err
		}
		return a, err
	}
}

// about is what mcp_status says of a server of the agent's own.
func (m *mcpServer) about(o Object) Object {
	o["transport"], o["scope"], o["source"] = m.own.Transport(), "dynamic", "dynamic"
	delete(o, "serverInfo")
	if m.state == "connected" && len(m.info) > 0 {
		o["serverInfo"] = m.info
	}
	if m.failure != "" {
		o["error"] = m.failure
	}
	return o
}

// toolStates are the tools as mcp_status has them: their hints lack the suffix.
func (m *mcpServer) toolStates() []any {
	list := []any{}
	for i, name := range m.tools {
		var t struct {
			Description string         `json:"description"`
			Hints       map[string]any `json:"annotations"`
		}
		_ = protocol.Unmarshal(m.described[i], &t) // its name was read
		hints := Object{}
		for _, hint := range []string{"readOnly", "destructive", "openWorld"} {
			if on, is := t.Hints[hint+"Hint"].(bool); is && on {
				hints[hint] = true
			}
		}
		list = append(list, Object{"name": name, "description": t.Description, "annotations": hints})
	}
	return list
}

// add makes the server of a configuration that the host has sent, or keeps the one that there is.
func (e *engine) add(name string, c protocol.MCPServerConfig, before *mcpServer) (*mcpServer, error) {
	var old MCPServer
	if before != nil {
		old = before.own
	}
	if c.Type == "sdk" {
		if before != nil && old == nil {
			return before, nil
		}
		return newMCPServer(name, nil), nil
	}
	if e.cfg.Live == nil || e.cfg.Live.NewServer == nil {
		if before != nil {
			return before, nil
		}
		return &mcpServer{name: name, state: "failed"}, nil // the engine itself starts no server
	}
	own, err := e.cfg.Live.NewServer(name, c, old)
	if err != nil {
		return nil, err
	}
	if own == old && before != nil {
		return before, nil
	}
	return &mcpServer{name: name, own: own}, nil
}

// replace sets the servers but those of the configuration, and ends those that are gone.
func (e *engine) replace(servers map[string]protocol.MCPServerConfig) (added, removed []string, wrong Object) {
	before := e.host.servers
	added, removed, wrong = []string{}, []string{}, Object{}
	lasting := slices.DeleteFunc(slices.Clone(e.own), func(m *mcpServer) bool { return !m.lasting })
	e.host.servers, e.own = nil, lasting
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		i := slices.IndexFunc(before, func(m *mcpServer) bool { return m.name == name })
		var old *mcpServer
		if i >= 0 {
			old = before[i]
		}
		if old != nil && old.lasting {
			wrong[name] = "a server of the options has this name"
			continue
		}
		m, err := e.add(name, servers[name], old)
		if err != nil {
			wrong[name] = err.Error()
			continue
		}
		if m != old {
			added = append(added, name)
		}
		e.host.servers = append(e.host.servers, m)
		if m.own != nil {
			e.own = append(e.own, m)
		}
	}
	e.host.servers = append(e.host.servers, lasting...)
	for _, m := range before {
		if e.server(m.name) == nil {
			removed = append(removed, m.name)
		}
		if m.own != nil && !slices.Contains(e.host.servers, m) {
			// Without this, one that is being connected to would live on.
			m.state = "disabled"
			e.spawnApart(func(s *Strand) { _ = s.Do(m.own.Disconnect) }) // nothing can be done about an error
		}
	}
	return added, removed, wrong
}

// spawnApart starts a strand for which the agent's end does not wait.
func (e *engine) spawnApart(fn func(*Strand)) {
	e.apart++
	e.spawn(nil, func(s *Strand) {
		defer func() { e.apart-- }()
		fn(s)
	})
}

// toggle serves mcp_toggle and mcp_reconnect for a server of the agent's own.
func (e *engine) toggle(r *Request, m *mcpServer, enable bool) {
	if !enable {
		m.state, m.failure = "disabled", ""
		m.offer(e, nil)
	} else if m.state == "disabled" {
		m.state = "pending"
	}
	e.spawnApart(func(s *Strand) {
		err := s.Do(m.own.Disconnect)
		if err == nil && enable {
			err = s.connect(m)
		}
		if err != nil {
			r.Fail(err.Error(), "")
			return
		}
		r.Succeed(nil)
	})
}

// serveMCP answers requests about servers of the agent's own; ok is false for all others.
func (e *engine) serveMCP(r *Request, request protocol.HostRequest) (ok bool) {
	var name string
	switch in := request.(type) {
	case *protocol.MCPAuthenticateRequest:
		name = in.ServerName
	case *protocol.MCPOAuthCallbackURLRequest:
		name = in.ServerName
	case *protocol.MCPClearAuthRequest:
		name = in.ServerName
	case *protocol.MCPReadResourceRequest:
		name = in.ServerName
	default:
		return false
	}
	m := e.server(name)
	if m == nil || m.own == nil {
		if e.cfg.Live != nil {
			r.Fail("Server not found: "+name, "")
		}
		return e.cfg.Live != nil
	}
	e.spawnApart(func(s *Strand) {
		answer, err := s.aboutServer(m, request)
		if err != nil {
			r.Fail(err.Error(), "")
			return
		}
		r.Succeed(answer)
	})
	return true
}

func (s *Strand) aboutServer(m *mcpServer, request protocol.HostRequest) (any, error) {
	switch in := request.(type) {
	case *protocol.MCPAuthenticateRequest:
		url := ""
		err := s.Do(func(ctx context.Context) (err error) {
			url, err = m.own.Login(ctx, in.RedirectURI)
			return err
		})
		if err == nil && url == "" {
			err = s.connect(m)
		}
		if err != nil {
			return nil, err
		}
		answer := Object{"requiresUserAction": url != ""}
		if url != "" {
			answer["authUrl"] = url
		}
		return answer, nil
	case *protocol.MCPOAuthCallbackURLRequest:
		if err := s.Do(func(ctx context.Context) error { return m.own.FinishLogin(ctx, in.CallbackURL) }); err != nil {
			return nil, err
		}
		return nil, s.connect(m)
	case *protocol.MCPClearAuthRequest:
		if err := s.Do(m.own.Logout); err != nil {
			return nil, err
		}
		m.state, m.failure = "needs-auth", ""
		return nil, nil
	case *protocol.MCPReadResourceRequest:
		var result json.RawMessage
		err := s.DoReporting(func(ctx context.Context, report func(func())) (err error) {
			result, err = m.own.Request(ctx, s.asker(report), "resources/read", Object{"uri": in.URI})
			return err
		})
		return result, err
	}
	return nil, fmt.Errorf("agent: no such request: %s", request.Subtype())
}
