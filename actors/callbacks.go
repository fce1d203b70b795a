package actors

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// callbacks supervises the actors that call the user back. Each is
// started when the first request for it waits: most sessions need few of them.
type callbacks struct {
	core *Core
	driver[router.ToCallbacks]
	failure error
}

// callbacksTimer is a timer of that supervisor. From: the clock.
type callbacksTimer timer

func (callbacksTimer) ToCallbacks() {}

func newCallbacks(k *Core) (*callbacks, error) {
	b := &callbacks{core: k}
	spec := k.cfg.Supervisors.Callbacks.Spec(k.cfg.ID + "/callbacks")
	sup, err := supervisor.New(spec, k.cfg.System.Rand(), observe(k.cfg.Emit))
	if err != nil {
		return nil, err
	}
	b.driver = driver[router.ToCallbacks]{
		sup: sup, spawn: b.spawnChild,
		timer: func(t timer) router.ToCallbacks { return callbacksTimer(t) },
		ended: func(c *kernel.Context[router.ToCallbacks], reason error) { b.failure = reason },
		halt:  func(c *kernel.Context[router.ToCallbacks], l liveChild, _ bool) { c.StopChild(l.at) },
	}
	return b, nil
}

// Start implements [kernel.Behavior]. It starts the actors that requests wait for.
func (b *callbacks) Start(c *kernel.Context[router.ToCallbacks]) error {
	b.driver.start(c)
	all := b.core.callbacks.Get()
	for i := range all.Kinds {
		if all.Kinds[i].Depth() > 0 {
			if err := b.want(c, b.core.child(actorOf(session.Kind(i)))); err != nil {
				return err
			}
		}
	}
	return b.failure
}

// Handle implements [kernel.Behavior].
func (b *callbacks) Handle(c *kernel.Context[router.ToCallbacks], m router.ToCallbacks) error {
	switch m := m.(type) {
	case router.Wanted:
		if err := b.want(c, b.core.child(actorOf(m.Kind))); err != nil {
			return err
		}
	case callbacksTimer:
		b.fire(c, timer(m))
	case describe:
		m.reply.Resolve(b.describe(b.core.cfg.System.Clock().Now(), "callbacks/", b.core.callbacks.Get().Supervisor.Name()))
	default:
		return fmt.Errorf("callbacks: unexpected message %T", m)
	}
	return b.failure
}

// ChildDown implements [kernel.ChildObserver].
func (b *callbacks) ChildDown(c *kernel.Context[router.ToCallbacks], d kernel.Down) error {
	b.down(c, d, func(child string) { b.core.lost(c.Worker(), router.KindOfActor(child)) })
	return b.failure
}

// Stop implements [kernel.Behavior].
func (b *callbacks) Stop(*kernel.Context[router.ToCallbacks]) {}

func (b *callbacks) spawnChild(c *kernel.Context[router.ToCallbacks], child, name string) (at kernel.Located, up bool, err error) {
	kind := router.KindOfActor(child)
	own := &b.core.callbacks.Get().Kinds[kind]
	if own.Tries() > 1 { // two incarnations have died of it
		if m, ok := own.DropHead(); ok {
			if run, ok := m.(machine.Run); ok {
				b.core.deny(c.Worker(), run.Seq)
			}
		}
	}
	return own, true, kernel.Spawn[router.ToCallbacks, machine.ToCallback](c, name, own, b.core.newCallback(kind))
}

func actorOf(kind session.Kind) string {
	spec, _ := router.Of(kind)
	return spec.Actor
}

func (k *Core) newCallback(kind session.Kind) *callback.Actor {
	spec, _ := router.Of(kind)
	return &callback.Actor{
		Kind: kind, Box: &k.running[kind], Router: &k.router, Prepare: spec.Prepare(k.deps()), Emit: k.cfg.Emit, Trace: k.cfg.Trace, Refuses: spec.Refuses,
	}
}

// lost denies the requests that a dead callback actor had taken. Requests that it had
// not taken wait for the next one.
func (k *Core) lost(w *kernel.Worker, kind session.Kind) {
	k.deny(w, k.running[kind].Lost()...)
}

// lostAll is lost for every kind.
func (k *Core) lostAll(w *kernel.Worker) {
	for i := range k.running {
		k.lost(w, session.Kind(i))
	}
}

func (k *Core) deny(w *kernel.Worker, seqs ...uint64) {
	if len(seqs) > 0 {
		k.router.Tell(w, machine.CallbacksLost{Seqs: seqs, Reason: "the host could not decide"})
	}
}
