package actors

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// callbacks supervises, one_for_one, the actors that call the user back. Each is
// started when the first request for it waits: most sessions need few of them.
type callbacks struct {
	core *Core
	driver[message.ToCallbacks]
	failure error
}

func newCallbacks(k *Core) (*callbacks, error) {
	b := &callbacks{core: k}
	spec := supervisor.Spec{
		Name: k.cfg.ID + "/callbacks", Strategy: supervisor.OneForOne,
		Intensity: k.cfg.ActorIntensity, Backoff: k.cfg.ActorBackoff,
	}
	sup, err := supervisor.New(spec, k.cfg.System.Rand(), observe(k.cfg.Emit))
	if err != nil {
		return nil, err
	}
	b.driver = driver[message.ToCallbacks]{
		sup: sup, spawn: b.spawnChild,
		timer: func(t message.Timer) message.ToCallbacks { return message.CallbacksTimer(t) },
		ended: func(c *kernel.Context[message.ToCallbacks], reason error) { b.failure = reason },
	}
	return b, nil
}

// Start implements [kernel.Behavior].
func (b *callbacks) Start(c *kernel.Context[message.ToCallbacks]) error {
	b.driver.start(c)
	return b.look(c)
}

// look starts the actors that requests wait for.
func (b *callbacks) look(c *kernel.Context[message.ToCallbacks]) error {
	for i := range kinds {
		if b.core.Ledger.Waiting(session.Kind(i)) {
			if err := b.want(c, kinds[i].actor); err != nil {
				return err
			}
		}
	}
	return b.failure
}

// uncalled reports whether requests wait for an actor that calls back.
func (k *Core) uncalled() bool {
	for i := range kinds {
		if k.Ledger.Waiting(session.Kind(i)) {
			return true
		}
	}
	return false
}

// Handle implements [kernel.Behavior].
func (b *callbacks) Handle(c *kernel.Context[message.ToCallbacks], m message.ToCallbacks) error {
	switch m := m.(type) {
	case message.RequestsReady:
		return b.look(c)
	case message.CallbacksTimer:
		b.fire(c, message.Timer(m))
	case message.Describe:
		m.Reply.Resolve(b.describe("callbacks/"))
	default:
		return fmt.Errorf("callbacks: unexpected message %T", m)
	}
	return b.failure
}

// ChildDown implements [kernel.ChildObserver].
func (b *callbacks) ChildDown(c *kernel.Context[message.ToCallbacks], d kernel.Down) error {
	b.down(c, d, func(child string) {
		b.core.Ledger.FailTaken(kindOfActor(child), "the host could not decide")
		b.core.changed()
	})
	return b.failure
}

// Stop implements [kernel.Behavior].
func (b *callbacks) Stop(*kernel.Context[message.ToCallbacks]) {}

func (b *callbacks) spawnChild(c *kernel.Context[message.ToCallbacks], child, name string, _ int) (kernel.Located, error) {
	kind := kindOfActor(child)
	return spawnAt[message.ToCallbacks, message.ToCallback](c, name, b.core.newCallback(kind), &b.core.callback[kind])
}

func (k *Core) newCallback(kind session.Kind) *dispatch.Actor {
	spec := &kinds[kind]
	return &dispatch.Actor{
		Kind: kind, Ledger: k.Ledger, Prepare: spec.prepare(k), Changed: k.gated,
		AsksPeople: len(spec.people) > 0, Refuses: spec.refuses,
	}
}
