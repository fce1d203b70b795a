package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Check finds what is wrong with the options on any backend. modes are the permission modes of this one.
func Check(o *dialect.Input, p *Problems, modes ...protocol.PermissionMode) {
	checkPermissions(o, p, modes)
	checkSession(o, p)
	checkValues(o, p)
	checkDocuments(o, p)
	checkPrompt(o, p)
	checkAgents(o, p, modes)
	checkMCP(o, p)
	checkHooks(o, p)
	CheckCloud(o, p)
}

func checkPermissions(o *dialect.Input, p *Problems, modes []protocol.PermissionMode) {
	p.AddIf(o.CanUseTool != nil && o.PermissionPromptToolName != "", "PermissionPromptToolName",
		"cannot be combined with a CanUseTool callback: only one of them can decide", "leave one of them out")
	p.AddIf(o.CanUseTool == nil && o.PermissionPromptToolName == "stdio", "PermissionPromptToolName",
		"stdio asks the host, but CanUseTool is nil", "give a CanUseTool callback")
	checkMode(p, "PermissionMode", o.PermissionMode, modes)
	checkBypass(o, p)
	for _, r := range o.AllowedTools {
		checkRule(p, "AllowedTools", r)
	}
	for _, r := range o.DisallowedTools {
		checkRule(p, "DisallowedTools", r)
	}
	checkNames(p, "Tools", o.Tools.Names())
	checkSkills(p, o.Skills.Names())
	if o.Tools.IsNone() || (o.Tools.Names() != nil && !o.Tools.Has("Skill")) {
		if o.Skills.IsAll() || o.Skills.Names() != nil {
			p.Warn("Skills", "Tools", "the Skill tool is not among Tools, so no skill can be called", "add Skill to Tools")
		}
	}
}

func checkMode(p *Problems, option string, mode protocol.PermissionMode, modes []protocol.PermissionMode) {
	if mode != "" && !slices.Contains(modes, mode) {
		p.Add(option, fmt.Sprintf("%q is not a permission mode of this backend", mode), fmt.Sprintf("use one of %v", modes))
	}
}

// checkRule refuses a permission rule that a list separated by commas or spaces would take for several, so that no
// text from elsewhere can widen what is allowed.
func checkRule(p *Problems, option, rule string) {
	bad := func(why string) { p.Addf(option, "%q is not a permission rule: %s", rule, why) }
	name, content, found := strings.Cut(rule, "(")
	if name == "" || strings.ContainsAny(name, ", \t\r\n)") {
		bad("a rule is a tool's name, or a name with a pattern in parentheses")
		return
	}
	// qodercli, which spells such names otherwise, does so itself in rules with letters outside of
	// ASCII.
	itself := p.MCPName != nil && strings.IndexFunc(name, func(c rune) bool { return c > 0x7F }) >= 0
	if tool := spelled(name); strings.HasPrefix(name, "mcp__") && tool != name && !itself {
		p.Warn(option, rule, "has a character that agents replace by _ in tool names, so it may match no tool", "write "+tool)
	}
	if !found {
		return
	}
	content, closed := strings.CutSuffix(content, ")")
	if !closed {
		bad("the closing parenthesis is missing at its end")
		return
	}
	depth := 0
	for i := 0; i < len(content); i++ {
		switch content[i] {
		case '\\':
			if i++; i == len(content) {
				bad("its closing parenthesis is escaped")
				return
			}
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				bad("its parentheses do not match")
				return
			}
		}
	}
	if depth != 0 {
		bad("its parentheses do not match")
	}
}

// spelled is the name of a rule as agents have it. A * stands for any text, wherever it is (observed on Claude Code 2.1.329).
func spelled(name string) string {
	parts := strings.Split(name, "*")
	for i, part := range parts {
		parts[i] = protocol.MCPName(part)
	}
	return strings.Join(parts, "*")
}

// checkNames refuses names that would be taken for several.
func checkNames(p *Problems, option string, names []string) {
	for _, n := range names {
		if n == "" || strings.ContainsAny(n, ",() \t\r\n") {
			p.Addf(option, "%q is not a name: it is empty, or contains a comma, a parenthesis or a space", n)
		}
	}
}

func checkSession(o *dialect.Input, p *Problems) {
	p.AddIf(o.ResumeSessionAt != "" && o.Resume == "", "ResumeSessionAt", "there is no session to truncate; the agent refuses to start", "give Resume")
	p.AddIf(o.ResumeDropsTurn != "" && o.ResumeSessionAt == "", "ResumeDropsTurn", "needs to know where the history is cut", "give ResumeSessionAt")
	p.AddIf(o.HasSessionStore && !o.PersistSession.Or(true), "PersistSession",
		"a session store mirrors the session's file, and false keeps it from being written", "leave it out")
	if o.Continue && o.Resume != "" {
		p.Warn("Continue", "Resume", "Resume names the session, so Continue is left out", "leave Continue out")
	}
}

