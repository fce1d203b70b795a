package claude

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
)

// check finds what is wrong for Claude Code alone.
func check(o *dialect.Input, p *build.Problems) {
	checkLacks(o, p)
	checkHooks(o, p)
	checkGates(o, p)
	checkSettings(o, p)
	checkPrograms(o, p)
	p.AddIf(o.FallbackModel != "" && o.FallbackModel == o.Model, "FallbackModel", fmt.Sprintf("%q is Model itself", o.Model), "name another model")
	p.AddIf(o.HasSessionStore && o.EnableFileCheckpointing.Or(false), "EnableFileCheckpointing",
		"copies of files are not in a session store, so nothing could be rewound after a resume", "leave one of them out")
	checkLimits(o, p)
	p.AddIf(o.SessionID != "" && !isUUID(o.SessionID), "SessionID", fmt.Sprintf("%q is not a UUID", o.SessionID), "give a UUID, or leave it out")
	p.AddIf(o.SessionID != "" && (o.Resume != "" || o.Continue) && !o.ForkSession, "SessionID",
		"the resumed session keeps its own id; the agent refuses to start", "set ForkSession, or leave SessionID out")
	p.AddIf(!slices.Contains([]string{"", "host", "none"}, o.PermissionPrompts), "PermissionPrompts",
		fmt.Sprintf("%q is not known", o.PermissionPrompts), "use host or none")
	p.AddIf(len(o.SupportedDialogKinds) > 0 && o.OnUserDialog == nil, "SupportedDialogKinds",
		"OnUserDialog is nil, so a dialog would never be answered", "give an OnUserDialog callback")
	if o.OnUserDialog != nil && len(o.SupportedDialogKinds) == 0 {
		p.Warn("OnUserDialog", "SupportedDialogKinds", "is empty, so the agent never asks for a dialog",
			"name the kinds of dialog the callback can show")
	}
	if o.ToolConfig != nil {
		f := o.ToolConfig.AskUserQuestion.PreviewFormat
		p.AddIf(!slices.Contains([]string{"", "markdown", "html"}, f), "ToolConfig.AskUserQuestion.PreviewFormat",
			fmt.Sprintf("%q is not known", f), "use markdown or html")
	}
	if o.Sandbox != nil {
		for _, key := range wire.Misplaced(*o.Sandbox, o.Sandbox.Extra) {
			p.Add(fmt.Sprintf("Sandbox.Extra[%q]", key), "is a field of Sandbox, and would be lost here", "set the field")
		}
	}
	for _, at := range build.SpawningAgents(o) {
		p.Warn(at, "Agent", "a subagent may not be able to start agents of its own", "leave it out")
	}
	checkEfforts(o, p)
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		checkNoQoderTools(p, fmt.Sprintf("MCPServers[%q]", name), o.MCPServers[name].Tools)
	}
	for i, s := range o.Servers {
		at := fmt.Sprintf("SDKMCPServers[%d]", i)
		checkNoQoderTools(p, at, s.Tools)
		for j, t := range s.Tools {
			p.NoEffect(fmt.Sprintf("%s.Tools[%d].OrgMaxPermission", at, j), t.OrgMaxPermission != "")
		}
	}
}

// checkLimits warns of what the agent starts with and what is probably a mistake.
func checkLimits(o *dialect.Input, p *build.Problems) {
	if o.ForkSession && o.Resume == "" && !o.Continue {
		p.Warn("ForkSession", "", "has no effect: there is no session to fork", "give Resume or Continue")
	}
	switch n, given := o.MaxTurns.Value(); {
	case given && n == 0:
		p.Warn("MaxTurns", "", "0 is no limit on this backend, as in the vendor's SDK", "leave it out")
	case n < 0:
		p.Warn("MaxTurns", "", fmt.Sprintf("is %d; a limit below zero ends every turn at its first tool call", n), "give a number above zero")
	}
	if n := o.MaxThinkingTokens.Or(0); n < 0 {
		p.Warn("MaxThinkingTokens", "", fmt.Sprintf("is %d; a limit is not negative", n), "give 0 to turn thinking off")
	}
	if o.Thinking == nil {
		return
	}
	switch n, given := o.Thinking.BudgetTokens.Value(); {
	case given && o.Thinking.Type != session.ThinkingEnabled:
		p.Warn("Thinking.BudgetTokens", "", fmt.Sprintf("has no effect with type %s", o.Thinking.Type), "set Type to enabled, or leave it out")
	case given && n <= 0:
		p.Warn("Thinking.BudgetTokens", "", fmt.Sprintf("is %d; a budget is above zero", n), "set Type to disabled to turn thinking off")
	}
}

