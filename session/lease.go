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
	// Options.SessionID name it. If another process or session has the right, Acquire
	// returns a *[LeaseError] without waiting. The end of ctx ends the attempt.
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
	// Boot identifies one start of the machine's system; "": not known. On Linux it is the
	// kernel's boot id.
	Boot string `json:"boot,omitempty"`
}

// LeaseError is the error of a session that another program, or another session of this one,
// runs already. Nothing was started, or, if the agent itself chose the session
// (Options.Continue), what was started was ended. To continue that session, end the other one,
// or set Options.ForkSession.
//
// It is also the error of a session that has lost its lease to another host, or could not
// renew it in time ([LeaseStore]): its agent was killed, and nothing more is written to the store.
type LeaseError struct {
	SessionID string      // the agent's id of the session
	Holder    LeaseHolder // who has it; zero: not known
	Err       error       // why the lease could not be got or renewed although it is free; nil if Holder has it
	Lost      bool        // the session had the lease
}

func (e *LeaseError) Error() string {
	switch {
	case e.Lost && e.Err != nil:
		return fmt.Sprintf("the lease of session %s could not be renewed in time, so another host may use the session now: %v", e.SessionID, e.Err)
	case e.Lost && e.Holder == (LeaseHolder{}):
		return fmt.Sprintf("the lease of session %s is over", e.SessionID)
	case e.Lost:
		return fmt.Sprintf("the lease of session %s was lost to %s", e.SessionID, e.Holder)
	case e.Err != nil:
		return fmt.Sprintf("the lease of session %s could not be got: %v", e.SessionID, e.Err)
	}
	return fmt.Sprintf("session %s is in use by %s; end it there, or set ForkSession", e.SessionID, e.Holder)
}

// String says who it is, for errors.
func (h LeaseHolder) String() string {
	if h.PID == 0 {
		return "another program"
	}
	by := fmt.Sprintf("process %d on %s", h.PID, h.Host)
	if !h.Since.IsZero() {
		by += " since " + h.Since.Format(time.RFC3339)
	}
	return by
}

func (e *LeaseError) Unwrap() error { return e.Err }

// Lease is the right to write to one session of a [Store], for a limited time.
type Lease struct {
	Session string // the agent's id of the session
	Token   int64  // the fencing token: each lease of a session has a greater one than those before it
}

// LeaseRequest asks for a [Lease].
type LeaseRequest struct {
	Session string        // the agent's id of the session
	Holder  LeaseHolder   // who asks
	TTL     time.Duration // how long the lease lasts, unless it is renewed
	// Dead reports whether a holder is known to have died. Its lease then counts as one that
	// has run out. nil: no death is known.
	Dead func(LeaseHolder) bool
}

// LeaseStore is a [Store] whose sessions can be used from several hosts, one at a time.
// Options.SessionStore may implement it; package transcript/storetest tests it. A store that
// implements [Leases], too, grants a session only if both do.
//
// A lease that has run out belongs to its holder until another host acquires the session:
// then it is over. From then on the store refuses what its holder appends: an Append whose
// context has a lease that is over ([LeaseOf]) adds nothing and returns a *[LeaseError]. The
// check and the append are one step: no lease is given out between them. An Append without a
// lease in its context is not checked.
//
// A method that the store cannot offer at present, such as in a directory whose file system
// has no locks, returns an error that matches errors.ErrUnsupported. The session then runs
// without a lease, and a warning says so.
type LeaseStore interface {
	Store
	// AcquireLease gives out a lease. If another holder has one that has not run out, it does
	// not wait, and returns a *[LeaseError] with that holder.
	AcquireLease(ctx context.Context, r LeaseRequest) (Lease, error)
	// RenewLease has a lease last for ttl from now on. A lease that is over is a
	// *[LeaseError], with the present holder if there is one.
	RenewLease(ctx context.Context, l Lease, ttl time.Duration) error
	// ReleaseLease gives a lease back. A lease that is over is accepted.
	ReleaseLease(ctx context.Context, l Lease) error
}

type leaseKey struct{}

// WithLease returns a context with the lease under which entries are appended.
func WithLease(ctx context.Context, l Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, l)
}

// LeaseOf returns the lease under which entries are appended; false without a lease.
func LeaseOf(ctx context.Context) (Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(Lease)
	return l, ok
}
