package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Actor is one incarnation of a child.
type Actor struct {
	box      *Box
	ctx      context.Context // of all its jobs
	cancel   context.CancelCauseFunc
	behavior session.Behavior[any] // once the first job is over
	phase    phase
	halted   halt // why it stops; zero: it does not
}

type phase int

const (
	blocked  phase = iota // code of the incarnation before has not returned
	starting              // the first job runs
	running
	ending // in order: no kill
	killed // the job that runs, if any, is the last
)

// job is one call of the user's code.
type job struct {
	of   *Actor
	what string // for errors
	do   func(context.Context) error
	item *item // nil: none
	err  error // once it is over
	// state is decided between the task and the end of the actor.
	state atomic.Int32
}

const (
	due       int32 = iota
	begun           // by its task: it cannot be taken back
	withdrawn       // before it began: the item is for the next incarnation
)

const (
	atStart = "Start"
	atStop  = "Stop"
)

var (
	errEnded    = errors.New("the child has ended")
	errKilled   = errors.New("the child is killed")
	errNoReturn = errors.New("the child ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")
)

// Start implements [kernel.Behavior]. A child never has two incarnations whose code runs.
func (a *Actor) Start(c *kernel.Context[message]) error {
	ctx := context.Background()
	if add := a.box.cfg.Context; add != nil {
		ctx = add(ctx)
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	if a.box.running == nil {
		a.begin(c)
		return nil
	}
	c.After(cmp.Or(a.box.spec.Kill, supervisor.DefaultKill), overdue{a})
	return nil
}

func (a *Actor) begin(c *kernel.Context[message]) {
	a.phase = starting
	a.run(c, &job{what: atStart, do: func(ctx context.Context) error {
		a.behavior = a.box.cfg.Child.Incarnation()
		if a.behavior.Start == nil {
			return nil
		}
		return a.behavior.Start(ctx)
	}})
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[message], m message) error {
	switch m := m.(type) {
	case item:
		a.box.queue = append(a.box.queue, m)
		c.Commit()
	case over:
		if m.job != a.box.running {
			return nil
		}
		a.box.running = nil
		c.Commit()
		if err := a.finished(c, m.job); err != nil {
			return err
		}
	case halt:
		c.Commit()
		if m.of == a {
			a.halt(c, m)
		}
	case overdue:
		if m.of == a && a.phase == blocked && a.halted.of == nil {
			return fmt.Errorf("the code of the incarnation before has not returned: %w", supervisor.ErrStuck)
		}
	case lostSome:
	}
	a.next(c)
	return nil
}

// Stop implements [kernel.Behavior]. A job that has not begun has not happened; one that
// has runs on, and the next incarnation waits for it.
func (a *Actor) Stop(*kernel.Context[message]) {
	a.cancel(errEnded)
	if j := a.box.running; j != nil && j.of == a {
		a.withdraw(j)
	}
}

// withdraw reports whether the job had not begun.
func (a *Actor) withdraw(j *job) bool {
	if !j.state.CompareAndSwap(due, withdrawn) {
		return false
	}
	a.box.running = nil
	if j.item != nil {
		a.box.queue = append([]item{*j.item}, a.box.queue...)
		a.box.count(*j.item, 1)
	}
	return true
}

func (a *Actor) halt(c *kernel.Context[message], m halt) {
	switch {
	case a.phase == blocked: // it ends with the code that it waits for
		a.halted = m
	case m.kill:
		a.phase, a.halted = killed, m
		a.cancel(errKilled)
		if j := a.box.running; j == nil || a.withdraw(j) { // else it ends with the job
			c.StopSelf()
		}
	case a.phase != killed:
		a.phase, a.halted = ending, m
	}
}

// finished looks at how a job has ended.
func (a *Actor) finished(c *kernel.Context[message], j *job) error {
	switch {
	case j.of != a: // the incarnation before has failed already
		if panicked, ok := errors.AsType[*session.PanicError](j.err); ok {
			a.box.cfg.Emit(&session.CallbackFailed{Kind: "child", Name: a.box.spec.Name, Err: panicked})
		}
		if a.halted.of != nil {
			c.StopSelf()
			return nil
		}
		a.begin(c)
	case a.phase == killed, errors.Is(j.err, session.ErrChildDone), j.what == atStop && j.err == nil:
		c.StopSelf()
	case j.err != nil:
		return j.err
	case j.what == atStart:
		if a.phase == starting {
			a.phase = running
		}
		a.box.cfg.Session.Tell(c.Worker(), Up{a.box, a})
	}
	return nil
}

// next begins the next job, unless one runs.
func (a *Actor) next(c *kernel.Context[message]) {
	if a.box.running != nil || c.Stopping() {
		return
	}
	switch a.phase {
	case running:
		a.takeUp(c)
	case ending:
		if a.halted.last && a.takeUp(c) {
			return
		}
		if a.behavior.Stop == nil {
			c.StopSelf()
			return
		}
		why := a.halted.why
		a.run(c, &job{what: atStop, do: func(ctx context.Context) error { return a.behavior.Stop(ctx, why) }})
	case blocked, starting, killed:
	}
}

// takeUp reports whether something was waiting. An item leaves the queue before it is
// handled: it is handled once, also if that ends the child.
func (a *Actor) takeUp(c *kernel.Context[message]) bool {
	b := a.box
	for len(b.queue) > 0 {
		it := b.queue[0]
		b.queue[0] = item{}
		if b.queue = b.queue[1:]; len(b.queue) == 0 {
			b.queue = nil
		}
		b.count(it, -1)
		if a.handle(c, it) {
			return true
		}
	}
	if b.events.Load() > 0 {
		return false
	}
	n := b.lost.Swap(0)
	return n > 0 && a.handle(c, lostItem(session.EventRecord{Session: b.cfg.ID, At: c.Now()}, n))
}

// handle reports whether the user has a function for an item.
func (a *Actor) handle(c *kernel.Context[message], it item) bool {
	j := &job{what: "Event", item: &it}
	switch {
	case it.event != nil && a.behavior.Event != nil:
		j.do = func(ctx context.Context) error { return a.behavior.Event(ctx, *it.event) }
	case it.event == nil && a.behavior.Handle != nil:
		j.what = "Handle"
		j.do = func(ctx context.Context) error { return a.behavior.Handle(ctx, it.message) }
	default:
		return false
	}
	a.box.handled.Add(1)
	a.run(c, j)
	return true
}

func (a *Actor) run(c *kernel.Context[message], j *job) {
	j.of = a
	a.box.running = j
	c.Go(func() (then func(*kernel.Worker)) { return a.perform(j) })
}

// perform is the task of a job.
func (a *Actor) perform(j *job) (then func(*kernel.Worker)) {
	if !j.state.CompareAndSwap(due, begun) {
		return nil
	}
	j.err = errNoReturn
	defer func() {
		if p := recover(); p != nil {
			j.err = &session.PanicError{Value: p, Message: "child " + a.box.spec.Name + " " + j.what, Stack: debug.Stack()}
		}
		then = func(w *kernel.Worker) { a.box.at.Tell(w, over{j}) }
		if errors.Is(j.err, errNoReturn) { // its goroutine ends here
			then(nil)
		}
	}()
	j.err = j.do(a.ctx)
	return nil // it is set above
}