func checkValues(o *dialect.Input, p *Problems) {
	if n, ok := o.GoalMaxTurns.Value(); ok && n < 0 {
		p.Addf("GoalMaxTurns", "is %d; a limit is not negative", n)
	}
	if n, ok := o.TaskBudget.Value(); ok && n <= 0 {
		p.Addf("TaskBudget", "is %d; a budget is above zero", n)
	}
	if usd, ok := o.MaxBudgetUSD.Value(); ok && !(usd > 0 && usd <= math.MaxFloat64) {
		p.Addf("MaxBudgetUSD", "is %v; a budget is a finite number above zero", usd)
	}
	p.AddIf(o.InitializeTimeout < 0, "InitializeTimeout", "is negative", "give 0 for the default")
	if o.Thinking != nil && !o.MaxThinkingTokens.IsZero() {
		p.Warn("MaxThinkingTokens", "Thinking", "is the older form of Thinking, which wins", "leave it out")
	}
	if t := o.Thinking; t != nil {
		known := []string{session.ThinkingAdaptive, session.ThinkingEnabled, session.ThinkingDisabled}
		p.AddIf(!slices.Contains(known, t.Type), "Thinking.Type", fmt.Sprintf("%q is not known", t.Type), fmt.Sprintf("use one of %v", known))
		p.AddIf(!slices.Contains([]string{"", "summarized", "omitted"}, t.Display), "Thinking.Display",
			fmt.Sprintf("%q is not known", t.Display), "use summarized or omitted")
	}
	for _, s := range o.SettingSources.Names() {
		p.AddIf(!slices.Contains([]string{"user", "project", "local"}, s), "SettingSources", fmt.Sprintf("%q is not a source", s), "use user, project, local")
	}
	checkNames(p, "Betas", o.Betas)
	for i, d := range o.AdditionalDirectories {
		p.AddIf(d == "", fmt.Sprintf("AdditionalDirectories[%d]", i), "is empty", "give a path")
	}
	for i, pl := range o.Plugins {
		p.AddIf(pl.Path == "", fmt.Sprintf("Plugins[%d].Path", i), "is empty", "give the plugin's directory")
		p.AddIf(pl.Type != "" && pl.Type != "local", fmt.Sprintf("Plugins[%d].Type", i), fmt.Sprintf("%q is not known", pl.Type), "use local")
	}
	checkDelivery(p, "PluginDelivery", o.PluginDelivery)
	checkDelivery(p, "MCPServersDelivery", o.MCPServersDelivery)
}

func checkDelivery(p *Problems, option string, d session.Delivery) {
	p.AddIf(!slices.Contains([]session.Delivery{session.DeliverByLaunch, session.DeliverInArgv, session.DeliverInInitialize}, d), option,
		fmt.Sprintf("%q is not known", d), "use argv or initialize, or leave it out")
}

func checkDocuments(o *dialect.Input, p *Problems) {
	for _, d := range []struct {
		option string
		raw    json.RawMessage
	}{
		{"Settings", o.Settings},
		{"ManagedSettings", o.ManagedSettings},
		{"ModelRequestPatches", o.ModelRequestPatches},
		{"CustomContext", o.CustomContext},
	} {
		if m := optionfile.SyntaxOfJSON(d.raw); d.raw != nil && m != nil {
			p.Add(d.option, fmt.Sprintf("is not a JSON object: line %d, column %d %s", m.Line, m.Column, m.Problem), m.Fix)
			continue
		}
		p.AddIf(d.raw != nil && !IsObject(d.raw), d.option, "is not a JSON object", "")
	}
	p.AddIf(o.Settings != nil && o.SettingsPath != "", "SettingsPath", "cannot be combined with Settings", "use one of them")
	if f := o.OutputFormat; f != nil {
		p.AddIf(f.Type != "json_schema", "OutputFormat.Type", fmt.Sprintf("%q is not known", f.Type), "use json_schema")
		p.AddIf(!IsObject(f.Schema), "OutputFormat.Schema", "is not a JSON object", "give a JSON Schema")
	}
}

