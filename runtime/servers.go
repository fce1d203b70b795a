package runtime

// AddMCPServer serves an in-process MCP server from now on. The agent has to be
// told of it by an mcp_set_servers request. It reports false when the session
// has a server of that name.
func (s *Session) AddMCPServer(m MCPServer) bool { return s.core.Bridge.Add(m) }

// RemoveMCPServer serves an in-process MCP server no longer. Calls in flight go
// on.
func (s *Session) RemoveMCPServer(name string) { s.core.Bridge.Remove(name) }