// checkEfforts warns of levels of effort that the agent does not know. A subagent's may be a number.
func checkEfforts(o *dialect.Input, p *build.Problems) {
	const problem = "is not a known level of effort, and the agent ignores it"
	known := func(e string) bool { return slices.Contains([]string{"", "low", "medium", "high", "xhigh", "max"}, e) }
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		e := string(o.Agents[name].Effort)
		if _, err := strconv.Atoi(e); err != nil && !known(e) {
			p.Warn(fmt.Sprintf("Agents[%q].Effort", name), e, problem, "use low, medium, high, xhigh, max or a whole number")
		}
	}
	if !known(o.Effort) {
		p.Warn("Effort", o.Effort, problem, "use low, medium, high, xhigh or max")
	}
}

func checkNoQoderTools(p *build.Problems, at string, tools []session.MCPToolPolicy) {
	for i, t := range tools {
		p.Lacks(fmt.Sprintf("%s.Tools[%d].ExposedName", at, i), t.ExposedName != "", "give the tool that name in the server")
		p.Lacks(fmt.Sprintf("%s.Tools[%d].AlwaysLoad", at, i), t.AlwaysLoad, "set AlwaysLoad of the server")
	}
}

// checkLacks reports the options that other backends have.
func checkLacks(o *dialect.Input, p *build.Problems) {
	p.Lacks("ExperimentalCloudAgent", o.ExperimentalCloudAgent != nil, "leave it out: it is Qoder's")
	p.Lacks("Auth", o.Auth != nil, "log in with claude, or set ANTHROPIC_API_KEY in Env")
	p.Lacks("Proxy", o.Proxy != "", "set HTTPS_PROXY in Env")
	p.Lacks("VPCEndpoint", o.VPCEndpoint != "", "set ANTHROPIC_BASE_URL in Env")
	p.Lacks("ModelRequestPatches", o.ModelRequestPatches != nil, "")
	p.Lacks("GoalMaxTurns", !o.GoalMaxTurns.IsZero(), "use MaxTurns")
	p.Lacks("CustomContext", o.CustomContext != nil, "put it in the prompt")
	p.Lacks("Memory", o.Memory != nil || o.ShouldGenerateMemory != nil, "")
	p.Lacks("Evolution", o.Evolution != nil || o.ShouldReviewSkills != nil, "")
	p.Lacks("PlanMode", !o.PlanMode.IsZero(), "set PermissionMode to plan")
	p.Lacks("SecurityScan", o.SecurityScan != nil, "")
	p.Lacks("Extensions", len(o.Extensions) > 0, "use Plugins")
	p.Lacks("AllowedMCPServerNames", len(o.AllowedMCPServerNames) > 0, "set allowedMcpServers in ManagedSettings")
	p.Lacks("ResolveModel", o.ResolveModel != nil, "use Model and SetModel")
	p.Lacks("ResolveSessionArtifacts", o.ResolveSessionArtifacts != nil, "")
}

// isUUID reports whether s is 8-4-4-4-12 hexadecimal digits.
func isUUID(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) != 5 {
		return false
	}
	for i, n := range [...]int{8, 4, 4, 4, 12} {
		if len(parts[i]) != n || strings.Trim(parts[i], "0123456789abcdefABCDEF") != "" {
			return false
		}
	}
	return true
}
