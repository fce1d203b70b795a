package claude

import (
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
)

// The Agent SDK release whose wire this package follows.
const (
	sdkVersion = "0.3.329"
	entrypoint = "sdk-ts"
)

// arguments makes the argument list in the SDK's order.
func arguments(o *dialect.Options, l *dialect.Launch, p *build.Problems) []string {
	a := build.NewArgs(p, "--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
	modelArgs(o, a)
	a.Switch("Debug", "--debug", o.Debug && o.DebugFile == "")
	a.JoinedIf("DebugFile", "--debug-file", o.DebugFile)
	if o.HasCanUseTool {
		a.Joined("CanUseTool", "--permission-prompt-tool", "stdio")
	} else {
		a.JoinedIf("PermissionPromptToolName", "--permission-prompt-tool", o.PermissionPromptToolName)
	}
	a.JoinedIf("PermissionPrompts", "--permission-prompts", o.PermissionPrompts)
	a.Switch("Continue", "--continue", o.Continue && o.Resume == "")
	a.JoinedIf("Resume", "--resume", o.Resume)
	if !rulesInSettings(o) {
		a.JoinedIf("AllowedTools", "--allowedTools", strings.Join(allowedTools(o), ","))
		a.JoinedIf("DisallowedTools", "--disallowedTools", strings.Join(o.DisallowedTools, ","))
	}
	set(a, "Tools", "--tools", o.Tools, "default")
	mcpArgs(o, l, a, p)
	a.Switch("Delivery", "--await-initialize", awaitsInitialize(o))
	set(a, "SettingSources", "--setting-sources", o.SettingSources, "user,project,local")
	a.Switch("StrictMCPConfig", "--strict-mcp-config", o.StrictMCPConfig)
	a.JoinedIf("PermissionMode", "--permission-mode", string(o.PermissionMode))
	a.Switch("AllowDangerouslySkipPermissions", "--allow-dangerously-skip-permissions", o.AllowDangerouslySkipPermissions)
	a.JoinedIf("FallbackModel", "--fallback-model", o.FallbackModel)
	a.Switch("IncludeHookEvents", "--include-hook-events", o.IncludeHookEvents)
	a.Switch("IncludePartialMessages", "--include-partial-messages", o.IncludePartialMessages)
	a.Switch("SessionStore", "--session-mirror", o.HasSessionStore)
	for _, dir := range o.AdditionalDirectories {
		a.Joined("AdditionalDirectories", "--add-dir", dir)
	}
	a.JoinedIf("ProjectConfigRoot", "--project-config-root", o.ProjectConfigRoot)
	pluginArgs(o, a)
	a.Switch("ForkSession", "--fork-session", o.ForkSession)
	a.JoinedIf("ResumeSessionAt", "--resume-session-at", o.ResumeSessionAt)
	a.JoinedIf("ResumeDropsTurn", "--resume-drops-turn", o.ResumeDropsTurn)
	a.JoinedIf("SessionID", "--session-id", o.SessionID)
	a.Switch("PersistSession", "--no-session-persistence", !o.PersistSession.Or(true))
	managedSettingsArgs(o, a)
	a.Extra(o.ExtraArgs, "--print", "--input-format", "--output-format", "--settings", "--managed-settings", "--mcp-config")
	settingsArgs(o, l, a, p)
	return a.List()
}

func modelArgs(o *dialect.Options, a *build.Args) {
	thinkingArgs(o, a)
	a.JoinedIf("Effort", "--effort", o.Effort)
	if n, ok := o.MaxTurns.Value(); ok {
		a.Joined("MaxTurns", "--max-turns", strconv.Itoa(n))
	}
	if usd, ok := o.MaxBudgetUSD.Value(); ok {
		a.Joined("MaxBudgetUSD", "--max-budget-usd", strconv.FormatFloat(usd, 'f', -1, 64))
	}
	if n, ok := o.TaskBudget.Value(); ok {
		a.Joined("TaskBudget", "--task-budget", strconv.Itoa(n))
	}
	a.JoinedIf("Model", "--model", o.Model)
	a.JoinedIf("Agent", "--agent", o.Agent)
	a.JoinedIf("Betas", "--betas", strings.Join(o.Betas, ","))
	// The initialize request carries the schema too, so a long one is left out here.
	if f := o.OutputFormat; f != nil && len(f.Schema) < build.MaxArg-len("--json-schema=") {
		a.Joined("OutputFormat", "--json-schema", compact(f.Schema))
	}
}

func thinkingArgs(o *dialect.Options, a *build.Args) {
	if n, ok := o.MaxThinkingTokens.Value(); ok && n == 0 {
		a.Joined("MaxThinkingTokens", "--thinking", dialect.ThinkingDisabled)
	} else if ok {
		a.Joined("MaxThinkingTokens", "--max-thinking-tokens", strconv.Itoa(n))
	}
	t := o.Thinking
	if t == nil {
		return
	}
	if n, ok := t.BudgetTokens.Value(); ok && t.Type == dialect.ThinkingEnabled {
		a.Joined("Thinking", "--max-thinking-tokens", strconv.Itoa(n))
	} else if t.Type == dialect.ThinkingEnabled {
		a.Joined("Thinking", "--thinking", dialect.ThinkingAdaptive)
	} else {
		a.Joined("Thinking", "--thinking", t.Type)
	}
	a.JoinedIf("Thinking.Display", "--thinking-display", t.Display)
}

// allowedTools are the user's rules and those that the skills need.
func allowedTools(o *dialect.Options) []string {
	rules := append([]string(nil), o.AllowedTools...)
	if o.Skills.IsAll() {
		return append(rules, "Skill")
	}
	for _, s := range o.Skills.Names() {
		rules = append(rules, "Skill("+s+")")
	}
	return rules
}

// set adds --flag=a,b, or --flag= for none, or --flag=<all>; nothing for the agent's default.
func set(a *build.Args, option, flag string, s dialect.Set, all string) {
	switch {
	case s.IsDefault():
	case s.IsAll():
		a.Joined(option, flag, all)
	default:
		a.Joined(option, flag, strings.Join(s.Names(), ","))
	}
}

func pluginArgs(o *dialect.Options, a *build.Args) {
	if o.PluginDelivery == dialect.DeliverInInitialize {
		return
	}
	for _, p := range o.Plugins {
		if p.SkipMCPDiscovery {
			a.Joined("Plugins", "--plugin-dir-no-mcp", p.Path)
		} else {
			a.Joined("Plugins", "--plugin-dir", p.Path)
		}
	}
}

// environment adds what the SDK adds. The user's own value of a variable wins.
func environment(o *dialect.Options, l *dialect.Launch, p *build.Problems) {
	e := build.NewEnv(o, p)
	e.Default("CLAUDE_CODE_ENTRYPOINT", entrypoint)
	e.Default("CLAUDE_AGENT_SDK_VERSION", sdkVersion)
	e.Default("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	if o.EnableFileCheckpointing.Or(false) {
		e.Default("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
	}
	if o.ToolConfig != nil && o.ToolConfig.AskUserQuestion.PreviewFormat != "" {
		e.Default("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", o.ToolConfig.AskUserQuestion.PreviewFormat)
	}
	if _, given := o.Env["CLAUDECODE"]; !given {
		e.Unset("CLAUDECODE")
	}
	l.Env, l.Unset = e.Vars(), e.Removed()
}
