package qoder

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// check finds what is wrong for qodercli alone.
func check(o *dialect.Input, l *dialect.Launch, p *build.Problems) {
	checkLacks(o, p)
	checkMCP(o, p)
	checkMemory(o, p)
	p.AddIf(o.ForkSession && o.Resume == "" && !o.Continue, "ForkSession", "there is no session to fork, and the agent refuses to start",
		"give Resume or Continue")
	if n := o.MaxTurns.Or(0); n < 0 {
		p.Add("MaxTurns", fmt.Sprintf("is %d; the agent refuses to start", n), "give 0 or more")
	}
	p.AddIf(len(o.SystemPrompt.Blocks) > 1, "SystemPrompt.Blocks", "has several blocks, and this backend takes one", "join them")
	p.Lacks("SystemPrompt.ExcludeDynamicSections", o.SystemPrompt.ExcludeDynamicSections, "")
	p.Lacks("SystemPrompt.Snapshot", !o.SystemPrompt.Snapshot.IsZero(), "")
	for _, at := range build.SpawningAgents(o) {
		p.Add(at, "has the Agent tool, and a subagent cannot start agents of its own", "leave it out")
	}
	checkAgentTool(o, p)
	for _, name := range slices.Sorted(maps.Keys(o.Agents)) {
		a, at := o.Agents[name], fmt.Sprintf("Agents[%q]", name)
		if !slices.Contains([]protocol.Effort{"", "low", "medium", "high", "max"}, a.Effort) {
			p.Warn(at+".Effort", string(a.Effort), "is not a level of effort in the vendor's documents", "use low, medium, high or max")
		}
		p.Lacks(at+".OmitClaudeMD", !a.OmitClaudeMD.IsZero(), "")
		p.Lacks(at+".AutoCompactWindow", !a.AutoCompactWindow.IsZero(), "")
		p.Lacks(at+".Observer", a.Observer != "", "")
		p.Lacks(at+".ObserverMessage", a.ObserverMessage != "", "")
		p.Lacks(at+".CriticalSystemReminder", a.CriticalSystemReminder != "", "put it in Prompt")
	}
	for i, pl := range o.Plugins {
		p.Lacks(fmt.Sprintf("Plugins[%d].SkipMCPDiscovery", i), pl.SkipMCPDiscovery, "use AllowedMCPServerNames")
	}
	checkHooks(o, p)
	p.AddIf(o.ExperimentalCloudAgent != nil, "ExperimentalCloudAgent", "cannot be used with qodercli: the agent is in the cloud", "import \"github.com/agent-troupe/troupe/agent/cloud\" and set Backend to cloud.Backend(cloud.Config{}), or leave it out")
	p.NoEffect("DebugFile", o.DebugFile != "")
	p.NoEffect("IncludeHookEvents", o.IncludeHookEvents)
	p.NoEffect("ToolConfig", o.ToolConfig != nil)
	if len(l.Interpreter) == 0 && len(o.ExecutableArgs) > 0 {
		p.Warn("ExecutableArgs", l.Path, "the agent's program is not a script, and is run directly", "use ExtraArgs for the agent's own flags")
	}
}

// checkAgentTool warns when subagents are given that nothing lets the model call. The documents want the Agent tool
// among the allowed ones.
func checkAgentTool(o *dialect.Input, p *build.Problems) {
	allowed := o.CanUseTool != nil || o.PermissionPromptToolName != "" || o.PermissionMode == protocol.ModeYolo ||
		o.PermissionMode == protocol.ModeBypassPermissions
	for _, rule := range o.AllowedTools {
		name, _, _ := strings.Cut(rule, "(")
		allowed = allowed || name == "Agent"
	}
	_, own := o.Agents[o.Agent]
	if subagents := len(o.Agents) > 1 || len(o.Agents) == 1 && !own; subagents && !allowed {
		p.Warn("Agents", "AllowedTools", "the Agent tool is not allowed, so every call of an agent is denied", "add Agent to AllowedTools")
	}
}

// checkLacks reports the options that other backends have, those included that Qoder's documents list and its SDK
// has no wire for: an option like Sandbox must not look as if it held.
func checkLacks(o *dialect.Input, p *build.Problems) {
	p.Lacks("FallbackModel", o.FallbackModel != "", "choose a model with ResolveModel")
	p.Lacks("Thinking", o.Thinking != nil, "")
	p.Lacks("MaxThinkingTokens", !o.MaxThinkingTokens.IsZero(), "send a set_max_thinking_tokens request")
	p.Lacks("Effort", o.Effort != "", "set Effort of an agent")
	p.Lacks("Betas", len(o.Betas) > 0, "")
	p.Lacks("OutputFormat", o.OutputFormat != nil, "ask for the format in the prompt")
	p.Lacks("MaxBudgetUSD", !o.MaxBudgetUSD.IsZero(), "use MaxTurns")
	p.Lacks("TaskBudget", !o.TaskBudget.IsZero(), "use MaxTurns")
	p.Lacks("PlanModeInstructions", o.PlanModeInstructions != "", "put them in the prompt")
	p.Lacks("Title", o.Title != "", "send a generate_session_title request")
	p.Lacks("VerbatimPrompts", o.VerbatimPrompts, "")
	p.Lacks("ToolAliases", len(o.ToolAliases) > 0, "set ExposedName of an MCP tool")
	p.Lacks("PermissionPrompts", o.PermissionPrompts != "", "set PermissionMode to dontAsk")
	p.Lacks("Sandbox", o.Sandbox != nil, "confine the agent's process from outside")
	p.Lacks("ManagedSettings", o.ManagedSettings != nil, "use Settings")
	p.Lacks("ProjectConfigRoot", o.ProjectConfigRoot != "", "set Cwd")
	p.Lacks("PluginDelivery", o.PluginDelivery == session.DeliverInInitialize, "leave it out")
	p.Lacks("MCPServersDelivery", o.MCPServersDelivery == session.DeliverInInitialize, "leave it out; credentials go by file")
	p.Lacks("OnUserDialog", o.OnUserDialog != nil, "")
	p.Lacks("SupportedDialogKinds", len(o.SupportedDialogKinds) > 0, "")
	p.Lacks("ForwardSubagentText", o.ForwardSubagentText, "")
	p.Lacks("AgentProgressSummaries", o.AgentProgressSummaries, "")
	p.Lacks("PerTaskStopAffordance", o.PerTaskStopAffordance, "")
}
