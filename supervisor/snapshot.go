package supervisor

import (
	"fmt"
	"time"
)

// State is where a child stands.
type State int

// The states of a child.
const (
	StateStopped  State = iota // not started yet, or ended and not to be restarted
	StateStarting              // asked for, not reported up
	StateRunning               // reported up
	StateStopping              // asked to end, gracefully or by a kill
	StateWaiting               // down, to be started again
	StateStuck                 // killed, and has not ended within its deadline
)

func (s State) String() string {
	switch s {
	case StateStopped:
		return "stopped"
	case StateStarting:
		return "starting"
	case StateRunning:
		return "running"
	case StateStopping:
		return "stopping"
	case StateWaiting:
		return "waiting"
	case StateStuck:
		return "stuck"
	default:
		return fmt.Sprintf("State(%d)", int(s))
	}
}

// ChildState is a child as [Supervisor.Snapshot] shows it.
type ChildState struct {
	Name        string    // Child.Name
	Class       Class     // as specified
	Incarnation int       // the present one or, when it is down, the last; 0: never started
	State       State     // StateStopped for a child that is not to come back
	Restarts    int       // that failures of its own caused, ever
	Reason      error     // with which it ended last; nil: normally, or never
	RestartAt   time.Time // end of the backoff; zero unless that is being waited out
}

// Snapshot returns the children in the order of the [Spec].
func (s *Supervisor) Snapshot() []ChildState {
	states := make([]ChildState, len(s.children))
	for i, c := range s.children {
		states[i] = ChildState{
			Name: c.spec.Name, Class: c.spec.Class, Incarnation: c.incarnation,
			State: c.state, Restarts: c.restarts, Reason: c.reason,
		}
	}
	for _, r := range s.restarts {
		for i := r.from; i < r.to; i++ {
			if s.children[i].state == StateStopped && s.children[i].spec.Class != Temporary {
				states[i].State, states[i].RestartAt = StateWaiting, r.at
			}
		}
	}
	return states
}
