package sessions_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// What hides a callback is to be a warning (SECURITY.md, docs/supervision.md).
func TestShadowsAreWarned(t *testing.T) {
	for name, set := range map[string]func(*sdk.Options){
		"allowed tool":   func(o *sdk.Options) { o.AllowedTools = []string{"Bash"} },
		"settings allow": func(o *sdk.Options) { o.Settings = json.RawMessage(`{"permissions":{"allow":["Bash"]}}`) },
		"settings defaultMode": func(o *sdk.Options) {
			o.Settings = json.RawMessage(`{"permissions":{"defaultMode":"bypassPermissions"}}`)
		},
		"settings acceptEdits": func(o *sdk.Options) { o.Settings = json.RawMessage(`{"permissions":{"defaultMode":"acceptEdits"}}`) },
		"settings sandbox auto": func(o *sdk.Options) {
			o.Settings = json.RawMessage(`{"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":true}}`)
		},
		"settings env": func(o *sdk.Options) { o.Settings = json.RawMessage(`{"env":{"X":"1"}}`) },
		"settings hooks": func(o *sdk.Options) {
			o.Settings = json.RawMessage(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}`)
		},
		"settings path": func(o *sdk.Options) {
			p := t.TempDir() + "/s.json"
			_ = os.WriteFile(p, []byte(`{"permissions":{"allow":["Bash"]}}`), 0o600)
			o.SettingsPath = p
		},
		"managed settings": func(o *sdk.Options) { o.ManagedSettings = json.RawMessage(`{"permissions":{"allow":["Bash"]}}`) },
		"extra skip":       func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"dangerously-skip-permissions": {}} },
		"extra mode": func(o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"permission-mode": sdk.Some("bypassPermissions")}
		},
		"extra allowedTools":  func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"allowedTools": sdk.Some("Bash")} },
		"extra allowed-tools": func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"allowed-tools": sdk.Some("Bash")} },
		"extra prompts": func(o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"permission-prompt-tool": sdk.Some("mcp__x__y")}
		},
		"extra print":           func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"p": {}} },
		"extra setting-sources": func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"setting-sources": sdk.Some("project")} },
		"extra disallowed": func(o *sdk.Options) {
			o.DisallowedTools = []string{"Bash"}
			o.ExtraArgs = map[string]sdk.Opt[string]{"disallowed-tools": sdk.Some("")}
		},
		"extra =": func(o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"permission-mode=bypassPermissions": {}}
		},
		"extra space": func(o *sdk.Options) { o.ExtraArgs = map[string]sdk.Opt[string]{"x --dangerously-skip-permissions": {}} },
		"mode bypass": func(o *sdk.Options) {
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		},
		"mode acceptEdits":        func(o *sdk.Options) { o.PermissionMode = sdk.ModeAcceptEdits },
		"mode dontAsk":            func(o *sdk.Options) { o.PermissionMode = sdk.ModeDontAsk },
		"mode auto":               func(o *sdk.Options) { o.PermissionMode = sdk.ModeAuto },
		"prompts none":            func(o *sdk.Options) { o.PermissionPrompts = "none" },
		"env skip":                func(o *sdk.Options) { o.Env = map[string]string{"CLAUDE_CODE_DISABLE_HOOKS": "1"} },
		"setting sources default": func(o *sdk.Options) { o.SettingSources = session.Set{} },
		"agents mode": func(o *sdk.Options) {
			o.Agents = map[string]session.AgentDefinition{"a": {Description: "d", Prompt: "p", PermissionMode: "bypassPermissions"}}
		},
		"mcp always allow": func(o *sdk.Options) {
			o.MCPServers = map[string]sdk.MCPServerConfig{"x": {Command: "x", Tools: []session.MCPToolPolicy{{Name: "y", PermissionPolicy: "always_allow"}}}}
		},
		"allowed with comma":  func(o *sdk.Options) { o.AllowedTools = []string{"Read,Bash"} },
		"allowed with space":  func(o *sdk.Options) { o.AllowedTools = []string{"Read Bash"} },
		"allowed unbalanced":  func(o *sdk.Options) { o.AllowedTools = []string{"Read(x),Bash"} },
		"allowed paren comma": func(o *sdk.Options) { o.AllowedTools = []string{"Read(x", "Bash)"} },
		"allowed newline":     func(o *sdk.Options) { o.AllowedTools = []string{"Read\nBash"} },
		"skill name":          func(o *sdk.Options) { o.Skills = sdk.Only("x),Bash(y") },
		"skill name comma":    func(o *sdk.Options) { o.Skills = sdk.Only("x,Bash") },
		"tools comma":         func(o *sdk.Options) { o.Tools = sdk.Only("Read,Bash") },
		"dir dash":            func(o *sdk.Options) { o.AdditionalDirectories = []string{"--dangerously-skip-permissions"} },
		"resume dash":         func(o *sdk.Options) { o.Resume = "--dangerously-skip-permissions" },
		"extra value dash": func(o *sdk.Options) {
			o.ExtraArgs = map[string]sdk.Opt[string]{"foo": sdk.Some("--dangerously-skip-permissions")}
		},
		"agent dash":           func(o *sdk.Options) { o.Agent = "--dangerously-skip-permissions" },
		"betas comma":          func(o *sdk.Options) { o.Betas = []string{"a,b"} },
		"settings like a file": func(o *sdk.Options) { o.SettingsPath = "--dangerously-skip-permissions" },
		"mcp path dash":        func(o *sdk.Options) { o.MCPConfigPath = "--dangerously-skip-permissions" },
	} {
		o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"}), SettingSources: sdk.None(),
			CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Allow(), nil
			}}
		set(o)
		p, err := sdk.PreviewLaunch(o)
		if err != nil {
			t.Logf("%-24s ERROR %.170v", name, err)
			continue
		}
		t.Logf("%-24s %d warnings %.230v   args %v", name, len(p.Warnings), p.Warnings, p.Args[5:])
	}
}
