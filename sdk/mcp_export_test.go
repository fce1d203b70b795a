package sdk

// ForSession shows forSession to the tests.
func ForSession(s *MCPServer) *MCPServer { return forSession(s) }
