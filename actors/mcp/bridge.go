package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// DefaultTimeout is how long a tool call may take if no option sets a limit.
const DefaultTimeout = 10 * time.Minute

// ToolOption is the option that sets the limit of a tool, for errors.
const ToolOption = "the tool's Timeout"

// ServerOption returns the option that sets the limit of a server's tools, for errors.
func ServerOption(server string) string {
	return fmt.Sprintf("SDKMCPServerConfigs[%q].Timeout", server)
}

// BridgeConfig configures a [Bridge].
type BridgeConfig struct {
	// Options have the servers in SDKMCPServers, and the limits of their tools in
	// SDKMCPServerConfigs.
	Options *session.Options
	Clock   session.Clock
	Exec    session.Executor
	// NotificationReply is the answer to a notification of the agent.
	NotificationReply json.RawMessage
	// UnknownServer is the text of the error for a server that is not configured;
	// the server's name follows it.
	UnknownServer string
	// Guard returns what the calls of a server's tools have to pass. It is called before the
	// first of them. Nil: nothing.
	Guard func(server session.MCPHandler) Guard
	// Notify sends a notification of a server to the agent. It queues the notification and
	// does not wait.
	Notify func(server, method string, params json.RawMessage) error
}

// Guard decides whether tools of a server may be called, and learns what became of each
// call. It is safe for concurrent use, and its methods do not wait.
type Guard interface {
	// Enter asks for a call. Unless it returns an error, Leave follows, once, with the id.
	Enter() (id uint64, err error)
	// Leave says what has failed, or, if failure is empty, whether the tool has answered.
	Leave(id uint64, failure string, answered bool)
}

// Bridge routes messages to servers. It tracks the calls in flight, so that
// notifications/cancelled can cancel them. It is safe for concurrent use, and remains when
// its actor is restarted.
type Bridge struct {
	cfg    BridgeConfig // without the options
	limits map[string]session.SDKMCPServerConfig

	// servers is never changed, but replaced, with mu held: a call reads it without a lock.
	servers atomic.Pointer[map[string]*member]

	mu    sync.Mutex
	calls []*call // in flight, in the order of their arrival; a handful, or few hundred
}

// member is a server of the bridge. Its semaphore keeps the order in which calls
// take their places, see [Orderer].
type member struct {
	session.MCPHandler
	order *Semaphore
	guard atomic.Pointer[Guard] // nil: no tool was called yet
}

// enter asks the guard whether a tool of the server may be called.
func (m *member) enter(guard func(session.MCPHandler) Guard) (id uint64, err error) {
	g := m.guard.Load()
	if g == nil {
		made := guard(m.MCPHandler)
		m.guard.CompareAndSwap(nil, &made)
		g = m.guard.Load()
	}
	return (*g).Enter()
}

// callKey names a call by its JSON-RPC id, or by its progress token, in the
// spelling of the agent.
type callKey struct{ server, id string }

// NewBridge returns a bridge to the servers of cfg.
func NewBridge(cfg BridgeConfig) *Bridge {
	b := &Bridge{cfg: cfg}
	b.limits, b.cfg.Options = cfg.Options.SDKMCPServerConfigs, nil
	for _, s := range cfg.Options.SDKMCPServers {
		b.Add(s.MCPHandler)
	}
	return b
}

// Add adds a server. It returns false if the bridge already has a server with that name.
func (b *Bridge) Add(s session.MCPHandler) bool {
	name := s.Name()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server(name) != nil {
		return false
	}
	servers := b.copyServers()
	servers[name] = &member{MCPHandler: s, order: NewSemaphore(1)}
	b.servers.Store(&servers)
	return true
}

// Remove removes a server. Calls in flight continue.
func (b *Bridge) Remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	servers := b.copyServers()
	delete(servers, name)
	b.servers.Store(&servers)
}

// server returns nil if no server has the name.
func (b *Bridge) server(name string) *member {
	if servers := b.servers.Load(); servers != nil {
		return (*servers)[name]
	}
	return nil
}

