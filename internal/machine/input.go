package machine

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Input is what [Routing.Step] takes.
type Input interface{ input() }

type (
	// Connected says that process Gen can be written to. From: transport.
	Connected struct{ Gen int }

	// Disconnected says that nothing reaches the process any more. From: transport.
	Disconnected struct{}

	// FramesRead is a batch of the agent's output, in order. A frame that is
	// oversize holds the head of a line only. From: transport.
	FramesRead struct{ Frames []protocol.Frame }

	// OutputEnded follows the last batch. From: transport.
	OutputEnded struct{}

	// Echoed says that the process wrote back a line of its stdin. From: transport.
	Echoed struct{}

	// ReaderAsks asks whether more may be read; [Pause] is a no. Pressed: the agent
	// does not take what is written to it, or is gone, so both would wait for each
	// other. From: transport.
	ReaderAsks struct{ Pressed bool }

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

	// CallDropped says that nobody waits for the call any more. From: the user;
	// session.
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
		// Cause is what its context ends with; nil: it is over.
		Cause error
		// Drop: the agent has given the request up, and no answer is sent.
		Drop bool
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

	// Reads says whether somebody reads the stream. From: the user.
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

	// Serve says whether requests of the agent are still given out while the session
	// closes. From: session.
	Serve struct{ On bool }

	// Closing turns new work away. Abandon: it is the user's wish, and messages that
	// nobody reads must not hold it up. From: session.
	Closing struct{ Abandon bool }

	// AuthLost says that the login is missing or has expired. From: session.
	AuthLost struct{ Reason string }

	// Ended is the end of the session; a nil Reason is a normal one. From: session.
	Ended struct{ Reason error }
)

func (Connected) input()     {}
func (Disconnected) input()  {}
func (FramesRead) input()    {}
func (OutputEnded) input()   {}
func (Echoed) input()        {}
func (ReaderAsks) input()    {}
func (Taken) input()         {}
func (UserSent) input()      {}
func (Called) input()        {}
func (CallDropped) input()   {}
func (Answered) input()      {}
func (CallbacksLost) input() {}
func (Reads) input()         {}
func (Consumed) input()      {}
func (TimerFired) input()    {}
func (Serve) input()         {}
func (Closing) input()       {}
func (AuthLost) input()      {}
func (Ended) input()         {}
