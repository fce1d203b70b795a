package protocol

// TaskStartedMessage is system/task_started: a subagent or a shell command
// that outlives its tool call, or a foreground command that takes over 3 s
// (observed on Claude Code 2.1.329).
type TaskStartedMessage struct {
	Common
	TaskID       string `json:"task_id"`
	RunID        string `json:"run_id,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	Description  string `json:"description"`
	SubagentType string `json:"subagent_type,omitempty"`
	// IsBackgrounded is nil if the agent does not say (Qoder).
	IsBackgrounded *bool `json:"is_backgrounded,omitempty"`
	// Awaited: a tool call waits for the task; no turn about it follows.
	Awaited    bool `json:"awaited,omitempty"`
	SpawnDepth int  `json:"spawn_depth,omitempty"`
	// ParentTaskID is the subagent that started the task; "" for the main agent.
	ParentTaskID   string   `json:"parent_task_id,omitempty"`
	Tools          []string `json:"tools,omitempty"`     // a subagent's, by name; Qoder's
	TaskType       string   `json:"task_type,omitempty"` // local_agent, local_bash, …
	WorkflowName   string   `json:"workflow_name,omitempty"`
	Prompt         string   `json:"prompt,omitempty"`
	SkipTranscript bool     `json:"skip_transcript,omitempty"`
	Ambient        bool     `json:"ambient,omitempty"`
}

func (*TaskStartedMessage) wire() (string, string) { return "system", "task_started" }

// TaskUsage is what a task used so far.
type TaskUsage struct {
	TotalTokens int64  `json:"total_tokens"`
	ToolUses    int64  `json:"tool_uses"`
	DurationMS  Millis `json:"duration_ms"`
}

// TaskProgressMessage is system/task_progress.
type TaskProgressMessage struct {
	Common
	TaskID       string    `json:"task_id"`
	RunID        string    `json:"run_id,omitempty"`
	ToolUseID    string    `json:"tool_use_id,omitempty"`
	Description  string    `json:"description"`
	SubagentType string    `json:"subagent_type,omitempty"`
	Usage        TaskUsage `json:"usage"`
	LastToolName string    `json:"last_tool_name,omitempty"`
	Summary      string    `json:"summary,omitempty"`
}

func (*TaskProgressMessage) wire() (string, string) { return "system", "task_progress" }

// TaskUpdatedMessage is system/task_updated. Only what changed is set in Patch.
type TaskUpdatedMessage struct {
	Common
	TaskID string    `json:"task_id"`
	RunID  string    `json:"run_id,omitempty"`
	Patch  TaskPatch `json:"patch"`
}

func (*TaskUpdatedMessage) wire() (string, string) { return "system", "task_updated" }

// TaskPatch is the change of a task.
type TaskPatch struct {
	// Status is pending, running, completed, failed, killed or paused.
	Status         string  `json:"status,omitempty"`
	Description    string  `json:"description,omitempty"`
	EndTime        float64 `json:"end_time,omitempty"` // ms since the Unix epoch
	TotalPausedMS  Millis  `json:"total_paused_ms,omitempty"`
	Error          string  `json:"error,omitempty"`
	IsBackgrounded *bool   `json:"is_backgrounded,omitempty"`
}

// TaskNotificationMessage is system/task_notification: a task has ended. A new
// turn about it may follow.
type TaskNotificationMessage struct {
	Common
	TaskID    string `json:"task_id"`
	RunID     string `json:"run_id,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
	Status    string `json:"status"` // completed, failed, stopped
	Reason    string `json:"reason,omitempty"`
	// OutputFile is a path on the agent's host; "" for a foreground command.
	OutputFile      string            `json:"output_file"`
	Summary         string            `json:"summary"`
	SummaryIsReport bool              `json:"summary_is_report,omitempty"`
	Handback        string            `json:"handback,omitempty"`
	Usage           *TaskUsage        `json:"usage,omitempty"`
	ResourceLinks   []MCPResourceLink `json:"resource_links,omitempty"`
	SkipTranscript  bool              `json:"skip_transcript,omitempty"`
	Ambient         bool              `json:"ambient,omitempty"`
}

func (*TaskNotificationMessage) wire() (string, string) { return "system", "task_notification" }

// BackgroundTasksChangedMessage is system/background_tasks_changed: all tasks
// that run in the background now. It is a level, not an edge.
type BackgroundTasksChangedMessage struct {
	Common
	Tasks []BackgroundTask `json:"tasks"`
}

func (*BackgroundTasksChangedMessage) wire() (string, string) {
	return "system", "background_tasks_changed"
}

// BackgroundTask is a task that runs in the background.
type BackgroundTask struct {
	TaskID       string `json:"task_id"`
	RunID        string `json:"run_id,omitempty"`
	TaskType     string `json:"task_type"`
	SubagentType string `json:"subagent_type,omitempty"`
	Description  string `json:"description"`
	ParentTaskID string `json:"parent_task_id,omitempty"`
	Ambient      bool   `json:"ambient,omitempty"`
	Awaited      bool   `json:"awaited,omitempty"`
	OffHost      bool   `json:"off_host,omitempty"`
}

// HookStartedMessage is system/hook_started. Only command hooks are reported,
// never the host's own callbacks (observed on Claude Code 2.1.329).
type HookStartedMessage struct {
	Common
	HookID     string    `json:"hook_id"`
	HookName   string    `json:"hook_name"`
	HookEvent  HookEvent `json:"hook_event"`
	Origin     string    `json:"origin,omitempty"`
	Label      string    `json:"label,omitempty"`
	PluginName string    `json:"plugin_name,omitempty"`
}

func (*HookStartedMessage) wire() (string, string) { return "system", "hook_started" }

// HookProgressMessage is system/hook_progress.
type HookProgressMessage struct {
	Common
	HookID    string    `json:"hook_id"`
	HookName  string    `json:"hook_name"`
	HookEvent HookEvent `json:"hook_event"`
	Stdout    string    `json:"stdout"`
	Stderr    string    `json:"stderr"`
	Output    string    `json:"output"`
	// Backgrounded: the turn no longer waits for the hook.
	Backgrounded bool `json:"backgrounded,omitempty"`
}

func (*HookProgressMessage) wire() (string, string) { return "system", "hook_progress" }

// HookResponseMessage is system/hook_response: a command hook has ended.
type HookResponseMessage struct {
	Common
	HookID    string    `json:"hook_id"`
	HookName  string    `json:"hook_name"`
	HookEvent HookEvent `json:"hook_event"`
	Output    string    `json:"output"`
	Stdout    string    `json:"stdout"`
	Stderr    string    `json:"stderr"`
	ExitCode  *int      `json:"exit_code,omitempty"`
	Outcome   string    `json:"outcome"` // success, error, cancelled
}

func (*HookResponseMessage) wire() (string, string) { return "system", "hook_response" }
