package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// Claude Code's minimal mode calls no hooks, those of the host included, so that no gate is asked and no rule of a policy
// holds, and it says nothing of that (observed on 2.1.197 and 2.1.329). The variable and the flag turn it on. Of the
// other switches that were tried none opens a gate; TestReleases/*/Switches in conformance holds the list to each release.
const (
	minimalVariable = "CLAUDE_CODE_SIMPLE"
	minimalFlag     = "bare"
)

// checkGates refuses what would switch off the gates of a session that has some. A session without any may run in
// minimal mode: there is nothing to protect.
func checkGates(o *dialect.Input, p *build.Problems) {
	if len(o.Registrations) == 0 && o.CanUseTool == nil {
		return
	}
	refuse := func(option, fix string) {
		p.Add(option, "turns on Claude Code's minimal mode ("+minimalVariable+", --"+minimalFlag+"), which calls no hooks: "+
			"every gate of this session would be open", fix)
	}
	if v, given := o.Env[minimalVariable]; given {
		if build.Truthy(v) {
			refuse(fmt.Sprintf("Env[%q]", minimalVariable), "leave it out, or leave out hooks, Policy and CanUseTool")
		}
	} else if v, _ := o.LookupEnv(minimalVariable); build.Truthy(v) {
		refuse("UnsetEnv", minimalVariable+" is set in the environment of this process, which the agent inherits: name it in UnsetEnv, or unset it")
	}
	for _, s := range []struct {
		option string
		raw    []byte
	}{{"Settings", o.Settings}, {"SettingsPath", settingsFile(o)}, {"ManagedSettings", o.ManagedSettings}} {
		if MinimalMode(s.raw) {
			refuse(s.option, "take "+minimalVariable+" out of its env")
		}
	}
	if _, given := o.ExtraArgs[minimalFlag]; given {
		refuse(fmt.Sprintf("ExtraArgs[%q]", minimalFlag), "leave it out, or leave out hooks, Policy and CanUseTool")
	}
	if slices.Contains(o.ExecutableArgs, "--"+minimalFlag) {
		refuse("ExecutableArgs", "leave --"+minimalFlag+" out")
	}
}

// settingsFile is what is known of the file that SettingsPath names.
func settingsFile(o *dialect.Input) []byte {
	if o.SettingsPath == "" {
		return nil
	}
	return o.SettingsContent
}

// MinimalMode reports whether settings turn on the agent's minimal mode. Claude Code makes text of whatever a variable
// is set to (observed on 2.1.197 and 2.1.329).
func MinimalMode(settings []byte) bool {
	var s, env map[string]json.RawMessage // no struct, whose names would match in any case
	if json.Unmarshal(settings, &s) != nil || json.Unmarshal(s["env"], &env) != nil {
		return false
	}
	raw := env[minimalVariable]
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = strings.TrimSpace(string(raw))
	}
	return build.Truthy(text)
}
