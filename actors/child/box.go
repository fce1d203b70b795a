package child

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Config is what a child needs of its session.
type Config struct {
	ID      string // of the session
	Child   *session.Child
	Session *kernel.Address[machine.LifeInput]
	Emit    func(session.Event)
	Context func(context.Context) context.Context // adds values for the user's functions, or nil
}

// Box is what outlives the incarnations of a child.
type Box struct {
	cfg  Config
	spec supervisor.Child
	at   kernel.Address[message]

	// Of everybody. Senders count before they send, and the actor when it takes an item up,
	// so that nothing waits without a bound.
	events   atomic.Int32
	messages atomic.Int32
	lost     atomic.Int64             // events that had no room since the last that had
	handled  atomic.Int64             // by the present incarnation
	gone     atomic.Bool              // no incarnation will follow
	stopping atomic.Pointer[stopping] // nil until it has to stop

	// Used by the actor, or by its parent while no actor runs.
	queue   []item
	running *job // nil: none
	present *Actor
}

// stopping is the wait for the end of an incarnation.
type stopping struct {
	session.Wait
	since time.Time
}

// message is what the actor takes.
type message interface{ toChild() }

type (
	// item is what the user's code handles. From: the emitter of an event; a
	// [session.Ref].
	item struct {
		event   *session.EventRecord // nil for a message
		message any
		counted bool // in Box.events or Box.messages
	}

	// over says that a job has returned. From: its task.
	over struct{ *job }

	// halt stops an incarnation. From: the session actor.
	halt struct {
		of   *Actor
		kill bool
		why  error
		last bool // none follows, so what waits is handled first
	}

	// lostSome says that events were lost and none is queued. From: the emitter of an
	// event.
	lostSome struct{}

	// overdue says that the code of the incarnation before has had its time. From: the
	// clock.
	overdue struct{ of *Actor }
)

func (item) toChild()     {}
func (over) toChild()     {}
func (halt) toChild()     {}
func (lostSome) toChild() {}
func (overdue) toChild()  {}

// Up says that the user's Start has returned. From: the child.
type Up struct {
	Box *Box
	of  *Actor
}

// ToSession implements [machine.LifeInput].
func (Up) ToSession() {}

// Current reports whether it was the present incarnation that has started.
func (u Up) Current() bool { return u.Box.present == u.of }

// NewBox returns the box of a child that was never started.
func NewBox(cfg Config) *Box { return &Box{cfg: cfg, spec: cfg.Child.Spec()} }

// Spec is the child's specification.
func (b *Box) Spec() supervisor.Child { return b.spec }

// Event leaves an event for the child.
func (b *Box) Event(r session.EventRecord) {
	if b.gone.Load() {
		return
	}
	if b.events.Add(1) > session.MaxWaiting {
		b.events.Add(-1)
		if b.lost.Add(1); b.events.Load() == 0 { // the actor may have looked before
			b.at.Tell(nil, lostSome{})
		}
		return
	}
	if n := b.lost.Swap(0); n > 0 {
		b.at.Tell(nil, lostItem(r, n))
	}
	b.at.Tell(nil, item{event: &r, counted: true})
}

// lostItem takes the place of n events before r.
func lostItem(r session.EventRecord, n int64) item {
	r.Event = &session.EventsLost{Count: int(n)}
	return item{event: &r}
}

// Send leaves a message for the child.
func (b *Box) Send(m any) error {
	if b.gone.Load() {
		return session.ErrNoChild
	}
	if b.messages.Add(1) > session.MaxWaiting {
		b.messages.Add(-1)
		return session.ErrChildFull
	}
	b.at.Tell(nil, item{message: m, counted: true})
	return nil
}

// count changes how many items wait.
func (b *Box) count(it item, n int32) {
	switch {
	case !it.counted:
	case it.event != nil:
		b.events.Add(n)
	default:
		b.messages.Add(n)
	}
}

// Spawn starts the next incarnation as a child of the session actor's.
func (b *Box) Spawn(c *kernel.Context[machine.LifeInput], name string) error {
	a := &Actor{box: b}
	if err := kernel.Spawn[machine.LifeInput, message](c, name, &b.at, a); err != nil {
		return err
	}
	b.present = a
	b.handled.Store(0)
	b.stopping.Store(nil)
	return nil
}

// Down says that an incarnation has ended. One that is temporary never comes back.
func (b *Box) Down() {
	b.stopping.Store(nil)
	if b.spec.Class == supervisor.Temporary {
		b.gone.Store(true)
	}
}

// Gone reports whether no incarnation will follow.
func (b *Box) Gone() bool { return b.gone.Load() }

// Halt stops the present incarnation, in order or by a kill. last says that none follows.
func (b *Box) Halt(c *kernel.Context[machine.LifeInput], kill, last bool, why error) {
	b.at.Tell(c.Worker(), halt{of: b.present, kill: kill, why: why, last: last})
	wait := session.Wait{What: "child " + b.spec.Name + " to stop", Limit: cmp.Or(b.spec.Shutdown, supervisor.DefaultShutdown), SetBy: "Child.Shutdown"}
	if kill {
		wait.Limit, wait.SetBy = cmp.Or(b.spec.Kill, supervisor.DefaultKill), "Child.Kill"
	}
	b.stopping.Store(&stopping{wait, c.Now()})
}

// Waits is what the session waits for if the child is to stop.
func (b *Box) Waits(now time.Time) (w session.Wait, ok bool) {
	s := b.stopping.Load()
	if s == nil {
		return w, false
	}
	w = s.Wait
	w.Age, w.Since = now.Sub(s.since), s.since
	return w, true
}

// Retire drops all items, which will not be handled.
func (b *Box) Retire() {
	b.gone.Store(true)
	b.at.Take()
	b.at.Close()
}

// Located is a child's address, as the session's tree shows it.
type Located struct {
	kernel.Located
	Box *Box
}

// Located returns the child's address.
func (b *Box) Located() Located { return Located{&b.at, b} }

// Depth is the number of events and messages that wait.
func (l Located) Depth() int { return int(l.Box.events.Load() + l.Box.messages.Load()) }

// Handled is the number of those that the present incarnation took up.
func (l Located) Handled() int64 { return l.Box.handled.Load() }
