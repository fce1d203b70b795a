package callbacktest

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// Host is what a callback actor has around it: a routing, and a parent.
type Host struct {
	Side *routertest.Side
	At   kernel.Address[machine.ToCallback]
	Box  callback.Box

	router kernel.Address[machine.Input]
	parent kernel.Address[spawn]
	lives  int
}

// spawn is the next incarnation. done is called with the outcome.
type spawn struct {
	name  string
	actor *callback.Actor
	done  *kernel.Promise[struct{}]
}

// NewHost returns a host on sys, with the user's side of cfg, whose agent is initialized.
func NewHost(sys *kernel.System, cfg routertest.Config, out routertest.Outlet) (*Host, error) {
	h := &Host{}
	cfg.Clock, cfg.Rand, cfg.Exec = sys.Clock(), sys.Rand(), sys.Executor()
	cfg.Told = func(e machine.Effect) {
		if m, ok := e.(machine.ToCallback); ok {
			h.At.Tell(nil, m)
		}
	}
	h.Side = routertest.New(cfg)
	h.Side.SetOutlet(out)
	routertest.Begin(h.Side)
	if err := kernel.SpawnRoot[machine.Input](sys, "router", &h.router, behavior[machine.Input]{func(_ *kernel.Context[machine.Input], in machine.Input) {
		h.Side.Tell(in)
	}}); err != nil {
		return nil, err
	}
	return h, kernel.SpawnRoot[spawn](sys, "parent", &h.parent, behavior[spawn]{func(c *kernel.Context[spawn], m spawn) {
		if err := kernel.Spawn(c, m.name, &h.At, m.actor); err != nil {
			m.done.Fail(err)
			return
		}
		m.done.Resolve(struct{}{})
	}})
}

// Start spawns a as the next incarnation. The promise is kept once it lives.
func (h *Host) Start(a *callback.Actor) *kernel.Promise[struct{}] {
	h.lives++
	a.Box, a.Router = &h.Box, &h.router
	done := kernel.NewPromise[struct{}]()
	h.parent.Tell(nil, spawn{fmt.Sprintf("%v#%d", a.Kind, h.lives), a, done})
	return done
}

// Lost denies what the dead incarnation had taken, as its supervisor does.
func (h *Host) Lost(reason string) {
	h.Side.Tell(machine.CallbacksLost{Seqs: h.Box.Lost(), Reason: reason})
}

// behavior is an actor that is a function.
type behavior[M any] struct{ handle func(*kernel.Context[M], M) }

func (b behavior[M]) Start(*kernel.Context[M]) error { return nil }
func (b behavior[M]) Stop(*kernel.Context[M])        {}
func (b behavior[M]) Handle(c *kernel.Context[M], m M) error {
	b.handle(c, m)
	return nil
}
