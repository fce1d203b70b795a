package machine

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Input is what [Routing.Step] takes. It is a message to the router.
type Input interface{ ToRouter() }

type (
	// Connected says that process Gen can be written to. From: transport.
	Connected struct{ Gen int }

	// Disconnected says that nothing reaches the process any more. From: transport.
	Disconnected struct{}

	// Lost says that process Gen has ended, with all its output handled, and that another
	// one will take its place. Calls that it had been given and that are not safe to make
	// again end with Reason. From: session.
	Lost struct {
		Gen     int
		Reason  error
		Passive bool // it was not needed
	}

	// Verdict says what becomes of the messages that process Gen had been given. From:
	// session.
	Verdict struct {
		Gen    int
		Policy session.Recovery
		Reason error // of those that end
		// History is what the agent's transcript has of them.
		History History
	}

	// FramesRead is a batch of the agent's output, in order. A frame that is
	// oversize holds the head of a line only. Pressed: see [ReaderAsks]. From:
	// transport.
	FramesRead struct {
		Frames  []protocol.Frame
		Pressed bool
	}

	// OutputEnded follows the last batch. From: transport.
	OutputEnded struct{}

	// Echoed is the head of a line that is not JSON and begins like a call of the
	// routing itself. From: transport.
	Echoed struct{ Head []byte }

	// ReaderAsks asks whether a paused reader may continue; [ReadOn] is a yes. Pressed:
	// the agent does not read its input, or is gone, so both would wait for each other.
	// From: transport.
	ReaderAsks struct{ Pressed bool }

	// Unwritable says that nothing reaches the agent's stdin any more. From:
	// transport.
	Unwritable struct{}

	// Mute says that the agent lives on after the end of its stdout. From: transport.
	Mute struct{}

	// Taken gives back what was written to the process. From: transport.
	Taken struct{ Bytes int64 }

	// UserSent is a user message under an id of the sender's. From: the user.
	UserSent struct {
		ID   string
		Line []byte
		// Prompt: the agent calls UserPromptSubmit for it in any case.
		Prompt bool
	}

	// Called is a control request of the host under an id of the caller's. From:
	// the user; session.
	Called struct {
		ID, Subtype string
		Body        json.RawMessage
		Limit       time.Duration // zero: none
		SetBy       string        // the option that set Limit
		// Own marks the session's own calls, which go out before the agent is
		// initialized and while the session closes.
		Own bool
	}

	// CallDropped says that the caller no longer waits. From: the user; session.
	CallDropped struct {
		ID  string
		Why error
	}

	// Answered is what becomes of the request that [Run] named. From: the callback
	// actors.
	Answered struct {
		Seq uint64
		// Response is the answer; nil: a success without one.
		Response json.RawMessage
		// ErrText, if set, is an error in its place, with Code, if it has one.
		ErrText, Code string
		// Deny, if set, is the reason for which no callback answers: gates deny.
		Deny string
		// Cause is the cause of its context's end; nil if it is over.
		Cause error
		// Drop: the agent has given the request up, and no answer is sent.
		Drop bool
		// Failure, if set, is reported if the answer counts.
		Failure error
		// ID, Kind and Name are for reports.
		ID   string
		Kind session.Kind
		Name string
	}

	// CallbacksLost lists what a dead callback actor had taken. From: session.
	CallbacksLost struct {
		Seqs   []uint64
		Reason string
	}

	// Reads says whether the stream has a consumer. From: the user.
	Reads struct{ On bool }

	// Consumed gives credit back for messages of the stream. Empty: the reader has
	// found nothing more. From: the user's stream.
	Consumed struct {
		Messages     int
		Bytes        int64
		Partials     int // of Messages, partial ones
		PartialBytes int64
		LargeBytes   int64 // of Bytes, lines above [LargeLine]
		Empty        bool
		Dropped      bool // they were not read
	}

	// TimerFired is the timer of [SetTimer]. It may come early. From: the clock.
	TimerFired struct{}

	// Told is an input of the session's, which numbers them: the summary names the
	// last one. From: session.
	Told struct {
		N  uint64
		In Input
	}

	// Serve says whether requests of the agent are still given out while the session
	// closes. Once they are not, those that are open are denied. From: session.
	Serve struct{ On bool }

	// Closing refuses new work. Serve is as in the message of that name. A nil Reason is
	// a close by the user: unread messages must not delay it. From: session.
	Closing struct {
		Reason error
		Serve  bool
	}

	// Flush makes the calls that the agent wants before the end of its stdin, and then
	// waits until it is quiet; Limit at most. From: session.
	Flush struct{ Limit time.Duration }

	// Rest asks whether process Gen is needed, and was not in use for Idle; [Rested] is the
	// answer. From: session.
	Rest struct {
		Gen  int
		Idle time.Duration
	}

	// AuthLost says that the login is missing or has expired. From: session.
	AuthLost struct{ Reason string }

	// Ended is the end of the session; a nil Reason is a normal one. From: session.
	Ended struct{ Reason error }
)

func (Connected) ToRouter()     {}
func (Disconnected) ToRouter()  {}
func (Lost) ToRouter()          {}
func (Verdict) ToRouter()       {}
func (FramesRead) ToRouter()    {}
func (OutputEnded) ToRouter()   {}
func (Echoed) ToRouter()        {}
func (Unwritable) ToRouter()    {}
func (Mute) ToRouter()          {}
func (Told) ToRouter()          {}
func (Flush) ToRouter()         {}
func (Rest) ToRouter()          {}
func (ReaderAsks) ToRouter()    {}
func (Taken) ToRouter()         {}
func (UserSent) ToRouter()      {}
func (Called) ToRouter()        {}
func (CallDropped) ToRouter()   {}
func (Answered) ToRouter()      {}
func (CallbacksLost) ToRouter() {}
func (Reads) ToRouter()         {}
func (Consumed) ToRouter()      {}
func (TimerFired) ToRouter()    {}
func (Serve) ToRouter()         {}
func (Closing) ToRouter()       {}
func (AuthLost) ToRouter()      {}
func (Ended) ToRouter()         {}
