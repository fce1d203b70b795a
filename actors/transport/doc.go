// Package transport starts agents: processes of this machine, and agents in memory.
// [session.Spawner] is what it implements, as a user may, too.
//
// What must not live here: what an agent writes, and when it has to end.
package transport
