// Package sharedmcp runs stdio MCP servers once for many sessions: each agent would start
// its own, and 50 agents with 4 servers each are 200 processes. A job of package fleet has
// [Servers] of its own unless Job.SharedMCP gives it those of several jobs.
//
// What lives here: the processes, their connections, and which session a message is for.
// What must not: what a session does with a call (package sdk), and jobs.
package sharedmcp
