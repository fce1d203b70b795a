package actors

import (
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/sparse"
)

// A session that was passivated sleeps: it has no actor and no link. The session actor
// stops once the router has nothing left to do, and the fleet keeps the core, whose boxes
// hold the rest. The first message for the session or its actors rings, and the fleet
// starts the session actor again, as it does after a crash. What comes between the last
// look and the bell is found by the fleet.
//
// Two kinds of sessions do not sleep: one with children of the user's own, whose parent the
// session actor is, and one whose supervisor knows of failures, which count for the
// intensity as long as it lives.

// lull has the router say when it is done, if the session may sleep then.
func (s *sessionActor) lull(c *kernel.Context[machine.LifeInput]) {
	if !s.lulling && !s.failed && s.core.idle() {
		s.lulling = true
		up := s.core.awake()
		up.lulls++
		s.core.router.Tell(c.Worker(), router.Lull{N: up.lulls})
	}
}

// lulled ends the actor, unless something has come meanwhile. The answer to another
// question, of an incarnation before or of a router that died of it, says nothing: two that
// are under way would each find the other waiting, and be asked again without end.
func (s *sessionActor) lulled(c *kernel.Context[machine.LifeInput], n int) {
	k := s.core
	if n != k.awake().lulls {
		return
	}
	s.lulling = false
	if s.failed || !k.idle() || k.session.Depth()+k.router.Depth()+k.awake().transport.Depth() > 0 {
		return // whoever handles what has come asks again
	}
	if k.tick != nil { // it was for a process that is gone
		k.tick.Stop()
		k.tick = nil
		s.step(c, machine.Tick{})
	}
	k.drowsy = k.idle()
	if k.drowsy {
		c.StopSelf()
	}
}

// idle reports whether the session needs no actor, as far as its own knows.
func (k *Core) idle() bool {
	return len(k.children) == 0 && len(k.resting) == 0 && !k.drowsy && k.outbox.Empty() && k.awake().life.Asleep()
}

// Drowsy reports, once, whether the session actor has stopped because nobody needs it. It
// is for its parent, and so are Sleep, Wake and Roused.
func (k *Core) Drowsy() bool {
	was := k.drowsy
	k.drowsy = false
	return was
}

// slept is what a session that sleeps keeps of what it has else.
type slept struct {
	*sparse.Struct[kept]
	timer kernel.Timer // of the routing; nil: none
}

// kept is that, but for the timer.
type kept struct {
	Life    machine.LifeState // without its Lapse
	Lapse   machine.Lapse
	Routing machine.State
}

// Sleep has ring called when the session needs its actors again, and gives up what it does
// not need until then. It reports false if something waits already. ring may be called
// more than once.
func (k *Core) Sleep(ring func(*kernel.Worker)) bool {
	up := k.awake()
	if up.transport.Depth() > 0 || !up.routing.AtRest() || !k.session.Doze(ring) || !k.router.Doze(ring) {
		return false // a bell that is left is gone with the next incarnation
	}
	all := kept{Life: up.life.Snapshot()}
	all.Lapse, all.Life.Lapse = *all.Life.Lapse, nil
	all.Life.Link.Stderr, all.Life.Link.Noise = "", "" // they explain failures
	s := &slept{}
	all.Routing, s.timer = up.routing.Pack()
	s.Struct = sparse.Of(&all)
	k.slept.Store(s)
	k.link.Store(nil)
	k.Ledger.Rest()
	k.outbox = kernel.Outbox[machine.Effect]{} // it is empty
	k.up.Store(nil)
	return true
}

// Wake reports whether the session sleeps, and ends that.
func (k *Core) Wake() bool {
	s := k.slept.Load()
	if s == nil {
		return false
	}
	all := s.Value()
	all.Life.Lapse = &all.Lapse
	up, in := &awake{}, k.input()
	shared := k.cfg.commonOf(k.cfg.Dialect, in.Limits)
	up.routing = *router.Unpack(k.routerConfig(up), k.routingConfig(in, shared), all.Routing, s.timer)
	up.life = machine.RestoreLife(all.Life, k.lifeConfig(in, shared))
	k.cfg.adopt(up)
	k.link.Store(transport.EndedLink(k.cfg.System.Clock(), all.Life.Link))
	k.up.Store(up)
	k.slept.Store(nil)
	return true
}

// Roused reports whether the session sleeps and has something to do.
func (k *Core) Roused() bool { return k.Asleep() && k.session.Depth()+k.router.Depth() > 0 }

// Asleep reports whether the session sleeps.
func (k *Core) Asleep() bool { return k.slept.Load() != nil }
