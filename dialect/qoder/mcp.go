package qoder

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// toolOverride is how a tool of an MCP server is shown to the model.
type toolOverride struct {
	ExposedName string `json:"exposedName,omitempty"`
	AlwaysLoad  bool   `json:"alwaysLoad,omitempty"`
}

// overrides are the tools that are shown otherwise than they are listed; nil if there are none.
func overrides(tools []dialect.MCPTool) map[string]toolOverride {
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

// mcpArgs adds the external servers. Permission policies of their tools are rules in the settings.
func mcpArgs(o *dialect.Options, l *dialect.Launch, a *build.Args, p *build.Problems) {
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
func mcpConfig(servers map[string]dialect.MCPServer) (json.RawMessage, error) {
	docs := make(map[string]json.RawMessage, len(servers))
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		tools := overrides(s.Tools)
		s.Tools = nil
		doc, err := build.JSON(s)
		if err == nil && tools != nil {
			doc, err = build.WithKey(doc, "toolOverrides", tools)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		docs[name] = doc
	}
	return build.JSON(map[string]any{"mcpServers": docs})
}

// sdkServers adds the in-process servers to an initialize request.
func sdkServers(o *dialect.Options, req *build.Object) {
	if len(o.SDKMCPServers) == 0 {
		return
	}
	names := make([]string, 0, len(o.SDKMCPServers))
	shown := map[string]map[string]toolOverride{}
	for _, s := range o.SDKMCPServers {
		names = append(names, s.Name)
		if tools := overrides(s.Tools); tools != nil {
			shown[s.Name] = tools
		}
	}
	req.Set("sdkMcpServers", names)
	req.SetIf(len(shown) > 0, "sdkMcpToolOverrides", shown)
}

func checkMCP(o *dialect.Options, p *build.Problems) {
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		s, at := o.MCPServers[name], fmt.Sprintf("MCPServers[%q]", name)
		p.Lacks(at+".HeadersHelper", s.HeadersHelper != "", "use Headers")
		p.Lacks(at+".OAuth", s.OAuth != nil, "log in with an mcp_authenticate request")
		p.Lacks(at+".Timeout", s.Timeout != 0, "")
		p.Lacks(at+".AlwaysLoad", s.AlwaysLoad, "set AlwaysLoad of each tool")
	}
	for i, s := range o.SDKMCPServers {
		p.NoEffect(fmt.Sprintf("SDKMCPServers[%d].Timeout", i), s.Timeout != 0)
	}
}
