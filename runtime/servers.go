package runtime

import "github.com/agent-troupe/troupe/session"

// AddMCPServer adds an in-process MCP server to the session. Tell the agent about it
// with an mcp_set_servers request. AddMCPServer returns false if the session already has
// a server with that name.
func (s *Session) AddMCPServer(m *session.MCPServer) bool { return s.core.Bridge.Add(m.MCPHandler) }

// RemoveMCPServer removes an in-process MCP server from the session. Calls in flight
// continue.
func (s *Session) RemoveMCPServer(name string) { s.core.Bridge.Remove(name) }
