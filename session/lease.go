package session

import (
	"context"
	"fmt"
	"time"
)

// Leases hands out the right to run an agent in a session. Two agents in one session
// append to one transcript; a later resume then continues one of the two histories and
// forgets the other. Implementations must be safe for concurrent use. The default is
// runtime.LocalLeases.
type Leases interface {
	// Acquire gets the right to run the agent's session sessionID, as Options.Resume and
	// Options.SessionID name it. If somebody else has the right, it does not wait for
	// them, and returns a *[LeaseError]. The end of ctx ends the attempt.
	//
	// release gives the right back. It is called once, when no process of the session is
	// left, and may block.
	Acquire(ctx context.Context, sessionID string) (release func(), err error)
}

// LeaseHolder says who runs a session.
type LeaseHolder struct {
	Host  string    `json:"host"`  // name of the machine; "": not known
	PID   int       `json:"pid"`   // of the program that runs the agent; 0: not known
	Since time.Time `json:"since"` // zero: not known
}

// LeaseError is the error of a session that another program, or another session of this
// one, runs already. Nothing was started, or, if the agent itself chose the session
// (Options.Continue), what was started was ended. To go on from there, end the other one,
// or set Options.ForkSession.
type LeaseError struct {
	SessionID string      // the agent's id of the session
	Holder    LeaseHolder // who has it; zero: not known
	Err       error       // why the right could not be got, if nobody has it; nil: Holder has it
}

func (e *LeaseError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the lease of session %s could not be got: %v", e.SessionID, e.Err)
	}
	by := "another program"
	if e.Holder.PID != 0 {
		by = fmt.Sprintf("process %d on %s", e.Holder.PID, e.Holder.Host)
		if !e.Holder.Since.IsZero() {
			by += " since " + e.Holder.Since.Format(time.RFC3339)
		}
	}
	return fmt.Sprintf("session %s is in use by %s; end it there, or set ForkSession", e.SessionID, by)
}

func (e *LeaseError) Unwrap() error { return e.Err }