func checkPrompt(o *dialect.Input, p *Problems) {
	s := o.SystemPrompt
	p.AddIf(s.File != "" && (s.Preset || s.Blocks != nil), "SystemPrompt.File", "cannot be combined with Blocks or Preset", "use one of them")
	p.AddIf(s.File != "" && !s.Preset && s.Blocks == nil, "SystemPrompt.File", "was not read: only package sdk reads it", "put its text in Blocks")
	p.AddIf(s.Preset && s.Blocks != nil, "SystemPrompt", "has Blocks, which replace the agent's prompt, and Preset, which keeps it", "use one of them")
	p.AddIf(!s.Preset && s.Append != "", "SystemPrompt.Append", "there is no preset to add to", "set Preset")
	p.AddIf(!s.Preset && s.ExcludeDynamicSections, "SystemPrompt.ExcludeDynamicSections", "there is no preset to take them from", "set Preset")
}

func checkHooks(o *dialect.Input, p *Problems) {
	seen := map[string]bool{}
	for i, h := range o.Registrations {
		at := fmt.Sprintf("Hooks[%d]", i)
		p.AddIf(h.Event == "", at+".Event", "is empty", "name the event")
		p.AddIf(len(h.CallbackIDs) == 0, at+".CallbackIDs", "is empty", "give at least one")
		p.AddIf(h.Timeout < 0, at+".Timeout", "is negative", "give 0 for the agent's default")
		p.AddIf(!slices.Contains([]session.FailureAction{"", session.BlockOnFailure, session.ContinueOnFailure}, h.OnFailure), at+".OnFailure",
			fmt.Sprintf("%q is not known", h.OnFailure), "use block or continue")
		for _, id := range h.CallbackIDs {
			p.AddIf(id == "" || seen[id], at+".CallbackIDs", fmt.Sprintf("%q is empty or used twice", id), "make each unique")
			seen[id] = true
		}
	}
}

// agentTools are the names of the tool that runs subagents: the older and the newer.
func agentTools() []string { return []string{"Agent", "Task"} }

func isAgentTool(t string) bool {
	name, _, _ := strings.Cut(t, "(")
	return slices.Contains(agentTools(), name)
}

// SpawningAgents are the subagents whose tools have the Agent tool, as paths of options.
func SpawningAgents(o *dialect.Input) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		if name != o.Agent && slices.ContainsFunc(o.Agents[name].Tools.Names(), isAgentTool) {
			out = append(out, fmt.Sprintf("Agents[%q].Tools", name))
		}
	}
	return out
}

func checkAgents(o *dialect.Input, p *Problems, modes []protocol.PermissionMode) {
	callable := false
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		a, at := o.Agents[name], fmt.Sprintf("Agents[%q]", name)
		p.AddIf(name == "", at, "has no name", "name the agent")
		p.AddIf(a.Description == "", at+".Description", "is empty", "tell the model when to use the agent")
		p.AddIf(a.Prompt == "", at+".Prompt", "is empty", "give the agent's system prompt")
		checkMode(p, at+".PermissionMode", a.PermissionMode, modes)
		if n, ok := a.MaxTurns.Value(); ok && n <= 0 {
			p.Addf(at+".MaxTurns", "is %d; a limit is above zero", n)
		}
		if n, ok := a.AutoCompactWindow.Value(); ok && n <= 0 {
			p.Addf(at+".AutoCompactWindow", "is %d; a number of tokens is above zero", n)
		}
		for i, s := range a.MCPServers {
			sub := fmt.Sprintf("%s.MCPServers[%d]", at, i)
			p.AddIf(s.Name == "", sub, "has no name", "name the server")
			if s.Config != nil {
				checkServer(p, sub, *s.Config)
				warnUnset(o, p, sub, *s.Config)
				p.AddIf(len(s.Config.Tools) > 0, sub+".Tools", "policies hold for the session's servers only", "put the server in MCPServers")
			}
		}
		if name != o.Agent {
			callable = true
			if a.InitialPrompt != "" {
				p.Warn(at+".InitialPrompt", "Agent", "is for the agent of the main session, and ignored in a subagent", "leave it out, or name the agent in Agent")
			}
		}
	}
	if !callable {
		return
	}
	main := o.Agents[o.Agent].Tools
	p.AddIf(main.IsNone() || (main.Names() != nil && !slices.ContainsFunc(main.Names(), isAgentTool)),
		"Agents", fmt.Sprintf("cannot be called: the Agent tool is not among the tools of %q, which the main session runs as", o.Agent), "add Agent to its Tools")
	p.AddIf(o.Tools.IsNone() || (o.Tools.Names() != nil && !slices.ContainsFunc(o.Tools.Names(), isAgentTool)),
		"Agents", "cannot be called: the Agent tool is not among Tools", "add Agent to Tools")
	p.AddIf(slices.ContainsFunc(o.DisallowedTools, isAgentTool),
		"Agents", "cannot be called: DisallowedTools has the Agent tool", "take it out of DisallowedTools")
}
