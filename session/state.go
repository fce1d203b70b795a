package session

import "fmt"

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
