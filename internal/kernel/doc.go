// Package kernel is the only door to the actor library. It holds the seams
// (clock, dispatcher, executor, randomness), typed actors and their refs, the
// guard, ask, and the ordered, awaited stop.
//
// In this package: everything that touches protoactor, starts a goroutine, reads a
// clock or draws a random number. Not in this package: any knowledge of agents,
// sessions or the wire protocol. Of package session it uses the errors that it returns
// and users match: TimeoutError and PanicError. No protoactor type leaves this package.
package kernel
