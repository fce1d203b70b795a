package session

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/agent-troupe/troupe/base/wire"
	"github.com/agent-troupe/troupe/protocol"
)

var errAgentMCPServer = errors.New("session: an agent's MCP server is a name or an object with one key")

// AgentDefinition describes a subagent. Its JSON is sent in the initialize request.
type AgentDefinition struct {
	// Description tells the model when to use the agent. Required.
	Description string `json:"description"`
	// Prompt is the agent's system prompt. Required.
	Prompt string `json:"prompt"`
	// Tools are the tools that the agent may use. The zero Set and All() mean the agent program's default for subagents,
	// None() means no tools. A subagent cannot start subagents: naming the tool Agent here is an error on Qoder and a
	// Warning on Claude.
	Tools Set `json:"tools,omitzero"`
	// DisallowedTools are removed from Tools.
	DisallowedTools []string `json:"disallowedTools,omitzero"`
	// Model is a model's name or alias, or inherit for the model of the main session; empty: the agent's default.
	Model string `json:"model,omitempty"`
	// MCPServers are the MCP servers that the agent may use.
	MCPServers []AgentMCPServer `json:"mcpServers,omitzero"`
	// Skills are loaded into the agent's context from the start.
	Skills []string `json:"skills,omitzero"`
	// InitialPrompt is the first user message if the main session runs as this agent (Options.Agent). In a subagent it is
	// ignored.
	InitialPrompt string `json:"initialPrompt,omitempty"`
	// MaxTurns limits the agent's model calls; it must be above zero. Absent: the agent's default.
	MaxTurns Opt[int] `json:"maxTurns,omitzero"`
	// Effort is low, medium, high or max, on Claude also xhigh or a whole number in decimal digits, which is sent as a
	// number. Empty: the agent's default.
	Effort protocol.Effort `json:"effort,omitempty"`
	// PermissionMode is the permission mode for the agent's tool calls; empty: the agent's default.
	PermissionMode protocol.PermissionMode `json:"permissionMode,omitempty"`
	// Background runs the agent as a background task.
	Background Opt[bool] `json:"background,omitzero"`
	// Memory is the scope of the agent's memory: user, project or local.
	Memory string `json:"memory,omitempty"`
	// Isolation is worktree, to run the agent in a git worktree, or empty.
	Isolation string `json:"isolation,omitempty"`
	// OmitClaudeMD keeps the user's, the project's and the local CLAUDE.md out of a subagent. Claude.
	OmitClaudeMD Opt[bool] `json:"omitClaudeMd,omitzero"`
	// AutoCompactWindow is the number of tokens at which a subagent compacts its conversation. It can only lower the
	// inherited value. Absent: inherited. Claude.
	AutoCompactWindow Opt[int] `json:"autoCompactWindow,omitzero"`
	// Observer names up to four agents, separated by commas, that watch this agent in the background. Claude.
	Observer string `json:"observer,omitempty"`
	// ObserverMessage is added to each report that an Observer gets. Claude.
	ObserverMessage string `json:"observerMessage,omitempty"`
	// CriticalSystemReminder is added to the system prompt. The vendor's types call it experimental. Claude.
	CriticalSystemReminder string `json:"criticalSystemReminder_EXPERIMENTAL,omitempty"`
	// Extra are further keys, passed on unchanged.
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

// UnmarshalJSON decodes an agent's definition. Unknown keys go to Extra.
func (a *AgentDefinition) UnmarshalJSON(b []byte) error {
	type plain AgentDefinition
	var w struct {
		plain
		Servers agentServers `json:"mcpServers"`
	}
	if err := wire.UnmarshalWith(protocol.Unmarshal, b, &w, &w.Extra); err != nil {
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
	if err := json.Unmarshal(b, &raw); err != nil || raw == nil { // null is not a list
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

// AgentMCPServer is an MCP server of a subagent: with Config its own server, without Config a server of
// the session.
type AgentMCPServer struct {
	Name   string           // the server's key; its tools are named mcp__NAME__TOOL
	Config *MCPServerConfig // the server's configuration; nil: the server of that name in Options.MCPServers
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
