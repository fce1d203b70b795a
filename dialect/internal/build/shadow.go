package build

import (
	"fmt"

	"github.com/agent-troupe/troupe/dialect"
)

const (
	dontAsk     = "dontAsk"
	promptsNone = "PermissionPrompts none"
)

// CheckShadows warns of what decides about tool calls before the CanUseTool callback is asked.
func CheckShadows(o *dialect.Options, p *Problems) {
	if !o.HasCanUseTool {
		return
	}
	warn := func(rule, problem, fix string) {
		// The hook of a policy also sees the calls that the agent allows by itself.
		if denies := rule == dontAsk || rule == promptsNone; denies || !o.HasPolicy {
			p.Warn("CanUseTool", rule, problem, fix)
		}
	}
	for _, r := range o.AllowedTools {
		warn(r, "AllowedTools allows the calls it matches, and the callback is not asked", "leave the rule out to be asked")
	}
	for _, r := range settingsAllow(o) {
		warn(r, "the settings allow the calls it matches, and the callback is not asked", "leave the rule out to be asked")
	}
	for _, t := range toolPolicies(o) {
		if t.tool.PermissionPolicy == dialect.AlwaysAllow {
			warn(ToolRule(t.server, t.tool.Name), "the tool's policy allows it, and the callback is not asked", "use "+dialect.AlwaysAsk)
		}
	}
	switch o.PermissionMode {
	case modeBypass, modeYolo:
		warn(string(o.PermissionMode), "the permission mode allows every call, and the callback is not asked", "use another mode")
	case "acceptEdits":
		warn(string(o.PermissionMode), "the permission mode allows edits of files, and the callback is not asked for them", "use another mode to be asked")
	case "auto":
		warn(string(o.PermissionMode), "the agent allows what it takes for safe, and the callback is not asked for that", "use another mode to be asked")
	case dontAsk:
		warn(string(o.PermissionMode), "the permission mode denies what no rule allows, and the callback is not asked", "use another mode to be asked")
	}
	if o.PermissionPrompts == "none" {
		warn(promptsNone, "denies what no rule allows, and the callback is not asked", "use host")
	}
	if s := o.Sandbox; s != nil && s.AutoAllowBashIfSandboxed.Or(s.Enabled.Or(false)) { // absent is true
		warn("Sandbox.AutoAllowBashIfSandboxed", "allows sandboxed commands, and the callback is not asked for them", "set it to false to be asked")
	}
	for _, key := range []string{"dangerously-skip-permissions", "yolo"} {
		if _, given := o.ExtraArgs[key]; given {
			warn(fmt.Sprintf("ExtraArgs[%q]", key), "allows every call, and the callback is not asked", "leave it out")
		}
	}
}

func settingsAllow(o *dialect.Options) []string {
	raw := []byte(o.Settings)
	if raw == nil {
		raw = o.SettingsContent
	}
	s, err := ParseSettings(raw)
	if err != nil {
		return nil
	}
	return s.Strings("permissions.allow")
}
