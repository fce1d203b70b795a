package session

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

// Event is a report of a session about itself, not a message of the agent: a change
// of its state, a crash and a restart, a line that could not be read, a callback that
// failed. Events have no content of the conversation, except the first bytes of a line
// that could not be read and the lines of the agent's stderr. They have no secrets of
// the options. All readers get the same event: do not modify it.
//
// The concrete types are pointers to the structs of this package that have a Level
// method, just as messages are pointers: write case *session.Ended. The compiler
// refuses the case without the asterisk. Later releases may add types, so a type
// switch needs a default.
type Event interface {
	slog.LogValuer
	fmt.Stringer
	// Level is the level at which to log the event.
	Level() slog.Level
	isEvent()
}

// EventRecord is an event with its session and its time.
type EventRecord struct {
	Session string    // the runtime's id of the session, not the agent's
	At      time.Time // when the event happened, by the runtime's clock
	Event   Event     // one of the types of this package
	// Seq grows from record to record of a runtime, and has gaps. It is 0 in records that only a
	// log, Options.OnEvent, a child or a tracer gets. Readers of a session and of the runtime get
	// the same one.
	Seq uint64
}

// StateChanged is a transition of the session's state machine.
type StateChanged struct {
	From, To string // names of a [State]
	Reason   string // why the state changed; empty when that is obvious
}

// ActorFailed is the crash of an actor of the session, which may be a [Child].
type ActorFailed struct {
	Actor  string // the actor's path, such as fleet/s#1/router#1
	Reason error  // a *[PanicError], or what the actor returned
}

// Supervision is a decision of a supervisor: a restart, a backoff, an
// escalation. Decision is an event of package supervisor.
type Supervision struct{ Decision slog.LogValuer }

// NoiseLine is a line of the agent that could not be read. Err is a
// *protocol.FrameError if the line is not a JSON object; otherwise the line is a
// result of an unexpected shape. The session continues.
type NoiseLine struct{ Err error }

// OversizeLine is a line of the agent that is longer than Options.MaxLine. It was
// skipped; the session continues.
type OversizeLine struct {
	Length  int64  // length of the line, in bytes
	Ceiling int    // the limit that was in force, in bytes
	Head    string // the first bytes of the line
}

// MessagesDropped says that partial messages were dropped, because the messages had no
// reader while a control call waited for its answer. See [Limits].HardBytes.
type MessagesDropped struct {
	Count int   // number of messages
	Bytes int64 // length of their lines
}

// CallbackFailed is a callback that failed, panicked or exceeded its time limit. The
// agent's request was answered nevertheless: gates denied it, other hooks and tools
// answered with an error.
type CallbackFailed struct {
	Kind      string // name of a [Kind]; "stderr" or "event" for a callback that receives lines or events; "child" for a [Child]; "trace" for a [Trace]
	Name      string // the tool, the hook event, or the option
	RequestID string // empty if the callback does not answer a request
	Err       error  // a *[PanicError], a timeout, or what the callback returned
}

// LateAnswer is a callback's answer that arrived after its request was over. It was
// ignored.
type LateAnswer struct{ Kind, RequestID string }

// UnexpectedFrame is a control frame of the agent that matches no call: the call was
// never made, or is over. It was ignored.
type UnexpectedFrame struct{ Type, Subtype, RequestID string }

// RepeatedRequest is a request of the agent whose id is not unique: the id was used
// before, another request with it is open, or the id is missing. Outcome says how
// the request was answered.
type RepeatedRequest struct{ Kind, RequestID, Outcome string }

// WarningIssued says that the session continues, but perhaps not as you intend: an
// option has no effect (a [Warning]), unread messages were dropped, a background task
// still ran at the end, or the agent's disk was full.
type WarningIssued struct{ Problem string }

// Recovering says that the agent's process has died and that another one follows. See
// Options.MaxRestarts.
type Recovering struct {
	Death   Death         // what died, when, and what was under way
	Policy  Recovery      // what becomes of the messages that were under way
	Backoff time.Duration // until the next process; it starts later if there is nothing for it to do
}

// Recovered says what the recovery did with one message that was under way when the
// agent died, or, with an empty Message, that the next process is ready and no message
// was under way.
type Recovered struct {
	SessionID string // the agent's id of the session
	Message   string // uuid of the user message
	Sent      Sent   // what the next process got of it
	Why       string // why it got that
}

// Sent is what another process got of a message that was under way.
type Sent string

