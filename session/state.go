package session

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// State is the state of a session. The zero value is StateAdmitting. Every change of
// the state is a [StateChanged] event.
type State int

// States of a session, in the order of its life. A working session can change
// between any of the states from StateReady to StateAwaitingConsumer.
const (
	StateAdmitting        State = iota // the runtime has not started it yet
	StateStarting                      // the agent's process is being started
	StateInitializing                  // the process runs; the initialize call has no answer yet
	StateReady                         // the session waits for a user message
	StateRunning                       // the agent works on a user message
	StateAwaitingHost                  // a permission request or another question to a person is open
	StateAwaitingConsumer              // reading from the agent has stopped until the host reads messages
	StateRecovering                    // the agent is being restarted
	StatePassivated                    // the session has no process, and starts one when it needs it
	StateClosing                       // the agent is being stopped
	StateClosed                        // the session has ended because the host closed it
	StateFailed                        // the session has ended with an error
)

func stateNames() [StateFailed + 1]string {
	return [...]string{
		"admitting", "starting", "initializing", "ready", "running", "awaiting_host",
		"awaiting_consumer", "recovering", "passivated", "closing", "closed", "failed",
	}
}

func (s State) String() string {
	if names := stateNames(); s >= 0 && int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state(%d)", int(s))
}

// Terminal reports whether the session has ended.
func (s State) Terminal() bool { return s == StateClosed || s == StateFailed }

// MarshalText writes the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(name []byte) error {
	for i, known := range stateNames() {
		if known == string(name) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("session: unknown state %q", name)
}

// IllegalTransitionError is the error of a session whose state would have changed in
// a way that the state machine does not allow. It is a bug of this library.
type IllegalTransitionError struct{ From, To State }

func (e *IllegalTransitionError) Error() string {
	return fmt.Sprintf("session: illegal transition %v -> %v", e.From, e.To)
}

// StopScope says what is to be stopped in a session. The zero value stops nothing, and
// asks only what runs.
type StopScope struct {
	// Turn interrupts the running turn, whose result is then an error.
	Turn bool
	// Queued interrupts the running turn and cancels the messages that wait behind it.
	// Their turns end with [ErrNotRun]. Claude; another agent keeps them, and the receipt
	// says so.
	Queued bool
	// Tasks are background tasks to stop, by their ids. An id that is not known does no harm.
	Tasks []string
	// AllTasks stops every background task that lives.
	AllTasks bool
	// Kill kills the agent and ends the session, whatever else is set.
	Kill bool
}

// StopReceipt says what a stop has ended and what it has not. A turn is named by the uuid of
// its message. Work that ended by itself meanwhile counts as stopped.
type StopReceipt struct {
	Turn      string                    // the turn that ran and has ended; empty: none did, or it still runs
	Cancelled []string                  // messages that had waited and will not run
	Tasks     []protocol.BackgroundTask // background tasks that have ended, by their ids
	Killed    bool                      // the session has ended, and no process of it is left

	Running      string                    // the turn that still runs; empty: none
	OwnTurn      bool                      // a turn runs that the agent has started by itself
	Queued       []string                  // messages that wait for their turn, oldest first
	RunningTasks []protocol.BackgroundTask // background tasks that still live, by their ids; after a kill those that run elsewhere
}

// Kind is the kind of a request of the agent to its host. Each kind except
// [KindOther] has one actor that answers the requests.
type Kind int

// Kinds of requests.
const (
	KindPermission  Kind = iota // can_use_tool
	KindHook                    // hook_callback
	KindMCP                     // mcp_message
	KindModelPolicy             // get_model_policy
	KindInquiry                 // elicitations, dialogs, tokens, and questions about turns and artifacts
	KindOther                   // all other requests; the router answers them with an error
)

func (k Kind) String() string {
	names := [...]string{
		KindPermission: "permission", KindHook: "hook", KindMCP: "mcp",
		KindModelPolicy: "model policy", KindInquiry: "inquiry", KindOther: "other",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return names[k]
}

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
