package kernel

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Behavior is what an actor does. The kernel calls it for one message at a
// time. No method may block.
type Behavior[M any] interface {
	// Start runs first. An error stops the actor with that reason.
	Start(c *Context[M]) error
	// Handle handles one message. An error, like a panic, is a failure: the
	// actor stops and its parent learns the reason.
	Handle(c *Context[M], m M) error
	// Stop runs once, on every way out, before the children are stopped.
	Stop(c *Context[M])
}

// ChildObserver is implemented by behaviours that have children.
type ChildObserver[M any] interface {
	// ChildDown runs when a child has stopped for good.
	ChildDown(c *Context[M], d Down) error
}

// Survivor is implemented by the rare actor that must not stop when handling a
// message fails, because it has no parent to restart it. The failed message is
// lost; Survive looks after what it may have left undone.
type Survivor[M any] interface {
	Survive(c *Context[M], reason error)
}

// Down is the end of a child.
type Down struct {
	Name   string // as given to Spawn
	Reason error  // nil when the child was asked to stop
}

// PanicError is the reason of an actor that panicked.
type PanicError struct {
	Value   any
	Message string // type of the message being handled
	Stack   []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic while handling %s: %v", e.Message, e.Value)
}

// Unwrap returns the panic value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// life is the part of an actor that others may look at.
type life struct {
	name    string
	reason  error // written before the parent is told, read after
	handled atomic.Int64
	mailbox actor.Mailbox
}

type adapter[M any] struct {
	ctx      Context[M]
	behavior Behavior[M]
	life     *life
	path     string // with its parents
	stopping bool
	stopped  bool
}

func newAdapter[M any](s *System, name string, b Behavior[M]) *adapter[M] {
	a := &adapter[M]{behavior: b, life: &life{name: name}}
	a.ctx.sys, a.ctx.adapter = s, a
	return a
}

// incarnation is an adapter, whatever its messages are.
type incarnation interface {
	actor.Actor
	newMailbox() actor.Mailbox
}

// newProps is the one factory: nothing is inherited by children, so every actor
// gets its dispatcher, mailbox and strategy here. All actors share what it
// makes; spawn says whose turn it is.
func (s *System) newProps() *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return s.spawning },
		actor.WithDispatcher(s.cfg.Dispatcher),
		actor.WithMailbox(func() actor.Mailbox { return s.spawning.newMailbox() }),
		actor.WithSupervisor(stopOnFailure{}))
}

// spawn calls by, which starts a as an actor.
func (s *System) spawn(a incarnation, by func(*actor.Props) (*actor.PID, error)) (*actor.PID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawning = a
	defer func() { s.spawning = nil }()
	return by(s.props)
}

func (a *adapter[M]) newMailbox() actor.Mailbox {
	if a.ctx.sys.cfg.OneMessagePerStep {
		a.life.mailbox = &stepMailbox{}
	} else {
		a.life.mailbox = &mailbox{sys: a.ctx.sys}
	}
	return a.life.mailbox
}

// Receive is the guard: no failure ever reaches the library's own restart,
// suspend and escalation paths. A failed actor stops itself; whether something
// takes its place is its parent's decision.
func (a *adapter[M]) Receive(c actor.Context) {
	a.ctx.actor = c
	a.path = c.Self().Id
	switch m := c.Message().(type) {
	case *actor.Started:
		a.start(c)
	case *actor.Stopping:
		a.stop()
	case *actor.Stopped:
		a.release()
	case *actor.Restarting:
	case *actor.Terminated:
		clearRemoved(c)
		a.childDown(c, m)
	case M:
		if a.stopping || a.stopped {
			a.ctx.sys.deadLetters.Add(1)
			return
		}
		a.handle(c, m)
	default:
		a.fail(c, fmt.Errorf("kernel: %s received a %T, which its mailbox does not take", a.life.name, m))
	}
	a.ctx.actor = nil
}

func (a *adapter[M]) start(c actor.Context) {
	a.ctx.self = Ref[M]{sys: a.ctx.sys, pid: c.Self(), life: a.life}
	if a.stopping {
		return
	}
	a.guard(c, "start", func() error { return a.behavior.Start(&a.ctx) })
}

func (a *adapter[M]) handle(c actor.Context, m M) {
	a.life.handled.Add(1)
	defer func() {
		if r := recover(); r != nil {
			a.fail(c, &PanicError{Value: r, Message: fmt.Sprintf("%T", m), Stack: debug.Stack()})
		}
	}()
	if chaos := a.ctx.sys.cfg.Chaos; chaos != nil {
		chaos.strike(a.life.name, m, BeforeMessage)
		defer chaos.strike(a.life.name, m, AfterMessage)
	}
	if err := a.behavior.Handle(&a.ctx, m); err != nil {
		a.fail(c, err)
	}
}

func (a *adapter[M]) childDown(c actor.Context, m *actor.Terminated) {
	child, ok := a.ctx.children[m.Who.Id]
	if !ok {
		return
	}
	delete(a.ctx.children, m.Who.Id)
	if len(a.ctx.children) == 0 {
		a.ctx.children = nil // a map never gives memory back
	}
	observer, ok := a.behavior.(ChildObserver[M])
	if !ok || a.stopping {
		return
	}
	a.guard(c, "child "+child.name+" down", func() error {
		return observer.ChildDown(&a.ctx, Down{Name: child.name, Reason: child.reason})
	})
}

