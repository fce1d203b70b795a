package claude

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The Agent SDK release whose wire this package follows.
// Claude Code 2.1.329 compares the entrypoint with the names of the vendor's SDKs; another name gets another agent: it adds a
// built-in subagent, claude-code-guide, which knows the terminal's interface.
const (
	sdkVersion = "0.3.329"
	entrypoint = "sdk-ts"
	// clientApp names Troupe to the model's API, in the way that the vendor's types give for libraries.
	clientApp = "troupe"
)

// arguments makes the argument list in the SDK's order.
func arguments(o *dialect.Input, l *dialect.Launch, p *build.Problems) []string {
	a := build.NewArgs(p, "--output-format", "stream-json", "--verbose", "--input-format", "stream-json")
	modelArgs(o, a)
	a.Switch("Debug", "--debug", o.Debug && o.DebugFile == "")
	a.JoinedIf("DebugFile", "--debug-file", o.DebugFile)
	if o.CanUseTool != nil {
		a.Joined("CanUseTool", "--permission-prompt-tool", "stdio")
	} else {
		a.JoinedIf("PermissionPromptToolName", "--permission-prompt-tool", o.PermissionPromptToolName)
	}
	a.JoinedIf("PermissionPrompts", "--permission-prompts", o.PermissionPrompts)
	a.Switch("Continue", "--continue", o.Continue && o.Resume == "")
	a.JoinedIf("Resume", "--resume", o.Resume)
	if !rulesInSettings(o) {
		a.JoinedIf("AllowedTools", "--allowedTools", strings.Join(build.AllowedTools(o), ","))
		a.JoinedIf("DisallowedTools", "--disallowedTools", strings.Join(o.DisallowedTools, ","))
	}
	set(a, "Tools", "--tools", o.Tools, "default")
	mcpArgs(o, l, a, p)
	set(a, "SettingSources", "--setting-sources", o.SettingSources, "user,project,local")
	a.Switch("StrictMCPConfig", "--strict-mcp-config", o.StrictMCPConfig)
	a.JoinedIf("PermissionMode", "--permission-mode", string(o.PermissionMode))
	a.Switch("AllowDangerouslySkipPermissions", "--allow-dangerously-skip-permissions", o.AllowDangerouslySkipPermissions)
	a.JoinedIf("FallbackModel", "--fallback-model", o.FallbackModel)
	a.Switch("IncludeHookEvents", "--include-hook-events", o.IncludeHookEvents)
	a.Switch("IncludePartialMessages", "--include-partial-messages", o.IncludePartialMessages)
	a.Switch("SessionStore", "--session-mirror", o.HasSessionStore)
	a.JoinedIf("ProjectConfigRoot", "--project-config-root", o.ProjectConfigRoot)
	for _, dir := range o.AdditionalDirectories {
		a.Joined("AdditionalDirectories", "--add-dir", dir)
	}
	a.Switch("Delivery", "--await-initialize", awaitsInitialize(o))
	pluginArgs(o, a)
	a.Switch("ForkSession", "--fork-session", o.ForkSession)
	a.JoinedIf("ResumeSessionAt", "--resume-session-at", o.ResumeSessionAt)
	a.JoinedIf("ResumeDropsTurn", "--resume-drops-turn", o.ResumeDropsTurn)
	a.JoinedIf("SessionID", "--session-id", o.SessionID)
	a.Switch("PersistSession", "--no-session-persistence", !o.PersistSession.Or(true))
	managedSettingsArgs(o, a)
	a.Extra(o.ExtraArgs, "--print", "--input-format", "--output-format", "--settings", "--managed-settings", "--mcp-config")
	settingsArgs(o, l, a, p)
	if len(l.Interpreter) > 0 || len(o.ExecutableArgs) == 0 {
		return a.List()
	}
	p.Warn("ExecutableArgs", l.Path, "the agent's program is not a script: the arguments go to the program, before its own", "use ExtraArgs for the agent's own flags")
	return slices.Concat(o.ExecutableArgs, a.List())
}

