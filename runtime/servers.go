package runtime

import "github.com/agent-troupe/troupe/session"

// AddMCPServer serves an in-process MCP server from now on. The agent has to be
// told of it by an mcp_set_servers request. It reports false when the session
// has a server of that name.
func (s *Session) AddMCPServer(m MCPServer) bool { return s.core.Bridge.Add(handlerOf(m)) }

// RemoveMCPServer serves an in-process MCP server no longer. Calls in flight go
// on.
func (s *Session) RemoveMCPServer(name string) { s.core.Bridge.Remove(name) }

// handlerOf is the handler of a server: what else it implements, such as
// mcp.Orderer, is not seen through the struct around it.
func handlerOf(m MCPServer) MCPServer {
	if s, ok := m.(*session.MCPServer); ok {
		return s.MCPHandler
	}
	return m
}

func handlersOf(all []MCPServer) []MCPServer {
	handlers := make([]MCPServer, len(all))
	for i, m := range all {
		handlers[i] = handlerOf(m)
	}
	return handlers
}
