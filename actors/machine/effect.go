package machine

import (
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Effect is what a step asks for.
type Effect interface{ effect() }

type (
	// Write is one line for the agent. To: transport.
	Write struct {
		Line []byte
		As   Class
	}

	// Run starts the callback of a request. To: the actor of its kind.
	Run struct {
		Seq    uint64 // never used twice in a session
		Kind   session.Kind
		Frame  *protocol.Frame // it does not change
		Opened time.Time
	}

	// Cancel ends the callback of a request that is over. To: the actor of its kind.
	Cancel struct {
		Seq  uint64
		Kind session.Kind
		Why  error // nil if it is answered or withdrawn
	}

	// Deliver is messages for the user. To: the user's stream.
	Deliver struct{ Entries []Delivery }

	// Dropped is a message that is dropped as it comes. To: the session's trace.
	Dropped struct{ Frame protocol.Frame }

	// Mirror passes on a line in which the agent reports what it has stored; nil: a turn, or
	// the process, is over. To: the session's mirror.
	Mirror struct{ Report []byte }

	// Trim drops partial messages, oldest first, until no more than To bytes are
	// held. To: the user's stream.
	Trim struct{ To int64 }

	// Unsure says that the messages from the place From on may yet turn out to be of
	// a turn; if On is not set, none may. To: the user's stream.
	Unsure struct {
		From uint64
		On   bool
	}

	// Moved says where the messages of a turn begin by now. To: the user's stream.
	Moved struct {
		ID     string
		Starts uint64
		State  TurnState
	}

	// TurnOver ends a turn that no message of the stream ends. To: the user's
	// stream.
	TurnOver struct{ Outcome }

	// CallOver is the outcome of a call. To: the caller.
	CallOver struct {
		ID       string
		Response *protocol.ControlResponse
		Err      error
	}

	// Learned is what the agent has said about itself. To: the user's handle.
	Learned struct {
		Initialized  []byte // the answer to initialize; nil before
		SessionID    string // "" before it is known
		Capabilities []string
		WritesLost   error
	}

	// TasksChanged lists the background tasks that live, by their ids. To: the user's
	// handle.
	TasksChanged struct{ Tasks []Task }

	// SetTimer replaces the one timer of the routing. To: the clock.
	SetTimer struct{ At time.Time } // zero: none

	// Pause has the reader wait for a ReadOn. To: transport.
	Pause struct{}

	// ReadOn lets it continue. To: transport.
	ReadOn struct{}

	// Works says whether the agent has anything to do, or may start something by
	// itself. While it has not, no goroutine waits for its output. To: transport.
	Works struct{ On bool }

	// Climb takes the close ladder to a stage, at least. Why is not empty if it is not
	// for a close. To: transport.
	Climb struct {
		Gen   int // of the process that is meant; 0: the present one
		Stage Stage
		Why   string
	}

	// Charge takes bytes from what large lines of all sessions may have, or gives
	// them back. To: the runtime's budget.
	Charge struct{ Bytes int64 }

	// Changed is what the session has to know. To: session; the user's handle.
	Changed struct{ Summary *Summary }

	// Parted answers [Lost]: no request of process Gen is open any more. To: session.
	Parted struct {
		Gen       int
		SessionID string // that the agent was in; "": it did not say
		Leaf      string // see [Recovery]
		// The open work: see [session.Death].
		Messages []session.FailedMessage
		Tools    []session.RunningTool
		Gates    int
		// Wanted is what the transcript may have of it.
		Wanted Wanted
	}

	// Rested answers [Rest]. To: session.
	Rested struct {
		Gen    int
		Busy   string    // what the process is needed for; "": it can go
		Soon   bool      // only for the end of a turn that has its result
		Active time.Time // when it was last in use
	}

	// Unusable is why the agent cannot be used. To: session.
	Unusable struct {
		Err error
		// Stderr and Stdout are the tails of what the agent wrote, filled in on the way.
		Stderr, Stdout string
	}

	// TurnedAway is why new work is turned away from now on. To: the user's side.
	TurnedAway struct{ Why error }

	// Emit reports an event. To: listeners.
	Emit struct{ Event session.Event }
)

func (Write) effect()        {}
func (Run) effect()          {}
func (Cancel) effect()       {}
func (Deliver) effect()      {}
func (Dropped) effect()      {}
func (Mirror) effect()       {}
func (Trim) effect()         {}
func (Unsure) effect()       {}
func (Moved) effect()        {}
func (TurnOver) effect()     {}
func (CallOver) effect()     {}
func (SetTimer) effect()     {}
func (Learned) effect()      {}
func (TasksChanged) effect() {}
func (Unusable) effect()     {}
func (TurnedAway) effect()   {}
func (Parted) effect()       {}
func (Rested) effect()       {}
func (Works) effect()        {}
func (Climb) effect()        {}
func (Pause) effect()        {}
func (ReadOn) effect()       {}
func (Charge) effect()       {}
func (Changed) effect()      {}
func (Emit) effect()         {}

// ToTransport is a message to the transport actor.
type ToTransport interface{ ToTransport() }

func (Write) ToTransport()  {}
func (Pause) ToTransport()  {}
func (ReadOn) ToTransport() {}
func (Works) ToTransport()  {}
func (Climb) ToTransport()  {}

// ToCallback is a message to an actor that calls the user back.
type ToCallback interface{ ToCallback() }

func (Run) ToCallback()    {}
func (Cancel) ToCallback() {}

// Class says what becomes of a line for the agent that does not take it.
type Class int

// Classes of lines.
const (
	FromHost Class = iota // a call or a user message
	Answer                // to a request of the agent
	Denial                // an answer that must be heard
	Again                 // an answer that was given before: it may be dropped
)

// Delivery is one message of the user's stream.
type Delivery struct {
	Frame protocol.Frame
	Seq   uint64 // its place in the stream
	// Task is 1 + the place where its background task began; 0: it is of none.
	Task uint64
	// Ends are the turns that end with it.
	Ends []Outcome
	// Tasks are the background tasks that lived when it came, if it is a result.
	Tasks []protocol.BackgroundTask
	// Recovered: it is the result of a turn that another process had begun.
	Recovered bool
}

// Outcome is the end of a turn. Its messages are those from Starts up to Ends, Ends
// not included.
type Outcome struct {
	ID           string
	Result       *protocol.ResultMessage
	Err          error // in its place
	Starts, Ends uint64
}

// Summary is what the session, and those who wait for it, know of the routing. It is
// comparable, and never changed once it is sent: all who know it share it.
type Summary struct {
	Heard       uint64 // the number of the last [Told]
	Gen         int    // of the process
	Initialized bool
	SettingUp   bool   // a call is open without which the session cannot be used
	GatesOff    string // what showed that the agent calls no hooks; "": nothing did
	Gates       int    // requests that wait for a person
	Stalled     bool   // the reader waits for a consumer
	StalledAt   time.Time
	Turns       int  // open
	Running     bool // a turn is under way, the user's or the agent's
	InFlight    bool // the agent is at work on one
	OwnTurn     bool // a turn runs that the agent started
	Tasks       int  // background tasks that live
	TasksSeen   uint64
	ResultAt    time.Time
	QuietUntil  time.Time // a turn may still follow the last task; zero: none
	Failure     string    // what the last result said, if it was an error
	Closing     bool
	Changed     bool // a call may have changed what the options say
	Flushed     bool // [Flush] has come to its end
	Waiting     bool // there is something to do, and no process
	Drained     bool // the agent's output has ended, and all of it is handled
	Over        bool
}

// Busy reports whether the agent has anything to do, or may start something by
// itself: a turn in flight, or a background task.
func (s *Summary) Busy() bool { return s.InFlight || s.Tasks > 0 }

// TurnMayFollow reports whether the agent may start a turn for a background task that has
// just ended.
func (s *Summary) TurnMayFollow() bool { return !s.QuietUntil.IsZero() }
