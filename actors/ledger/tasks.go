package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
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
	since uint64    // the place in the stream where it was first seen
	seen  time.Time // when that was
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
			l.addTask(t, known)
		}
	case l.facts.levels:
		return false // the level is the truth
	case f.Subtype == "task_started" && (m.Backgrounded == nil || *m.Backgrounded):
		if l.facts.tasks == nil {
			l.facts.tasks = make(map[string]task)
		}
		l.addTask(m.BackgroundTask, nil)
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

// addTask notes a task that lives. before are the tasks that were known.
func (l *Ledger) addTask(t protocol.BackgroundTask, before map[string]task) {
	_, known := l.facts.tasks[t.TaskID]
	if len(t.TaskID) <= maxTaskID && (len(l.facts.tasks) < maxTasks || known) {
		t.TaskType, t.Description = Short(t.TaskType), Short(t.Description)
		t.RunID, t.SubagentType, t.ParentTaskID = Short(t.RunID), Short(t.SubagentType), Short(t.ParentTaskID)
		entry := task{t, l.stream.pushed, l.cfg.Clock.Now()}
		if k, ok := before[t.TaskID]; ok {
			entry.since, entry.seen = k.since, k.seen
		}
		l.facts.tasks[t.TaskID] = entry
		return
	}
	if !l.facts.overflow {
		l.facts.overflow = true
		l.cfg.Emit(session.WarningIssued{Problem: fmt.Sprintf(
			"the agent reports more than %d background tasks, or one with an id longer than %d bytes: the session does not wait for those beyond", maxTasks, maxTaskID)})
	}
}

// taskWaits lists the background tasks that live, oldest first.
func (l *Ledger) taskWaits(now time.Time) []Wait {
	var all []Wait
	for _, t := range liveTasks(l.facts.tasks) {
		all = append(all, Wait{
			What: strings.TrimSpace("background task " + t.Description), ID: t.TaskID, Age: now.Sub(l.facts.tasks[t.TaskID].seen),
		})
	}
	slices.SortStableFunc(all, func(a, b Wait) int { return cmp.Compare(b.Age, a.Age) })
	return all
}
