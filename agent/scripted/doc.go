// Package scripted has an agent that plays a script. Tests, demos, benchmarks and the
// simulation use it instead of a real CLI. It follows the observed protocol of Claude
// Code 2.1.329, or that of qodercli as far as it was observed, and it misbehaves on
// request.
//
// A [Script] has turns, each a list of steps: text, tool calls that go through the gates
// that the host registered, sub-agents, requests of any kind, delays, results. It is a
// Go value or YAML ([Parse], [Load]); script.go and the step types document the keys.
// [Agent] plays it, in memory or as the binary scriptedagent.
//
// Scripts and all misbehaviour live here; the protocol itself lives in package agent.
// In memory an agent starts no process, and writes no file unless the script has a
// Transcript or an Effect. Only the binary starts child processes that outlive it.
package scripted
