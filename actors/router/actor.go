package router

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Callbacks are the addresses of the actors that call back, and of their supervisor.
type Callbacks struct {
	Kinds      [session.KindOther]kernel.Address[machine.ToCallback]
	Supervisor kernel.Address[ToCallbacks]
}

// Lazy makes the callbacks at the first request: most sessions never have one, and the addresses
// are as large as an actor. The zero value is empty. It is safe for concurrent use.
type Lazy struct{ made atomic.Pointer[Callbacks] }

// Made returns them, or nil before the first use.
func (l *Lazy) Made() *Callbacks { return l.made.Load() }

// Get returns them.
func (l *Lazy) Get() *Callbacks {
	if c := l.made.Load(); c != nil {
		return c
	}
	l.made.CompareAndSwap(nil, &Callbacks{})
	return l.made.Load()
}

// Wanted says that requests of a kind wait and that no actor takes them. From: router.
type Wanted struct{ Kind session.Kind }

// ToSession implements the session actor's interface of messages.
func (Wanted) ToSession() {}

// ToCallbacks implements that of the supervisor of the callback actors.
func (Wanted) ToCallbacks() {}

// ToCallbacks is a message to the supervisor of the callback actors.
type ToCallbacks interface{ ToCallbacks() }

// Config is what a routing needs of its surroundings.
type Config struct {
	Clock  kernel.Clock
	User   *user.Side
	Budget *user.Budget
	Emit   func(session.Event)
	// Judge gets the reports of results about the model's API, or is nil.
	Judge func(machine.Judged)
	// Turned gets the turn that runs each time another one does, or none.
	Turned func(machine.Interval)
	// Spent gets each result of the agent, or is nil. The message must not be changed.
	Spent func(*protocol.ResultMessage)
	// Trace follows the session, with all functions set. Nil: tracing is off.
	Trace *session.Trace

	Self      *kernel.Address[machine.Input]
	Session   *kernel.Address[machine.LifeInput]
	Transport *kernel.Address[machine.ToTransport]
	// Callbacks get the requests. The supervisor starts callback actors; while it is not there, Session
	// starts it.
	Callbacks *Lazy
	// Named gets the id of the agent's session.
	Named func(sessionID string)
	// Mirror gets the reports of machine.Mirror, or is nil.
	Mirror func(report []byte)
}

// Box is what outlives a router: the routing, and what it has asked for and is not
// yet done. The router owns it, and its parent while there is no router.
type Box struct {
	cfg     Config
	routing *machine.Routing
	outbox  kernel.Outbox[machine.Effect]
	timer   kernel.Timer // nil: none
	turn    time.Time    // when the turn began that Turned got last
}

// NewBox returns a box whose routing has no process yet.
func NewBox(cfg Config, routing machine.Config) *Box {
	return &Box{cfg: cfg, routing: machine.New(routing)}
}

// Routing is the machine. Only the owner of the box may use it.
func (b *Box) Routing() *machine.Routing { return b.routing }

// Broken reports whether a step has panicked. The routing is not trusted then, and
// takes no more inputs.
func (b *Box) Broken() bool { return b.outbox.Broken() }

// Drain handles what the last router has left. It is for the parent.
func (b *Box) Drain() {
	for _, in := range b.cfg.Self.Take() {
		b.take(in)
	}
}

