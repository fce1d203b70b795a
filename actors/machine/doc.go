// Package machine is what a session knows, as a value: [Routing] is what is under
// way between the user and the agent. A step takes an input and returns effects,
// and both are plain data.
//
// There is no lock, clock, goroutine, channel or function in here: whoever owns a
// machine calls Step from one goroutine at a time, says what time it is, and carries
// out the effects in their order. Equal inputs, at equal times, have equal effects.
// Snapshot returns everything that a machine knows, and Restore goes on from it.
//
// What belongs to those who wait (promises, contexts, the messages that nobody has
// read yet) lives with them, keyed by the ids that effects name.
package machine
