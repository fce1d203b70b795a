package build

import (
	"fmt"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// UserSettings returns the settings of the user to merge into, and whether they can hold a credential.
// Settings from a file stay in a file. It returns nil when the user's path, if any, is to be passed on
// as it is: nothing is to be merged, and nothing is inline.
func UserSettings(o *dialect.Input, p *Problems, merge bool) (s *Settings, credential bool) {
	option, raw := "Settings", []byte(o.Settings)
	switch {
	case o.Settings != nil:
	case !merge:
		return nil, false
	case o.SettingsPath != "":
		option, raw = "SettingsPath", o.SettingsContent
		if raw == nil {
			p.Add(option, fmt.Sprintf("%s has to be merged with other options and could not be read", o.SettingsPath),
				"give a readable file, or the object itself in Settings")
		}
	}
	s, err := ParseSettings(raw)
	if err != nil {
		if option != "Settings" { // Check has looked at Settings
			p.Addf(option, "%s %v", o.SettingsPath, err)
		}
		s, _ = ParseSettings(nil)
	}
	return s, option == "SettingsPath" || SettingsCredential(s)
}

// toolPolicy is a policy with the server it belongs to.
type toolPolicy struct {
	server string
	tool   session.MCPToolPolicy
}

// toolPolicies lists the policies of every server: external ones by name, then those of the host in their order.
func toolPolicies(o *dialect.Input) []toolPolicy {
	var out []toolPolicy
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		for _, t := range o.MCPServers[name].Tools {
			out = append(out, toolPolicy{name, t})
		}
	}
	for _, s := range o.Servers {
		for _, t := range s.Tools {
			out = append(out, toolPolicy{s.Name, t})
		}
	}
	return slices.DeleteFunc(out, func(t toolPolicy) bool { return t.tool.PermissionPolicy == "" })
}

// HasToolPolicies reports whether any tool of an MCP server has a permission policy.
func HasToolPolicies(o *dialect.Input) bool { return len(toolPolicies(o)) > 0 }

// ToolRule is the permission rule that names a tool of an MCP server as Claude Code does. * stands for every tool.
func ToolRule(server, tool string) string {
	if tool == "*" {
		return protocol.MCPToolName(server, "") + tool
	}
	return protocol.MCPToolName(server, tool)
}

// MergeToolPolicies turns tool policies into permission rules, which rule spells. All three lists are made once there is
// a policy.
func MergeToolPolicies(o *dialect.Input, s *Settings, p *Problems, rule func(server, tool string) string) {
	policies := toolPolicies(o)
	if len(policies) == 0 {
		return
	}
	lists := []struct{ policy, path string }{
		{session.AlwaysAllow, "permissions.allow"},
		{session.AlwaysAsk, "permissions.ask"},
		{session.AlwaysDeny, "permissions.deny"},
	}
	for _, l := range lists {
		rules := []string{}
		for _, t := range policies {
			if t.tool.PermissionPolicy == l.policy {
				rules = append(rules, rule(t.server, t.tool.Name))
			}
		}
		MergeRules(s, p, "MCPServers", l.path, rules)
	}
}

// MergeRules adds permission rules to a list of the settings. option is where they come from.
func MergeRules(s *Settings, p *Problems, option, path string, rules []string) {
	if err := s.Append(path, rules...); err != nil {
		p.Addf(option, "the settings it is merged into: %v", err)
	}
}
