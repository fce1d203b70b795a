// Package transport starts agents: processes of this machine, and agents in memory. It
// implements [session.Spawner], which users can also implement.
//
// The meaning of an agent's output, and the decision when an agent must end, must not live
// here.
package transport
