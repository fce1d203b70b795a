package sdk

import (
	"github.com/agent-troupe/troupe/actors/event"
	"github.com/agent-troupe/troupe/supervisor"
)

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
	// RepeatedRequestEvent is a request that the agent made again, or under an id
	// that does not name it alone.
	RepeatedRequestEvent = event.RepeatedRequest
	// WarningEvent is a configuration that is legal and probably not meant.
	WarningEvent = event.Warning
	// AuthExpiredEvent says that the agent's login is missing or has expired.
	AuthExpiredEvent = event.AuthExpired
	// StderrEvent is a line of the agent's stderr.
	StderrEvent = event.Stderr
	// EventsLostEvent says that Options.OnEvent or the logger has fallen behind by
	// more than 1,024 events, and how many of the oldest are gone.
	EventsLostEvent = event.EventsLost
	// EndedEvent is the end of the session, with the reason chain.
	EndedEvent = event.Ended
)

// What a supervisor saw or decided, in SupervisionEvent.Decision. A type switch
// over them needs a default.
type (
	// ChildStartedDecision says that an incarnation of a child was asked for.
	ChildStartedDecision = supervisor.ChildStarted
	// ChildFailedDecision says that a child ended by itself.
	ChildFailedDecision = supervisor.ChildFailed
	// ChildStoppedDecision says that a child ended because it was asked to.
	ChildStoppedDecision = supervisor.ChildStopped
	// ChildStuckDecision says that a child was killed and has not ended.
	ChildStuckDecision = supervisor.ChildStuck
	// RestartScheduledDecision says that children come back after a delay.
	RestartScheduledDecision = supervisor.RestartScheduled
	// RestartedDecision says that the children of a restart were asked for again.
	RestartedDecision = supervisor.Restarted
	// IntensityExceededDecision says that a failure was one too many.
	IntensityExceededDecision = supervisor.IntensityExceeded
	// EscalatedDecision says that the supervisor has given up.
	EscalatedDecision = supervisor.Escalated
	// StoppingDecision says that the supervisor began to stop its children.
	StoppingDecision = supervisor.Stopping
	// StoppedDecision says that the supervisor has ended.
	StoppedDecision = supervisor.Stopped
)
