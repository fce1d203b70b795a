package runtime

import "github.com/agent-troupe/troupe/session"

// AddMCPServer serves an in-process MCP server from now on. Tell the agent with an
// mcp_set_servers request. It reports false when the session
// has a server of that name.
func (s *Session) AddMCPServer(m *session.MCPServer) bool { return s.core.Bridge.Add(m.MCPHandler) }

// RemoveMCPServer serves an in-process MCP server no longer. Calls in flight go
// on.
func (s *Session) RemoveMCPServer(name string) { s.core.Bridge.Remove(name) }
