package message

import (
	"github.com/agent-troupe/troupe/internal/kernel"
)

// ToSession is what a session actor takes.
type ToSession interface{ toSession() }

// LinkChanged says that the link to the agent changed. From: transport.
type LinkChanged struct{}

// LedgerChanged says that the routing's summary changed. From: router, callbacks.
type LedgerChanged struct{}

// CloseWanted says that the user wants the session to end. From: runtime.
type CloseWanted struct{}

// SupervisorTimer is a timer of the session's supervisor. From: the clock.
type SupervisorTimer Timer

// Timer is a timer of the supervisor in one incarnation of an actor: tokens of
// others mean nothing to it.
type Timer struct {
	Of    string // name of the incarnation
	Token uint64
}

// CloseStepOver ends a step of a close before the end of stdin: the wait for a
// running turn to stop, or the flush. From: the clock.
type CloseStepOver struct{ Flush bool }

// ConsumerOver is the time to see whether the messages are being read. From:
// the clock.
type ConsumerOver struct{}

// Describe asks for the actors of the tree. From: runtime.
type Describe struct {
	Reply *kernel.Promise[[]ActorInfo]
}

// ActorInfo describes one actor of a session's tree.
type ActorInfo struct {
	Name        string // "router#2"
	State       string // "running", "waiting", "stopped"
	Restarts    int
	Depth       int   // messages waiting
	Handled     int64 // messages handled by this incarnation
	LastFailure string
}

func (LinkChanged) toSession()     {}
func (LedgerChanged) toSession()   {}
func (CloseWanted) toSession()     {}
func (SupervisorTimer) toSession() {}
func (CloseStepOver) toSession()   {}
func (ConsumerOver) toSession()    {}
func (Describe) toSession()        {}

// ToTransport is what a transport actor takes.
type ToTransport interface{ toTransport() }

// LinkMoved says that the link made progress, or that the session wants it
// closed. From: the link's tasks, session.
type LinkMoved struct{}

// StageOver ends the present stage of the ladder. From: the clock.
type StageOver struct{ Stage int }

func (LinkMoved) toTransport() {}
func (StageOver) toTransport() {}

// ToRouter is what a router takes.
type ToRouter interface{ toRouter() }

// FramesReady says that something is due after what the agent wrote, or after the
// end of it. From: the link.
type FramesReady struct{}

// WorkReady says that something may be due after calls, user messages, or a
// deadline. From: users' tasks, through the session's handle; the ledger's timer.
type WorkReady struct{}

func (FramesReady) toRouter() {}
func (WorkReady) toRouter()   {}

// ToCallback is what the callback actors take.
type ToCallback interface{ toCallback() }

// RequestsReady says that requests of the actor's kind wait in the ledger, or,
// to the supervisor of the callback actors, that nobody may be there to take
// some. From: router.
type RequestsReady struct{}

// CallbacksDue says that the time of a callback may be over. From: the clock,
// and a task whose callback has a shorter time than was thought.
type CallbacksDue struct{}

func (RequestsReady) toCallback() {}
func (CallbacksDue) toCallback()  {}

// ToCallbacks is what the supervisor of the callback actors takes.
type ToCallbacks interface{ toCallbacks() }

// CallbacksTimer is a timer of that supervisor. From: the clock.
type CallbacksTimer Timer

func (RequestsReady) toCallbacks()  {}
func (CallbacksTimer) toCallbacks() {}
func (Describe) toCallbacks()       {}
