// Package link owns the agent's process from its launch to its sweep: bytes to
// frames and back, the exit, and the close ladder.
//
// The [Link] is the process with its pumps; it is lent to each incarnation of
// the transport actor, so that a crash of the actor does not cost the agent its
// life. The actor drives the close ladder.
//
// What must not live here: how a process is made, and what frames mean.
package link
