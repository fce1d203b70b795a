package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/session"
)

// adopt ends the agents of earlier hosts that a spawner has elsewhere, before their sessions
// are resumed: no two agents work in one session and one workspace.
func (r *run) adopt(ctx context.Context, spawner session.Spawner) error {
	adopter, ok := spawner.(session.Adopter)
	if !ok {
		return nil
	}
	for _, marker := range r.found.markers {
		var found []session.Process
		err := guard("Spawner.Adopt", func() (err error) { found, err = adopter.Adopt(ctx, marker); return err })
		if err != nil {
			return fmt.Errorf("the agents of an earlier host (%s) cannot be adopted: %w", marker, err)
		}
		for _, p := range found {
			if err := guard("an adopted process", func() error { return r.end(ctx, p) }); err != nil {
				return fmt.Errorf("an agent of an earlier host (%s, process %d) cannot be ended: %w", marker, p.PID(), err)
			}
		}
	}
	return nil
}

// adoptFor is adopt for the spawner that Job.Configure has given to a task which an earlier
// host was running.
func (r *run) adoptFor(ctx context.Context, a *attempt) error {
	r.mu.Lock()
	e := r.tasks[a.task.ID]
	orphan := e.orphan
	r.mu.Unlock()
	if !orphan {
		return nil
	}
	if err := r.adopt(ctx, a.opts.Spawner); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.orphan = false
	return nil
}

// end kills a process and all that it has started.
func (r *run) end(ctx context.Context, p session.Process) error {
	killed := p.Kill()
	if err := r.exec.Await(ctx, p.Exited()); err != nil {
		return errors.Join(killed, err)
	}
	left, err := p.Sweep(ctx)
	p.CloseOutput()
	_, reaped := p.Reap() // how it ended says nothing
	if len(left) > 0 {
		err = errors.Join(err, &session.LeftoverError{Processes: left})
	}
	return errors.Join(err, reaped)
}
