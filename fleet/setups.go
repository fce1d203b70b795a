package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/internal/kernel"
)

const defaultSetups = 2

// setups limits how many Setup and Teardown commands run at the same time. The job's mu
// guards it.
type setups struct {
	running int
	queue   []*kernel.Promise[struct{}]
}

// enterSetup waits until one more command may run, and returns what ends its turn.
func (r *run) enterSetup(ctx context.Context) (leave func(), err error) {
	r.mu.Lock()
	if r.setups.running < r.job.Setups {
		r.setups.running++
		r.mu.Unlock()
		return r.leaveSetup, nil
	}
	turn := kernel.NewPromise[struct{}]()
	r.setups.queue = append(r.setups.queue, turn)
	r.mu.Unlock()
	if _, err := turn.Wait(ctx, r.exec); err != nil {
		r.mu.Lock()
		at := slices.Index(r.setups.queue, turn)
		if at >= 0 {
			r.setups.queue = slices.Delete(r.setups.queue, at, at+1)
		}
		r.mu.Unlock()
		if at < 0 { // its turn came with the end of ctx
			r.leaveSetup()
		}
		return nil, err
	}
	return r.leaveSetup, nil
}

// leaveSetup gives the turn to the command that waits longest.
func (r *run) leaveSetup() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.setups.queue) == 0 {
		r.setups.running--
		return
	}
	r.setups.queue[0].Resolve(struct{}{})
	r.setups.queue = slices.Delete(r.setups.queue, 0, 1)
}

// setup runs the Setup of a new workspace.
func (r *run) setup(ctx context.Context, a *attempt, dir string) error {
	if a.workspace.Setup == "" {
		return nil
	}
	leave, err := r.enterSetup(ctx)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: waiting for another one: %w", err), true}
	}
	defer leave()
	out, err := r.shell(ctx, a, dir, a.workspace.Setup)
	if err != nil {
		return &badWorkspace{dir, fmt.Errorf("setup: %w%s", err, quoted(out)), true}
	}
	return nil
}

func (r *run) runTeardown(ctx context.Context, a *attempt, dir string) error {
	leave, err := r.enterSetup(ctx)
	if err != nil {
		return fmt.Errorf("teardown: waiting for another one: %w", err)
	}
	defer leave()
	out, err := r.shell(ctx, a, dir, a.workspace.Teardown)
	if err != nil {
		return fmt.Errorf("teardown: %w%s", err, quoted(out))
	}
	return nil
}
