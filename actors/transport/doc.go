// Package transport owns the agent's process, or an in-memory agent: launch,
// bytes to frames and back, exit, the close ladder and the sweep.
//
// The [Link] is the process with its pumps; it is lent to each incarnation of
// the transport actor, so that a crash of the actor does not cost the agent its
// life. The actor drives the close ladder. [Spawner] is how processes are
// made: on this machine, in memory, or anywhere the user likes.
//
// What must not live here: what frames mean.
package transport
