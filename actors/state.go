package actors

import "fmt"

// State is where a session is in its life.
type State int

// States of a session. AwaitingHost means that a person or a callback of the
// host is asked; AwaitingConsumer that the reader of the messages stands
// still.
const (
	Admitting State = iota
	Starting
	Initializing
	Ready
	Running
	AwaitingHost
	AwaitingConsumer
	Recovering
	Passivated
	Closing
	Closed
	Failed
)

func (s State) String() string {
	return [...]string{
		"admitting", "starting", "initializing", "ready", "running", "awaiting_host",
		"awaiting_consumer", "recovering", "passivated", "closing", "closed", "failed",
	}[s]
}

// Terminal reports whether the session has ended.
func (s State) Terminal() bool { return s == Closed || s == Failed }

// legal is the state machine. Working states change freely among themselves.
func legal(from, to State) bool {
	working := func(s State) bool { return s >= Ready && s <= AwaitingConsumer }
	switch {
	case from.Terminal():
		return false
	case to == Closing:
		return from != Closing
	case to == Closed || to == Failed:
		return from == Closing
	case working(to):
		return working(from) || from == Initializing || from == Recovering
	case to == Starting:
		return from == Admitting || from == Recovering || from == Passivated
	case to == Initializing:
		return from == Starting || from == Recovering
	case to == Recovering:
		return from != Closing && from != Recovering && from != Passivated
	case to == Passivated:
		return from == Ready
	}
	return false
}

// IllegalTransition is a bug of the session actor.
type IllegalTransition struct{ From, To State }

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("session: illegal transition %v -> %v", e.From, e.To)
}

// MarshalText shows the state by its name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
