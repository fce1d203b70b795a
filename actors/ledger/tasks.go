package ledger

import (
	"encoding/json"
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

func (l *Ledger) task(f *protocol.Frame) bool {
	var m struct {
		Tasks []struct {
			TaskID string `json:"task_id"`
		} `json:"tasks"`
		TaskID       string `json:"task_id"`
		Backgrounded *bool  `json:"is_backgrounded"`
	}
	if json.Unmarshal(f.Raw, &m) != nil {
		return false
	}
	before := len(l.facts.tasks)
	switch {
	case f.Subtype == "background_tasks_changed":
		l.facts.levels = true
		l.facts.tasks = make(map[string]bool, min(len(m.Tasks), maxTasks))
		for _, t := range m.Tasks {
			l.addTask(t.TaskID)
		}
	case l.facts.levels:
		return false // the level is the truth
	case f.Subtype == "task_started" && (m.Backgrounded == nil || *m.Backgrounded):
		if l.facts.tasks == nil {
			l.facts.tasks = make(map[string]bool)
		}
		l.addTask(m.TaskID)
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

func (l *Ledger) addTask(id string) {
	if len(id) <= maxTaskID && (len(l.facts.tasks) < maxTasks || l.facts.tasks[id]) {
		l.facts.tasks[id] = true
		return
	}
	if !l.facts.overflow {
		l.facts.overflow = true
		l.cfg.Emit(event.Warning{Problem: fmt.Sprintf(
			"the agent reports more than %d background tasks, or one with an id longer than %d bytes: the session does not wait for those beyond", maxTasks, maxTaskID)})
	}
}
