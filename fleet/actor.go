package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// message is what the actor of a job takes.
type message interface{ toJob() }

type (
	// fed is an input.
	fed struct{ in input }
	// carried: what the last batch wanted is done. From: the carrier.
	carried struct{ halted bool }
	// ended by finish. From: the carrier.
	finished struct{}
)

// look is a question about what the job knows. It is answered at once, also while a batch
// is carried out.
type look struct {
	at    func()
	reply *kernel.Promise[struct{}]
}

func (look) toJob() {}

// look runs f where the job's state is owned: in the actor, or here once there is none any more.
func (r *run) look(f func()) {
	reply := kernel.NewPromise[struct{}]()
	r.box.self.Tell(nil, look{f, reply})
	select {
	case <-r.over:
		r.leftovers()
	default:
	}
	_, _ = reply.Wait(context.Background(), r.exec)
}

func (fed) toJob()      {}
func (carried) toJob()  {}
func (finished) toJob() {}

// box is what outlives the actor of a job.
type box struct {
	after    sync.Mutex // the job is over: who asks then answers himself
	self     kernel.Address[message]
	parent   kernel.Address[struct{}]
	ctx      context.Context
	stash    []input // while a batch is carried out
	early    []input // decisions from before the tasks were known
	known    bool
	carrying bool
	done     bool // finish has run
	outbox   kernel.Outbox[effect]
	batch    []effect // out of the outbox, not yet with the carrier
	stepped  bool
	now      time.Time
	unwatch  func()
	stop     func()
}

// begin starts the actor.
func (r *run) begin(ctx context.Context, entries []*entry) error {
	sys := kernel.SystemOf(r.exec)
	watching, stop := context.WithCancel(context.Background())
	r.box.ctx, r.box.stop, r.box.carrying = ctx, stop, true
	if err := kernel.SpawnRoot(sys, fmt.Sprintf("job %s %s", r.job.ID, kernel.NewID(r.rt.Rand())), &r.box.parent, &keeper{r: r}); err != nil {
		return err
	}
	r.exec.Go(func() {
		if r.exec.Await(ctx, watching.Done()) != nil {
			r.post(drained{Stop{Reason: StopCanceled, Detail: context.Cause(ctx).Error()}})
		}
	})
	r.exec.Go(func() {
		err := r.sweep(context.WithoutCancel(ctx))
		if err == nil {
			err = r.admit(ctx, entries, r.source == nil)
		}
		if err != nil {
			r.fail(err)
		}
		r.box.unwatch = r.watchQueue()
		r.box.self.Tell(nil, carried{})
	})
	return nil
}

// post gives the job an input.
func (r *run) post(in input) { r.put(in) }

func (r *run) put(in input) {
	r.box.self.Tell(nil, fed{in})
	select {
	case <-r.over:
		r.leftovers()
	default:
	}
}

// leftovers answers what came too late.
func (r *run) leftovers() {
	r.box.after.Lock()
	defer r.box.after.Unlock()
	for _, m := range r.box.self.Take() {
		switch m := m.(type) {
		case fed:
			tooLate(m.in)
		case look:
			m.at()
			m.reply.Resolve(struct{}{})
		}
	}
}

// keeper is the parent of the actor of a job.
type keeper struct {
	r *run
	n int
}

// Start implements [kernel.Behavior].
func (k *keeper) Start(c *kernel.Context[struct{}]) error { return k.spawn(c) }

// Handle implements [kernel.Behavior].
func (k *keeper) Handle(*kernel.Context[struct{}], struct{}) error { return nil }

// Stop implements [kernel.Behavior].
func (k *keeper) Stop(*kernel.Context[struct{}]) {}

// Survive implements [kernel.Survivor].
func (k *keeper) Survive(c *kernel.Context[struct{}], _ error) {
	if !k.r.box.self.Live() {
		_ = k.spawn(c)
	}
}

func (k *keeper) spawn(c *kernel.Context[struct{}]) error {
	k.n++
	return kernel.Spawn(c, fmt.Sprintf("job#%d", k.n), &k.r.box.self, &jobActor{k.r})
}

// ChildDown implements [kernel.ChildObserver].
func (k *keeper) ChildDown(c *kernel.Context[struct{}], d kernel.Down) error {
	if !k.r.box.done {
		if d.Reason == nil {
			return errors.New("the job's actor stopped")
		}
		return k.spawn(c)
	}
	r := k.r
	close(r.over)
	r.leftovers()
	c.StopSelf()
	return nil
}

// jobActor owns the job.
type jobActor struct{ r *run }

// Start implements [kernel.Behavior].
func (a *jobActor) Start(c *kernel.Context[message]) error {
	a.advance(c)
	return nil
}

// Stop implements [kernel.Behavior].
func (a *jobActor) Stop(*kernel.Context[message]) {}

// Handle implements [kernel.Behavior].
func (a *jobActor) Handle(c *kernel.Context[message], m message) error {
	b := &a.r.box
	switch m := m.(type) {
	case look:
		a.r.mu.Lock()
		m.at()
		a.r.mu.Unlock()
		m.reply.Resolve(struct{}{})
		return nil
	case fed:
		if _, ok := m.in.(steered); ok && !b.known {
			b.early = append(b.early, m.in)
			break
		}
		b.stash = append(b.stash, m.in)
		if _, ok := m.in.(added); ok {
			b.stash, b.early, b.known = append(b.stash, b.early...), nil, true
		}
	case carried:
		b.carrying = false
		if m.halted {
			b.carrying = true
			c.Commit()
			a.r.exec.Go(func() {
				b.stop()
				b.unwatch()
				a.r.finish(context.WithoutCancel(b.ctx))
				b.self.Tell(nil, finished{})
			})
			return nil
		}
	case finished:
		for _, in := range append(b.early, b.stash...) {
			tooLate(in)
		}
		b.done = true
		c.StopSelf()
		return nil
	}
	a.advance(c)
	return nil
}

// seen is what the carrier has to know of the plan, as it was after the steps.
type seen struct {
	limit, wants int
	parked       time.Time
	outage       string
	stopped      *Stop
}

// advance makes the steps that wait, unless what the last ones wanted is still being done.
func (a *jobActor) advance(c *kernel.Context[message]) {
	r, b := a.r, &a.r.box
	if b.carrying || b.outbox.Broken() {
		return
	}
	for now := c.Now(); len(b.stash) > 0; {
		in := b.stash[0]
		b.now = now
		r.keep(in)
		kernel.StepOn(c, &b.outbox, in, func(out []effect) []effect {
			from := len(out)
			out = r.plan.step(now, in, out)
			for i := range out[from:] {
				if e, ok := out[from+i].(again); ok {
					e.next, e.free = r.plan.nodes[e.id].next, r.plan.nodes[e.id].spared
					out[from+i] = e
				}
			}
			return out
		})
		b.stash = b.stash[1:]
		b.stepped = true
	}
	if !b.stepped {
		return
	}
	c.Commit()
	kernel.FlushOn(c, &b.outbox, func(e effect) { b.batch = append(b.batch, e) })
	effects, now := b.batch, b.now
	b.batch, b.stepped, b.carrying = nil, false, true
	p := r.plan
	s := seen{p.limit(), p.wants(), p.parked, p.outages.what(), p.stopped}
	r.exec.Go(func() {
		halted := r.carryOut(b.ctx, now, effects, s)
		if !halted {
			r.pull(b.ctx, s.wants)
		}
		b.self.Tell(nil, carried{halted})
	})
}
