package claude

import (
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// settingsArgs adds --settings: the user's document or path, with what other options merge into it.
func settingsArgs(o *dialect.Input, l *dialect.Launch, a *build.Args, p *build.Problems) {
	if p.Has("Settings") || p.Has("SettingsPath") {
		return // mistakes there would be reported twice
	}
	s, credential := build.UserSettings(o, p, o.Sandbox != nil || build.HasToolPolicies(o) || rulesInSettings(o))
	if s == nil {
		a.SplitIf("SettingsPath", "--settings", o.SettingsPath)
		return
	}
	build.MergeToolPolicies(o, s, p, build.ToolRule)
	if rulesInSettings(o) {
		build.MergeRules(s, p, "AllowedTools", "permissions.allow", build.AllowedTools(o))
		build.MergeRules(s, p, "DisallowedTools", "permissions.deny", o.DisallowedTools)
	}
	if o.Sandbox != nil {
		credential = credential || len(o.Sandbox.Extra) > 0
		if err := mergeSandbox(s, o.Sandbox); err != nil {
			p.Addf("Sandbox", "the settings it is merged into: %v", err)
		}
	}
	doc, err := s.JSON()
	if err != nil {
		p.Addf("Settings", "cannot be encoded: %v", err)
		return
	}
	a.Split("Settings", "--settings", build.Document(l, "settings.json", doc, credential))
}

// rulesInSettings reports whether the permission rules are too long for an argument. Rules in the settings that are
// passed at launch mean the same.
func rulesInSettings(o *dialect.Input) bool {
	const flag = len("--disallowedTools=")
	return flag+len(strings.Join(build.AllowedTools(o), ",")) > build.MaxArg ||
		flag+len(strings.Join(o.DisallowedTools, ",")) > build.MaxArg
}

// managedInInitialize reports whether the managed settings may not stand in argv. They have no file form.
func managedInInitialize(o *dialect.Input) bool {
	if o.ManagedSettings == nil {
		return false
	}
	s, err := build.ParseSettings(o.ManagedSettings)
	return err == nil && (build.SettingsCredential(s) || len(o.ManagedSettings) > build.MaxArg)
}

func managedSettingsArgs(o *dialect.Input, a *build.Args) {
	switch {
	case o.ManagedSettings == nil:
	case managedInInitialize(o):
		a.Switch("ManagedSettings", "--managed-settings-in-initialize", true)
	default:
		a.Split("ManagedSettings", "--managed-settings", compact(o.ManagedSettings))
	}
}
