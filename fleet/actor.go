package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// box is what outlives the actor of a job, which alone uses it while one lives.
type box struct {
	*env
	carrier *carrier
	ctx     context.Context // of Start
	over    chan struct{}   // closed when nothing of the job is left
	parent  kernel.Address[toParent]
	self    kernel.Address[message]
	// after is held by those who take messages that came after the job's end: there is no actor
	// any more that would.
	after sync.Mutex

	m       *machine
	outbox  kernel.Outbox[effect] // of inputs
	quick   kernel.Outbox[effect] // of notes
	stash   []input               // while a batch is carried out
	early   []input               // decisions from before the tasks were known
	readers []*kernel.Promise[delivery]
	handles map[string]*handle
	tenures map[string]*timers
	alarm   session.Timer
	batch   []work // out of the outbox, not yet with the carrier
	stop    func() // ends the watch over ctx
	now     time.Time

	known, carrying, stepped, done bool
	wrecked                        bool // a batch was carried out in part
	lost                           bool // an empty machine is in the place of one that cannot be trusted
}

// handle ends an attempt.
type handle struct {
	ctx, hard context.Context
	stop      func() // interrupts it
	kill      func() // ends it and its processes at once
	began     bool   // the carrier has started it
	over      *kernel.Promise[struct{}]
}

// timers are those of a lease.
type timers struct{ extend, deadline session.Timer }

func (t *timers) stop() {
	t.extend.Stop()
	t.deadline.Stop()
}

// work is an effect for the carrier, with what ends the attempt that it is about.
type work struct {
	effect
	handle *handle
}

// begin starts the actor, while nothing runs yet but what clears up after earlier hosts.
func (b *box) begin(entries []*entry, last bool) error {
	watching, stop := context.WithCancel(context.Background())
	b.stop, b.carrying = stop, true
	if err := b.spawn(); err != nil {
		return err
	}
	b.exec.Go(func() {
		if b.exec.Await(b.ctx, watching.Done()) != nil {
			b.post(drained{Stop{Reason: StopCanceled, Detail: context.Cause(b.ctx).Error()}})
		}
	})
	b.exec.Go(func() {
		if err := b.carrier.open(b.ctx, entries, last); err != nil {
			b.fail(err)
		}
		b.self.Tell(nil, carried{})
	})
	return nil
}

// Wake implements [waker].
func (b *box) Wake() { b.post(woken{}) }

// wakeAt wakes the machine, which takes an alarm that comes too early for none: clocks are set
// while timers run.
func (b *box) wakeAt(at time.Time) {
	if left := at.Sub(b.clock.Now()); left > 0 {
		b.clock.AfterFunc(left, func() { b.wakeAt(at) })
		return
	}
	b.Wake()
}

// send gives the actor a message. After the job's end the caller answers it himself.
func (b *box) send(m message) {
	b.self.Tell(nil, m)
	select {
	case <-b.over:
		b.leftovers()
	default:
	}
}

// leftovers answers what came after the end.
func (b *box) leftovers() {
	b.after.Lock()
	defer b.after.Unlock()
	for _, m := range b.self.Take() {
		switch m := m.(type) {
		case fed:
			tooLate(m.in)
		case nextResult:
			b.readers = append(b.readers, m.reply)
		case note:
			for _, e := range m.note(b.m, b.clock.Now(), nil) {
				b.answer(e)
			}
		}
	}
	b.serve()
}

// ask asks the job something.
func ask[T any](b *box, build func(*kernel.Promise[T]) note) T {
	answer, _ := question(b.env, build) // it has no error
	return answer
}

// next waits for the next result.
func (b *box) next(ctx context.Context) (t TaskResult, err error, more bool) { //nolint:revive // as iter.Pull2
	to := kernel.NewPromise[delivery]()
	b.send(nextResult{to})
	d, err := to.Wait(ctx, b.exec)
	if err != nil && to.Fail(err) {
		return TaskResult{}, err, true
	}
	if err != nil { // it came in the last moment
		d, _ = to.Value()
	}
	return d.result, d.err, d.more
}

// serve gives results to those who wait for them.
func (b *box) serve() {
	for len(b.readers) > 0 {
		d, ok := b.m.offers()
		if !ok {
			return
		}
		if b.readers[0].Resolve(d) {
			b.m.read()
		}
		b.readers = b.readers[1:]
	}
}

// jobActor owns the box.
type jobActor struct{ b *box }

// Start implements [kernel.Behavior].
func (a *jobActor) Start(c *kernel.Context[message]) error {
	kernel.FlushOn(c, &a.b.quick, a.b.carryOut)
	a.advance(c)
	return nil
}

// Stop implements [kernel.Behavior].
func (a *jobActor) Stop(*kernel.Context[message]) {}

// Handle implements [kernel.Behavior].
func (a *jobActor) Handle(c *kernel.Context[message], m message) error {
	b := a.b
	switch m := m.(type) {
	case fed:
		if b.take(m.in) {
			break
		}
		return nil
	case note:
		kernel.StepOn(c, &b.quick, m, func(out []effect) []effect { return m.note(b.m, c.Now(), out) })
		c.Commit()
		kernel.FlushOn(c, &b.quick, b.carryOut)
		b.serve()
		return nil
	case nextResult:
		b.readers = append(b.readers, m.reply)
		b.serve()
		return nil
	case carried:
		if b.lost {
			return nil
		}
		if m.err != nil { // what was left of the batch will never be done
			b.wrecked = true
			c.Commit()
			return m.err
		}
		b.carrying = m.halted
		if m.halted {
			c.Commit()
			b.end()
			return nil
		}
	case closed:
		b.m.finish(m.err)
		b.done = true
		for _, in := range append(b.early, b.stash...) {
			tooLate(in)
		}
		b.early, b.stash = nil, nil
		b.serve()
		c.StopSelf()
		return nil
	}
	a.advance(c)
	return nil
}

