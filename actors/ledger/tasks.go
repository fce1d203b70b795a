package ledger

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/event"
	"github.com/agent-troupe/troupe/protocol"
)

// Bounds of the background tasks that are known at once. Whatever lies beyond is
// not waited for: the session counts as idle without it.
const (
	maxTasks  = 4096
	maxTaskID = 256 // bytes
)

// task is a background task that lives.
type task struct {
	protocol.BackgroundTask
	since uint64 // the place in the stream where it was first seen
}

func (l *Ledger) task(f *protocol.Frame) bool {
	var m struct {
		Tasks []protocol.BackgroundTask `json:"tasks"`
		protocol.BackgroundTask
		Backgrounded *bool `json:"is_backgrounded"`
	}
	if protocol.Unmarshal(f.Raw, &m) != nil {
		return false
	}
	before := len(l.facts.tasks)
	switch {
	case f.Subtype == "background_tasks_changed":
		l.facts.levels = true
		known := l.facts.tasks
		l.facts.tasks = make(map[string]task, min(len(m.Tasks), maxTasks))
		for _, t := range m.Tasks {
			since := l.stream.pushed
			if k, ok := known[t.TaskID]; ok {
				since = k.since
			}
			l.addTask(t, since)
		}
	case l.facts.levels:
		return false // the level is the truth
	case f.Subtype == "task_started" && (m.Backgrounded == nil || *m.Backgrounded):
		if l.facts.tasks == nil {
			l.facts.tasks = make(map[string]task)
		}
		l.addTask(m.BackgroundTask, l.stream.pushed)
	case f.Subtype == "task_notification":
		delete(l.facts.tasks, m.TaskID)
	}
	if before > 0 && len(l.facts.tasks) == 0 && !l.running() {
		l.facts.quietUntil = l.cfg.Clock.Now().Add(quietPeriod)
		l.facts.stopQuiet()
		l.facts.quiet = l.cfg.Clock.AfterFunc(quietPeriod, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.turns.idle.fire()
		})
	}
	l.turns.idle.fire()
	return true
}

func (f *facts) stopQuiet() {
	if f.quiet != nil {
		f.quiet.Stop()
	}
}

func (l *Ledger) addTask(t protocol.BackgroundTask, since uint64) {
	_, known := l.facts.tasks[t.TaskID]
	if len(t.TaskID) <= maxTaskID && (len(l.facts.tasks) < maxTasks || known) {
		t.TaskType, t.Description = Short(t.TaskType), Short(t.Description)
		t.RunID, t.SubagentType, t.ParentTaskID = Short(t.RunID), Short(t.SubagentType), Short(t.ParentTaskID)
		l.facts.tasks[t.TaskID] = task{t, since}
		return
	}
	if !l.facts.overflow {
		l.facts.overflow = true
		l.cfg.Emit(event.Warning{Problem: fmt.Sprintf(
			"the agent reports more than %d background tasks, or one with an id longer than %d bytes: the session does not wait for those beyond", maxTasks, maxTaskID)})
	}
}
