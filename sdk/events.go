package sdk

import "github.com/agent-troupe/troupe/actors/event"

// Events of a session, in EventRecord.Event. [Event] is any of the rest; a type
// switch over it needs a default.
type (
	// Event is one report.
	Event = event.Event
	// StateChangedEvent is a transition of the session's state machine.
	StateChangedEvent = event.StateChanged
	// ActorFailedEvent is the crash of an actor of the session's tree.
	ActorFailedEvent = event.ActorFailed
	// SupervisionEvent is a decision of a supervisor.
	SupervisionEvent = event.Supervision
	// NoiseEvent is a line of the agent that is no frame.
	NoiseEvent = event.Noise
	// OversizeEvent is a line above the ceiling.
	OversizeEvent = event.Oversize
	// DroppedEvent reports partial stream events that were given up because the
	// consumer stood still while a control call needed the pipe.
	DroppedEvent = event.Dropped
	// CallbackFailedEvent is a callback that failed, panicked or ran out of time.
	CallbackFailedEvent = event.CallbackFailed
	// LateAnswerEvent is a callback's answer that nobody waits for any more.
	LateAnswerEvent = event.LateAnswer
	// UnexpectedFrameEvent is a control frame that fits nothing.
	UnexpectedFrameEvent = event.UnexpectedFrame
	// WarningEvent is a configuration that is legal and probably not meant.
	WarningEvent = event.Warning
	// AuthExpiredEvent says that the agent's login is missing or has expired.
	AuthExpiredEvent = event.AuthExpired
	// StderrEvent is a line of the agent's stderr.
	StderrEvent = event.Stderr
	// EndedEvent is the end of the session, with the reason chain.
	EndedEvent = event.Ended
)
