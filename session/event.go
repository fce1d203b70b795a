package session

import (
	"fmt"
	"log/slog"
	"time"
)

// Event is a report of a session about itself, as opposed to a message of the
// agent: a change of its state, a crash and a restart, a line that could not be
// read, a callback that failed. Events hold no content of the conversation beyond
// the head of a line that could not be read, and never a secret. All readers get the
// same event: do not modify it.
//
// The concrete types are pointers to the structs of this package that have a Level
// method, just as messages are pointers: write case *session.Ended. The compiler
// refuses the case without the asterisk. Later releases may add types, so a type
// switch needs a default.
type Event interface {
	slog.LogValuer
	fmt.Stringer
	// Level is how much the event matters to an operator.
	Level() slog.Level
	isEvent()
}

// EventRecord is an event with the session it belongs to and when it happened, on
// the runtime's clock.
type EventRecord struct {
	Session string    // the runtime's id of it, not the agent's
	At      time.Time // when it happened
	Event   Event     // one of the types of this package
}

// StateChanged is a transition of the session's state machine.
type StateChanged struct {
	From, To string // names of a [State]
	Reason   string // why, when it is not obvious
}

// ActorFailed is the crash of an actor of the session's tree.
type ActorFailed struct {
	Actor  string // its name in the tree, such as router
	Reason error  // a *[PanicError], or what the actor returned
}

// Supervision is a decision of a supervisor: a restart, a backoff, an
// escalation. Decision is an event of package supervisor.
type Supervision struct{ Decision slog.LogValuer }

// NoiseLine is a line of the agent that could not be read: broken JSON, JSON that
// is no object, or a result of an unexpected shape. For the first two Err is a
// *protocol.FrameError. The session goes on.
type NoiseLine struct{ Err error }

// OversizeLine is a line of the agent that is longer than MaxLine. It was skipped;
// the session goes on.
type OversizeLine struct {
	Length  int64  // bytes
	Ceiling int    // bytes
	Head    string // how the line begins
}

// MessagesDropped says how many partial stream events were dropped, because nobody
// read the messages while a control call waited for its answer.
type MessagesDropped struct {
	Count int   // messages
	Bytes int64 // of the dropped lines
}

// CallbackFailed is a callback that failed, panicked or exceeded its time limit. The
// agent's request was answered: gates deny, hooks and tools answer with an error.
type CallbackFailed struct {
	Kind      string // name of a [Kind]; "stderr" and "event" for callbacks that take lines and events
	Name      string // tool, event, or option
	RequestID string // empty when the callback answers no request
	Err       error  // a *[PanicError], a timeout, or what the callback returned
}

// LateAnswer is a callback's answer that nobody waits for any more.
type LateAnswer struct{ Kind, RequestID string }

// UnexpectedFrame is a control frame that belongs to nothing: an answer to a call
// that was never made or is over. It was ignored.
type UnexpectedFrame struct{ Type, Subtype, RequestID string }

// RepeatedRequest is a request of the agent that cannot be told from another by
// its id: it came before, another one of its id is open, or it has no id. Outcome
// says how it was answered.
type RepeatedRequest struct{ Kind, RequestID, Outcome string }

// WarningIssued says that the session goes on, but perhaps not as the user intends:
// an option has no effect (a [Warning]), messages were dropped that nobody read, a
// background task still ran at the end, the agent's disk was full.
type WarningIssued struct{ Problem string }

// AuthExpired says that the agent's login is missing or has expired. It comes
// once in a session.
type AuthExpired struct{ Reason string }

// StderrLine is a line of the agent's stderr.
type StderrLine struct{ Line string }

// EventsLost says that a reader of events has fallen behind, and how many of the
// oldest events were dropped. It comes in their place.
type EventsLost struct{ Count int }

// Ended is the end of the session. It is the session's last event.
type Ended struct{ Reason error } // nil: the host closed it

