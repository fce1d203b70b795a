package view

import (
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// The values of [Task.Status], as the agents use them.
const (
	taskRunning   = "running"
	taskPaused    = "paused"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskStopped   = "stopped"
	taskKilled    = "killed"
)

// Task is a subagent or a shell command that the agent reports on.
type Task struct {
	ID    string // as TaskStartedMessage.TaskID
	RunID string // of the last run, if the agent numbers its runs
	// ToolUseID is the call that started it; "" if that is not known.
	ToolUseID    string
	Type         string // local_agent, local_bash, …
	SubagentType string // name of the subagent's definition; "" for a shell command
	Description  string // one line for people, the latest
	Prompt       string // of a subagent; "": not known
	// ParentTaskID is the subagent that started it; "" for the main agent.
	ParentTaskID string
	// Background: it is not waited for. Where an agent does not say, a task
	// counts as one until it ends.
	Background bool
	Ambient    bool   // not worth showing as activity
	Status     string // running, completed, failed, stopped, killed, paused, pending
	Error      string // for people; "": none
	// Usage, LastTool and Summary are the latest that was reported.
	Usage    protocol.TaskUsage
	LastTool string // the tool that was called last; "": none yet
	Summary  string // for people; "": none yet
	// OutputFile is a path on the agent's host.
	OutputFile string
}

// Ended reports whether the task is over.
func (t *Task) Ended() bool {
	switch t.Status {
	case taskCompleted, taskFailed, taskStopped, taskKilled:
		return true
	}
	return false
}

// Tasks follows the tasks of a session, and which of them run in the background
// now. Claude Code 2.1.329 reports the set as a level after each change; where
// an agent has no levels, it is made of the tasks that began and have not ended.
type Tasks struct {
	all    []*Task
	by     map[string]*Task
	levels bool
	level  []string // ids
}

// All returns the tasks in the order in which they were first heard of.
func (t *Tasks) All() []*Task { return t.all }

// Get returns the task id, or nil.
func (t *Tasks) Get(id string) *Task { return t.by[id] }

// ByToolUse returns the task that a tool call started, or nil.
func (t *Tasks) ByToolUse(id string) *Task {
	for _, task := range slices.Backward(t.all) {
		if task.ToolUseID == id && id != "" {
			return task
		}
	}
	return nil
}

// Background returns the tasks that run in the background now.
func (t *Tasks) Background() []*Task {
	var out []*Task
	if t.levels {
		for _, id := range t.level {
			out = append(out, t.by[id])
		}
		return out
	}
	for _, task := range t.all {
		if task.Background && !task.Ended() {
			out = append(out, task)
		}
	}
	return out
}

// Forget drops the tasks that have ended.
func (t *Tasks) Forget() {
	t.all = slices.DeleteFunc(t.all, func(task *Task) bool {
		if !task.Ended() || slices.Contains(t.level, task.ID) {
			return false
		}
		delete(t.by, task.ID)
		return true
	})
}

// Add takes a message and returns the tasks that it changed.
func (t *Tasks) Add(m protocol.Message) []*Task {
	switch m := known(m).(type) {
	case *protocol.BackgroundTasksChangedMessage:
		return t.replaceLevel(m)
	case *protocol.TaskStartedMessage:
		return []*Task{t.started(m)}
	case *protocol.TaskProgressMessage:
		task := t.task(m.TaskID, m.RunID)
		set(&task.ToolUseID, m.ToolUseID)
		set(&task.SubagentType, m.SubagentType)
		set(&task.LastTool, m.LastToolName)
		set(&task.Summary, m.Summary)
		set(&task.Description, m.Description)
		task.Usage = m.Usage
		return []*Task{task}
	case *protocol.TaskUpdatedMessage:
		task := t.task(m.TaskID, m.RunID)
		set(&task.Status, m.Patch.Status)
		set(&task.Description, m.Patch.Description)
		set(&task.Error, m.Patch.Error)
		if m.Patch.IsBackgrounded != nil {
			task.Background = *m.Patch.IsBackgrounded
		}
		return []*Task{task}
	case *protocol.TaskNotificationMessage:
		return []*Task{t.ended(m)}
	case *protocol.UserMessage:
		return t.launched(m)
	}
	return nil
}

// task finds a task, or makes it.
func (t *Tasks) task(id, run string) *Task {
	task := t.by[id]
	if task == nil {
		task = &Task{ID: id, Status: taskRunning}
		if t.by == nil {
			t.by = map[string]*Task{}
		}
		t.by[id] = task
		t.all = append(t.all, task)
	}
	set(&task.RunID, run)
	return task
}

func (t *Tasks) replaceLevel(m *protocol.BackgroundTasksChangedMessage) []*Task {
	before := t.level
	t.levels, t.level = true, nil
	var changed []*Task
	for _, b := range m.Tasks {
		task := t.task(b.TaskID, b.RunID)
		set(&task.Type, b.TaskType)
		set(&task.SubagentType, b.SubagentType)
		set(&task.Description, b.Description)
		set(&task.ParentTaskID, b.ParentTaskID)
		task.Background, task.Ambient = true, b.Ambient
		if !slices.Contains(t.level, b.TaskID) {
			t.level = append(t.level, b.TaskID)
		}
		if !slices.Contains(before, b.TaskID) {
			changed = append(changed, task)
		}
	}
	for _, id := range before {
		if !slices.Contains(t.level, id) {
			changed = append(changed, t.by[id])
		}
	}
	return changed
}

func (t *Tasks) started(m *protocol.TaskStartedMessage) *Task {
	task := t.task(m.TaskID, m.RunID)
	task.Status = taskRunning // a task that ended may begin again
	task.Background = m.IsBackgrounded == nil || *m.IsBackgrounded
	task.Ambient = m.Ambient
	set(&task.ToolUseID, m.ToolUseID)
	set(&task.Type, m.TaskType)
	set(&task.SubagentType, m.SubagentType)
	set(&task.Description, m.Description)
	set(&task.Prompt, m.Prompt)
	set(&task.ParentTaskID, m.ParentTaskID)
	return task
}

func (t *Tasks) ended(m *protocol.TaskNotificationMessage) *Task {
	task := t.task(m.TaskID, m.RunID)
	set(&task.Status, m.Status)
	set(&task.ToolUseID, m.ToolUseID)
	set(&task.Summary, m.Summary)
	set(&task.OutputFile, m.OutputFile)
	if m.Usage != nil {
		task.Usage = *m.Usage
	}
	return task
}

// launched reads the id of a background task from the result of the call that
// started it, for agents that do not say more.
func (t *Tasks) launched(m *protocol.UserMessage) []*Task {
	results := protocol.ToolResults(m)
	var out struct {
		BackgroundTaskID string `json:"backgroundTaskId"` // Claude's Bash
		AgentID          string `json:"agentId"`
		Status           string `json:"status"`
		Kind             string `json:"kind"` // Qoder's Bash
		TaskID           string `json:"taskId"`
		OutputFile       string `json:"outputFile"`
	}
	if len(results) != 1 || len(m.ToolUseResult) == 0 || m.ToolUseResult[0] != '{' || protocol.Unmarshal(m.ToolUseResult, &out) != nil {
		return nil
	}
	id := out.BackgroundTaskID
	switch {
	case out.Status == "async_launched":
		id = out.AgentID
	case out.Kind == "backgrounded":
		id = out.TaskID
	}
	if id == "" {
		return nil
	}
	task := t.task(id, "")
	if !task.Ended() {
		task.Background = true
	}
	set(&task.ToolUseID, results[0].ToolUseID)
	set(&task.OutputFile, out.OutputFile)
	return []*Task{task}
}

// set sets a string unless value is empty.
func set(to *string, value string) {
	if value != "" {
		*to = value
	}
}
