package callbacktest

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Host is what a callback actor has around it: a router, and a parent.
type Host struct {
	*routertest.Router
	Box callback.Box

	parent kernel.Address[spawn]
	lives  int
}

// spawn is the next incarnation. done is kept or broken with it.
type spawn struct {
	name  string
	actor *callback.Actor
	done  *kernel.Promise[struct{}]
}

// NewHost returns a host on sys, with the user's side of cfg, whose agent is initialized.
// write gets each line for the agent.
func NewHost(sys *kernel.System, cfg routertest.Config, write func(line []byte)) (*Host, error) {
	h := &Host{}
	var err error
	h.Router, err = routertest.New(sys, cfg, func(m machine.ToTransport) {
		if w, ok := m.(machine.Write); ok {
			write(w.Line)
		}
	})
	if err != nil {
		return nil, err
	}
	h.Router.At.Tell(nil, machine.Connected{Gen: 1})
	h.Begin()
	return h, kernel.SpawnRoot[spawn](sys, "parent", &h.parent, routertest.Behavior[spawn](func(c *kernel.Context[spawn], m spawn) {
		if err := kernel.Spawn(c, m.name, h.At(m.actor.Kind), m.actor); err != nil {
			m.done.Fail(err)
			return
		}
		m.done.Resolve(struct{}{})
	}))
}

// At is the address of the callback actor of a kind.
func (h *Host) At(kind session.Kind) *kernel.Address[machine.ToCallback] {
	return &h.Callbacks.Get().Kinds[kind]
}

// Start spawns a as the next incarnation. The promise is kept once it lives.
func (h *Host) Start(a *callback.Actor) *kernel.Promise[struct{}] {
	h.lives++
	a.Box, a.Router = &h.Box, &h.Router.At
	done := kernel.NewPromise[struct{}]()
	h.parent.Tell(nil, spawn{fmt.Sprintf("%v#%d", a.Kind, h.lives), a, done})
	return done
}

// Lost denies what the dead incarnation had taken, as its supervisor does.
func (h *Host) Lost(reason string) {
	h.Router.At.Tell(nil, machine.CallbacksLost{Seqs: h.Box.Lost(), Reason: reason})
}