func (*StateChanged) isEvent()    {}
func (*ActorFailed) isEvent()     {}
func (*Supervision) isEvent()     {}
func (*NoiseLine) isEvent()       {}
func (*OversizeLine) isEvent()    {}
func (*MessagesDropped) isEvent() {}
func (*CallbackFailed) isEvent()  {}
func (*LateAnswer) isEvent()      {}
func (*UnexpectedFrame) isEvent() {}
func (*RepeatedRequest) isEvent() {}
func (*WarningIssued) isEvent()   {}
func (*AuthExpired) isEvent()     {}
func (*StderrLine) isEvent()      {}
func (*EventsLost) isEvent()      {}
func (*Ended) isEvent()           {}

// Level implements [Event].
func (e *StateChanged) Level() slog.Level {
	if e.To == StateRecovering.String() { // the agent died
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Level implements [Event].
func (*ActorFailed) Level() slog.Level { return slog.LevelError }

// Level implements [Event].
func (*Supervision) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*NoiseLine) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*OversizeLine) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*MessagesDropped) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*CallbackFailed) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*LateAnswer) Level() slog.Level { return slog.LevelDebug }

// Level implements [Event].
func (*UnexpectedFrame) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (*RepeatedRequest) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*WarningIssued) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*AuthExpired) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*StderrLine) Level() slog.Level { return slog.LevelDebug }

// Level implements [Event].
func (*EventsLost) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (e *Ended) Level() slog.Level {
	if e.Reason != nil {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (e *StateChanged) String() string {
	if e.Reason == "" {
		return fmt.Sprintf("state %s -> %s", e.From, e.To)
	}
	return fmt.Sprintf("state %s -> %s: %s", e.From, e.To, e.Reason)
}
func (e *ActorFailed) String() string { return fmt.Sprintf("actor %s failed: %v", e.Actor, e.Reason) }
func (e *Supervision) String() string { return fmt.Sprint("supervisor: ", e.Decision.LogValue()) }
func (e *NoiseLine) String() string   { return fmt.Sprint("noise from the agent: ", e.Err) }
func (e *OversizeLine) String() string {
	return fmt.Sprintf("line of %d bytes skipped, the ceiling is %d", e.Length, e.Ceiling)
}
func (e *MessagesDropped) String() string {
	return fmt.Sprintf("%d partial messages (%d bytes) dropped: the consumer stands still", e.Count, e.Bytes)
}
func (e *CallbackFailed) String() string {
	return fmt.Sprintf("%s callback for %s failed: %v", e.Kind, e.Name, e.Err)
}
func (e *LateAnswer) String() string {
	return fmt.Sprintf("late answer to %s request %s ignored", e.Kind, e.RequestID)
}
func (e *UnexpectedFrame) String() string {
	return fmt.Sprintf("unexpected %s %s for id %q ignored", e.Type, e.Subtype, e.RequestID)
}
func (e *RepeatedRequest) String() string {
	return fmt.Sprintf("%s request %q of the agent: %s", e.Kind, e.RequestID, e.Outcome)
}
func (e *WarningIssued) String() string { return e.Problem }
func (e *AuthExpired) String() string {
	return "the agent's login is missing or has expired: " + e.Reason
}
func (e *StderrLine) String() string { return "agent stderr: " + e.Line }
func (e *EventsLost) String() string {
	return fmt.Sprintf("%d events lost: their reader has fallen behind", e.Count)
}
func (e *Ended) String() string {
	if e.Reason == nil {
		return "session closed"
	}
	return fmt.Sprint("session failed: ", e.Reason)
}

// LogValue implements [slog.LogValuer].
func (e *StateChanged) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *ActorFailed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *Supervision) LogValue() slog.Value { return e.Decision.LogValue() }

// LogValue implements [slog.LogValuer].
func (e *NoiseLine) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *OversizeLine) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *MessagesDropped) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *CallbackFailed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *LateAnswer) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *UnexpectedFrame) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *RepeatedRequest) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *WarningIssued) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *AuthExpired) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *StderrLine) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *Ended) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *EventsLost) LogValue() slog.Value { return slog.StringValue(e.String()) }
