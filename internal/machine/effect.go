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
		Frame  protocol.Frame
		Opened time.Time
	}

	// Cancel ends the callback of a request that is over. To: the actor of its kind.
	Cancel struct {
		Seq uint64
		Why error // nil: it is answered or withdrawn
	}

	// Deliver is messages for the user. To: the user's stream.
	Deliver struct{ Entries []Entry }

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

	// CallOver is the outcome of a call. To: whoever waits for it.
	CallOver struct {
		ID       string
		Response *protocol.ControlResponse
		Err      error
	}

	// SetTimer replaces the one timer of the routing. To: the clock.
	SetTimer struct{ At time.Time } // zero: none

	// Pause has the reader wait for a Resume. To: transport.
	Pause struct{}

	// Resume has it go on, or ask again. To: transport.
	Resume struct{}

	// Charge takes bytes from what large lines of all sessions may have, or gives
	// them back. To: the runtime's budget.
	Charge struct{ Bytes int64 }

	// Changed is what the session has to know. To: session.
	Changed struct{ Summary Summary }

	// Emit reports an event. To: listeners.
	Emit struct{ Event session.Event }
)

func (Write) effect()    {}
func (Run) effect()      {}
func (Cancel) effect()   {}
func (Deliver) effect()  {}
func (Trim) effect()     {}
func (Unsure) effect()   {}
func (Moved) effect()    {}
func (TurnOver) effect() {}
func (CallOver) effect() {}
func (SetTimer) effect() {}
func (Pause) effect()    {}
func (Resume) effect()   {}
func (Charge) effect()   {}
func (Changed) effect()  {}
func (Emit) effect()     {}

// Class says what becomes of a line for the agent that does not take it.
type Class int

// Classes of lines.
const (
	FromHost Class = iota // a call or a user message
	Answer                // to a request of the agent
	Denial                // an answer that must be heard
	Again                 // an answer that was given before: it may be dropped
)

// Entry is one message of the user's stream.
type Entry struct {
	Frame protocol.Frame
	Seq   uint64 // its place in the stream
	// Task is 1 + the place where its background task began; 0: it is of none.
	Task uint64
	// Ends are the turns that end with it.
	Ends []Outcome
	// Tasks are the background tasks that lived when it came, if it is a result.
	Tasks []protocol.BackgroundTask
}

// Outcome is the end of a turn. Its messages are those from Starts up to Ends, Ends
// not included.
type Outcome struct {
	ID           string
	Result       *protocol.ResultMessage
	Err          error // in its place
	Starts, Ends uint64
}

// Summary is what the session knows of the routing. It is comparable.
type Summary struct {
	Initialized bool
	InitFailed  bool
	SettingUp   bool // a call is open without which the session cannot be used
	GatesOff    bool
	Gates       int  // requests that wait for a person
	Unanswered  int  // requests of any kind; counted while the session closes
	Own         int  // calls of the session's own that are open
	Stalled     bool // nobody reads, and the reader waits for it
	Turns       int  // open
	Running     bool // a turn is under way, the user's or the agent's
	InFlight    bool // the agent is at work on one
	OwnTurn     bool // a turn runs that the agent started
	Tasks       int  // background tasks that live
	TasksSeen   uint64
	ResultAt    time.Time
	QuietUntil  time.Time // a turn may still follow the last task; zero: none
	Drained     bool      // the agent's output has ended, and all of it is handled
	Over        bool
}
