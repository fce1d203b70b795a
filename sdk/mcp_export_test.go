package sdk

// ForSession shows forSession to the tests.
func (s *MCPServer) ForSession() *MCPServer { return s.forSession() }