func modelArgs(o *dialect.Input, a *build.Args) {
	thinkingArgs(o, a)
	a.JoinedIf("Effort", "--effort", o.Effort)
	if n := o.MaxTurns.Or(0); n != 0 { // the SDK takes 0 for "not given"
		a.Joined("MaxTurns", "--max-turns", strconv.Itoa(n))
	}
	if usd, ok := o.MaxBudgetUSD.Value(); ok {
		text, _ := protocol.Marshal(usd) // which has JavaScript's form of numbers; a value that is not a number is reported elsewhere
		a.Joined("MaxBudgetUSD", "--max-budget-usd", string(text))
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

func thinkingArgs(o *dialect.Input, a *build.Args) {
	t := o.Thinking
	if n, ok := o.MaxThinkingTokens.Value(); t == nil && ok && n == 0 {
		a.Joined("MaxThinkingTokens", "--thinking", session.ThinkingDisabled)
	} else if t == nil && ok {
		a.Joined("MaxThinkingTokens", "--max-thinking-tokens", strconv.Itoa(n))
	}
	if t == nil {
		return
	}
	if n, ok := t.BudgetTokens.Value(); ok && t.Type == session.ThinkingEnabled {
		a.Joined("Thinking", "--max-thinking-tokens", strconv.Itoa(n))
	} else if t.Type == session.ThinkingEnabled {
		a.Joined("Thinking", "--thinking", session.ThinkingAdaptive)
	} else {
		a.Joined("Thinking", "--thinking", t.Type)
	}
	if t.Type != session.ThinkingDisabled {
		a.JoinedIf("Thinking.Display", "--thinking-display", t.Display)
	}
}

// set adds --flag=a,b, or --flag= for none, or --flag=<all>; nothing for the agent's default.
func set(a *build.Args, option, flag string, s session.Set, all string) {
	switch {
	case s.IsDefault():
	case s.IsAll():
		a.Joined(option, flag, all)
	default:
		a.Joined(option, flag, strings.Join(s.Names(), ","))
	}
}

func pluginArgs(o *dialect.Input, a *build.Args) {
	if o.PluginDelivery == session.DeliverInInitialize {
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

// environment adds what the SDK adds. A value that the user set for a variable wins, but not over an
// option.
func environment(o *dialect.Input, l *dialect.Launch, p *build.Problems) {
	e := build.NewEnv(o, p)
	for _, v := range []struct{ name, value string }{{"CLAUDE_CODE_ENTRYPOINT", entrypoint}, {"CLAUDE_AGENT_SDK_VERSION", sdkVersion}} {
		if given, ok := o.Env[v.name]; ok && given == "" { // an empty value counts as unset
			e.Set(v.name, v.value, false)
		}
		e.Default(v.name, v.value)
	}
	if _, given := o.LookupEnv("CLAUDE_AGENT_SDK_CLIENT_APP"); !given {
		e.Default("CLAUDE_AGENT_SDK_CLIENT_APP", clientApp)
	}
	e.Default("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	if o.EnableFileCheckpointing.Or(false) {
		e.Set("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true", false)
	}
	if o.ToolConfig != nil && o.ToolConfig.AskUserQuestion.PreviewFormat != "" {
		e.Set("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", o.ToolConfig.AskUserQuestion.PreviewFormat, false)
	}
	for _, name := range NotInherited() {
		if _, given := o.Env[name]; !given {
			e.Unset(name)
		}
	}
	if v, _ := o.LookupEnv("DEBUG_CLAUDE_AGENT_SDK"); build.Truthy(v) {
		e.Set("DEBUG", "1", false)
	}
	l.Env, l.Unset = e.Vars(), e.Removed()
}

// NotInherited names the variables of the host that an agent never gets, unless Options.Env has
// them.
func NotInherited() []string {
	// The last three are what an outer agent was given for itself.
	return []string{"CLAUDECODE", "NODE_OPTIONS", "DEBUG",
		"CLAUDE_CODE_QUESTION_EXTENDED", "CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS", "CLAUDE_CODE_AGENT_PROGRESS_SUMMARIES"}
}
