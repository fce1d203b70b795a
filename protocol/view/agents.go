package view

import (
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
)

// AgentNode is the main agent or a subagent.
type AgentNode struct {
	// ToolUseID is the call that started the subagent, and what its messages
	// have as ParentToolUseID; "" for the main agent.
	ToolUseID string
	// AgentID is the subagent's id, which is its task id; "" until it is known.
	AgentID     string
	Type        string       // such as general-purpose
	Description string       // one line for people; "" for the main agent
	Parent      *AgentNode   // nil for the main agent
	Children    []*AgentNode // the subagents that it started, in the order in which they were seen
	// Messages counts what the agent's model and tools said.
	Messages int
	// Status is running, completed, failed, stopped or killed; "" for the main
	// agent.
	Status string
	Usage  protocol.TaskUsage // of a subagent, the latest; zero for the main agent
}

// Depth is 0 for the main agent.
func (n *AgentNode) Depth() int {
	depth := 0
	for n = n.Parent; n != nil; n = n.Parent {
		depth++
	}
	return depth
}

// below reports whether another subagent started this one, or one before it.
func (n *AgentNode) below(other *AgentNode) bool {
	for up := n.Parent; up != nil; up = up.Parent {
		if up == other {
			return true
		}
	}
	return false
}

// Agents is the tree of a session's agents. A subagent is identified by the call that
// started it, by its id, or by both. Its messages may arrive before the message about its
// start, and long after the result of its call.
type Agents struct {
	root   AgentNode
	byCall map[string]*AgentNode
	byID   map[string]*AgentNode
}

// Root is the main agent.
func (a *Agents) Root() *AgentNode { return &a.root }

// ByToolUse returns the subagent that a call started, or nil.
func (a *Agents) ByToolUse(id string) *AgentNode { return a.byCall[id] }

// ByID returns the subagent with an id, or nil.
func (a *Agents) ByID(id string) *AgentNode { return a.byID[id] }

// Add takes a message and returns the agent that it is of or about: the main
// agent, if no other.
func (a *Agents) Add(m protocol.Message) *AgentNode {
	switch m := known(m).(type) {
	case *protocol.AssistantMessage:
		node := a.of(m.ParentToolUseID, m.SubagentFields)
		if !m.Historical {
			node.Messages++
		}
		for _, u := range protocol.ToolUses(m) {
			if tools.Canonical(u.Name) == "Agent" {
				a.called(node, u)
			}
		}
		return node
	case *protocol.UserMessage:
		node := a.of(m.ParentToolUseID, m.SubagentFields)
		if !Replayed(m) {
			node.Messages++
		}
		a.returned(m)
		return node
	case *protocol.TaskStartedMessage:
		if m.SubagentType == "" && m.TaskType != "local_agent" {
			break
		}
		node := a.of(m.ToolUseID, protocol.SubagentFields{AgentID: m.TaskID, SubagentType: m.SubagentType, TaskDescription: m.Description})
		node.Status = taskRunning
		if parent := a.byID[m.ParentTaskID]; parent != nil {
			a.move(node, parent)
		}
		return node
	case *protocol.TaskProgressMessage:
		if node := a.byID[m.TaskID]; node != nil {
			node.Usage = m.Usage
			return node
		}
	case *protocol.TaskUpdatedMessage:
		if node := a.byID[m.TaskID]; node != nil {
			set(&node.Status, m.Patch.Status)
			return node
		}
	case *protocol.TaskNotificationMessage:
		if node := a.byID[m.TaskID]; node != nil {
			set(&node.Status, m.Status)
			if m.Usage != nil {
				node.Usage = *m.Usage
			}
			return node
		}
	case *protocol.PartialAssistantMessage:
		return a.of(m.ParentToolUseID, protocol.SubagentFields{})
	}
	return &a.root
}

