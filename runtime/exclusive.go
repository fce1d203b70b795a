package runtime

import (
	"context"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Exclusive waits until the name is free in this runtime, takes it, and returns the function
// leave that gives it back. Callers get it in the order in which they came. Package fleet uses it
// where jobs of one runtime must not do the same thing at the same time, as with the worktrees of
// a repository. The error is the cause of ctx, which ended first. It is safe for concurrent use;
// leave may be called again, without effect.
func (rt *Runtime) Exclusive(ctx context.Context, name string) (func(), error) {
	exec := rt.Executor()
	mine := kernel.NewPromise[struct{}]()
	rt.mu.Lock()
	before := rt.exclusive[name]
	rt.exclusive[name] = mine
	rt.mu.Unlock()
	leave := func() {
		rt.mu.Lock()
		if rt.exclusive[name] == mine { // no caller follows
			delete(rt.exclusive, name)
		}
		rt.mu.Unlock()
		mine.Resolve(struct{}{})
	}
	if before == nil {
		return leave, nil
	}
	if _, err := before.Wait(ctx, exec); err != nil {
		exec.Go(func() { // the next caller waits for both
			_, _ = before.Wait(context.Background(), exec)
			leave()
		})
		return nil, err
	}
	return leave, nil
}
