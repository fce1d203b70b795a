package sdk

import (
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/view"
)

// Views fold a session's messages into what a user interface shows. Feed one
// every message, in order, with Add; its zero value is ready to use. They keep
// what they are told until their Forget, and none is safe for concurrent use.
type (
	// Drafts assembles the messages of the model while they are written.
	Drafts = view.Drafts
	// Draft is a message of the model as far as it is written.
	Draft = view.Draft
	// DraftBlock is a block of a message as far as it is written.
	DraftBlock = view.DraftBlock
	// ToolCalls pairs tool calls with their results.
	ToolCalls = view.ToolCalls
	// ToolCall is a tool call with what is known of its result. Its Input and
	// Output are typed by package protocol/tools.
	ToolCall = view.ToolCall
	// CallState is how far a tool call has come.
	CallState = view.CallState
	// Tasks follows the tasks of a session, and which of them run in the
	// background now.
	Tasks = view.Tasks
	// Task is a subagent or a shell command that the agent reports on.
	Task = view.Task
	// Agents is the tree of a session's agents.
	Agents = view.Agents
	// AgentNode is the main agent or a subagent.
	AgentNode = view.AgentNode
	// PlanView follows what the main agent means to do.
	PlanView = view.Plan
	// PlanEntry is something that the agent means to do.
	PlanEntry = view.PlanEntry
	// Costs is the ledger of what a session costs: per turn, by model, and in all.
	Costs = view.Costs
	// TurnCost is what one turn cost.
	TurnCost = view.TurnCost
	// Amount is US dollars and credits, which are never added to each other.
	Amount = view.Amount
	// StatusView is how a session stands, as far as its agent tells.
	StatusView = view.Status
)

// The states of a [ToolCall].
const (
	CallRunning  = view.CallRunning
	CallDone     = view.CallDone
	CallFailed   = view.CallFailed
	CallDenied   = view.CallDenied
	CallDeferred = view.CallDeferred
	CallLost     = view.CallLost
)

// PlanEntries returns the plan that messages leave behind: of TodoWrite calls,
// and of the Task tools.
func PlanEntries(messages ...Message) []PlanEntry { return view.PlanEntries(messages...) }

// Replayed reports whether m tells again what was told before: the echo of a
// user message, or history that a resumed session shows.
func Replayed(m Message) bool { return view.Replayed(m) }

// Parts of messages that views show.
type (
	// AbandonedBlocks says which blocks of a response never come as a message.
	AbandonedBlocks = protocol.AbandonedBlocks
	// CompactMetadata describes a compaction.
	CompactMetadata = protocol.CompactMetadata
	// PermissionDecision is what was decided on a tool call, and by whom.
	PermissionDecision = protocol.PermissionDecision
	// ToolResultMeta says how a tool call came to run, or why it did not.
	ToolResultMeta = protocol.ToolResultMeta
	// SubagentStats counts the subagents of a session so far.
	SubagentStats = protocol.SubagentStats
	// SessionState is what an agent says that it is doing.
	SessionState = protocol.SessionState
	// TaskPatch is the change of a task.
	TaskPatch = protocol.TaskPatch
)

// The states in a [SessionStateChangedMessage].
const (
	SessionIdle           = protocol.SessionIdle
	SessionRunning        = protocol.SessionRunning
	SessionRequiresAction = protocol.SessionRequiresAction
)
