package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/supervisor"
)

// toParent is what the parent of a job's actor takes: a timer of its supervisor.
type toParent struct{ token supervisor.Token }

// parent starts the actor of a job, and starts it again when it has crashed.
type parent struct {
	b   *box
	n   int
	sup *supervisor.Supervisor
}

// spawn starts the parent, which starts the actor.
func (b *box) spawn() error {
	sup, err := supervisor.New(supervisor.Policy{}.Spec("job "+b.job.ID, supervisor.Child{Name: "job"}), b.rt.Rand(), nil)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("job %s %s", b.job.ID, kernel.NewID(b.rt.Rand()))
	return kernel.SpawnRoot(kernel.SystemOf(b.exec), name, &b.parent, &parent{b: b, sup: sup})
}

// Start implements [kernel.Behavior].
func (p *parent) Start(c *kernel.Context[toParent]) error {
	p.sup.Start(c.Now())
	return p.spawn(c)
}

// Handle implements [kernel.Behavior].
func (p *parent) Handle(c *kernel.Context[toParent], m toParent) error {
	return p.do(c, p.sup.Timer(c.Now(), m.token))
}

// Stop implements [kernel.Behavior].
func (p *parent) Stop(*kernel.Context[toParent]) {}

// Survive implements [kernel.Survivor].
func (p *parent) Survive(c *kernel.Context[toParent], reason error) {
	if !p.b.self.Live() && !p.b.done {
		_ = p.collapse(c, reason) // if nothing can be started, nothing can be done
	}
}

func (p *parent) spawn(c *kernel.Context[toParent]) error {
	p.n++
	err := kernel.Spawn(c, fmt.Sprintf("job#%d", p.n), &p.b.self, &jobActor{p.b})
	if err == nil {
		p.sup.ChildUp(c.Now(), "job", p.n)
	}
	return err
}

// ChildDown implements [kernel.ChildObserver].
func (p *parent) ChildDown(c *kernel.Context[toParent], d kernel.Down) error {
	b := p.b
	if b.done {
		close(b.over)
		b.leftovers()
		c.StopSelf()
		return nil
	}
	reason := d.Reason
	if reason == nil {
		reason = errors.New("the actor of the job stopped before the job had ended")
	}
	if b.wrecked || b.outbox.Broken() || b.quick.Broken() {
		return p.collapse(c, reason)
	}
	return p.do(c, p.sup.ChildDown(c.Now(), "job", p.n, reason))
}

func (p *parent) do(c *kernel.Context[toParent], actions []supervisor.Action) error {
	for _, action := range actions {
		switch a := action.(type) {
		case *supervisor.StartChild:
			if err := p.spawn(c); err != nil {
				return err
			}
		case *supervisor.SetTimer:
			c.After(a.After, toParent{a.Token})
		case *supervisor.Stopped:
			return p.collapse(c, a.Reason)
		}
	}
	return nil
}

// collapse ends a job whose machine cannot be trusted any more: what runs is killed, and nothing
// more is written. A resume reads the journal. Until the end an actor with an empty machine
// answers who waits.
func (p *parent) collapse(c *kernel.Context[toParent], reason error) error {
	b := p.b
	if b.lost { // not even that one lives
		b.done = true
		close(b.over)
		c.StopSelf()
		return nil
	}
	b.kill()
	b.cancel()
	b.stop()
	handles, stop := b.handles, Stop{Reason: stopError, Detail: reason.Error()}
	empty, tasks := b.m.lost(stop, reason)
	b.lost, b.carrying, b.m = true, true, empty
	b.outbox, b.quick = kernel.Outbox[effect]{}, kernel.Outbox[effect]{}
	abandon(b.batch)
	b.batch = nil
	b.exec.Go(func() {
		for _, h := range handles { //troupe:maporder all of them
			_, _ = h.over.Wait(context.Background(), b.exec)
		}
		err := &StoppedError{Stop: stop, Left: left(tasks, b.journaled()), Err: reason}
		b.self.Tell(nil, closed{errors.Join(err, b.carrier.shutdown())})
	})
	return p.spawn(c)
}

// journaled is what the journal says of a job whose machine was lost.
func (b *box) journaled() Snapshot {
	if b.root != "" && b.job.FS == nil {
		if kept, err := ReadJob(b.root); err == nil {
			return kept
		}
	}
	return Snapshot{Job: b.job.ID}
}

// left is how many of so many tasks are not over in a snapshot.
func left(tasks int, s Snapshot) int { //nolint:gocritic // once for a job
	for i := range s.Tasks {
		if s.Tasks[i].State == TaskOver {
			tasks--
		}
	}
	return tasks
}
