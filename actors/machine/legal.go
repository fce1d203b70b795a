package machine

import "github.com/agent-troupe/troupe/session"

// Legal is the state machine of a session. Working states change freely among themselves.
func Legal(from, to session.State) bool {
	working := func(s session.State) bool { return s >= session.StateReady && s <= session.StateAwaitingConsumer }
	switch {
	case from.Terminal():
		return false
	case to == session.StateClosing:
		return from != session.StateClosing
	case to == session.StateClosed || to == session.StateFailed:
		return from == session.StateClosing
	case working(to):
		return working(from) || from == session.StateInitializing || from == session.StateRecovering
	case to == session.StateStarting:
		return from == session.StateAdmitting || from == session.StateRecovering || from == session.StatePassivated
	case to == session.StateInitializing:
		return from == session.StateStarting || from == session.StateRecovering
	case to == session.StateRecovering:
		return from != session.StateClosing && from != session.StateRecovering && from != session.StatePassivated
	case to == session.StatePassivated:
		return working(from) // a message may have come while the process was ending
	}
	return false
}
