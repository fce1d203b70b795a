package event

import (
	"fmt"
	"log/slog"
	"time"
)

// Event is one report. The concrete types are the structs of this package;
// more may come, so a switch needs a default.
type Event interface {
	slog.LogValuer
	fmt.Stringer
	// Level is how much the event matters to an operator.
	Level() slog.Level
	isEvent()
}

// Record is an event with the session it belongs to and when it happened, on
// the runtime's clock.
type Record struct {
	Session string
	At      time.Time
	Event   Event
}

// StateChanged is a transition of the session's state machine.
type StateChanged struct {
	From, To string
	Reason   string // why, when it is not obvious
}

// ActorFailed is the crash of an actor of the session's tree.
type ActorFailed struct {
	Actor  string
	Reason error
}

// Supervision is a decision of a supervisor: a restart, a backoff, an
// escalation.
type Supervision struct{ Decision slog.LogValuer }

// Noise is a line of the agent that is no frame: broken JSON, or JSON that is
// no object. The session goes on.
type Noise struct{ Err error }

// Oversize is a line above the ceiling. It was skipped; the session goes on.
type Oversize struct {
	Length  int64 // bytes
	Ceiling int   // bytes
	Head    string
}

// Dropped reports partial stream events that were given up because the
// consumer stood still while a control call needed the pipe.
type Dropped struct {
	Count int
	Bytes int64
}

// CallbackFailed is a callback that failed, panicked or ran out of time. Its
// call was answered: gates deny, hooks and tools answer an error.
type CallbackFailed struct {
	Kind      string // "permission", "hook", "mcp", "model policy"
	Name      string // tool or event
	RequestID string
	Err       error
}

// LateAnswer is a callback's answer that nobody waits for any more.
type LateAnswer struct{ Kind, RequestID string }

// UnexpectedFrame is a control frame that fits nothing: an answer to a call
// that was never made or is over.
type UnexpectedFrame struct{ Type, Subtype, RequestID string }

// RepeatedRequest is a request of the agent that cannot be told from another by
// its id: it came before, another one of its id is open, or it has no id. Outcome
// says what became of it.
type RepeatedRequest struct{ Kind, RequestID, Outcome string }

// Warning is a configuration that is legal and probably not meant.
type Warning struct{ Problem string }

// AuthExpired says that the agent's login is missing or has expired. It comes
// once in a session.
type AuthExpired struct{ Reason string }

// Stderr is a line of the agent's stderr.
type Stderr struct{ Line string }

// EventsLost says that a reader of events has fallen behind, and that the oldest
// ones it had not taken are gone. It stands where they were.
type EventsLost struct{ Count int }

// Ended is the end of the session, with the reason chain.
type Ended struct{ Reason error }

func (StateChanged) isEvent()    {}
func (ActorFailed) isEvent()     {}
func (Supervision) isEvent()     {}
func (Noise) isEvent()           {}
func (Oversize) isEvent()        {}
func (Dropped) isEvent()         {}
func (CallbackFailed) isEvent()  {}
func (LateAnswer) isEvent()      {}
func (UnexpectedFrame) isEvent() {}
func (RepeatedRequest) isEvent() {}
func (Warning) isEvent()         {}
func (AuthExpired) isEvent()     {}
func (Stderr) isEvent()          {}
func (EventsLost) isEvent()      {}
func (Ended) isEvent()           {}

// Level implements [Event].
func (StateChanged) Level() slog.Level { return slog.LevelDebug }

// Level implements [Event].
func (ActorFailed) Level() slog.Level { return slog.LevelError }

// Level implements [Event].
func (Supervision) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (Noise) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (Oversize) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (Dropped) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (CallbackFailed) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (LateAnswer) Level() slog.Level { return slog.LevelDebug }

// Level implements [Event].
func (UnexpectedFrame) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (RepeatedRequest) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (Warning) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (AuthExpired) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (Stderr) Level() slog.Level { return slog.LevelDebug }

// Level implements [Event].
func (EventsLost) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (e Ended) Level() slog.Level {
	if e.Reason != nil {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (e StateChanged) String() string {
	if e.Reason == "" {
		return fmt.Sprintf("state %s -> %s", e.From, e.To)
	}
	return fmt.Sprintf("state %s -> %s: %s", e.From, e.To, e.Reason)
}
func (e ActorFailed) String() string { return fmt.Sprintf("actor %s failed: %v", e.Actor, e.Reason) }
func (e Supervision) String() string { return fmt.Sprint("supervisor: ", e.Decision.LogValue()) }
func (e Noise) String() string       { return fmt.Sprint("noise from the agent: ", e.Err) }
func (e Oversize) String() string {
	return fmt.Sprintf("line of %d bytes skipped, the ceiling is %d", e.Length, e.Ceiling)
}
func (e Dropped) String() string {
	return fmt.Sprintf("%d partial messages (%d bytes) dropped: the consumer stands still", e.Count, e.Bytes)
}
func (e CallbackFailed) String() string {
	return fmt.Sprintf("%s callback for %s failed: %v", e.Kind, e.Name, e.Err)
}
func (e LateAnswer) String() string {
	return fmt.Sprintf("late answer to %s request %s ignored", e.Kind, e.RequestID)
}
func (e UnexpectedFrame) String() string {
	return fmt.Sprintf("unexpected %s %s for id %q ignored", e.Type, e.Subtype, e.RequestID)
}
func (e RepeatedRequest) String() string {
	return fmt.Sprintf("%s request %q of the agent: %s", e.Kind, e.RequestID, e.Outcome)
}
func (e Warning) String() string { return e.Problem }
func (e AuthExpired) String() string {
	return "the agent's login is missing or has expired: " + e.Reason
}
func (e Stderr) String() string { return "agent stderr: " + e.Line }
func (e EventsLost) String() string {
	return fmt.Sprintf("%d events lost: their reader has fallen behind", e.Count)
}
func (e Ended) String() string {
	if e.Reason == nil {
		return "session closed"
	}
	return fmt.Sprint("session failed: ", e.Reason)
}

// LogValue implements [slog.LogValuer].
func (e StateChanged) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e ActorFailed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Supervision) LogValue() slog.Value { return e.Decision.LogValue() }

// LogValue implements [slog.LogValuer].
func (e Noise) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Oversize) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Dropped) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e CallbackFailed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e LateAnswer) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e UnexpectedFrame) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e RepeatedRequest) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Warning) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e AuthExpired) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Stderr) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e Ended) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e EventsLost) LogValue() slog.Value { return slog.StringValue(e.String()) }
