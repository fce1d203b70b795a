package actors

import (
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/actors/child"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/supervisor"
)

// sessionActor owns the life of a session and supervises its actors, one_for_one unless
// the user has another strategy: none of them holds anything that another one needs.
type sessionActor struct {
	core *Core
	driver[machine.LifeInput]
	over     *machine.ActorsOver  // the actors are gone, and the life has not heard
	stopping *supervisor.Stopping // the supervisor stops them for good, or nil
}

// sessionTimer is a timer of the session's supervisor. From: the clock.
type sessionTimer timer

func (sessionTimer) ToSession() {}

// NewSession returns a behaviour for the session of core. After a crash the next one
// continues with the same core.
func NewSession(k *Core) (kernel.Behavior[machine.LifeInput], error) {
	s := &sessionActor{core: k}
	sup, err := supervisor.New(k.cfg.Supervisors.Session.Spec(k.cfg.ID, k.specs()...), k.cfg.System.Rand(), s.observe)
	if err != nil {
		return nil, err
	}
	s.driver = driver[machine.LifeInput]{
		sup: sup, spawn: s.spawnChild, halt: s.halt, ended: s.supervisorEnded,
		timer: func(t timer) machine.LifeInput { return sessionTimer(t) },
	}
	return s, nil
}

// Start implements [kernel.Behavior].
func (s *sessionActor) Start(c *kernel.Context[machine.LifeInput]) error {
	k := s.core
	k.lostAll(c.Worker())
	switch {
	case k.life.Stopping(): // the actors of the incarnation before are gone
		s.over = &machine.ActorsOver{}
	case k.life.Snapshot().Over: // for good, and the process is being ended
		s.step(c, machine.Began{})
	default:
		broke := k.routing.Broken() // its router died without a supervisor; asked before the next one makes steps
		s.driver.start(c)
		if s.waiting() {
			if err := s.want(c, s.core.child("callbacks")); err != nil {
				return err
			}
		}
		s.step(c, machine.Began{})
		if broke {
			s.step(c, machine.Broken{Err: errRouterBroke})
		}
	}
	s.flush(c)
	return nil
}

// errRouterBroke ends a session whose router and session actor died together: the cause is
// unknown.
var errRouterBroke = errors.New("the router died while it changed what it knows of the session")

// waiting reports whether requests wait for actors that were never started, or
// that the incarnation before had.
func (s *sessionActor) waiting() bool {
	all := s.core.callbacks.Made()
	if all == nil {
		return false
	}
	for i := range all.Kinds {
		if all.Kinds[i].Depth() > 0 {
			return true
		}
	}
	return all.Supervisor.Depth() > 0
}

// Handle implements [kernel.Behavior].
func (s *sessionActor) Handle(c *kernel.Context[machine.LifeInput], m machine.LifeInput) error {
	switch m := m.(type) {
	case sessionTimer:
		s.fire(c, timer(m))
	case router.Wanted:
		if err := s.want(c, s.core.child("callbacks")); err != nil {
			return err
		}
	case child.Up:
		if m.Current() {
			s.up(c, m.Box.Spec().Name)
		}
	case describe:
		s.describeTree(m.reply)
		return nil
	case passivate:
		s.core.resting = append(s.core.resting, m.reply)
		s.step(c, machine.PassivateAsked{})
		c.Commit()
	case machine.Unusable:
		link := s.core.Link().Status()
		m.Stderr, m.Stdout = link.Stderr, link.Noise
		s.step(c, m)
		c.Commit()
	default:
		s.step(c, m)
		c.Commit()
	}
	s.flush(c)
	return nil
}

// ChildDown implements [kernel.ChildObserver].
func (s *sessionActor) ChildDown(c *kernel.Context[machine.LifeInput], d kernel.Down) error {
	s.down(c, d, func(name string) {
		own := s.core.ownChild(name)
		switch {
		case own != nil:
			own.Down()
		case name == "callbacks":
			s.core.lostAll(c.Worker())
		case name == "router" && s.core.routing.Broken():
			s.step(c, machine.Broken{Err: d.Reason})
		}
	})
	s.flush(c)
	return nil
}

