// Package sharedmcp runs stdio MCP servers once for many sessions: each agent would start
// its own, and 50 agents with 4 servers each are 200 processes. A job of package fleet has
// its own [Servers] unless Job.SharedMCP gives it those of several jobs.
//
// In this package: the processes, their connections, and the choice of the session for a
// message. Not in this package: the handling of calls in a session (package sdk), and jobs.
package sharedmcp
