package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/session"
	"github.com/asynkron/protoactor-go/actor"
)

// Behavior is what an actor does. The kernel calls it for one message at a
// time. No method may block.
type Behavior[M any] interface {
	// Start runs first. An error stops the actor with that reason.
	Start(c *Context[M]) error
	// Handle handles one message. An error, like a panic, is a failure: the
	// actor stops and its parent learns the reason. The next incarnation at the
	// address handles the message again, unless [Context.Commit] was called.
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
// not handled again; Survive looks after what it may have left undone.
type Survivor[M any] interface {
	Survive(c *Context[M], reason error)
}

// Down is the end of a child.
type Down struct {
	Name   string // as given to Spawn
	Reason error  // nil when the child was asked to stop
}

type adapter[M any] struct {
	ctx      Context[M]
	behavior Behavior[M]
	life     *life
	path     string // with its parents
}

func newAdapter[M any](l *life, at *Address[M], b Behavior[M]) *adapter[M] {
	a := &adapter[M]{behavior: b, life: l}
	a.ctx.sys, a.ctx.adapter, a.ctx.self = l.sys, a, at
	return a
}

// incarnation is an adapter, whatever its messages are.
type incarnation interface {
	actor.Actor
	mailbox() actor.Mailbox
}

// newProps is the one factory: nothing is inherited by children, so every actor
// gets its mailbox here. All actors share what it makes; spawn says which is next.
// There is no supervision strategy: no failure reaches the library.
func (s *System) newProps() *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return s.spawning },
		actor.WithMailbox(func() actor.Mailbox { return s.spawning.mailbox() }),
		actor.WithOnInit(unregister))
}

// spawn calls by, which starts a as an actor.
func (s *System) spawn(a incarnation, by func(*actor.Props) (*actor.PID, error)) (*actor.PID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawning = a
	defer func() { s.spawning = nil }()
	return by(s.props)
}

func (a *adapter[M]) mailbox() actor.Mailbox { return a.life }

// Receive is the guard: no failure ever reaches the library's own restart,
// suspend and escalation paths. A failed actor stops itself; whether something
// takes its place is its parent's decision.
func (a *adapter[M]) Receive(c actor.Context) {
	a.ctx.actor = c
	a.path = c.Self().Id
	if t := a.ctx.sys.cfg.Tracer; t != nil {
		defer t.Enter(a.path, occasion(c.Message()))()
	}
	switch m := c.Message().(type) {
	case *actor.Started:
		a.life.started = true
		a.guard("start", func() error { return a.behavior.Start(&a.ctx) })
	case *actor.Stopping:
		a.stop()
		a.ctx.handOver()
	case *actor.Stopped:
		a.ctx.self.box.vacate(a.life)
		a.release()
	case *actor.Terminated:
		a.childDown(m)
	case M:
		a.handle(m)
	}
	a.ctx.actor = nil
}

func (a *adapter[M]) handle(m M) {
	defer func() {
		if r := recover(); r != nil {
			a.fail(&session.PanicError{Value: r, Message: fmt.Sprintf("%T", m), Stack: debug.Stack()})
		}
	}()
	if t := a.ctx.sys.cfg.Tracer; t != nil {
		t.Handle(a.ctx.self.box.head)
	}
	chaos := a.ctx.sys.cfg.Chaos
	if chaos != nil {
		chaos.strike(a.life.name, m, BeforeMessage)
	}
	if err := a.behavior.Handle(&a.ctx, m); err != nil {
		a.fail(err)
		return
	}
	if chaos != nil {
		a.ctx.Commit()
		chaos.strike(a.life.name, m, AfterMessage)
	}
}

func (a *adapter[M]) childDown(m *actor.Terminated) {
	child := a.ctx.children[m.Who.Id]
	if child == nil {
		return
	}
	delete(a.ctx.children, m.Who.Id)
	if len(a.ctx.children) == 0 {
		a.ctx.children = nil // a map never gives memory back
	}
	child.pid = nil
	observer, ok := a.behavior.(ChildObserver[M])
	if !ok || a.life.stopping {
		return
	}
	a.guard("child "+child.name+" down", func() error {
		return observer.ChildDown(&a.ctx, Down{Name: child.name, Reason: child.reason})
	})
}

func (a *adapter[M]) stop() {
	a.life.stopping = true
	defer func() { a.ctx.timers.end() }()
	defer func() {
		if r := recover(); r != nil {
			a.crashed(&session.PanicError{Value: r, Message: "stop", Stack: debug.Stack()})
		}
	}()
	a.behavior.Stop(&a.ctx)
}