// Values of [Sent].
const (
	SentNothing Sent = "nothing"
	// SentAgain is the message. The agent did not know it: what the user has seen of the
	// turn is not in the agent's history. Qoder's cloud keeps the turn: it is not run twice,
	// and continues.
	SentAgain Sent = "message"
	// SentContinuation is a message that makes the model continue.
	SentContinuation Sent = "continuation"
	// SentRerun is the message as a new one, under another uuid: [RecoverRerun].
	SentRerun Sent = "rerun"
)

// TurnStalled says that the agent works on a turn and has made no progress for too
// long. The turn is interrupted, once. See [Limits].
type TurnStalled struct {
	Idle  time.Duration // since the last progress
	Limit time.Duration // Limits.Stall
}

// TurnRetries says that the agent only tries a call of the model's API again in a turn, for
// too long or with a login that is refused. The turn is interrupted and ends with Err.
type TurnRetries struct{ Err *RetryLimitError }

// AuthExpired says that the agent's login is missing or has expired. A session emits
// it at most once.
type AuthExpired struct{ Reason string }

// StderrLine is a line of the agent's stderr, without its newline.
type StderrLine struct{ Line string }

// EventsLost says that a reader of events fell behind, and that Count events were
// dropped: the oldest that waited, for a [Child] the newest. The reader gets it in place
// of these events.
type EventsLost struct{ Count int }

// Ended is the end of the session. It is the session's last event: what a callback does
// after it, such as a panic, goes to the runtime's log alone.
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
func (*Recovering) isEvent()      {}
func (*Recovered) isEvent()       {}
func (*TurnStalled) isEvent()     {}
func (*TurnRetries) isEvent()     {}
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
func (*Recovering) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*Recovered) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (*TurnStalled) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*TurnRetries) Level() slog.Level { return slog.LevelWarn }

func (e *TurnRetries) String() string { return fmt.Sprint(e.Err, ": the turn is interrupted") }

// LogValue implements [slog.LogValuer].
func (e *TurnRetries) LogValue() slog.Value { return slog.StringValue(e.String()) }

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
	return fmt.Sprintf("%s (%s) dropped: nobody reads the messages", shown.Count(e.Count, "partial message"), shown.Count(e.Bytes, "byte"))
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
func (e *TurnStalled) String() string {
	return fmt.Sprintf("no progress in the turn for %v (Limits.Stall is %v): it is interrupted", e.Idle, e.Limit)
}

// String implements [Event].
func (e *AuthExpired) String() string {
	return "the agent's login is missing or has expired: " + e.Reason
}
func (e *StderrLine) String() string { return "agent stderr: " + e.Line }
func (e *EventsLost) String() string {
	return fmt.Sprintf("%s lost: their reader has fallen behind", shown.Count(e.Count, "event"))
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

func (e *Recovering) String() string {
	lost := ""
	if l := &e.Death.Lost; len(l.Messages)+len(l.Tools) > 0 {
		lost = fmt.Sprintf(", %s and %s of the agent are lost", shown.Count(len(l.Messages), "message"), shown.Count(len(l.Tools), "tool call"))
	}
	return fmt.Sprintf("recovering (attempt %d, policy %s, after %v), %s under way%s: %v",
		e.Death.Attempt, e.Policy, e.Backoff, shown.Count(len(e.Death.Messages), "message"), lost, e.Death.Err)
}
func (e *Recovered) String() string {
	if e.Message == "" {
		return "recovered: " + e.Why
	}
	return fmt.Sprintf("recovered message %s, sent: %s, because %s", e.Message, e.Sent, e.Why)
}

// LogValue implements [slog.LogValuer].
func (e *Recovering) LogValue() slog.Value {
	return slog.GroupValue(slog.String("policy", string(e.Policy)), slog.Int("attempt", e.Death.Attempt),
		slog.Duration("backoff", e.Backoff), slog.Int("messages", len(e.Death.Messages)), slog.Any("reason", e.Death.Err))
}

// LogValue implements [slog.LogValuer].
func (e *Recovered) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *TurnStalled) LogValue() slog.Value {
	return slog.GroupValue(slog.Duration("idle", e.Idle), slog.Duration("limit", e.Limit))
}

// LogValue implements [Event].
func (e *AuthExpired) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *StderrLine) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *Ended) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *EventsLost) LogValue() slog.Value { return slog.StringValue(e.String()) }
