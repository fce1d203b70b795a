package fleet

import "time"

// Event is something that happened in a job. Its JSON form is a line of --events.
type Event struct {
	At      time.Time   `json:"at"`
	Kind    EventKind   `json:"kind"`
	Task    string      `json:"task,omitempty"`
	Attempt int         `json:"attempt,omitempty"`
	Status  Status      `json:"status,omitempty"` // of ended and finished
	Detail  string      `json:"detail,omitempty"`
	Result  *TaskResult `json:"-"` // of finished
	// Approval is the call of EventAsked.
	Approval *Approval `json:"-"`
}

// EventKind is the kind of an [Event].
type EventKind string

// Kinds of events.
const (
	EventStarted  EventKind = "started"  // an attempt began; Detail is its mode
	EventEnded    EventKind = "ended"    // an attempt failed, and another one follows; Detail says why
	EventVerified EventKind = "verified" // the verification has spoken; Status is accepted or rejected
	EventFinished EventKind = "finished" // a task has its result
	EventSwept    EventKind = "swept"    // processes of an earlier host were ended
	EventWarning  EventKind = "warning"
	EventPaced    EventKind = "paced"    // Job.Pace has changed how many attempts run; Detail says from what to what, and why
	EventParked   EventKind = "parked"   // a window of a subscription is spent; Detail says until when nothing starts
	EventUnparked EventKind = "unparked" // the account works again
	// EventOutage: something has failed that all attempts need; Detail says what, why, and for
	// how long the job waits. EventRecovered: it works again.
	EventOutage    EventKind = "outage"
	EventRecovered EventKind = "recovered"
	EventPaused    EventKind = "paused"   // by hand
	EventResumed   EventKind = "resumed"  // by hand
	EventRequeued  EventKind = "requeued" // by hand: the task begins anew, and a result that it had is void
	EventAsked     EventKind = "asked"    // a call waits for a person; Detail is the id of the Approval and the tool
	// EventOnAccept: Job.OnAccept has ended for a task; Detail is its state, and why it is not done.
	EventOnAccept EventKind = "on_accept"
	EventStopped  EventKind = "stopped" // nothing more starts; Detail says why
)

// Progress is where a job stands.
type Progress struct {
	Total    int // tasks that are known; with [Stream] it grows, with Job.Sample it counts the samples
	Queued   int // not started, or waiting for other tasks or for their backoff
	Finished int
	Earlier  int // of Finished: those that were over before this process began
	ByStatus map[Status]int
	Running  []TaskInfo // the attempts under way, in the order of their start: ID, State, Attempts, Since and Doing
	Usage    Usage
	Limit    int // how many attempts may run at the same time now
	Denied   int // calls that were denied in finished tasks
	// Parked is until when nothing starts, because a window of a subscription is spent; in
	// the past: a task finds out whether the account works again. Zero: the job is not parked.
	Parked time.Time
	// Outage says what has failed that all attempts need: nothing starts but one attempt at a
	// time, which finds out whether it works again. "": nothing has. See Job.Patience.
	Outage string
	// Starved is for how long the machine had too little processor time for what runs. It is
	// measured with Job.Pace only.
	Starved time.Duration
	Started time.Time
	Paused  bool  // by hand; see Handle.Pause
	Stop    *Stop // why nothing more starts; nil while the job continues
}
