package ledger

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// WritesLost is what the agent says it could not write: a *[session.WritesLostError], or
// nil.
func (l *Ledger) WritesLost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.writesLost
}

// Defaults of Limits.Background.
const (
	shellLimit = 30 * time.Second
	taskLimit  = 10 * time.Minute
)

// backgroundLimit is how long a run waits for the tasks that are left; 0: no
// limit.
func backgroundLimit(given time.Duration, tasks map[string]task) time.Duration {
	if given != 0 {
		return max(given, 0)
	}
	for _, t := range tasks {
		if t.TaskType != "local_bash" {
			return taskLimit
		}
	}
	return shellLimit
}

// liveTasks lists tasks by their ids.
func liveTasks(tasks map[string]task) []protocol.BackgroundTask {
	var all []protocol.BackgroundTask
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		all = append(all, tasks[id].BackgroundTask)
	}
	return all
}

// AwaitDone is AwaitIdle that waits for background tasks no longer than
// Limits.Background. It returns those that it did not wait for.
func (l *Ledger) AwaitDone(ctx context.Context) ([]protocol.BackgroundTask, error) {
	began := l.cfg.Clock.Now()
	for {
		l.mu.Lock()
		if l.idle() {
			l.mu.Unlock()
			return nil, nil
		}
		left := time.Duration(0)
		if len(l.turns.open) == 0 && !l.facts.ownTurn && len(l.facts.tasks) > 0 {
			if limit := backgroundLimit(l.cfg.Limits.Background, l.facts.tasks); limit > 0 {
				since := began
				if l.facts.resultAt.After(since) {
					since = l.facts.resultAt
				}
				if left = limit - l.cfg.Clock.Now().Sub(since); left <= 0 {
					tasks := liveTasks(l.facts.tasks)
					l.mu.Unlock()
					return tasks, nil
				}
			}
		}
		wait := l.turns.idle.wait()
		l.mu.Unlock()
		if err := l.awaitFor(ctx, wait, left); err != nil {
			return nil, err
		}
	}
}

// awaitFor waits at most d; 0: no limit. Only the end of ctx is an error.
func (l *Ledger) awaitFor(ctx context.Context, wait <-chan struct{}, d time.Duration) error {
	bounded := ctx
	if d > 0 {
		var cancel context.CancelFunc
		bounded, cancel = kernel.WithTimeout(ctx, l.cfg.Clock, &session.TimeoutError{What: "background tasks", Limit: d, SetBy: "Limits.Background"})
		defer cancel()
	}
	if err := l.cfg.Exec.Await(bounded, wait); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
