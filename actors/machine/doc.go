// Package machine is the state of a session, as a value: [Routing] is the work under
// way between the user and the agent. A step takes an input and returns effects, and
// both are plain data.
//
// There is no lock, clock, goroutine, channel or function in here: the owner of a
// machine calls Step from one goroutine at a time, passes the time, and carries out the
// effects in their order. Equal inputs, at equal times, have equal effects. Snapshot
// returns everything that a machine knows, and Restore continues from it.
//
// The waiters keep their promises, contexts and unread messages, keyed by the ids that
// effects name.
package machine
