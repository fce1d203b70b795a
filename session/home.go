package session

import "context"

// Backend is an agent to talk to. Make one with sdk.Claude, sdk.Qoder or
// sdk.InMemory. Any agent.Program is a Backend, too. It uses Claude Code's protocol
// unless it has a method AgentDialect() agent.Dialect or Dialect() that returns
// another one.
type Backend interface {
	// AgentName returns the agent's name for errors and events.
	AgentName() string
}

// Runtime runs sessions. Make one with runtime.New; package sdk accepts no other
// implementation.
type Runtime interface {
	// Drain accepts no new sessions and no new messages from now on, waits for the
	// running turns to end, and closes the sessions. It returns when ctx ends at the
	// latest.
	Drain(ctx context.Context) error
	// Shutdown closes every session and stops the runtime. If ctx ends first, the
	// remaining processes are killed.
	Shutdown(ctx context.Context) error
}
