package session

import (
	"context"
	"time"
)

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
