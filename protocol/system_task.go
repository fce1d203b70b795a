package protocol

// TaskStartedMessage is system/task_started: a subagent or a shell command
// that outlives its tool call, or a foreground command that takes over 3 s
// (observed on Claude Code 2.1.329).
type TaskStartedMessage struct {
	Common
	TaskID       string `json:"task_id"`                 // names the task in all messages; for a subagent also its AgentID
	RunID        string `json:"run_id,omitempty"`        // one run of the task: a resumed task has a new one; "": not sent
	ToolUseID    string `json:"tool_use_id,omitempty"`   // the tool call that started the task; "": none
	Description  string `json:"description"`             // one line for people
	SubagentType string `json:"subagent_type,omitempty"` // name of the subagent's definition; "" for other tasks
	// IsBackgrounded is nil if the agent does not say (Qoder).
	IsBackgrounded *bool `json:"is_backgrounded,omitempty"`
	// Awaited: a tool call waits for the task; no turn about it follows.
	Awaited    bool `json:"awaited,omitempty"`
	SpawnDepth int  `json:"spawn_depth,omitempty"` // of a subagent: 1 if the main agent started it; 0: not sent
	// ParentTaskID is the subagent that started the task; "" for the main agent.
	ParentTaskID   string   `json:"parent_task_id,omitempty"`
	Tools          []string `json:"tools,omitempty"`           // a subagent's, by name; Qoder's
	TaskType       string   `json:"task_type,omitempty"`       // local_agent, local_bash, …
	WorkflowName   string   `json:"workflow_name,omitempty"`   // with TaskType local_workflow
	Prompt         string   `json:"prompt,omitempty"`          // of a subagent; "": not sent
	SkipTranscript bool     `json:"skip_transcript,omitempty"` // not to be shown in the conversation
	Ambient        bool     `json:"ambient,omitempty"`         // not to be counted as activity
}

func (*TaskStartedMessage) wire() (string, string) { return "system", "task_started" }

// TaskUsage is what a task used so far.
type TaskUsage struct {
	TotalTokens int64  `json:"total_tokens"` // tokens, as the agent counts them
	ToolUses    int64  `json:"tool_uses"`    // tool calls
	DurationMS  Millis `json:"duration_ms"`  // milliseconds since the task began
}

// TaskProgressMessage is system/task_progress.
type TaskProgressMessage struct {
	Common
	TaskID       string    `json:"task_id"`                  // as in [TaskStartedMessage]
	RunID        string    `json:"run_id,omitempty"`         // as in [TaskStartedMessage]
	ToolUseID    string    `json:"tool_use_id,omitempty"`    // as in [TaskStartedMessage]
	Description  string    `json:"description"`              // what the task does at this moment, for people
	SubagentType string    `json:"subagent_type,omitempty"`  // as in [TaskStartedMessage]
	Usage        TaskUsage `json:"usage"`                    // of the task so far
	LastToolName string    `json:"last_tool_name,omitempty"` // the tool that was called last; "": none yet
	Summary      string    `json:"summary,omitempty"`        // of the model, with InitializeRequest.AgentProgressSummaries
}

func (*TaskProgressMessage) wire() (string, string) { return "system", "task_progress" }

// TaskUpdatedMessage is system/task_updated. Only what changed is set in Patch.
type TaskUpdatedMessage struct {
	Common
	TaskID string    `json:"task_id"`          // as in [TaskStartedMessage]
	RunID  string    `json:"run_id,omitempty"` // as in [TaskStartedMessage]
	Patch  TaskPatch `json:"patch"`            // zero fields have not changed
}

func (*TaskUpdatedMessage) wire() (string, string) { return "system", "task_updated" }

// TaskPatch is the change of a task.
type TaskPatch struct {
	// Status is pending, running, completed, failed, killed or paused.
	Status         string  `json:"status,omitempty"`
	Description    string  `json:"description,omitempty"`     // one line for people
	EndTime        float64 `json:"end_time,omitempty"`        // ms since the Unix epoch
	TotalPausedMS  Millis  `json:"total_paused_ms,omitempty"` // milliseconds
	Error          string  `json:"error,omitempty"`           // for people, with status failed
	IsBackgrounded *bool   `json:"is_backgrounded,omitempty"` // nil: unchanged
}

