package supervisor

import (
	"fmt"
	"time"
)

// State is the state of a child.
type State int

// The states of a child.
const (
	StateStopped  State = iota // not started yet, or ended and not to be restarted
	StateStarting              // the supervisor has asked for it; ChildUp was not called yet
	StateRunning               // ChildUp was called
	StateStopping              // the supervisor has asked it to end, gracefully or by a kill
	StateWaiting               // down, will be restarted
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
	Class       Class     // Child.Class
	Incarnation int       // the current incarnation, or the last one if the child is down; 0: never started
	State       State     // StateStopped if the child will not be restarted
	Restarts    int       // number of restarts after its own failures
	Reason      error     // why it ended last; nil: normally, or it never ended
	RestartAt   time.Time // end of the backoff; zero if no backoff runs
	StartedAt   time.Time // when Incarnation was asked for; zero: never
	FailedAt    time.Time // when it ended last without having been asked to; zero: never
}

// Snapshot returns the children in the order of the [Spec].
func (s *Supervisor) Snapshot() []ChildState {
	states := make([]ChildState, len(s.children))
	for i, c := range s.children {
		states[i] = ChildState{
			Name: c.spec.Name, Class: c.spec.Class, Incarnation: c.incarnation,
			State: c.state, Restarts: c.restarts, Reason: c.reason, StartedAt: c.startedAt, FailedAt: c.failedAt,
		}
	}
	for _, r := range s.restarts {
		for i, c := range s.children {
			if c.state == StateStopped && c.spec.Class != Temporary && r.has(c) {
				states[i].State, states[i].RestartAt = StateWaiting, r.at
			}
		}
	}
	return states
}

// Recent returns how many failures of its children the supervisor counts at that time, and
// the limit above which it gives up.
func (s *Supervisor) Recent(now time.Time) (failures int, limit Intensity) {
	for _, f := range s.failures {
		if now.Sub(f.At) <= s.intensity.Window {
			failures++
		}
	}
	return failures, s.intensity
}
