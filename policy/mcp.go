package policy

import (
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

const mcpPrefix = "mcp__"

// reachesMCP reports whether a tool reaches any server: Qoder's Mcp, and those
// of resources.
func reachesMCP(tool string) bool {
	switch strings.TrimSuffix(tool, "Tool") {
	case "Mcp", "ReadMcpResource", "ReadMcpResourceDir", "ListMcpResources":
		return true
	}
	return false
}

// throughMCP is the call of a server's tool that a call of such a tool makes,
// where it says which.
func throughMCP(c Call) Call {
	in, err := parseInput(c.Input)
	if err != nil || !reachesMCP(c.Tool) {
		return c
	}
	tool, arguments := c.Tool, c.Input
	if c.Tool == "Mcp" {
		tool, _, _ = in.text("tool_name")
		arguments = in["arguments"]
	}
	servers, ok := in.texts("server", "server_name")
	if !ok || len(servers) != 1 || tool == "" {
		return c
	}
	return Call{Tool: mcpPrefix + protocol.MCPName(servers[0]) + "__" + protocol.MCPName(tool), Input: arguments, MCPServer: servers[0], via: c.Tool}
}

// namesMCP reports whether an MCP rule is about the tool. The names of servers
// and tools may themselves hold the separator, so that mcp__a__b__c has two
// readings; without the server's name only wide takes both.
func namesMCP(rule string, c Call, wide bool) bool {
	if !strings.HasPrefix(c.Tool, mcpPrefix) {
		return false
	}
	if wide { // a rule may have the names as their servers do
		name, glob := strings.CutSuffix(rule, "*")
		rule, c.Tool = protocol.MCPName(name), protocol.MCPName(c.Tool)
		if glob {
			rule += "*"
		}
	}
	start, glob := strings.CutSuffix(rule, "*")
	if !glob {
		if strings.Contains(rule[len(mcpPrefix):], "__") {
			return rule == c.Tool || wide && strings.HasPrefix(c.Tool, rule+"__")
		}
		start = rule + "__"
	}
	if !strings.HasPrefix(c.Tool, start) {
		return false
	}
	if wide {
		return true
	}
	if c.MCPServer != "" {
		// The rule's server is what stands before its last separator, and has
		// to be the whole of the call's.
		server := mcpPrefix + protocol.MCPName(c.MCPServer) + "__"
		return strings.HasPrefix(c.Tool, server) && strings.HasPrefix(start, server)
	}
	name := c.Tool[len(mcpPrefix):]
	return strings.Index(name, "__") == strings.LastIndex(name, "__")
}