func (b *Bridge) copyServers() map[string]*member {
	servers := make(map[string]*member)
	if now := b.servers.Load(); now != nil {
		maps.Copy(servers, *now)
	}
	return servers
}

// Prepare returns the function that turns requests into messages for the bridge's servers.
func Prepare(b *Bridge) callback.Prepare {
	return b.prepare
}

// prepare runs on the actor, in the order of the agent's requests: nothing of
// the user's does.
func (b *Bridge) prepare(r *callback.Request) (callback.Job, error) {
	req, err := protocol.DecodeAgentRequest(*r.Frame)
	if err != nil {
		return callback.Job{}, fmt.Errorf("mcp_message request: %w", err)
	}
	ask, ok := req.(*protocol.MCPMessageRequest)
	if !ok {
		return callback.Job{}, fmt.Errorf("mcp_message request: decoded as %T", req)
	}
	server := b.server(ask.ServerName)
	if server == nil {
		return callback.Job{Name: ask.ServerName}, b.unknownServer(ask.ServerName)
	}
	m, err := readRPC(ask.Message)
	if err != nil {
		return callback.Job{Name: ask.ServerName}, fmt.Errorf("mcp_message for %s: %w", ask.ServerName, err)
	}
	if len(m.ID) == 0 {
		return callback.Job{
			Name: ask.ServerName + " " + m.Method,
			Run:  func(context.Context) (json.RawMessage, error) { return b.hear(ask.ServerName, &m) },
		}, nil
	}
	return b.arrive(server, ask.ServerName, &m, r).job(), nil
}

// hear takes a notification of the agent. A call that it cancels is not
// answered, as the vendors' SDKs do (observed on the Claude Agent SDK 0.3.329
// and the Qoder SDK 1.0.39).
func (b *Bridge) hear(server string, m *rpcMessage) (json.RawMessage, error) {
	if m.Method == "notifications/cancelled" {
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if protocol.Unmarshal(m.Params, &p) == nil {
			key := callKey{server, spelled(p.RequestID)}
			if cancelled := b.find(func(c *call) bool { return c.key == key }); cancelled != nil {
				cancelled.request.Drop()
			}
		}
	}
	return wrap(b.cfg.NotificationReply)
}

// errOver answers progress that has no receiver any more.
var errOver = errors.New("the call is over, so its progress is not sent")

// tell sends a notification of a server to the agent; c is the call that brought it. Progress is a
// sign of life of the call whose token it has. If c is over and no call with the token is open,
// the agent does not wait for it, and a passivated session must not start a process for it.
func (b *Bridge) tell(c *call, method string, params json.RawMessage) error {
	server := c.key.server
	if method == "notifications/progress" {
		var p struct {
			Token json.RawMessage `json:"progressToken"`
		}
		if protocol.Unmarshal(params, &p) == nil {
			token := callKey{server, spelled(p.Token)}
			open := b.find(func(c *call) bool { return token.id != "" && c.token == token && !c.over.Load() })
			switch {
			case open != nil:
				open.progressed()
			case c.over.Load():
				return errOver
			}
		}
	}
	return b.cfg.Notify(server, method, params)
}

// find returns the last call in flight that is meant, or nil.
func (b *Bridge) find(meant func(*call) bool) *call {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range slices.Backward(b.calls) {
		if meant(c) {
			return c
		}
	}
	return nil
}

// maxKeptCalls is for how many calls a bridge without any keeps room.
const maxKeptCalls = 4

// forget takes a call out of those in flight.
func (b *Bridge) forget(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.calls, c); i >= 0 {
		b.calls = slices.Delete(b.calls, i, i+1)
	}
	if len(b.calls) == 0 && cap(b.calls) > maxKeptCalls {
		b.calls = nil
	}
}

func spelled(id json.RawMessage) string { return string(bytes.TrimSpace(id)) }

func (b *Bridge) unknownServer(name string) error {
	return &callback.RefusalError{
		Text: b.cfg.UnknownServer + name,
		Err:  fmt.Errorf("the agent called in-process MCP server %q, which is not configured", name),
	}
}
