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
func (u *Side) AwaitDone(ctx context.Context) ([]protocol.BackgroundTask, error) {
	began := u.cfg.Clock.Now()
	for {
		u.mu.Lock()
		if u.isIdle() {
			u.mu.Unlock()
			return nil, nil
		}
		left := time.Duration(0)
		if len(u.turns) == 0 && u.sum.Turns == 0 && !u.sum.OwnTurn && u.sum.Tasks > 0 {
			tasks := u.liveTasks()
			if limit := backgroundLimit(u.Limits().Background, tasks); limit > 0 {
				since := began
				if u.sum.ResultAt.After(since) {
					since = u.sum.ResultAt
				}
				if left = limit - u.cfg.Clock.Now().Sub(since); left <= 0 {
					u.mu.Unlock()
					return tasks, nil
				}
			}
		}
		wait := u.idle.wait()
		u.mu.Unlock()
		if err := u.awaitFor(ctx, wait, left); err != nil {
			return nil, err
		}
	}
}

// liveTasks lists the background tasks that live, by their ids; mu is held.
func (u *Side) liveTasks() []protocol.BackgroundTask {
	all := make([]protocol.BackgroundTask, len(u.tasks))
	for i := range u.tasks {
		all[i] = u.tasks[i].BackgroundTask
	}
	return all
}

// awaitFor waits at most d; 0: no limit. Only the end of ctx is an error.
func (u *Side) awaitFor(ctx context.Context, wait <-chan struct{}, d time.Duration) error {
	bounded := ctx
	if d > 0 {
		var cancel context.CancelFunc
		bounded, cancel = kernel.WithTimeout(ctx, u.cfg.Clock, &session.TimeoutError{What: "background tasks", Limit: d, SetBy: "Limits.Background"})
		defer cancel()
	}
	if err := u.await(bounded, wait); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
