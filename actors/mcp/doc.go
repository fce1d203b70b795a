// Package mcp serves in-process MCP servers over the agent's mcp_message requests. Each
// tool call runs on its own task.
//
// The JSON-RPC bridge and its routing live here. Tools, schemas, and connections to
// external servers must not.
package mcp
