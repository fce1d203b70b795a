// Package agent is the other side of the pipe: a small framework for programs
// that serve the agent's half of the NDJSON protocol, over stdio or in memory.
//
// A [Program] serves one conversation over a [Port] and returns its exit
// status. [Run] is the engine most programs stand on: it answers initialize
// and the host's control requests, queues user messages, asks the gates the
// host registered (hooks, permission), carries MCP calls to the host's
// in-process servers, keeps background tasks, and ends the way the real CLIs
// end. The program supplies the turns: a func(*[Turn]) error. A program that
// is an [Opener] is played by whoever has something for it, and needs no
// goroutine while it waits; a [Conversation] is what it needs for that.
//
// The engine is single-threaded over its port. Everything that goes on at the
// same time (a turn, parallel tool calls, background tasks) is a [Strand], a
// coroutine that runs until it waits; all waiting ends in Port.Next. So the
// same program behaves the same over stdio and in a seeded simulation, and the
// same seed and input give the same bytes.
//
// What lives here: the agent's half of the protocol, as observed on Claude
// Code 2.1.329 and, so far as it was seen, qodercli 1.1.52. What must not:
// anything of the host, scripts and misbehaviour (package scripted), a clock,
// shared randomness, or goroutines outside the stdio port. It stands on package
// protocol alone.
package agent
