package session

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/internal/wire"
	"github.com/agent-troupe/troupe/protocol"
)

var errAgentMCPServer = errors.New("session: an agent's MCP server is a name or an object with one key")

// AgentDefinition is a subagent. Its JSON is what goes to initialize.
type AgentDefinition struct {
	// Description tells the model when to use the agent. Required.
	Description string `json:"description"`
	// Prompt is the agent's system prompt. Required.
	Prompt string `json:"prompt"`
	// Tools the agent may use; zero or All(): the agent's default for subagents. None() leaves it without tools. The
	// tool Agent does nothing for a subagent: it starts none of its own (on Qoder an error, on Claude a Warning).
	Tools Set `json:"tools,omitzero"`
	// DisallowedTools are taken away from Tools.
	DisallowedTools []string `json:"disallowedTools,omitzero"`
	// Model is a name or alias; inherit: the main session's; empty: the agent's default.
	Model string `json:"model,omitempty"`
	// MCPServers the agent may use, by name or with a configuration of its own.
	MCPServers []AgentMCPServer `json:"mcpServers,omitzero"`
	// Skills are loaded into the agent's context from the start.
	Skills []string `json:"skills,omitzero"`
	// InitialPrompt is the first user message when the agent runs as the main session's (Options.Agent). In a subagent
	// it is ignored.
	InitialPrompt string `json:"initialPrompt,omitempty"`
	// MaxTurns limits the agent's model calls.
	MaxTurns Opt[int] `json:"maxTurns,omitzero"`
	// Effort is low, medium, high, xhigh (Claude), max, or a whole number in decimal digits (Claude), which is a number on
	// the wire.
	Effort protocol.Effort `json:"effort,omitempty"`
	// PermissionMode is the mode for the agent's tool calls.
	PermissionMode protocol.PermissionMode `json:"permissionMode,omitempty"`
	// Background runs the agent as a background task.
	Background Opt[bool] `json:"background,omitzero"`
	// Memory is the scope of the agent's memory: user, project or local.
	Memory string `json:"memory,omitempty"`
	// Isolation is worktree, or empty.
	Isolation string `json:"isolation,omitempty"`
	// OmitClaudeMD keeps the user's, the project's and the local CLAUDE.md out of a subagent. Claude.
	OmitClaudeMD Opt[bool] `json:"omitClaudeMd,omitzero"`
	// AutoCompactWindow is the number of tokens at which the agent, as a subagent, compacts its conversation. It only
	// lowers what the subagent would inherit. Absent: inherited. Claude.
	AutoCompactWindow Opt[int] `json:"autoCompactWindow,omitzero"`
	// Observer names the agents, at most four, separated by commas, that watch this one in the background. Claude.
	Observer string `json:"observer,omitempty"`
	// ObserverMessage is added to each report that an Observer gets. Claude.
	ObserverMessage string `json:"observerMessage,omitempty"`
	// CriticalSystemReminder is added to the system prompt; experimental in the vendor's types. Claude.
	CriticalSystemReminder string `json:"criticalSystemReminder_EXPERIMENTAL,omitempty"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// MarshalJSON encodes the definition with its Extra keys.
func (a AgentDefinition) MarshalJSON() ([]byte, error) {
	type plain AgentDefinition
	if a.Tools.IsAll() { // on the wire "all" is not a word for tools: leaving them out means all
		a.Tools = Set{}
	}
	return wire.MarshalWith(plain(a), a.Extra)
}

// UnmarshalJSON decodes an agent's definition, unknown keys into Extra.
func (a *AgentDefinition) UnmarshalJSON(b []byte) error {
	type plain AgentDefinition
	var w struct {
		plain
		Servers agentServers `json:"mcpServers"`
	}
	if err := wire.UnmarshalWith(b, &w, &w.Extra); err != nil {
		return err
	}
	*a = AgentDefinition(w.plain)
	a.MCPServers = w.Servers
	return nil
}

// agentServers is a list of servers, of which the vendors' documents put several into one object.
type agentServers []AgentMCPServer

func (l *agentServers) UnmarshalJSON(b []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil || raw == nil { // null is no list
		return err
	}
	*l = make(agentServers, 0, len(raw))
	for _, entry := range raw {
		var several map[string]MCPServerConfig
		if err := json.Unmarshal(entry, &several); err == nil && len(several) > 1 {
			for _, name := range slices.Sorted(maps.Keys(several)) {
				config := several[name]
				*l = append(*l, AgentMCPServer{Name: name, Config: &config})
			}
			continue
		}
		var one AgentMCPServer
		if err := json.Unmarshal(entry, &one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}

// AgentMCPServer is a server of an agent: the name of one of the session's, or with Config one of its own.
type AgentMCPServer struct {
	Name   string           // its key in Options.MCPServers or in Config; tools are called mcp__NAME__TOOL
	Config *MCPServerConfig // how to reach it; nil: the session's server of that name
}

// MarshalJSON encodes "name" or {"name":{...}}.
func (s AgentMCPServer) MarshalJSON() ([]byte, error) {
	if s.Config == nil {
		return protocol.Marshal(s.Name)
	}
	return protocol.Marshal(map[string]MCPServerConfig{s.Name: *s.Config})
}

// UnmarshalJSON decodes "name" or {"name":{...}}.
func (s *AgentMCPServer) UnmarshalJSON(b []byte) error {
	var name string
	if json.Unmarshal(b, &name) == nil {
		*s = AgentMCPServer{Name: name}
		return nil
	}
	var m map[string]MCPServerConfig
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	if len(m) != 1 {
		return errAgentMCPServer
	}
	name = slices.Sorted(maps.Keys(m))[0]
	config := m[name]
	*s = AgentMCPServer{Name: name, Config: &config}
	return nil
}