// Stop implements [kernel.Behavior].
func (s *sessionActor) Stop(*kernel.Context[machine.LifeInput]) {}

func (s *sessionActor) spawnChild(c *kernel.Context[machine.LifeInput], of, name string) (at kernel.Located, up bool, err error) {
	k := s.core
	switch of {
	case "transport":
		return &k.transport, true, kernel.Spawn(c, name, &k.transport, &transport.Actor{Present: k.Link})
	case "router":
		return &k.router, true, kernel.Spawn(c, name, &k.router, router.New(&k.routing))
	case "callbacks":
		b, err := newCallbacks(k)
		if err != nil {
			return nil, false, err
		}
		at := &k.callbacks.Get().Supervisor
		return at, true, kernel.Spawn(c, name, at, b)
	}
	own := k.ownChild(of) // up when the user's Start has returned
	return own.Located(), false, own.Spawn(c, name)
}

// supervisorEnded is the end of the children: they had to stop, or the supervisor gave
// up, or a significant child has ended.
func (s *sessionActor) supervisorEnded(_ *kernel.Context[machine.LifeInput], reason error) {
	s.over = &machine.ActorsOver{}
	if _, gaveUp := errors.AsType[*supervisor.Failure](reason); gaveUp || errors.Is(reason, supervisor.ErrSignificant) {
		s.over.Err = reason
	}
}

// step gives the life an input.
func (s *sessionActor) step(c *kernel.Context[machine.LifeInput], in machine.LifeInput) {
	now, life := c.Now(), s.core.life
	kernel.StepOn(c, &s.core.outbox, in, func(out []machine.Effect) []machine.Effect { return life.Step(now, in, out) })
}

// flush carries out the effects of the life, and sends it the end of the actors, which
// one of the effects may cause.
func (s *sessionActor) flush(c *kernel.Context[machine.LifeInput]) {
	for {
		kernel.FlushOn(c, &s.core.outbox, func(e machine.Effect) { s.do(c, e) })
		if s.over == nil {
			return
		}
		s.step(c, *s.over)
		s.over = nil
	}
}

func (s *sessionActor) do(c *kernel.Context[machine.LifeInput], e machine.Effect) {
	k, w := s.core, c.Worker()
	switch e := e.(type) {
	case machine.Enter:
		k.enter(e)
	case machine.Emit:
		k.cfg.Emit(e.Event)
	case machine.ReadHistory:
		k.readHistory(c, e)
	case machine.Ask:
		k.ask(c, e)
	case machine.Draw:
		k.draw(w, e)
	case machine.PassivateOver:
		k.rested(e.Err)
	case machine.Tell:
		k.router.Tell(w, e.Told)
	case machine.Launch:
		k.prepare(e)
		k.transport.Tell(w, e)
	case machine.AskStart:
		k.cfg.Starts.Ask(e)
	case machine.StartOver:
		k.cfg.Starts.Over(e)
	case machine.ToTransport: // the ladder
		k.transport.Tell(w, e)
	case machine.SetTick:
		if k.tick != nil {
			k.tick.Stop()
			k.tick = nil
		}
		if e.At.IsZero() {
			return
		}
		k.tick = c.System().Clock().AfterFunc(e.At.Sub(c.Now()), func() { k.session.Tell(nil, machine.Tick{}) })
	case machine.Abort:
		k.abandon()
	case machine.StopActors:
		k.endDecision()
		s.driver.stop(c, e.Why)
	case machine.Finish:
		k.finish(e.Reason)
		c.StopSelf()
	default:
		panic(fmt.Sprintf("session: nobody carries out a %T", e))
	}
}
