// Package cloud is Qoder's Cloud Agent as an agent in this process: the sessions of
// [Backend] have a program that serves the host's side of the NDJSON protocol, and talks
// HTTP and SSE to the cloud.
//
// One program belongs to one session, and outlives its connections: a call of Serve
// corresponds to a process of other agents. So supervision, recovery, watchdogs and simulation
// need no special case for the cloud. The state that must survive a connection is in the
// program: the ids of the cloud's agent and session, the last event that was read, and which
// message was posted.
//
// A message is posted again only if it surely did not arrive. All time, tasks and randomness
// come from [backend.Seams].
//
// These must not live here: which options the cloud supports (dialect/qoder), and when a
// session is started again (actors/machine).
package cloud
