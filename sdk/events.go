package sdk

import "github.com/agent-troupe/troupe/actors/event"

// Events of a session, in EventRecord.Event. [Event] is any of the rest; a type
// switch over it needs a default.
type (
	Event                = event.Event
	StateChangedEvent    = event.StateChanged
	ActorFailedEvent     = event.ActorFailed
	SupervisionEvent     = event.Supervision
	NoiseEvent           = event.Noise
	OversizeEvent        = event.Oversize
	DroppedEvent         = event.Dropped
	CallbackFailedEvent  = event.CallbackFailed
	LateAnswerEvent      = event.LateAnswer
	UnexpectedFrameEvent = event.UnexpectedFrame
	WarningEvent         = event.Warning
	StderrEvent          = event.Stderr
	EndedEvent           = event.Ended
)
