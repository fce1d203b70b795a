package user

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Defaults of Limits.Background.
const (
	shellLimit = 30 * time.Second
	taskLimit  = 10 * time.Minute
)

// backgroundLimit is how long a run waits for the tasks that are left; 0: no
// limit.
func backgroundLimit(given time.Duration, tasks []protocol.BackgroundTask) time.Duration {
	if given != 0 {
		return max(given, 0)
	}
	for i := range tasks {
		if tasks[i].TaskType != "local_bash" {
			return taskLimit
		}
	}
	return shellLimit
}

// AwaitDone is AwaitIdle that waits for background tasks no longer than
// Limits.Background. It returns those that it did not wait for.
func (l *Ledger) AwaitDone(ctx context.Context) ([]protocol.BackgroundTask, error) {
	began := l.cfg.Clock.Now()
	for {
		l.mu.Lock()
		if l.isIdle() {
			l.mu.Unlock()
			return nil, nil
		}
		left := time.Duration(0)
		if len(l.turns) == 0 && l.sum.Turns == 0 && !l.sum.OwnTurn && l.sum.Tasks > 0 {
			tasks := l.liveTasks()
			if limit := backgroundLimit(l.Limits().Background, tasks); limit > 0 {
				since := began
				if l.sum.ResultAt.After(since) {
					since = l.sum.ResultAt
				}
				if left = limit - l.cfg.Clock.Now().Sub(since); left <= 0 {
					l.mu.Unlock()
					return tasks, nil
				}
			}
		}
		wait := l.idle.wait()
		l.mu.Unlock()
		if err := l.awaitFor(ctx, wait, left); err != nil {
			return nil, err
		}
	}
}

// liveTasks lists the background tasks that live, by their ids; mu is held.
func (l *Ledger) liveTasks() []protocol.BackgroundTask {
	all := make([]protocol.BackgroundTask, len(l.tasks))
	for i := range l.tasks {
		all[i] = l.tasks[i].BackgroundTask
	}
	return all
}

// awaitFor waits at most d; 0: no limit. Only the end of ctx is an error.
func (l *Ledger) awaitFor(ctx context.Context, wait <-chan struct{}, d time.Duration) error {
	bounded := ctx
	if d > 0 {
		var cancel context.CancelFunc
		bounded, cancel = kernel.WithTimeout(ctx, l.cfg.Clock, &session.TimeoutError{What: "background tasks", Limit: d, SetBy: "Limits.Background"})
		defer cancel()
	}
	if err := l.await(bounded, wait); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
