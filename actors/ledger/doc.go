// Package ledger holds what a session has besides its actors: its routing, a value
// ([machine.Routing]) under a lock, and those who wait for it: the readers of the
// user's stream, turns, calls of the host, and the callbacks of the agent's requests.
//
// The session lends one ledger to each incarnation of its children. Every method is
// one atomic step and safe for concurrent use: it hands an input to the routing and
// carries out the effects. A message to an actor says that something is due, so an
// actor that dies between two messages loses nothing.
//
// What must not live here: I/O, waiting inside an actor, decisions about restarts,
// and what a session knows, which is the routing's.
package ledger
