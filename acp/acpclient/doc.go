// Package acpclient makes any agent of the Agent Client Protocol the agent of a Troupe
// session, by [Backend]: a [Spawner] starts the agent's process through another spawner, and translates
// between the protocol on the process's stdin and stdout and the stream of messages that
// sessions speak.
//
// The process stays what it is: signals, the process group, the sweep and its end are those of the
// spawner below, so supervision, watchdogs and recovery need no special case. The translation is a
// state machine without waits and without time limits: each line from the host or from the agent gives
// lines to both. A task reads from the agent, another one writes to it.
//
// Permission fails closed: an answer that the protocol cannot express, that has no option or
// that does not arrive is never an allow.
//
// These must not live here: which options can be used (dialect/acp), when a session is started
// again (actors/machine), and the types of the protocol (acp).
package acpclient
