// Package acpagent makes any Troupe session an agent of the Agent Client Protocol, so
// that editors can drive it: [Serve] speaks the protocol on two streams. The command
// troupe acp is this package on stdin and stdout.
//
// A session of the protocol is a conversation that outlives its agent: when the agent's
// process dies, another one resumes the conversation, and the editor keeps its session
// id. Prompts of a session run one after the other. Permission fails closed: whatever
// keeps the person's answer from arriving denies the call.
//
// The types and the connection are in package acp. The agents, their processes and
// recovery must not live here; they are in package sdk and the packages below it.
package acpagent
