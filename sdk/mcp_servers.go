package sdk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// servers are the in-process MCP servers of one session.
type servers struct {
	changes *mcp.Semaphore // one at a time

	mu      sync.Mutex
	given   map[string]*MCPServer // by name, as the caller gave them
	own     map[string]*MCPServer // of them, what has something to close: the session's own connections
	watched bool                  // a goroutine closes them at the session's end
	closed  bool
}

// newServers gives each wrapped MCP server of the spec a connection of the
// session's own.
func newServers(spec *runtime.Spec) *servers {
	all := &servers{changes: mcp.NewSemaphore(1)}
	own := make([]*MCPServer, len(spec.Options.SDKMCPServers))
	for i, m := range spec.Options.SDKMCPServers {
		own[i] = all.add(m)
	}
	spec.Options.SDKMCPServers = own
	return all
}

// add keeps a server, and returns what serves the session.
func (s *servers) add(m *MCPServer) *MCPServer {
	served, name := forSession(m), m.Name()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given == nil { // most sessions
		s.given, s.own = map[string]*MCPServer{}, map[string]*MCPServer{}
	}
	s.given[name] = m
	own, ok := served.MCPHandler.(*ownServer)
	if !ok {
		return served
	}
	if _, wrapped := own.served.(*wrappedServer); wrapped {
		s.own[name] = served
		if s.closed {
			_ = own.served.close(context.Background()) // it has not been used: nothing to wait for
		}
	}
	return served
}

// remove forgets a server, and returns what is to be closed, if anything.
func (s *servers) remove(name string) *MCPServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.own[name]
	delete(s.given, name)
	delete(s.own, name)
	return own
}

func (s *servers) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.given))
}

func (s *servers) get(name string) *MCPServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[name]
}

// close ends the connections of the session.
func (s *servers) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	own := maps.Clone(s.own)
	s.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		errs = append(errs, own[name].Close(ctx))
	}
	return errors.Join(errs...)
}

// unwatched reports, once, that there is something to close at the session's end.
func (s *servers) unwatched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched || len(s.own) == 0 {
		return false
	}
	s.watched = true
	return true
}

// SetMCPServers replaces the MCP servers of the running session, except those of
// Options.MCPServers and of settings files. external are servers that the agent
// connects to; own are servers that run in this process. Pass every server that you want
// to keep: a server of Options.SDKMCPServers that is missing is removed (observed on
// Claude Code 2.1.329). The agent asks new servers for their tools after it has
// answered.
//
// The answer says which servers were added, removed, or not accepted by the agent. A name
// that is given twice, or belongs to another server of this process, is a
// *[ConfigError]. Servers that run in this process work on Claude only.
func (c *Client) SetMCPServers(ctx context.Context, external map[string]protocol.MCPServerConfig, own ...*MCPServer) (*protocol.MCPSetServersResponse, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	if len(own) > 0 && d.dialect.Name() == qoder.Name {
		return nil, &session.UnsupportedCapabilityError{Backend: qoder.Name, Request: "mcp_set_servers with in-process servers"}
	}
	change := d.servers.changes.Enter()
	defer change.Leave()
	if err := change.Wait(mcp.ContextWithExecutor(ctx, d.home.Executor())); err != nil {
		return nil, kernel.Ended(ctx, err)
	}
	settings, err := d.servers.settings(external, own)
	if err != nil {
		return nil, err
	}
	var added []string
	for _, s := range own {
		if d.servers.get(s.Name()) == nil {
			d.session.AddMCPServer(d.servers.add(s))
			added = append(added, s.Name())
		}
	}
	d.closeServersAtEnd(d.home)
	r, err := Call[protocol.MCPSetServersResponse](ctx, c, protocol.MCPSetServersRequest{Servers: settings})
	var drop []string
	var refused *ControlError
	switch {
	case errors.As(err, &refused):
		drop = added // the agent does not know them
	case err == nil:
		for _, name := range d.servers.names() {
			if _, stays := settings[name]; !stays || r.Errors[name] != "" {
				drop = append(drop, name)
			}
		}
	}
	for _, name := range drop {
		d.session.RemoveMCPServer(name)
		if s := d.servers.remove(name); s != nil {
			err = errors.Join(err, s.Close(ctx))
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// settings are the servers as the agent gets them.
func (s *servers) settings(external map[string]protocol.MCPServerConfig, own []*MCPServer) (map[string]protocol.MCPServerConfig, error) {
	settings := maps.Clone(external)
	if settings == nil {
		settings = map[string]protocol.MCPServerConfig{}
	}
	var problems []error
	bad := func(i int, problem, fix string) {
		problems = append(problems, &session.ConfigError{Option: fmt.Sprintf("SetMCPServers: own[%d]", i), Problem: problem, Fix: fix})
	}
	for i, m := range own {
		if !m.Usable() {
			bad(i, "is nil or empty", "make it with sdk.NewMCPServer")
			continue
		}
		name := m.Name()
		if _, taken := settings[name]; taken {
			bad(i, fmt.Sprintf("another server is called %q, too", name), "rename one of them")
		}
		if have := s.get(name); have != nil && have != m {
			bad(i, fmt.Sprintf("the session has another server %q, and the agent would keep that one's tools", name),
				"rename it, or first set the servers without the other one")
		}
		settings[name] = protocol.MCPServerConfig{Type: "sdk", Name: name}
	}
	return settings, errors.Join(problems...)
}
