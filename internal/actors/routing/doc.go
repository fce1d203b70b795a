// Package routing is the actor that owns the routing of a session: it gives it each
// message, as an input, and carries out the effects, which are messages to the others.
// The [Box] outlives it, so that the next router goes on where this one was.
//
// What must not live here: what a session knows and decides, which is the routing's.
package routing