// take keeps an input until its turn. It returns false if that is not to come soon.
func (b *box) take(in input) bool {
	if b.lost {
		tooLate(in)
		return false
	}
	if _, ok := in.(steered); ok && !b.known {
		b.early = append(b.early, in)
		return false
	}
	b.stash = append(b.stash, in)
	if _, ok := in.(added); ok {
		b.stash, b.early, b.known = append(b.stash, b.early...), nil, true
	}
	return true
}

// end has the files written. Nothing runs any more.
func (b *box) end() {
	b.stop()
	if b.alarm != nil { // it may be due in a day
		b.alarm.Stop()
	}
	for _, t := range b.tenures { //troupe:maporder each by itself
		t.stop()
	}
	b.exec.Go(func() { b.self.Tell(nil, closed{b.carrier.close(context.WithoutCancel(b.ctx))}) })
}

// advance makes the steps that wait, unless what the last ones wanted is still being done.
func (a *jobActor) advance(c *kernel.Context[message]) {
	b := a.b
	if b.carrying || b.done {
		return
	}
	for b.now = c.Now(); len(b.stash) > 0; b.stash = b.stash[1:] {
		in := b.stash[0]
		if end, ok := in.(ended); ok {
			delete(b.handles, end.id)
		}
		b.stepped = true
		b.m.ahead(len(b.stash) - 1)
		kernel.StepOn(c, &b.outbox, in, func(out []effect) []effect { return b.m.step(b.now, in, out) })
	}
	if !b.stepped {
		return
	}
	c.Commit()
	kernel.FlushOn(c, &b.outbox, b.handOver)
	b.serve()
	batch, now := b.batch, b.now
	b.batch, b.stepped, b.carrying = nil, false, true
	b.exec.Go(func() {
		var done carried
		done.err = guard("the carrier", func() error { done.halted = b.carrier.carry(b.ctx, now, batch); return nil })
		abandon(batch)
		b.self.Tell(nil, done)
	})
}

// abandon ends the attempts of a batch that were not started: it was not carried out to its end.
func abandon(batch []work) {
	for _, w := range batch {
		if _, is := w.effect.(launch); is && !w.handle.began {
			w.handle.over.Resolve(struct{}{})
		}
	}
}

// handOver carries an effect out, or leaves it to the carrier.
func (b *box) handOver(e effect) {
	w := work{effect: e}
	switch e := e.(type) {
	case launch:
		w.handle = b.newHandle()
		b.handles[e.id] = w.handle
	case canceling:
		w.handle = b.handles[e.id]
	case requeued:
		w.handle = b.handles[e.id]
	default:
		if b.answer(e) {
			return
		}
	}
	b.batch = append(b.batch, w)
}

func (b *box) newHandle() *handle {
	ctx, stop := context.WithCancel(b.env.ctx)
	hard, kill := context.WithCancel(b.hard)
	return &handle{ctx: ctx, hard: hard, stop: stop, kill: func() { kill(); stop() }, over: kernel.NewPromise[struct{}]()}
}

// carryOut carries out an effect of a note.
func (b *box) carryOut(e effect) { b.answer(e) }

// answer carries out an effect that waits for nothing. It returns false for another effect.
func (b *box) answer(e effect) bool {
	switch e := e.(type) {
	case interface{ settle() }:
		e.settle()
	case setAlarm:
		if b.alarm != nil {
			b.alarm.Stop()
		}
		b.alarm = b.clock.AfterFunc(e.at.Sub(b.clock.Now()), func() { b.wakeAt(e.at) })
	case kill:
		if h := b.handles[e.id]; h != nil {
			h.kill()
		}
	case arm:
		b.arm(e)
	case disarm:
		if t := b.tenures[e.id]; t != nil {
			t.stop()
			delete(b.tenures, e.id)
		}
	case extend:
		b.exec.Go(func() { b.tell(b.carrier.shared.extend(e)) })
	case jot:
		b.exec.Go(func() { b.tell(b.carrier.shared.jot(e)) })
	case release:
		b.exec.Go(func() { b.carrier.shared.release(b.calls, e.lease) })
	case cutCalls:
		b.clock.AfterFunc(e.after, b.cut)
	default:
		return false
	}
	return true
}

// arm sets the timers of a lease. The one of the deadline kills the attempt by itself, whatever
// the actor is doing.
func (b *box) arm(e arm) {
	if t := b.tenures[e.id]; t != nil {
		t.stop()
	}
	now, h := b.clock.Now(), b.handles[e.id]
	b.tenures[e.id] = &timers{
		extend: b.clock.AfterFunc(max(e.extend.Sub(now), 0), func() { b.tell(due{e.id, e.fence, e.number}) }),
		deadline: b.clock.AfterFunc(max(e.deadline.Sub(now), 0), func() {
			b.tell(lapsed{e.id, e.fence})
			if h != nil {
				h.kill()
			}
		}),
	}
}
