// Package scripted is an agent played from a script. Tests, demos, benchmarks
// and the simulation use it in the place of a real CLI: it speaks what Claude
// Code 2.1.329 was observed to speak, or qodercli so far as that was seen, and
// it misbehaves on request.
//
// A [Script] has turns, each a list of steps: text, tool calls that go through
// the gates the host registered, sub-agents, requests of any kind, delays,
// results. It is a Go value or YAML ([Parse], [Load]); script.go and the step
// types say what each key means. [Agent] plays it, in memory or as the binary
// scriptedagent.
//
// What lives here: scripts and every misbehaviour. What must not: the protocol
// itself, which is package agent's. In memory an agent starts no process and,
// unless a step counts its runs in a file, touches none; the binary adds
// children that outlive it.
package scripted
