package tools

// Known reports whether this package has a type for the inputs of a tool, under its
// present or an older name. For a tool of an MCP server it does.
func Known(name string) bool { return newInput(name) != nil }

// newInput returns the type of a tool's input, nil for a tool that is not known.
func newInput(name string) Input {
	if server, tool, ok := SplitMCP(name); ok {
		return &MCPToolInput{Server: server, Name: tool}
	}
	switch Canonical(name) {
	case "Agent":
		return new(AgentInput)
	case "TaskOutput":
		return new(TaskOutputInput)
	case "TaskStop":
		return new(TaskStopInput)
	case "Workflow":
		return new(WorkflowInput)
	case "ListAgents":
		return new(ListAgentsInput)
	case "Bash":
		return new(BashInput)
	case "Monitor":
		return new(MonitorInput)
	case "Read":
		return new(ReadInput)
	case "Write":
		return new(WriteInput)
	case "Edit":
		return new(EditInput)
	case "NotebookEdit":
		return new(NotebookEditInput)
	case "Glob":
		return new(GlobInput)
	case "Grep":
		return new(GrepInput)
	case "WebFetch":
		return new(WebFetchInput)
	case "WebSearch":
		return new(WebSearchInput)
	case "TodoWrite":
		return new(TodoWriteInput)
	case "TaskCreate":
		return new(TaskCreateInput)
	case "TaskGet":
		return new(TaskGetInput)
	case "TaskUpdate":
		return new(TaskUpdateInput)
	case "TaskList":
		return new(TaskListInput)
	case "EnterPlanMode":
		return new(EnterPlanModeInput)
	case "ExitPlanMode":
		return new(ExitPlanModeInput)
	case "AskUserQuestion":
		return new(AskUserQuestionInput)
	case "SendMessage":
		return new(SendMessageInput)
	case "Skill":
		return new(SkillInput)
	case "ToolSearch":
		return new(ToolSearchInput)
	case "StructuredOutput":
		return new(StructuredOutputInput)
	case "Config":
		return new(ConfigInput)
	}
	return newSessionInput(Canonical(name))
}

// newSessionInput knows the rarer tools.
func newSessionInput(name string) Input {
	switch name {
	case "EnterWorktree":
		return new(EnterWorktreeInput)
	case "ExitWorktree":
		return new(ExitWorktreeInput)
	case "CronCreate":
		return new(CronCreateInput)
	case "CronDelete":
		return new(CronDeleteInput)
	case "CronList":
		return new(CronListInput)
	case "ScheduleWakeup":
		return new(ScheduleWakeupInput)
	case "ListMcpResources":
		return new(ListMCPResourcesInput)
	case "ReadMcpResource":
		return new(ReadMCPResourceInput)
	case "ReadMcpResourceDir":
		return new(ReadMCPResourceDirInput)
	case "RefreshMcpTools":
		return new(RefreshMCPToolsInput)
	case "Mcp":
		return new(MCPInput)
	case "ReportFindings":
		return new(ReportFindingsInput)
	case "SendFeedback":
		return new(SendFeedbackInput)
	case "PushNotification":
		return new(PushNotificationInput)
	case "ProposeGoal":
		return new(ProposeGoalInput)
	case "ProposeSkills":
		return new(ProposeSkillsInput)
	case "GetGoal":
		return new(GetGoalInput)
	case "CreateGoal":
		return new(CreateGoalInput)
	case "UpdateGoal":
		return new(UpdateGoalInput)
	case "ImageGen":
		return new(ImageGenInput)
	case "ImageSearch":
		return new(ImageSearchInput)
	case "VideoGen":
		return new(VideoGenInput)
	case "VideoGenRetrieve":
		return new(VideoGenRetrieveInput)
	}
	return nil
}

// newOutput returns the type of a tool's output, nil for a tool without a typed output.
func newOutput(name string) Output {
	if _, _, ok := SplitMCP(name); ok {
		return new(MCPToolOutput)
	}
	switch Canonical(name) {
	case "Agent":
		return new(AgentOutput)
	case "TaskOutput":
		return new(TaskOutputOutput)
	case "TaskStop":
		return new(TaskStopOutput)
	case "Workflow":
		return new(WorkflowOutput)
	case "Bash":
		return new(BashOutput)
	case "Monitor":
		return new(MonitorOutput)
	case "ListAgents":
		return new(ListAgentsOutput)
	case "SendMessage":
		return new(SendMessageOutput)
	case "ToolSearch":
		return new(ToolSearchOutput)
	case "Read":
		return new(ReadOutput)
	case "Write":
		return new(WriteOutput)
	case "Edit":
		return new(EditOutput)
	case "NotebookEdit":
		return new(NotebookEditOutput)
	case "Glob":
		return new(GlobOutput)
	case "Grep":
		return new(GrepOutput)
	case "WebFetch":
		return new(WebFetchOutput)
	case "WebSearch":
		return new(WebSearchOutput)
	case "TodoWrite":
		return new(TodoWriteOutput)
	case "TaskCreate":
		return new(TaskCreateOutput)
	case "TaskGet":
		return new(TaskGetOutput)
	case "TaskUpdate":
		return new(TaskUpdateOutput)
	case "TaskList":
		return new(TaskListOutput)
	case "EnterPlanMode":
		return new(EnterPlanModeOutput)
	case "ExitPlanMode":
		return new(ExitPlanModeOutput)
	case "AskUserQuestion":
		return new(AskUserQuestionOutput)
	case "Skill":
		return new(SkillOutput)
	case "Config":
		return new(ConfigOutput)
	}
	return newSessionOutput(Canonical(name))
}

// newSessionOutput knows the rarer tools.
func newSessionOutput(name string) Output {
	switch name {
	case "EnterWorktree":
		return new(EnterWorktreeOutput)
	case "ExitWorktree":
		return new(ExitWorktreeOutput)
	case "CronCreate":
		return new(CronCreateOutput)
	case "CronDelete":
		return new(CronDeleteOutput)
	case "CronList":
		return new(CronListOutput)
	case "ScheduleWakeup":
		return new(ScheduleWakeupOutput)
	case "ListMcpResources":
		return new(ListMCPResourcesOutput)
	case "ReadMcpResource":
		return new(ReadMCPResourceOutput)
	case "ReadMcpResourceDir":
		return new(ReadMCPResourceDirOutput)
	case "RefreshMcpTools":
		return new(RefreshMCPToolsOutput)
	case "Mcp":
		return new(MCPOutput)
	case "ReportFindings":
		return new(ReportFindingsOutput)
	case "SendFeedback":
		return new(SendFeedbackOutput)
	case "PushNotification":
		return new(PushNotificationOutput)
	case "ProposeGoal":
		return new(ProposeGoalOutput)
	case "ProposeSkills":
		return new(ProposeSkillsOutput)
	case "ImageGen":
		return new(ImageGenOutput)
	case "ImageSearch":
		return new(WebSearchOutput)
	case "VideoGen", "VideoGenRetrieve":
		return new(VideoGenOutput)
	}
	return nil
}
