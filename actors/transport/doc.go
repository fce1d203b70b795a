// Package transport owns the agent's side of the pipe. Its spawners start agents:
// processes of this machine, and agents in memory; they implement [session.Spawner], which
// users can implement, too. A [Link] is one agent from its launch to its sweep: the pumps
// of its output, the writer of its input, its exit, and the close ladder. It is lent to
// each incarnation of the transport actor, which drives the ladder, so that a crash of the
// actor does not end the agent.
//
// The meaning of an agent's output must not live here, nor the decision when it must end.
package transport
