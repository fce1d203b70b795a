package machine

import (
	"time"

	"github.com/agent-troupe/troupe/session"
)

// LifeInput is what [Life.Step] takes. It is a message to the session actor.
type LifeInput interface{ ToSession() }

type (
	// Began says that the session has its actors. From: the session actor.
	Began struct{}

	// Linked says how far the process has come. From: transport.
	Linked struct{ Link Link }

	// CloseAsked says that the user wants the session to end. From: the user; the
	// runtime.
	CloseAsked struct{}

	// PassivateAsked says that the user wants the process to go, if it is not needed;
	// [PassivateOver] is the answer. From: the session actor.
	PassivateAsked struct{}

	// Broken says that the routing is not to be trusted any more: a step of it has
	// panicked. From: the session actor.
	Broken struct{ Err error }

	// ActorsOver says that the actors are gone: they had to stop, or their supervisor
	// has given up for Err. From: the session actor.
	ActorsOver struct{ Err error }

	// Decided is what the user's function says of a death: [Ask]. From: the session actor.
	Decided struct {
		Gen    int
		Policy session.Recovery
		Err    error // in its place
	}

	// Drawn is a delay that was drawn: [Draw]. From: the session actor.
	Drawn struct {
		Gen   int
		Delay time.Duration
	}

	// Tick is the timer of [SetTick]. It may come early. From: the clock.
	Tick struct{}
)

func (Began) ToSession()          {}
func (Linked) ToSession()         {}
func (CloseAsked) ToSession()     {}
func (PassivateAsked) ToSession() {}
func (Broken) ToSession()         {}
func (ActorsOver) ToSession()     {}
func (Decided) ToSession()        {}
func (Drawn) ToSession()          {}
func (Tick) ToSession()           {}
func (Changed) ToSession()        {}
func (Unusable) ToSession()       {}
func (Parted) ToSession()         {}
func (Rested) ToSession()         {}

type (
	// Launch starts process Gen, which takes up the session Resume; "": it begins one.
	// Fresh: it begins one under that id. At is the last message of the history that it
	// takes up; "": the whole history. To: transport.
	Launch struct {
		Gen    int
		Resume string
		Fresh  bool
		At     string
	}

	// Ask has the user's function decide about a death; [Decided] is its answer. To: the
	// session actor.
	Ask struct {
		Gen   int
		Death session.Death
	}

	// Draw draws the delay before another process; [Drawn] is the answer. To: the session
	// actor.
	Draw struct{ Gen, Attempt int }

	// PassivateOver answers [PassivateAsked]; nil: there is no process any more. To: the
	// session actor.
	PassivateOver struct{ Err error }

	// Enter is a change of the session's state. To: the session actor.
	Enter struct {
		From, To session.State
		Why      string
	}

	// Tell gives the routing an input. To: router.
	Tell struct{ Told }

	// SetTick replaces the one timer of the life. To: the clock.
	SetTick struct{ At time.Time } // zero: none

	// Abort kills the process without an actor, because none is alive. To: the link.
	Abort struct{}

	// StopActors ends the actors below the session's. To: the session actor.
	StopActors struct{ Why error }

	// Finish ends the session for good, with its reason; nil is a normal end. To: the
	// session actor.
	Finish struct{ Reason error }
)

// ToTransport implements the interface of that name.
func (Launch) ToTransport() {}

func (Launch) effect()        {}
func (Ask) effect()           {}
func (Draw) effect()          {}
func (PassivateOver) effect() {}
func (Enter) effect()         {}
func (Tell) effect()          {}
func (SetTick) effect()       {}
func (Abort) effect()         {}
func (StopActors) effect()    {}
func (Finish) effect()        {}
