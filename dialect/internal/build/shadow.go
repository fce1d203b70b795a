package build

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

const (
	dontAsk     = "dontAsk"
	promptsNone = "PermissionPrompts none"
)

// CheckShadows warns of what decides about tool calls before the CanUseTool callback is asked.
func CheckShadows(o *dialect.Input, p *Problems) {
	if o.CanUseTool == nil {
		return
	}
	// The hook of a policy also sees the calls that the agent allows by itself, and not those that it denies.
	denies := func(rule, problem, fix string) { p.Warn("CanUseTool", rule, problem, fix) }
	allows := denies
	if o.HasPolicy() {
		allows = func(string, string, string) {}
	}
	for _, r := range o.AllowedTools {
		allows(r, "AllowedTools allows the calls it matches, and the callback is not asked", "leave the rule out to be asked")
	}
	for _, at := range givenSettings(o) {
		s, err := ParseSettings(at.raw)
		if err != nil { // is reported elsewhere
			continue
		}
		for _, r := range s.Strings("permissions.allow") {
			allows(r, "the settings allow the calls it matches, and the callback is not asked", "leave the rule out to be asked")
		}
	}
	for _, t := range toolPolicies(o) {
		if t.tool.PermissionPolicy == session.AlwaysAllow {
			allows(ToolRule(t.server, t.tool.Name), "the tool's policy allows it, and the callback is not asked", "use "+session.AlwaysAsk)
		}
	}
	for _, at := range append([]modeAt{{"", o.PermissionMode}}, modesBeside(o)...) {
		rule := strings.TrimSpace(at.option + " " + string(at.mode))
		switch at.mode {
		case "bypassPermissions", "yolo":
			allows(rule, "the permission mode allows every call, and the callback is not asked", "use another mode")
		case "acceptEdits":
			allows(rule, "the permission mode allows edits of files, and the callback is not asked for them", "use another mode to be asked")
		case "auto":
			allows(rule, "the agent allows what it takes for safe, and the callback is not asked for that", "use another mode to be asked")
		case dontAsk:
			denies(rule, "the permission mode denies what no rule allows, and the callback is not asked", "use another mode to be asked")
		}
	}
	if o.PermissionPrompts == "none" {
		denies(promptsNone, "denies what no rule allows, and the callback is not asked", "use host")
	}
	if s := o.Sandbox; s != nil && s.AutoAllowBashIfSandboxed.Or(s.Enabled.Or(false)) { // absent is true
		allows("Sandbox.AutoAllowBashIfSandboxed", "allows sandboxed commands, and the callback is not asked for them", "set it to false to be asked")
	}
	for _, flag := range []string{"dangerously-skip-permissions", "yolo"} {
		if _, given := o.ExtraArgs[flag]; given {
			allows(fmt.Sprintf("ExtraArgs[%q]", flag), "allows every call, and the callback is not asked", "leave it out")
		}
		if slices.Contains(o.ExecutableArgs, "--"+flag) {
			allows("ExecutableArgs --"+flag, "allows every call, and the callback is not asked", "leave it out")
		}
	}
	for _, flag := range []string{"allowedTools", "allowed-tools"} {
		if rules, given := o.ExtraArgs[flag]; given {
			allows(fmt.Sprintf("ExtraArgs[%q] %s", flag, rules.Or("")), "allows the calls it matches, and the callback is not asked", "leave it out to be asked")
		}
	}
	for _, s := range givenSettings(o) {
		shadowsOfSettings(s, allows)
	}
}

// shadowsOfSettings are those of settings beside their rules and mode. A hook of theirs may allow; what it does is not known.
func shadowsOfSettings(at settingsAt, allows func(rule, problem, fix string)) {
	s, err := ParseSettings(at.raw)
	if err != nil {
		return
	}
	for _, event := range []string{"PreToolUse", "PermissionRequest"} {
		if hooks, _ := s.Get("hooks." + event).([]any); len(hooks) > 0 {
			allows(at.option+".hooks."+event, "a hook of the settings can allow calls, and the callback is not asked for those", "use a hook of this process")
		}
	}
	enabled, _ := s.Get("sandbox.enabled").(bool)
	if auto, given := s.Get("sandbox.autoAllowBashIfSandboxed").(bool); auto || !given && enabled {
		allows(at.option+".sandbox.autoAllowBashIfSandboxed", "allows sandboxed commands, and the callback is not asked for them", "set it to false to be asked")
	}
}
