package tools

import "github.com/agent-troupe/troupe/base/wire"

// Known reports whether this package has a type for the inputs of a tool, under its
// present or an older name. For a tool of an MCP server it does.
func Known(name string) bool { return newInput(name) != nil }

// newInput returns the type of a tool's input, nil for a tool that is not known.
func newInput(name string) Input {
	if server, tool, ok := SplitMCP(name); ok {
		return &MCPToolInput{Server: server, Name: tool}
	}
	return inputs.New(Canonical(name))
}

// newOutput returns the type of a tool's output, nil for a tool without a typed output.
func newOutput(name string) Output {
	if _, _, ok := SplitMCP(name); ok {
		return new(MCPToolOutput)
	}
	return outputs.New(Canonical(name))
}

var inputs = wire.TypesBy[Input](Input.Tool, //nolint:gochecknoglobals // only read
	new(AgentInput), new(TaskOutputInput), new(TaskStopInput), new(WorkflowInput), new(ListAgentsInput),
	new(BashInput), new(MonitorInput), new(ReadInput), new(WriteInput), new(EditInput), new(NotebookEditInput),
	new(GlobInput), new(GrepInput), new(WebFetchInput), new(WebSearchInput), new(TodoWriteInput),
	new(TaskCreateInput), new(TaskGetInput), new(TaskUpdateInput), new(TaskListInput), new(EnterPlanModeInput),
	new(ExitPlanModeInput), new(AskUserQuestionInput), new(SendMessageInput), new(SkillInput),
	new(ToolSearchInput), new(StructuredOutputInput), new(ConfigInput), new(EnterWorktreeInput),
	new(ExitWorktreeInput), new(CronCreateInput), new(CronDeleteInput), new(CronListInput),
	new(ScheduleWakeupInput), new(ListMCPResourcesInput), new(ReadMCPResourceInput),
	new(ReadMCPResourceDirInput), new(RefreshMCPToolsInput), new(MCPInput), new(ReportFindingsInput),
	new(SendFeedbackInput), new(PushNotificationInput), new(ProposeGoalInput), new(ProposeSkillsInput),
	new(GetGoalInput), new(CreateGoalInput), new(UpdateGoalInput), new(ImageGenInput), new(ImageSearchInput),
	new(VideoGenInput), new(VideoGenRetrieveInput),
)

var outputs = wire.Types[string, Output]{ //nolint:gochecknoglobals // only read
	"Agent":              new(AgentOutput),
	"TaskOutput":         new(TaskOutputOutput),
	"TaskStop":           new(TaskStopOutput),
	"Workflow":           new(WorkflowOutput),
	"Bash":               new(BashOutput),
	"Monitor":            new(MonitorOutput),
	"ListAgents":         new(ListAgentsOutput),
	"SendMessage":        new(SendMessageOutput),
	"ToolSearch":         new(ToolSearchOutput),
	"Read":               new(ReadOutput),
	"Write":              new(WriteOutput),
	"Edit":               new(EditOutput),
	"NotebookEdit":       new(NotebookEditOutput),
	"Glob":               new(GlobOutput),
	"Grep":               new(GrepOutput),
	"WebFetch":           new(WebFetchOutput),
	"WebSearch":          new(WebSearchOutput),
	"TodoWrite":          new(TodoWriteOutput),
	"TaskCreate":         new(TaskCreateOutput),
	"TaskGet":            new(TaskGetOutput),
	"TaskUpdate":         new(TaskUpdateOutput),
	"TaskList":           new(TaskListOutput),
	"EnterPlanMode":      new(EnterPlanModeOutput),
	"ExitPlanMode":       new(ExitPlanModeOutput),
	"AskUserQuestion":    new(AskUserQuestionOutput),
	"Skill":              new(SkillOutput),
	"Config":             new(ConfigOutput),
	"EnterWorktree":      new(EnterWorktreeOutput),
	"ExitWorktree":       new(ExitWorktreeOutput),
	"CronCreate":         new(CronCreateOutput),
	"CronDelete":         new(CronDeleteOutput),
	"CronList":           new(CronListOutput),
	"ScheduleWakeup":     new(ScheduleWakeupOutput),
	"ListMcpResources":   new(ListMCPResourcesOutput),
	"ReadMcpResource":    new(ReadMCPResourceOutput),
	"ReadMcpResourceDir": new(ReadMCPResourceDirOutput),
	"RefreshMcpTools":    new(RefreshMCPToolsOutput),
	"Mcp":                new(MCPOutput),
	"ReportFindings":     new(ReportFindingsOutput),
	"SendFeedback":       new(SendFeedbackOutput),
	"PushNotification":   new(PushNotificationOutput),
	"ProposeGoal":        new(ProposeGoalOutput),
	"ProposeSkills":      new(ProposeSkillsOutput),
	"ImageGen":           new(ImageGenOutput),
	"ImageSearch":        new(WebSearchOutput),
	"VideoGen":           new(VideoGenOutput),
	"VideoGenRetrieve":   new(VideoGenOutput),
}