// Finish is Drain, and ends the routing.
func (b *Box) Finish(reason error) {
	b.Drain()
	b.take(machine.Ended{Reason: reason})
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// take makes a step and carries out its effects, without an actor.
func (b *Box) take(in machine.Input) {
	b.flush(nil)
	if !b.takes(in) {
		return
	}
	now := b.cfg.Clock.Now()
	b.outbox.Step(func(out []machine.Effect) []machine.Effect { return b.routing.Step(now, in, out) })
	b.flush(nil)
}

func (b *Box) flush(w *kernel.Worker) {
	if !b.Broken() {
		b.outbox.Flush(func(e machine.Effect) { b.do(w, e) }, nil)
	}
}

// takes reports whether the routing takes the input.
func (b *Box) takes(in machine.Input) bool {
	if b.Broken() {
		b.giveBack(in)
		return false
	}
	return true
}

// giveBack releases the line budget of a discarded input.
func (b *Box) giveBack(in machine.Input) {
	read, ok := in.(machine.FramesRead)
	if !ok {
		return
	}
	for i := range read.Frames {
		if n := int64(len(read.Frames[i].Raw)); n > machine.LargeLine {
			b.cfg.Budget.Release(n)
		}
	}
}

// Look asks what the session waits for and which credit is out.
type Look struct {
	Reply *kernel.Promise[Looked]
}

// Looked answers [Look].
type Looked struct {
	Waits []machine.Waiting
	Held  int              // messages that count against Limits.Messages
	Bytes int64            // of them
	Turn  machine.Interval // the turn that runs, or the number of the last one without its times
}

// ToRouter implements [machine.Input].
func (Look) ToRouter() {}

// Count asks for what is under way.
type Count struct {
	Reply *kernel.Promise[machine.Inventory]
}

// ToRouter implements [machine.Input].
func (Count) ToRouter() {}

// Recall asks for the past.
type Recall struct {
	Reply *kernel.Promise[machine.Story]
}

// ToRouter implements [machine.Input].
func (Recall) ToRouter() {}

// recall returns the past.
func (b *Box) recall() machine.Story {
	if b.Broken() {
		return machine.Story{}
	}
	return b.routing.Story()
}

// count lists what is under way.
func (b *Box) count() machine.Inventory {
	if b.Broken() {
		return machine.Inventory{}
	}
	return b.routing.Inventory()
}

// look describes what the session waits for.
func (b *Box) look() Looked {
	if b.Broken() {
		return Looked{}
	}
	all := b.routing.Waits(b.cfg.Clock.Now())
	for i := range all {
		w := &all[i]
		call := slices.IndexFunc(b.routing.Calls, func(c machine.Call) bool { return w.Seq == 0 && c.ID == w.ID })
		switch {
		case call >= 0:
			w.SetBy = b.routing.Calls[call].SetBy
		case w.What == "consumer":
			w.SetBy = "Limits.Consumer"
		case w.What == "progress of the turn":
			w.SetBy = "Limits.Stall"
		case w.What == "retries of the model's API":
			w.SetBy = "Limits.Retry"
		}
	}
	turn := b.routing.Memory.Turn
	turn.N = b.routing.Memory.Turns
	return Looked{Waits: all, Held: b.routing.Flow.Held, Bytes: b.routing.Flow.Bytes, Turn: turn}
}

// Actor is the router.
type Actor struct{ box *Box }

// New returns the next router of a box.
func New(b *Box) *Actor { return &Actor{b} }

// Start implements [kernel.Behavior]. It carries out the remaining effects of the last
// incarnation.
func (a *Actor) Start(c *kernel.Context[machine.Input]) error {
	a.flush(c)
	return nil
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[machine.Input], in machine.Input) error {
	switch in := in.(type) {
	case Look:
		in.Reply.Resolve(a.box.look())
		return nil
	case Recall:
		in.Reply.Resolve(a.box.recall())
		return nil
	case Count:
		in.Reply.Resolve(a.box.count())
		return nil
	}
	b := a.box
	if !b.takes(in) {
		return nil
	}
	now := c.Now()
	kernel.StepOn(c, &b.outbox, in, func(out []machine.Effect) []machine.Effect { return b.routing.Step(now, in, out) })
	c.Commit()
	a.flush(c)
	return nil
}

// Stop implements [kernel.Behavior].
func (a *Actor) Stop(*kernel.Context[machine.Input]) {}

func (a *Actor) flush(c *kernel.Context[machine.Input]) {
	if a.box.Broken() {
		return
	}
	w := c.Worker()
	kernel.FlushOn(c, &a.box.outbox, func(e machine.Effect) { a.box.do(w, e) })
}

// do carries out an effect: it sends it to its receiver.
func (b *Box) do(w *kernel.Worker, e machine.Effect) {
	as := e // the same value, not boxed again
	switch e := e.(type) {
	case machine.Run:
		b.run(w, e.Kind, as.(machine.ToCallback))
	case machine.Cancel:
		b.cfg.Callbacks.Get().Kinds[e.Kind].Tell(w, as.(machine.ToCallback))
	case machine.ToTransport: // what is written, the reader's credit, the ladder
		b.cfg.Transport.Tell(w, e)
	case machine.SetTimer:
		b.setTimer(e.At)
	case machine.Charge:
		b.cfg.Budget.Charge(e.Bytes)
	case machine.Emit:
		b.cfg.Emit(e.Event)
	case machine.Judged:
		if b.cfg.Judge != nil {
			b.cfg.Judge(e)
		}
	case machine.Spent:
		if b.cfg.Spent != nil {
			b.cfg.Spent(e.Result)
		}
	case machine.Unusable:
		b.cfg.User.Apply(e)
		b.cfg.Session.Tell(w, e)
	case machine.Changed:
		if turn := &b.routing.Memory.Turn; !turn.From.Equal(b.turn) && b.cfg.Turned != nil {
			b.turn = turn.From
			b.cfg.Turned(machine.Interval{N: b.routing.Memory.Turns, From: turn.From})
		}
		b.cfg.User.Apply(e)
		b.cfg.Session.Tell(w, e)
	case machine.Learned:
		b.cfg.User.Apply(e)
		b.cfg.Named(e.SessionID)
	case machine.Parted:
		b.cfg.Session.Tell(w, e)
	case machine.Rested:
		b.cfg.Session.Tell(w, e)
	case machine.Mirror:
		b.cfg.Mirror(e.Report)
	case machine.Dropped:
		b.trace(e)
	default:
		b.trace(e)
		if !b.cfg.User.Apply(e) {
			panic(fmt.Sprintf("router: nobody carries out a %T", e))
		}
	}
}

// run gives a request to the actor of its kind. If that was never started, it notifies
// the starter.
func (b *Box) run(w *kernel.Worker, kind session.Kind, e machine.ToCallback) {
	all := b.cfg.Callbacks.Get()
	at := &all.Kinds[kind]
	at.Tell(w, e)
	switch {
	case at.Live():
	case all.Supervisor.Live():
		all.Supervisor.Tell(w, Wanted{kind})
	default:
		b.cfg.Session.Tell(w, Wanted{kind})
	}
}

func (b *Box) setTimer(at time.Time) {
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	if !at.IsZero() {
		b.timer = b.cfg.Clock.AfterFunc(at.Sub(b.cfg.Clock.Now()), func() { b.cfg.Self.Tell(nil, machine.TimerFired{}) })
	}
}
