package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
)

// modeAt is a permission mode and the option that sets it.
type modeAt struct {
	option string
	mode   protocol.PermissionMode
}

// settingsAt is settings and the option that gives them.
type settingsAt struct {
	option string
	raw    []byte
}

func givenSettings(o *dialect.Input) []settingsAt {
	return []settingsAt{{"Settings", o.Settings}, {"SettingsPath", o.SettingsContent}, {"ManagedSettings", o.ManagedSettings}}
}

// modesBeside are the permission modes that other options than PermissionMode set, for the session or an agent of it.
func modesBeside(o *dialect.Input) []modeAt {
	var modes []modeAt
	add := func(option string, mode protocol.PermissionMode) {
		if mode != "" {
			modes = append(modes, modeAt{option, mode})
		}
	}
	for _, s := range givenSettings(o) {
		for _, m := range dialect.SettingsModes(s.raw) {
			add(s.option+"."+m.At, m.Mode)
		}
	}
	mode, _ := o.ExtraArgs["permission-mode"].Value()
	add(`ExtraArgs["permission-mode"]`, protocol.PermissionMode(mode))
	for i, arg := range o.ExecutableArgs {
		if flag, value, joined := strings.Cut(arg, "="); flag == "--permission-mode" {
			if !joined && i+1 < len(o.ExecutableArgs) {
				value = o.ExecutableArgs[i+1]
			}
			add("ExecutableArgs", protocol.PermissionMode(value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		add(fmt.Sprintf("Agents[%q].PermissionMode", name), o.Agents[name].PermissionMode)
	}
	agents, _ := o.ExtraArgs["agents"].Value()
	var defined map[string]map[string]json.RawMessage
	if json.Unmarshal([]byte(agents), &defined) == nil {
		for _, name := range slices.Sorted(maps.Keys(defined)) {
			var mode protocol.PermissionMode
			if json.Unmarshal(defined[name]["permissionMode"], &mode) == nil {
				add(`ExtraArgs["agents"]`, mode)
			}
		}
	}
	return modes
}

// skipFlags make the agent skip every permission check, or allow a later request to.
func skipFlags() []string {
	return []string{"dangerously-skip-permissions", "allow-dangerously-skip-permissions", "yolo"}
}

// checkBypass refuses what has the agent skip every permission check, whatever sets it, unless the options say that
// this is meant. Claude Code 2.1.329 takes the mode from settings and flags without its flag for that (observed).
func checkBypass(o *dialect.Input, p *Problems) {
	if o.AllowDangerouslySkipPermissions {
		return
	}
	refuse := func(option, what string) {
		p.Add(option, what+" skips every permission check", "set AllowDangerouslySkipPermissions, too, if you want that")
	}
	for _, at := range append([]modeAt{{"PermissionMode", o.PermissionMode}}, modesBeside(o)...) {
		if dialect.SkipsPermissions(at.mode) {
			refuse(at.option, string(at.mode))
		}
	}
	for _, flag := range skipFlags() {
		if _, given := o.ExtraArgs[flag]; given {
			refuse(fmt.Sprintf("ExtraArgs[%q]", flag), "--"+flag)
		}
		if slices.Contains(o.ExecutableArgs, "--"+flag) {
			refuse("ExecutableArgs", "--"+flag)
		}
	}
}
