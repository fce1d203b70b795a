// Package agent is a small framework for programs that implement the agent's side of
// the NDJSON protocol, over stdio or in memory.
//
// A [Program] serves one conversation over a [Port] and returns its exit status. Most
// programs use the engine, [Run]. It answers initialize and the host's control
// requests, queues user messages, calls the gates that the host registered (hooks,
// permission), sends MCP calls to the host's in-process servers, runs background tasks,
// and ends as the real CLIs do. The program supplies the turns: a func(*[Turn]) error.
// A program that is an [Opener] needs no goroutine while it waits for its host: the
// host side calls Play when the agent has something to do. A [Conversation] implements
// that.
//
// The engine uses its port from one goroutine at a time. Each concurrent activity (a
// turn, parallel tool calls, background tasks) is a [Strand], a coroutine that runs
// until it waits; all waiting happens in Port.Next. So a program behaves the same over
// stdio and in a seeded simulation, and the same seed and input give the same bytes.
//
// This package has the agent's side of the protocol, as observed on Claude Code 2.1.329
// and, as far as it was observed, on qodercli 1.1.52. These must not live here: code of
// the host, scripts and misbehaviour (package scripted), a clock, shared randomness, and
// goroutines outside the stdio port. It imports only package protocol and an internal
// package that prints structs.
package agent
