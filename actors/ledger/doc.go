// Package ledger holds the state of a session that must survive the actors
// that work on it: frames read and not yet handled, the user's stream, turns,
// the correlation tables of both directions, and what the session knows of
// its agent.
//
// The session lends one ledger to each incarnation of its children. Actors
// are drivers: a message to them is a nudge, the work itself is found here, so
// that an actor which dies between two messages loses nothing. Every method is
// one atomic step and safe for concurrent use.
//
// What must not live here: I/O, waiting inside an actor, decisions about
// restarts.
package ledger
