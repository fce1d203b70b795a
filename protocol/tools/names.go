package tools

import (
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Names of built-in tools, as a tool_use has them. The system/init message of a session
// lists those that it has.
const (
	Agent      = "Agent"
	Task       = "Task" // [Agent] under its older name; see [Canonical]
	TaskOutput = "TaskOutput"
	TaskStop   = "TaskStop"
	Workflow   = "Workflow"
	ListAgents = "ListAgents"

	Bash    = "Bash"
	Monitor = "Monitor"

	Read         = "Read"
	Write        = "Write"
	Edit         = "Edit"
	NotebookEdit = "NotebookEdit"
	Glob         = "Glob"
	Grep         = "Grep"

	WebFetch  = "WebFetch"
	WebSearch = "WebSearch"

	TodoWrite     = "TodoWrite"
	TaskCreate    = "TaskCreate"
	TaskGet       = "TaskGet"
	TaskUpdate    = "TaskUpdate"
	TaskList      = "TaskList"
	EnterPlanMode = "EnterPlanMode"
	ExitPlanMode  = "ExitPlanMode"

	AskUserQuestion = "AskUserQuestion"
	SendMessage     = "SendMessage"
	Skill           = "Skill"
	ToolSearch      = "ToolSearch"
	// StructuredOutput is there if the session has an output format.
	StructuredOutput = "StructuredOutput"
	Config           = "Config"

	EnterWorktree = "EnterWorktree"
	ExitWorktree  = "ExitWorktree"

	CronCreate     = "CronCreate"
	CronDelete     = "CronDelete"
	CronList       = "CronList"
	ScheduleWakeup = "ScheduleWakeup"

	ListMCPResources   = "ListMcpResources"
	ReadMCPResource    = "ReadMcpResource"
	ReadMCPResourceDir = "ReadMcpResourceDir"
	RefreshMCPTools    = "RefreshMcpTools"
	MCP                = "Mcp"

	// Claude Code's.
	ReportFindings   = "ReportFindings"
	SendFeedback     = "SendFeedback"
	PushNotification = "PushNotification"
	ProposeGoal      = "ProposeGoal"
	ProposeSkills    = "ProposeSkills"

	// Qoder's.
	GetGoal          = "GetGoal"
	CreateGoal       = "CreateGoal"
	UpdateGoal       = "UpdateGoal"
	ImageGen         = "ImageGen"
	ImageSearch      = "ImageSearch"
	VideoGen         = "VideoGen"
	VideoGenRetrieve = "VideoGenRetrieve"
)

// Canonical returns the name that this package knows a tool by. The subagent
// tool is called Agent in a tool_use and Task in system/init (observed on
// Claude Code 2.1.329) and in everything of older releases; resource tools of
// MCP come with and without the ending Tool. Any other name comes back as it is.
func Canonical(name string) string {
	switch name {
	case Task:
		return Agent
	case "KillShell", "KillBash":
		return TaskStop
	case "AgentOutput", "AgentOutputTool":
		return TaskOutput
	case "ListMcpResourcesTool":
		return ListMCPResources
	case "ReadMcpResourceTool":
		return ReadMCPResource
	case "ReadMcpResourceDirTool":
		return ReadMCPResourceDir
	}
	return name
}

const mcpPrefix = "mcp__"

// SplitMCP takes the name of an MCP server's tool apart: mcp__server__tool.
// The server ends at the first double underscore, as the agents have it; ok is
// false for any other name.
func SplitMCP(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpPrefix)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	if !ok || server == "" || tool == "" {
		return "", "", false
	}
	return server, tool, true
}

// MCPName is the full name of an MCP server's tool, see [protocol.MCPToolName].
func MCPName(server, tool string) string { return protocol.MCPToolName(server, tool) }
