package session

import "context"

// Backend is an agent to talk to. Make one with sdk.Claude, sdk.Qoder or
// sdk.InMemory; any agent.Program is one, too, and speaks as Claude Code does
// unless its method AgentDialect() agent.Dialect, or Dialect(), says otherwise.
type Backend interface {
	// AgentName is the agent's name in reports.
	AgentName() string
}

// Runtime runs sessions. Make one with runtime.New: package sdk takes no other.
type Runtime interface {
	// Drain takes no new sessions and no new messages, lets the turns under way end,
	// and closes the sessions; it waits at most until ctx ends.
	Drain(ctx context.Context) error
	// Shutdown closes every session and stops the runtime. When ctx ends first the
	// processes that are left are killed.
	Shutdown(ctx context.Context) error
}
