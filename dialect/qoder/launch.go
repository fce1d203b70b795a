package qoder

import (
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The Agent SDK release whose wire this package follows.
const (
	sdkVersion = "1.0.39"
	entrypoint = "sdk-ts"
)

// arguments makes the argument list in the SDK's order.
func arguments(o *dialect.Input, l *dialect.Launch, p *build.Problems) []string {
	a := build.NewArgs(p, "--print", "--output-format", "stream-json", "--input-format", "stream-json")
	a.Switch("SessionStore", "--session-mirror", o.HasSessionStore)
	a.Switch("PersistSession", "--no-session-persistence", !o.PersistSession.Or(true))
	a.SplitIf("Model", "--model", o.Model)
	if !build.URLCredential(o.Proxy) {
		a.SplitIf("Proxy", "--proxy", o.Proxy)
	}
	a.SplitIf("Agent", "--agent", o.Agent)
	a.Switch("Debug", "--debug", o.Debug)
	sessionArgs(o, a)
	permissionArgs(o, a)
	for _, e := range o.Extensions {
		a.Split("Extensions", "--extensions", e)
	}
	mcpArgs(o, l, a, p)
	settingsArgs(o, l, a, p)
	set(a, "SettingSources", "--setting-sources", o.SettingSources, "user,project,local")
	a.Switch("the protocol", "--disable-builtin-skills", true)
	for _, dir := range o.AdditionalDirectories {
		a.Split("AdditionalDirectories", "--add-dir", dir)
	}
	if n, ok := o.MaxTurns.Value(); ok {
		a.Split("MaxTurns", "--max-turns", strconv.Itoa(n))
	}
	a.Switch("ForkSession", "--fork-session", o.ForkSession)
	for _, plugin := range o.Plugins {
		a.Split("Plugins", "--plugin-dir", plugin.Path)
	}
	a.Extra(o.ExtraArgs, "--proxy", "--settings", "--mcp-config")
	return a.List()
}

func sessionArgs(o *dialect.Input, a *build.Args) {
	if o.Resume != "" {
		a.Split("Resume", "--resume", o.Resume)
	} else {
		a.Switch("Continue", "--continue", o.Continue)
	}
	a.JoinedIf("ResumeSessionAt", "--resume-session-at", o.ResumeSessionAt)
	a.JoinedIf("ResumeDropsTurn", "--resume-drops-turn", o.ResumeDropsTurn)
	a.SplitIf("SessionID", "--session-id", o.SessionID)
}

func permissionArgs(o *dialect.Input, a *build.Args) {
	if o.PermissionMode == protocol.ModeYolo {
		a.Switch("PermissionMode", "--yolo", true)
	} else {
		a.SplitIf("PermissionMode", "--permission-mode", string(o.PermissionMode))
		a.Switch("AllowDangerouslySkipPermissions", "--dangerously-skip-permissions", o.AllowDangerouslySkipPermissions)
	}
	a.Switch("IncludePartialMessages", "--include-partial-messages", o.IncludePartialMessages)
	if !rulesInSettings(o) {
		for _, rule := range build.AllowedTools(o) {
			a.Split("AllowedTools", "--allowed-tools", rule)
		}
		for _, rule := range o.DisallowedTools {
			a.Split("DisallowedTools", "--disallowed-tools", rule)
		}
	}
	if o.Tools.IsDefault() {
		a.Split("Tools", "--tools", strings.Join(defaultTools(o), ","))
	} else {
		set(a, "Tools", "--tools", o.Tools, "default")
	}
	if o.CanUseTool != nil {
		a.Split("CanUseTool", "--permission-prompt-tool", "stdio")
	} else {
		a.SplitIf("PermissionPromptToolName", "--permission-prompt-tool", o.PermissionPromptToolName)
	}
}

// defaultTools is the list that the SDK sends when none is given. QODER_FEATURE_TASKS=0 or false has one todo list
// instead of the task tools.
func defaultTools(o *dialect.Input) []string {
	tasks := []string{"TaskCreate", "TaskGet", "TaskUpdate", "TaskList"}
	if v, _ := o.LookupEnv("QODER_FEATURE_TASKS"); v == "0" || v == "false" {
		tasks = []string{"TodoWrite"}
	}
	tools := []string{"Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "ImageGen", "ImageSearch",
		"NotebookEdit", "Read", "Skill"}
	tools = append(tools, tasks...)
	return append(tools, "UpdateGoal", "WebFetch", "WebSearch", "Write")
}

// set adds --flag a,b, or --flag "" for none, or --flag <all>; nothing for the agent's default.
func set(a *build.Args, option, flag string, s session.Set, all string) {
	switch {
	case s.IsDefault():
	case s.IsAll():
		a.Split(option, flag, all)
	default:
		a.Split(option, flag, strings.Join(s.Names(), ","))
	}
}
