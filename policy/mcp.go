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
func throughMCP(c Call, w *work) Call {
	if !reachesMCP(c.Tool) || !w.spend(len(c.Input)/8) {
		return c
	}
	in, err := parseInput(c.Input)
	if err != nil {
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
	return Call{Tool: mcpPrefix + protocol.MCPName(servers[0]) + "__" + protocol.MCPName(tool), Input: arguments, MCPServer: servers[0], Cwd: c.Cwd, Outside: c.Outside, via: c.Tool}
}

// namesMCP reports whether an MCP rule is about the tool. The names of servers
// and tools may themselves hold the separator, so that mcp__a__b__c has two
// readings; without the server's name only wide takes both.
func (r *rule) namesMCP(c Call, wide bool) bool {
	if !strings.HasPrefix(c.Tool, mcpPrefix) {
		return false
	}
	if !wide {
		return isMCP(r.tool, c, false)
	}
	for _, rule := range r.mcp {
		if isMCP(rule, c, true) {
			return true
		}
	}
	c.Tool = protocol.MCPName(c.Tool)
	return isMCP(respelled(r.tool, protocol.MCPName), c, true)
}

// spellings are the ways in which qodercli writes a rule that has the names as
// their servers do: it matters where the server's ends.
func spellings(rule string) []string {
	names := rule[len(mcpPrefix):]
	all := []string{mcpPrefix + respelled(names, protocol.MCPNameQoder)}
	for i := range len(names) - 1 {
		if names[i:i+2] == "__" {
			all = append(all, mcpPrefix+protocol.MCPNameQoder(names[:i])+"__"+respelled(names[i+2:], protocol.MCPNameQoder))
		}
	}
	return all
}

// respelled is a name that may end in a wildcard in an agent's spelling.
func respelled(name string, spell func(string) string) string {
	name, glob := strings.CutSuffix(name, "*")
	if name = spell(name); glob {
		name += "*"
	}
	return name
}

// isMCP is namesMCP for a rule that has the names as the call does.
func isMCP(rule string, c Call, wide bool) bool {
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
