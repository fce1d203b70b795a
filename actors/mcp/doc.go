// Package mcp serves in-process MCP servers over the agent's mcp_message
// requests. Each call of a tool runs on a task of its own.
//
// What lives here: the JSON-RPC bridge and its routing. What must not: tools,
// schemas, and the connection of an external server.
package mcp
