package claude

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Initialize implements dialect.Dialect.
func (Dialect) Initialize(o *dialect.Input) (json.RawMessage, error) {
	var req build.Object
	req.Set("subtype", "initialize")
	req.SetIf(len(o.Registrations) > 0, "hooks", build.Hooks(o.Registrations, onFailure))
	sdkServers(o, &req)
	if o.OutputFormat != nil {
		req.Set("jsonSchema", o.OutputFormat.Schema)
	}
	systemPrompt(o.SystemPrompt, &req)
	req.SetIf(o.PlanModeInstructions != "", "planModeInstructions", o.PlanModeInstructions)
	if snapshot, given := o.SystemPrompt.Snapshot.Value(); given {
		req.Set("systemPromptSnapshot", snapshot)
	}
	req.SetIf(len(o.ToolAliases) > 0, "toolAliases", o.ToolAliases)
	req.SetIf(o.SystemPrompt.ExcludeDynamicSections, "excludeDynamicSections", true)
	req.SetIf(len(o.Agents) > 0, "agents", o.Agents)
	req.SetIf(o.Title != "", "title", o.Title)
	if !o.Skills.IsDefault() && !o.Skills.IsAll() {
		req.Set("skills", o.Skills)
	}
	req.SetIf(o.PromptSuggestions, "promptSuggestions", true)
	req.SetIf(o.AgentProgressSummaries, "agentProgressSummaries", true)
	req.SetIf(o.ForwardSubagentText, "forwardSubagentText", true)
	req.SetIf(len(o.SupportedDialogKinds) > 0, "supportedDialogKinds", o.SupportedDialogKinds)
	req.SetIf(o.PerTaskStopAffordance, "perTaskStopAffordance", true)
	req.SetIf(pluginsInInitialize(o), "plugins", plugins(o.Plugins))
	req.SetIf(managedInInitialize(o), "managedSettings", o.ManagedSettings)
	req.SetIf(mcpInInitialize(o), "mcpServers", o.MCPServers)
	return req.JSON()
}

// systemPrompt adds the prompt. Nothing given is an empty prompt; only a preset leaves the agent's own in place.
func systemPrompt(s session.SystemPrompt, req *build.Object) {
	if s.Preset {
		req.SetIf(s.Append != "", "appendSystemPrompt", s.Append)
	} else if s.Blocks == nil {
		req.Set("systemPrompt", []string{""})
	} else {
		req.Set("systemPrompt", s.Blocks)
	}
}

// onFailure makes the agent refuse what a gate's invalid answer would else let through.
func onFailure(event protocol.HookEvent) session.FailureAction {
	if isGate(event) {
		return session.BlockOnFailure
	}
	return ""
}

func plugins(list []session.Plugin) []session.Plugin {
	out := make([]session.Plugin, len(list))
	for i, p := range list {
		p.Type = "local"
		out[i] = p
	}
	return out
}

// AfterInitialize implements dialect.Dialect: nothing.
func (Dialect) AfterInitialize(*dialect.Input) []protocol.HostRequest { return nil }

// BeforeEOF implements dialect.Dialect: Claude Code writes everything out at the end of its stdin.
func (Dialect) BeforeEOF(json.RawMessage) []protocol.HostRequest { return nil }

// CheckInitialize implements dialect.Dialect. An agent that is too old to take servers, plugins or policy from the
// initialize request says nothing of them, and runs without.
func (Dialect) CheckInitialize(o *dialect.Input, response json.RawMessage) error {
	var applied struct {
		MCPServers      bool `json:"mcp_servers_applied"`
		Plugins         bool `json:"plugins_applied"`
		ManagedSettings bool `json:"managed_settings_applied"`
	}
	if err := protocol.Unmarshal(response, &applied); err != nil && awaitsInitialize(o) {
		return &session.UnsupportedCapabilityError{Backend: Name, Capability: "await-initialize", Request: "initialize"}
	}
	for _, c := range []struct {
		want, got  bool
		capability string
	}{
		{mcpInInitialize(o), applied.MCPServers, "mcp_servers_applied"},
		{pluginsInInitialize(o), applied.Plugins, "plugins_applied"},
		{managedInInitialize(o), applied.ManagedSettings, "managed_settings_applied"},
	} {
		if c.want && !c.got {
			return &session.UnsupportedCapabilityError{Backend: Name, Capability: c.capability, Request: "initialize"}
		}
	}
	return nil
}
