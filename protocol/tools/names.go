package tools

import "strings"

// Canonical returns the name that this package knows a tool by. The subagent
// tool is called Agent in a tool_use and Task in system/init (observed on
// Claude Code 2.1.329) and in everything of older releases; resource tools of
// MCP come with and without the ending Tool. Any other name comes back as it is.
func Canonical(name string) string {
	switch name {
	case "Task":
		return "Agent"
	case "KillShell", "KillBash":
		return "TaskStop"
	case "AgentOutput", "AgentOutputTool":
		return "TaskOutput"
	case "ListMcpResourcesTool":
		return "ListMcpResources"
	case "ReadMcpResourceTool":
		return "ReadMcpResource"
	case "ReadMcpResourceDirTool":
		return "ReadMcpResourceDir"
	}
	return name
}

const mcpPrefix = "mcp__"

// SplitMCP takes the name of an MCP server's tool apart: mcp__server__tool.
// The server ends at the first double underscore, as the agents have it; ok is
// false for any other name.
func SplitMCP(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpPrefix)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	if !ok || server == "" || tool == "" {
		return "", "", false
	}
	return server, tool, true
}
