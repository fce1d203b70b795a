package qoder

import (
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// settingsArgs adds --settings: the user's document or path, with what other options merge into it.
func settingsArgs(o *dialect.Input, l *dialect.Launch, a *build.Args, p *build.Problems) {
	checkpoint := o.EnableFileCheckpointing.Or(false)
	merge := len(o.AdditionalDirectories) > 0 || checkpoint || o.SecurityScan != nil || build.HasToolPolicies(o) ||
		rulesInSettings(o)
	s, credential := build.UserSettings(o, p, merge)
	if s == nil {
		a.SplitIf("SettingsPath", "--settings", o.SettingsPath)
		return
	}
	put := func(option string, err error) {
		if err != nil {
			p.Addf(option, "the settings it is merged into: %v", err)
		}
	}
	compatible(s, put)
	if rulesInSettings(o) {
		build.MergeRules(s, p, "AllowedTools", "permissions.allow", build.AllowedTools(o))
		build.MergeRules(s, p, "DisallowedTools", "permissions.deny", o.DisallowedTools)
	}
	if len(o.AdditionalDirectories) > 0 {
		put("AdditionalDirectories", s.Append("permissions.additionalDirectories", o.AdditionalDirectories...))
	}
	build.MergeToolPolicies(o, s, p, toolRule)
	if o.SecurityScan != nil {
		put("SecurityScan", s.Set("securityScan", *o.SecurityScan))
	}
	if checkpoint {
		put("EnableFileCheckpointing", s.Set("general.fileCheckpointing.enabled", true))
	}
	if len(s.Keys()) == 0 {
		return
	}
	doc, err := s.JSON()
	if err != nil {
		p.Addf("Settings", "cannot be encoded: %v", err)
		return
	}
	a.Split("Settings", "--settings", build.Document(l, "settings.json", doc, credential))
}

// compatible puts what Claude Code's settings say under the keys that qodercli reads, in its spelling, as the SDK does.
func compatible(s *build.Settings, put func(string, error)) {
	if mode := s.Get("permissions.defaultMode"); mode != nil {
		if s.Get("general") == nil {
			put("Settings", s.Set("general", build.NewTree()))
		}
		text, _ := mode.(string)
		if snake, known := snakeMode(text); known && s.Get("general.defaultPermissionMode") == nil {
			put("Settings", s.Set("general.defaultPermissionMode", snake))
		}
	}
	if s.Get("permissions.disableBypassPermissionsMode") == "disable" {
		put("Settings", s.Set("security.disableYoloMode", true))
	}
}

// rulesInSettings reports whether the permission rules are too many for the argument list, whose total
// length is limited, like that of each argument. Rules in the settings that are passed at launch mean
// the same.
func rulesInSettings(o *dialect.Input) bool {
	size := 0
	for _, rule := range slices.Concat(build.AllowedTools(o), o.DisallowedTools) {
		size += len("--disallowed-tools") + len(rule)
	}
	return size > build.MaxArg
}

// snakeMode is a permission mode as the CLI's settings spell it.
func snakeMode(mode string) (string, bool) {
	switch mode {
	case "default", "plan", "auto", "accept_edits", "bypass_permissions", "dont_ask":
		return mode, true
	case "acceptEdits":
		return "accept_edits", true
	case "bypassPermissions", "yolo":
		return "bypass_permissions", true
	case "dontAsk":
		return "dont_ask", true
	}
	return "", false
}
