package sdk

import (
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Events of a session, in EventRecord.Event. [Event] is any of the rest; a type
// switch over it needs a default.
type (
	// Event is one report.
	Event = session.Event
	// StateChangedEvent is a transition of the session's state machine.
	StateChangedEvent = session.StateChanged
	// ActorFailedEvent is the crash of an actor of the session's tree.
	ActorFailedEvent = session.ActorFailed
	// SupervisionEvent is a decision of a supervisor.
	SupervisionEvent = session.Supervision
	// NoiseEvent is a line of the agent that is no frame.
	NoiseEvent = session.NoiseLine
	// OversizeEvent is a line above the ceiling.
	OversizeEvent = session.OversizeLine
	// DroppedEvent reports partial stream events that were given up because the
	// consumer stood still while a control call needed the pipe.
	DroppedEvent = session.MessagesDropped
	// CallbackFailedEvent is a callback that failed, panicked or ran out of time.
	CallbackFailedEvent = session.CallbackFailed
	// LateAnswerEvent is a callback's answer that nobody waits for any more.
	LateAnswerEvent = session.LateAnswer
	// UnexpectedFrameEvent is a control frame that fits nothing.
	UnexpectedFrameEvent = session.UnexpectedFrame
	// RepeatedRequestEvent is a request that the agent made again, or under an id
	// that does not name it alone.
	RepeatedRequestEvent = session.RepeatedRequest
	// WarningEvent is a configuration that is legal and probably not meant.
	WarningEvent = session.WarningIssued
	// AuthExpiredEvent says that the agent's login is missing or has expired.
	AuthExpiredEvent = session.AuthExpired
	// StderrEvent is a line of the agent's stderr.
	StderrEvent = session.StderrLine
	// EventsLostEvent says that Options.OnEvent or the logger has fallen behind by
	// more than 1,024 events, and how many of the oldest are gone.
	EventsLostEvent = session.EventsLost
	// EndedEvent is the end of the session, with the reason chain.
	EndedEvent = session.Ended
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
