package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
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
	// Enter asks whether a tool of a server may be called. leave is to be called once: with
	// what has failed, or whether the tool has answered. Nil: it always may.
	Enter func(server session.MCPHandler) (leave func(failure string, answered bool), err error)
	// Notify sends a notification of a server to the agent. It queues the notification and
	// does not wait.
	Notify func(server, method string, params json.RawMessage) error
}

// Bridge routes messages to servers. It tracks the calls in flight, so that
// notifications/cancelled can cancel them. It is safe for concurrent use, and remains when
// its actor is restarted.
type Bridge struct {
	cfg BridgeConfig

	mu      sync.Mutex
	servers map[string]*member
	calls   map[callKey]*call
	tokens  map[callKey]*call // those whose progress the agent wants to hear of
}

// member is a server of the bridge. Its semaphore keeps the order in which calls
// take their places, see [Orderer].
type member struct {
	session.MCPHandler
	order *Semaphore
}

// callKey names a call by its JSON-RPC id, or by its progress token, in the
// spelling of the agent.
type callKey struct{ server, id string }

// NewBridge returns a bridge to the servers of cfg.
func NewBridge(cfg BridgeConfig) *Bridge {
	b := &Bridge{cfg: cfg}
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
	if b.servers[name] != nil {
		return false
	}
	if b.servers == nil {
		b.servers = make(map[string]*member)
	}
	b.servers[name] = &member{s, NewSemaphore(1)}
	return true
}

// Remove removes a server. Calls in flight continue.
func (b *Bridge) Remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.servers, name)
}

// Prepare returns the function that turns requests into messages for the bridge's servers.
func Prepare(b *Bridge) callback.Prepare {
	return b.prepare
}

// prepare runs on the actor, in the order of the agent's requests: nothing of
// the user's does.
func (b *Bridge) prepare(r *callback.Request) (callback.Job, error) {
	req, err := protocol.DecodeAgentRequest(r.Frame)
	if err != nil {
		return callback.Job{}, fmt.Errorf("mcp_message request: %w", err)
	}
	ask, ok := req.(*protocol.MCPMessageRequest)
	if !ok {
		return callback.Job{}, fmt.Errorf("mcp_message request: decoded as %T", req)
	}
	b.mu.Lock()
	server := b.servers[ask.ServerName]
	b.mu.Unlock()
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
			b.mu.Lock()
			cancelled := b.calls[callKey{server, spelled(p.RequestID)}]
			b.mu.Unlock()
			if cancelled != nil {
				cancelled.request.Drop()
			}
		}
	}
	return wrap(b.cfg.NotificationReply)
}

// tell sends a notification to the agent. Progress is a sign of life.
func (b *Bridge) tell(server, method string, params json.RawMessage) error {
	if method == "notifications/progress" {
		var p struct {
			Token json.RawMessage `json:"progressToken"`
		}
		if protocol.Unmarshal(params, &p) == nil {
			b.mu.Lock()
			c := b.tokens[callKey{server, spelled(p.Token)}]
			b.mu.Unlock()
			if c != nil {
				c.progressed()
			}
		}
	}
	return b.cfg.Notify(server, method, params)
}

func spelled(id json.RawMessage) string { return string(bytes.TrimSpace(id)) }

func (b *Bridge) unknownServer(name string) error {
	return &callback.RefusalError{
		Text: b.cfg.UnknownServer + name,
		Err:  fmt.Errorf("the agent called in-process MCP server %q, which is not configured", name),
	}
}
