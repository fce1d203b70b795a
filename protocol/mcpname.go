package protocol

import "strings"

// MCPName is the name of an MCP server, or of one of its tools, as it stands in
// the names of tools: what is no ASCII letter, digit, underscore or dash is an
// underscore, and two where UTF-16 takes two units (observed on Claude Code
// 2.1.329).
func MCPName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// MCPToolName is what agents call a tool of an MCP server.
func MCPToolName(server, tool string) string { return "mcp__" + MCPName(server) + "__" + MCPName(tool) }