func (a *adapter[M]) guard(what string, fn func() error) {
	defer func() {
		if r := recover(); r != nil {
			a.fail(&session.PanicError{Value: r, Message: what, Stack: debug.Stack()})
		}
	}()
	if err := fn(); err != nil {
		a.fail(err)
	}
}

// fail ends the actor with a reason. Messages that are still queued are for the next
// incarnation.
func (a *adapter[M]) fail(reason error) {
	if a.life.stopping {
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
	a.life.stopping = true
	a.life.stop()
}

// survive keeps a panic from the library, which would restart the actor.
func (a *adapter[M]) survive(s Survivor[M], reason error) {
	defer func() {
		if p := recover(); p != nil {
			a.report(&session.PanicError{Value: p, Message: "survive", Stack: debug.Stack()})
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
// to it, but may keep the adapter for longer, and the context reaches the address,
// and with it whatever that is part of.
func (a *adapter[M]) release() { a.behavior, a.ctx = nil, Context[M]{} }

// handOver gives the library the children that are left, for it to stop them, the
// last first, and to wait until they are gone. Until then they are this package's
// alone: the library's own set of children never gives memory back.
func (c *Context[M]) handOver() {
	if len(c.children) == 0 {
		return
	}
	var next *life
	adopt := actor.PropsFromProducer(nil, actor.WithSpawnFunc(
		func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
			return next.pid, nil
		}))
	for _, next = range slices.SortedFunc(maps.Values(c.children), func(a, b *life) int { return cmp.Compare(a.number, b.number) }) {
		_, _ = c.actor.SpawnNamed(adopt, next.name)
	}
}

var errStopSelf = errors.New("kernel: stop self")

// Context is what a behaviour sees of the kernel. It is valid only during the
// call it was passed to, except for Self and System.
type Context[M any] struct {
	sys      *System
	adapter  *adapter[M]
	actor    actor.Context
	self     *Address[M]
	children map[string]*life // by path, until their end is known
	spawned  int32            // children so far
	timers   *timers          // nil before the first
}

// Self is the actor's own address.
func (c *Context[M]) Self() *Address[M] { return c.self }

// Commit says that the message being handled was taken over: should this
// incarnation die now, the next one does not handle it again. Without it a message
// is taken over when its handler returns.
func (c *Context[M]) Commit() { c.self.box.commit() }

// struck lets a test kill the actor after an effect.
func (c *Context[M]) struck(effect any) {
	if chaos := c.sys.cfg.Chaos; chaos != nil {
		chaos.strike(c.adapter.life.name, effect, AfterEffect)
	}
}

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
	return c.timers.after(c.sys.cfg.Clock, d, func() { self.Tell(nil, m) })
}

// Worker is the one that runs the actor. It is passed to Tell.
func (c *Context[M]) Worker() *Worker { return c.adapter.life.worker }

// Go runs a task, after the actor has handled the present message: the task may block,
// the actor does not. It may get the goroutine that the actor ran on.
func (c *Context[M]) Go(t Task) { c.sys.Go(c.Worker(), t) }

// StopSelf ends the actor after the current message, without a failure.
func (c *Context[M]) StopSelf() { c.adapter.fail(errStopSelf) }

// Stopping reports whether the actor is on its way out.
func (c *Context[M]) Stopping() bool { return c.adapter.life.stopping }

// StopChild stops the incarnation at the address of a child; ChildDown reports its end.
func (c *Context[M]) StopChild(at Located) {
	if l := at.present(); l != nil {
		l.stop()
	}
}

// Spawn starts the next incarnation at an address, as a child, under a name that
// is unique among the parent's children, for all time. It fails if one lives
// there, and if the parent is stopping.
func Spawn[P, M any](c *Context[P], name string, at *Address[M], b Behavior[M]) error {
	if c.Stopping() {
		return fmt.Errorf("kernel: spawn %s: parent is stopping: %w", name, ErrStopped)
	}
	l, path := newLife(c.sys, name, false), c.adapter.path+"/"+name
	if c.children[path] != nil {
		return fmt.Errorf("kernel: spawn %s: the name is taken", name)
	}
	pid, err := at.settle(l, b, func(p *actor.Props) (*actor.PID, error) {
		return actor.DefaultSpawner(c.sys.sys, path, p, c.actor)
	})
	if err != nil {
		return err
	}
	c.spawned++
	l.pid, l.number = pid, c.spawned
	if c.children == nil {
		c.children = make(map[string]*life)
	}
	c.children[path] = l
	return nil
}
