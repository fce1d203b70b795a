// Package embedded is an agent in this process: a loop that calls a model and runs its
// tools. It stands on the engine of package agent, so hooks, permissions, the host's MCP
// tools, interrupts and results are those of every other agent, and it speaks the protocol
// of Claude Code. Tools have the names, inputs, results and errors of Claude Code's own.
//
// The loop, its tools and their gate live here; requests to models are package model's, and
// rules package policy's. No vendor's prompt is here, and nothing that only a test needs.
package embedded
