package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Bounds of the background tasks that are known at once. Tasks beyond them are not
// waited for: the session counts as idle without them.
const (
	maxTasks  = 4096
	maxTaskID = 256 // bytes
)

// quietPeriod is how long a turn that the agent starts by itself may follow the end
// of its last background task. Observed on Claude Code 2.1.329: 21 ms.
const quietPeriod = time.Second

// Task is a background task that lives.
type Task struct {
	protocol.BackgroundTask
	Since uint64    // the place in the stream where it was first seen
	Seen  time.Time // when that was
}

func findTask(all []Task, id string) (int, bool) {
	return slices.BinarySearchFunc(all, id, func(t Task, id string) int { return cmp.Compare(t.TaskID, id) })
}

// task is the live background task of that id, or nil.
func (m *Routing) task(id string) *Task {
	if i, ok := findTask(m.Facts.Tasks, id); ok {
		return &m.Facts.Tasks[i]
	}
	return nil
}

// LiveTasks lists the background tasks by their ids.
func (m *Routing) LiveTasks() []protocol.BackgroundTask {
	var all []protocol.BackgroundTask
	for i := range m.Facts.Tasks {
		all = append(all, m.Facts.Tasks[i].BackgroundTask)
	}
	return all
}

// tasks handles a message about background tasks.
func (m *Routing) tasks(f *protocol.Frame) {
	var said struct {
		Tasks []protocol.BackgroundTask `json:"tasks"`
		protocol.BackgroundTask
		Backgrounded *bool `json:"is_backgrounded"`
	}
	if protocol.Unmarshal(f.Raw, &said) != nil {
		return
	}
	before := len(m.Facts.Tasks)
	switch {
	case f.Subtype == "background_tasks_changed":
		m.Facts.Levels = true
		known := m.Facts.Tasks
		m.Facts.Tasks = nil
		for _, t := range said.Tasks {
			m.addTask(t, known)
		}
	case m.Facts.Levels:
		return // the level is the truth
	case f.Subtype == "task_started" && (said.Backgrounded == nil || *said.Backgrounded):
		m.addTask(said.BackgroundTask, nil)
	case f.Subtype == "task_notification":
		if i, ok := findTask(m.Facts.Tasks, said.TaskID); ok {
			m.Facts.Tasks = slices.Delete(m.Facts.Tasks, i, i+1)
		}
	}
	if len(m.Facts.Tasks) == 0 {
		m.Facts.Tasks = nil
	}
	m.Facts.TasksSeen++
	m.do(TasksChanged{slices.Clone(m.Facts.Tasks)})
	if before > 0 && len(m.Facts.Tasks) == 0 && !m.Running() {
		m.Facts.QuietUntil = m.now.Add(quietPeriod)
	}
}

// addTask notes a task that lives. before are the tasks that were known.
func (m *Routing) addTask(t protocol.BackgroundTask, before []Task) {
	i, known := findTask(m.Facts.Tasks, t.TaskID)
	if len(t.TaskID) > maxTaskID || len(m.Facts.Tasks) >= maxTasks && !known {
		if !m.Facts.Overflow {
			m.Facts.Overflow = true
			m.emit(&session.WarningIssued{Problem: fmt.Sprintf(
				"the agent reports more than %d background tasks, or one with an id longer than %d bytes: the session does not wait for those beyond", maxTasks, maxTaskID)})
		}
		return
	}
	t.TaskType, t.Description = Short(t.TaskType), Short(t.Description)
	t.RunID, t.SubagentType, t.ParentTaskID = Short(t.RunID), Short(t.SubagentType), Short(t.ParentTaskID)
	entry := Task{t, m.Flow.Pushed, m.now}
	if k, ok := findTask(before, t.TaskID); ok {
		entry.Since, entry.Seen = before[k].Since, before[k].Seen
	}
	if known {
		m.Facts.Tasks[i] = entry
		return
	}
	m.Facts.Tasks = slices.Insert(m.Facts.Tasks, i, entry)
}
