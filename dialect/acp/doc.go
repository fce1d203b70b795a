// Package acp is the dialect of agents of the Agent Client Protocol, as package
// acp/acpclient translates them: Claude Code's stream of messages, with the few options
// and requests that the protocol has a place for.
//
// An option that the protocol cannot express is a *session.ConfigError before anything
// starts. Abilities of the agent, such as to resume a session, are known after its answer
// to initialize: CheckInitialize then ends the session with a typed error.
//
// The translation of messages must not live here; it is in package acp/acpclient.
package acp
