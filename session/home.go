package session

import "context"

// Backend is an agent to talk to: one of sdk.Claude, sdk.Qoder and sdk.InMemory, a backend
// of another package (acp/acpclient, agent/cloud), or a type that implements
// backend.Backend of package agent/backend. An agent.Program is a Backend, too. It uses
// Claude Code's protocol unless it has a method AgentDialect() agent.Dialect or Dialect()
// that returns another one. For any other value the session does not start: a
// [ConfigError] names the method that is missing.
type Backend interface {
	// AgentName returns the agent's name for errors and events.
	AgentName() string
}

// Runtime runs sessions. Make one with runtime.New: the interface keeps this package
// independent of package runtime, and package sdk refuses any other implementation with a
// [ConfigError].
type Runtime interface {
	// Drain accepts no new sessions and no new messages from now on, waits for the
	// running turns to end, and closes the sessions. It returns when ctx ends at the
	// latest.
	Drain(ctx context.Context) error
	// Shutdown closes every session and stops the runtime. If ctx ends first, the
	// remaining processes are killed.
	Shutdown(ctx context.Context) error
}
