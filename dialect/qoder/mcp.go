package qoder

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// toolOverride is how a tool of an MCP server is shown to the model.
type toolOverride struct {
	ExposedName string `json:"exposedName,omitempty"`
	AlwaysLoad  bool   `json:"alwaysLoad,omitempty"`
}

// overrides are the tools that are shown otherwise than they are listed, or nil.
func overrides(tools []session.MCPToolPolicy) map[string]toolOverride {
	var out map[string]toolOverride
	for _, t := range tools {
		if t.ExposedName == "" && !t.AlwaysLoad {
			continue
		}
		if out == nil {
			out = map[string]toolOverride{}
		}
		out[t.Name] = toolOverride{t.ExposedName, t.AlwaysLoad}
	}
	return out
}

// toolRule is the permission rule that names a tool of an MCP server, as the agent calls it. A name that is a rule already
// stays.
func toolRule(server, tool string) string {
	if strings.HasPrefix(tool, "mcp__") {
		return tool
	}
	if tool != "*" {
		tool = protocol.MCPNameQoder(tool)
	}
	return "mcp__" + protocol.MCPNameQoder(server) + "__" + tool
}

// mcpArgs adds the external servers. Permission policies of their tools are rules in the settings.
func mcpArgs(o *dialect.Input, l *dialect.Launch, a *build.Args, p *build.Problems) {
	if len(o.MCPServers) > 0 {
		doc, err := mcpConfig(o.MCPServers)
		if err != nil {
			p.Addf("MCPServers", "cannot be encoded: %v", err)
		}
		credential := slices.ContainsFunc(slices.Collect(maps.Values(o.MCPServers)), build.MCPCredential)
		a.Split("MCPServers", "--mcp-config", build.Document(l, "mcp.json", doc, credential))
	} else {
		a.SplitIf("MCPConfigPath", "--mcp-config", o.MCPConfigPath)
	}
	for _, name := range o.AllowedMCPServerNames {
		a.Split("AllowedMCPServerNames", "--allowed-mcp-server-names", name)
	}
	a.Switch("StrictMCPConfig", "--strict-mcp-config", o.StrictMCPConfig)
}

// mcpConfig is the document that --mcp-config takes.
func mcpConfig(servers map[string]session.MCPServerConfig) (json.RawMessage, error) {
	docs := make(map[string]json.RawMessage, len(servers))
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		tools := overrides(s.Tools)
		s.Tools = nil
		doc, err := protocol.Marshal(s)
		if err == nil && tools != nil {
			doc, err = build.WithKey(doc, "toolOverrides", tools)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		docs[name] = doc
	}
	return protocol.Marshal(map[string]any{"mcpServers": docs})
}

// sdkServers adds the in-process servers to an initialize request.
func sdkServers(o *dialect.Input, req *build.Object) {
	if len(o.Servers) == 0 {
		return
	}
	names := make([]string, 0, len(o.Servers))
	shown := map[string]map[string]toolOverride{}
	for _, s := range o.Servers {
		names = append(names, s.Name)
		if tools := overrides(s.Tools); tools != nil {
			shown[s.Name] = tools
		}
	}
	req.Set("sdkMcpServers", names)
	req.SetIf(len(shown) > 0, "sdkMcpToolOverrides", shown)
}

func checkMCP(o *dialect.Input, p *build.Problems) {
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		s, at := o.MCPServers[name], fmt.Sprintf("MCPServers[%q]", name)
		p.Lacks(at+".HeadersHelper", s.HeadersHelper != "", "use Headers")
		p.Lacks(at+".OAuth", s.OAuth != nil, "log in with an mcp_authenticate request")
		p.Lacks(at+".AlwaysLoad", !s.AlwaysLoad.IsZero(), "set AlwaysLoad of each tool")
		checkTools(p, at, name, s.Tools)
	}
	for i, s := range o.Servers {
		at := fmt.Sprintf("SDKMCPServers[%d]", i)
		p.NoEffect(at+".Timeout", s.Timeout != 0)
		checkTools(p, at, s.Name, s.Tools)
	}
}

// checkTools finds tools that the SDK refuses: names of which no rule can be made, and those that cannot be shown.
func checkTools(p *build.Problems, at, server string, tools []session.MCPToolPolicy) {
	exposed := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	for i, t := range tools {
		at := fmt.Sprintf("%s.Tools[%d]", at, i)
		p.Lacks(at+".OrgMaxPermission", t.OrgMaxPermission != "", "set PermissionPolicy")
		nameless := protocol.MCPNameQoder(server) == "" || t.Name != "*" && protocol.MCPNameQoder(t.Name) == ""
		p.AddIf(t.PermissionPolicy != "" && !strings.HasPrefix(t.Name, "mcp__") && nameless, at+".PermissionPolicy",
			fmt.Sprintf("no rule can name %q of %q: one of the names has no letter or digit", t.Name, server), "rename it")
		if t.ExposedName == "" {
			continue
		}
		p.AddIf(!t.AlwaysLoad, at+".ExposedName", "is for a tool that is always loaded", "set AlwaysLoad")
		p.AddIf(!exposed.MatchString(t.ExposedName), at+".ExposedName", fmt.Sprintf("%q is not a tool name", t.ExposedName),
			"use up to 64 letters, digits, dashes and underscores")
		p.AddIf(slices.Contains([]string{"mcp_list", "mcp_get", "mcp_call"}, t.ExposedName), at+".ExposedName",
			fmt.Sprintf("%q is a tool of the agent's", t.ExposedName), "use another name")
	}
}
