// Package mcpclient connects to MCP servers: processes on stdio, and servers at a URL. A
// [Server] starts when it is needed, and again when it has died, unless the last starts have
// failed.
//
// In this package: processes and connections, the choice of the caller whom a server's
// question is for, the breaker of starts, and logins with OAuth. Not in this package: which
// sessions share a server (fleet/sharedmcp), and what a model reads of it (agent/embedded).
//
// A server on stdio stands on the kernel's seams alone. One at a URL is go-sdk's client, which
// starts goroutines and timers itself, so no simulation runs it.
package mcpclient
