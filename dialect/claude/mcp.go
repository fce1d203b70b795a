package claude

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// awaitsInitialize reports whether the agent has to read initialize before it starts anything.
func awaitsInitialize(o *dialect.Input) bool {
	return mcpInInitialize(o) || pluginsInInitialize(o) || managedInInitialize(o)
}

func mcpInInitialize(o *dialect.Input) bool {
	return o.MCPServersDelivery == session.DeliverInInitialize && len(o.MCPServers) > 0
}

func pluginsInInitialize(o *dialect.Input) bool {
	return o.PluginDelivery == session.DeliverInInitialize && len(o.Plugins) > 0
}

func mcpArgs(o *dialect.Input, l *dialect.Launch, a *build.Args, p *build.Problems) {
	if len(o.MCPServers) == 0 || mcpInInitialize(o) {
		a.SplitIf("MCPConfigPath", "--mcp-config", o.MCPConfigPath)
		return
	}
	doc, err := protocol.Marshal(map[string]any{"mcpServers": o.MCPServers})
	if err != nil {
		p.Addf("MCPServers", "cannot be encoded: %v", err)
		return
	}
	credential := slices.ContainsFunc(slices.Collect(maps.Values(o.MCPServers)), build.MCPCredential)
	a.Split("MCPServers", "--mcp-config", build.Document(l, "mcp.json", doc, credential))
}

// sdkServers adds the in-process servers to an initialize request.
func sdkServers(o *dialect.Input, req *build.Object) {
	if len(o.Servers) == 0 {
		return
	}
	names := make([]string, 0, len(o.Servers))
	var configs, manifests build.Object
	withConfig, withManifest := false, false
	for _, s := range o.Servers {
		names = append(names, s.Name)
		if s.Timeout > 0 || s.Tools != nil {
			var c build.Object
			c.SetIf(s.Timeout > 0, "timeout", wire.WholeMillis(s.Timeout))
			c.SetIf(s.Tools != nil, "tools", s.Tools)
			configs.Set(s.Name, &c)
			withConfig = true
		}
		if s.InitializeResult != nil && !withoutManifests(o) {
			var m build.Object
			m.Set("initializeResult", s.InitializeResult)
			m.SetIf(s.ToolsListResult != nil, "toolsListResult", s.ToolsListResult)
			manifests.Set(s.Name, &m)
			withManifest = true
		}
	}
	req.Set("sdkMcpServers", names)
	req.SetIf(withConfig, "sdkMcpServerConfigs", &configs)
	req.SetIf(withManifest, "sdkMcpServerManifests", &manifests)
}

// withoutManifests reports whether the host's environment has the agent ask each server itself, as the SDK reads it.
func withoutManifests(o *dialect.Input) bool {
	v, _ := o.LookupHostEnv("CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS")
	return build.Truthy(v)
}

// compact takes the white space out of a JSON text; text that is not JSON is reported
// elsewhere.
func compact(raw json.RawMessage) string {
	out, err := protocol.Marshal(raw)
	if err != nil {
		return ""
	}
	return string(out)
}
