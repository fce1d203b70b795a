package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

// adopt ends the agents of earlier hosts that a spawner has elsewhere, before their sessions
// are resumed: no two agents work in one session and one workspace.
func (e *env) adopt(ctx context.Context, spawner session.Spawner, markers []string) error {
	adopter, ok := spawner.(session.Adopter)
	if !ok {
		return nil
	}
	for _, marker := range markers {
		var found []session.Process
		err := guard("Spawner.Adopt", func() (err error) { found, err = adopter.Adopt(ctx, marker); return err })
		if err != nil {
			return fmt.Errorf("the agents of an earlier host (%s) cannot be adopted: %w", marker, err)
		}
		for _, p := range found {
			p, err := userproc.Guard(p, nil)
			if err != nil {
				return fmt.Errorf("an agent of an earlier host (%s) cannot be ended: %w", marker, err)
			}
			if err := e.end(ctx, p); err != nil {
				return fmt.Errorf("an agent of an earlier host (%s, process %d) cannot be ended: %w", marker, p.PID(), err)
			}
		}
	}
	return nil
}

// adoptFor is adopt for the spawner that Job.Configure has given to a task which an earlier
// host was running.
func (r *runner) adoptFor(ctx context.Context, a *attempt) error {
	if !a.with.orphan {
		return nil
	}
	if err := r.adopt(ctx, a.opts.Spawner, r.markers); err != nil {
		return err
	}
	a.adopted = true
	return nil
}

// end kills a process and all that it has started.
func (e *env) end(ctx context.Context, p session.Process) error {
	killed := p.Kill()
	if err := e.exec.Await(ctx, p.Exited()); err != nil {
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

// sweep ends what earlier hosts have left running, before anything starts.
func (c *carrier) sweep(ctx context.Context) error {
	if why := c.job.tight(openFiles()); why != "" {
		c.told(Event{Kind: EventWarning, Detail: why})
	}
	markers := c.source.found.markers
	for _, marker := range markers {
		left, err := c.rt.SweepMarker(ctx, marker)
		if err != nil {
			return fmt.Errorf("processes of an earlier host (%s) could not be ended, %d are left: %w", marker, len(left), err)
		}
	}
	for _, spawner := range []session.Spawner{c.job.Options.Spawner, c.job.CommandSpawner} {
		if err := c.adopt(ctx, spawner, markers); err != nil {
			return err
		}
	}
	if len(markers) > 0 {
		c.told(Event{Kind: EventSwept, Detail: shown.Count(len(markers), "earlier host")})
	}
	return nil
}