// TaskNotificationMessage is system/task_notification: a task has ended. A new
// turn about it may follow.
type TaskNotificationMessage struct {
	Common
	TaskID    string `json:"task_id"`               // as in [TaskStartedMessage]
	RunID     string `json:"run_id,omitempty"`      // as in [TaskStartedMessage]
	ToolUseID string `json:"tool_use_id,omitempty"` // as in [TaskStartedMessage]
	Status    string `json:"status"`                // completed, failed, stopped
	Reason    string `json:"reason,omitempty"`      // worker_restart: lost in a restart of the agent; "": an ordinary end
	// OutputFile is a path on the agent's host; "" for a foreground command.
	OutputFile      string            `json:"output_file"`
	Summary         string            `json:"summary"`                     // one line for people
	SummaryIsReport bool              `json:"summary_is_report,omitempty"` // Summary is the subagent's whole report
	Handback        string            `json:"handback,omitempty"`          // how the report reached the caller; "": the subagent has no such tool
	Usage           *TaskUsage        `json:"usage,omitempty"`             // of the whole run; nil: not sent
	ResourceLinks   []MCPResourceLink `json:"resource_links,omitempty"`    // files that an MCP task returned by reference
	SkipTranscript  bool              `json:"skip_transcript,omitempty"`   // as in [TaskStartedMessage]
	Ambient         bool              `json:"ambient,omitempty"`           // as in [TaskStartedMessage]
}

func (*TaskNotificationMessage) wire() (string, string) { return "system", "task_notification" }

// BackgroundTasksChangedMessage is system/background_tasks_changed: all tasks
// that run in the background now. It is a level, not an edge.
type BackgroundTasksChangedMessage struct {
	Common
	Tasks []BackgroundTask `json:"tasks"` // they replace those known before; empty: none
}

func (*BackgroundTasksChangedMessage) wire() (string, string) {
	return "system", "background_tasks_changed"
}

// BackgroundTask is a task that runs in the background.
type BackgroundTask struct {
	TaskID       string `json:"task_id"`                  // as in [TaskStartedMessage]
	RunID        string `json:"run_id,omitempty"`         // as in [TaskStartedMessage]
	TaskType     string `json:"task_type"`                // local_agent, local_bash, …
	SubagentType string `json:"subagent_type,omitempty"`  // also main-session, for a conversation moved to the background
	Description  string `json:"description"`              // one line for people
	ParentTaskID string `json:"parent_task_id,omitempty"` // as in [TaskStartedMessage]
	Ambient      bool   `json:"ambient,omitempty"`        // as in [TaskStartedMessage]
	Awaited      bool   `json:"awaited,omitempty"`        // as in [TaskStartedMessage]
	OffHost      bool   `json:"off_host,omitempty"`       // it runs outside of the agent's process, which may end
}

// HookStartedMessage is system/hook_started. Only command hooks are reported,
// never the host's own callbacks (observed on Claude Code 2.1.329).
type HookStartedMessage struct {
	Common
	HookID     string    `json:"hook_id"`               // the same in all messages about this run of the hook
	HookName   string    `json:"hook_name"`             // such as PreToolUse:Bash
	HookEvent  HookEvent `json:"hook_event"`            // why it runs
	Origin     string    `json:"origin,omitempty"`      // user_settings, project_settings, policy_settings, …; "": not sent
	Label      string    `json:"label,omitempty"`       // text for people; "": none
	PluginName string    `json:"plugin_name,omitempty"` // the hook's plugin, by its author: untrusted; "": none
}

func (*HookStartedMessage) wire() (string, string) { return "system", "hook_started" }

// HookProgressMessage is system/hook_progress.
type HookProgressMessage struct {
	Common
	HookID    string    `json:"hook_id"`    // as in [HookStartedMessage]
	HookName  string    `json:"hook_name"`  // as in [HookStartedMessage]
	HookEvent HookEvent `json:"hook_event"` // as in [HookStartedMessage]
	Stdout    string    `json:"stdout"`     // all of it so far
	Stderr    string    `json:"stderr"`     // all of it so far
	Output    string    `json:"output"`     // both together
	// Backgrounded: the turn no longer waits for the hook.
	Backgrounded bool `json:"backgrounded,omitempty"`
}

func (*HookProgressMessage) wire() (string, string) { return "system", "hook_progress" }

// HookResponseMessage is system/hook_response: a command hook has ended.
type HookResponseMessage struct {
	Common
	HookID    string    `json:"hook_id"`             // as in [HookStartedMessage]
	HookName  string    `json:"hook_name"`           // as in [HookStartedMessage]
	HookEvent HookEvent `json:"hook_event"`          // as in [HookStartedMessage]
	Output    string    `json:"output"`              // both together
	Stdout    string    `json:"stdout"`              // all of it
	Stderr    string    `json:"stderr"`              // all of it
	ExitCode  *int      `json:"exit_code,omitempty"` // nil if it did not exit by itself
	Outcome   string    `json:"outcome"`             // success, error, cancelled
}

func (*HookResponseMessage) wire() (string, string) { return "system", "hook_response" }