func (a *adapter[M]) stop() {
	a.stopping = true
	if a.stopped {
		return
	}
	a.stopped = true
	defer func() { a.ctx.timers.end() }()
	defer func() {
		if r := recover(); r != nil {
			a.crashed(&PanicError{Value: r, Message: "stop", Stack: debug.Stack()})
		}
	}()
	a.behavior.Stop(&a.ctx)
}

func (a *adapter[M]) guard(c actor.Context, what string, fn func() error) {
	defer func() {
		if r := recover(); r != nil {
			a.fail(c, &PanicError{Value: r, Message: what, Stack: debug.Stack()})
		}
	}()
	if err := fn(); err != nil {
		a.fail(c, err)
	}
}

// fail ends the actor with a reason. What is still queued is dropped.
func (a *adapter[M]) fail(c actor.Context, reason error) {
	if a.stopping {
		return
	}
	if !errors.Is(reason, errStopSelf) {
		if s, ok := a.behavior.(Survivor[M]); ok {
			a.report(reason)
			a.survive(s, reason)
			return
		}
		a.crashed(reason)
	}
	a.stopping = true
	c.Stop(c.Self())
}

// survive keeps a panic from the library, which would restart the actor.
func (a *adapter[M]) survive(s Survivor[M], reason error) {
	defer func() {
		if p := recover(); p != nil {
			a.report(&PanicError{Value: p, Message: "survive", Stack: debug.Stack()})
		}
	}()
	s.Survive(&a.ctx, reason)
}

func (a *adapter[M]) crashed(reason error) {
	if a.life.reason == nil {
		a.life.reason = reason
	}
	a.report(reason)
}

func (a *adapter[M]) report(reason error) {
	if report := a.ctx.sys.cfg.OnCrash; report != nil {
		defer func() { _ = recover() }() // who listens must not harm who failed
		report(Crash{Actor: a.path, Reason: reason})
	}
}

// release drops what the actor held. The library has delivered the last message
// to it, but somebody may keep a Ref, and a Ref reaches the adapter.
func (a *adapter[M]) release() {
	a.behavior, a.ctx.children, a.ctx.timers = nil, nil, nil
}

// clearRemoved clears the slot of the child that the library has just removed
// from the children of c: its PIDSet shortens the slice and keeps the last
// element, through which every stopped child would stay in memory until as many
// are started again.
func clearRemoved(c actor.Context) {
	if children := c.Children(); len(children) < cap(children) {
		children[:len(children)+1][len(children)] = nil
	}
}

var errStopSelf = errors.New("kernel: stop self")

// stopOnFailure is the net below the guard: should a failure reach the
// library after all, the child is stopped.
type stopOnFailure struct{}

func (stopOnFailure) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics, _, _ any) {
	sup.StopChildren(child)
}

// Context is what a behaviour sees of the kernel. It is valid only during the
// call it was passed to, except for Self and System.
type Context[M any] struct {
	sys      *System
	adapter  *adapter[M]
	actor    actor.Context
	self     Ref[M]
	children map[string]*life
	timers   *timers // nil before the first
}

// Self is the actor's own address.
func (c *Context[M]) Self() Ref[M] { return c.self }

// System returns the system the actor runs in.
func (c *Context[M]) System() *System { return c.sys }

// Now is the time on the system's clock.
func (c *Context[M]) Now() time.Time { return c.sys.cfg.Clock.Now() }

// After sends m to the actor itself, d from now, unless the actor has stopped
// by then.
func (c *Context[M]) After(d time.Duration, m M) Timer {
	if c.timers == nil {
		c.timers = &timers{}
	}
	self := c.self
	return c.timers.after(c.sys.cfg.Clock, d, func() { self.Tell(m) })
}

// Go runs fn as a task of the system's executor, no sooner than the actor has
// handled what it was told: the task may block, the actor does not. It may get
// the goroutine that the actor ran on.
func (c *Context[M]) Go(fn func()) {
	if t := c.turn(); t != nil {
		t.tasks = append(t.tasks, fn)
		return
	}
	c.sys.cfg.Executor.Go(fn)
}

// turn is the actor's present turn; nil where none can be prolonged.
func (c *Context[M]) turn() *Turn {
	if box, ok := c.adapter.life.mailbox.(*mailbox); ok && c.sys.prolong {
		return box.turn
	}
	return nil
}

// StopSelf ends the actor after the current message, without a failure.
func (c *Context[M]) StopSelf() { c.adapter.fail(c.actor, errStopSelf) }

// Stopping reports whether the actor is on its way out.
func (c *Context[M]) Stopping() bool { return c.adapter.stopping }

// StopChild stops a child now; ChildDown tells when it is gone.
func (c *Context[M]) StopChild(child Stoppable) { c.actor.Stop(child.address()) }

// Spawn starts a child under a name that is unique among the parent's
// children, for all time: the caller adds an incarnation. A stopping parent
// spawns nothing.
func Spawn[P, M any](c *Context[P], name string, b Behavior[M]) (Ref[M], error) {
	if c.adapter.stopping {
		return Ref[M]{}, fmt.Errorf("kernel: spawn %s: parent is stopping: %w", name, ErrStopped)
	}
	a := newAdapter(c.sys, name, b)
	pid, err := c.sys.spawn(a, func(p *actor.Props) (*actor.PID, error) { return c.actor.SpawnNamed(p, name) })
	if err != nil {
		return Ref[M]{}, spawnError(name, err)
	}
	if c.children == nil {
		c.children = make(map[string]*life)
	}
	c.children[pid.Id] = a.life
	return Ref[M]{sys: c.sys, pid: pid, life: a.life}, nil
}

func spawnError(name string, err error) error {
	return fmt.Errorf("kernel: spawn %s: %w", name, err)
}