// of finds a subagent by its call and its id, or makes it, and notes what is
// said of it.
func (a *Agents) of(call string, says protocol.SubagentFields) *AgentNode {
	if call == "" && says.AgentID == "" {
		return &a.root
	}
	node, known := a.byCall[call], a.byID[says.AgentID]
	switch {
	case node == nil:
		node = known
	case known != nil && known != node && node.AgentID == "" && known.ToolUseID == "":
		a.merge(node, known)
	}
	if node == nil {
		if a.byCall == nil {
			a.byCall, a.byID = map[string]*AgentNode{}, map[string]*AgentNode{}
		}
		node = &AgentNode{Parent: &a.root, Status: taskRunning}
		a.root.Children = append(a.root.Children, node)
	}
	set(&node.Type, says.SubagentType)
	set(&node.Description, says.TaskDescription)
	if call != "" && node.ToolUseID == "" {
		node.ToolUseID, a.byCall[call] = call, node
	}
	if says.AgentID != "" && node.AgentID == "" {
		node.AgentID, a.byID[says.AgentID] = says.AgentID, node
	}
	return node
}

// merge makes one of two that turn out to be the same subagent: node was known by
// its call, other by its id.
func (a *Agents) merge(node, other *AgentNode) {
	if node.below(other) || other.below(node) {
		return // what is said cannot be
	}
	for _, child := range slices.Clone(other.Children) {
		a.move(child, node)
	}
	if node.Parent == &a.root {
		a.move(node, other.Parent)
	}
	other.Parent.Children = slices.DeleteFunc(other.Parent.Children, func(n *AgentNode) bool { return n == other })
	node.Messages += other.Messages
	set(&node.Type, other.Type)
	set(&node.Description, other.Description)
	if other.Status != taskRunning {
		node.Status = other.Status
	}
	if other.Usage != (protocol.TaskUsage{}) {
		node.Usage = other.Usage
	}
	node.AgentID, a.byID[other.AgentID] = other.AgentID, node
}

// called notes a call that starts a subagent.
func (a *Agents) called(by *AgentNode, u *protocol.ToolUseBlock) {
	node := a.of(u.ID, protocol.SubagentFields{})
	if in, ok := decoded[*tools.AgentInput](tools.DecodeInput(u.Name, u.Input)); ok {
		set(&node.Type, in.SubagentType)
		set(&node.Description, in.Description)
	}
	a.move(node, by)
}

// returned notes the result of a call that started a subagent.
func (a *Agents) returned(m *protocol.UserMessage) {
	results := protocol.ToolResults(m)
	if len(results) != 1 {
		return
	}
	node := a.byCall[results[0].ToolUseID]
	if node == nil {
		return
	}
	out, ok := decoded[*tools.AgentOutput](tools.DecodeOutput("Agent", m.ToolUseResult))
	if !ok {
		if results[0].IsError && node.Status == taskRunning {
			node.Status = taskFailed
		}
		return
	}
	a.of(node.ToolUseID, protocol.SubagentFields{AgentID: out.AgentID, SubagentType: out.AgentType})
	if out.Status == "completed" {
		node.Status = taskCompleted
		node.Usage = protocol.TaskUsage{TotalTokens: out.TotalTokens, ToolUses: out.TotalToolUseCount, DurationMS: out.TotalDurationMS}
	}
}

// move puts a subagent below the agent that started it.
func (a *Agents) move(node, parent *AgentNode) {
	if parent == node || parent.below(node) || node.Parent == parent {
		return // what is said cannot be, or is so
	}
	siblings := node.Parent.Children
	for i, n := range siblings {
		if n == node {
			node.Parent.Children = append(siblings[:i:i], siblings[i+1:]...)
			break
		}
	}
	node.Parent = parent
	parent.Children = append(parent.Children, node)
}

// decoded narrows what a decoder returned.
func decoded[T any](v any, err error) (T, bool) {
	t, ok := v.(T)
	return t, ok && err == nil
}
