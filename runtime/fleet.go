package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/internal/confine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// toFleet is what the fleet actor takes.
type toFleet interface{ toFleet() }

// sessionsChanged says that the registry holds sessions to start.
type sessionsChanged struct{}

// sessionTimer is a timer of the supervisor of one session.
type sessionTimer struct {
	member *member
	token  supervisor.Token
}

func (sessionsChanged) toFleet() {}
func (sessionTimer) toFleet()    {}

// fleet is the one parent of all sessions, simple_one_for_one. It has no
// parent itself, so it survives its own failures: what it may have missed it
// finds in the registry.
type fleet struct {
	rt      *Runtime
	spawned int                // names are unique for all time, also when an id comes back
	live    map[string]*member // by the name given to spawn
	waiting []*member          // crashed, and told to wait for their restart
}

// member is one session as its supervisor sees it.
type member struct {
	session *Session
	// sup exists from the first crash on: most sessions never need one.
	sup *supervisor.Supervisor
	// timer is the one that its supervisor waits for, until due.
	timer supervisor.Token
	due   time.Time
}

func newFleet(rt *Runtime) *fleet {
	return &fleet{rt: rt, live: make(map[string]*member)}
}

// Start implements [kernel.Behavior].
func (f *fleet) Start(c *kernel.Context[toFleet]) error {
	f.scan(c)
	return nil
}

// Handle implements [kernel.Behavior].
func (f *fleet) Handle(c *kernel.Context[toFleet], m toFleet) error {
	switch m := m.(type) {
	case sessionsChanged:
		f.scan(c)
	case sessionTimer:
		f.fire(c, m.member, m.token)
	default:
		return fmt.Errorf("fleet: unexpected message %T", m)
	}
	return nil
}

// Survive implements [kernel.Survivor]: the message that was lost may have been
// the start of a session, or the timer of one that waits for its restart.
func (f *fleet) Survive(c *kernel.Context[toFleet], _ error) {
	f.scan(c)
	for _, m := range slices.Clone(f.waiting) {
		if !c.Now().Before(m.due) { // else its timer is still to come
			f.fire(c, m, m.timer)
		}
	}
}

func (f *fleet) fire(c *kernel.Context[toFleet], m *member, token supervisor.Token) {
	f.waiting = slices.DeleteFunc(f.waiting, func(w *member) bool { return w == m })
	f.do(c, m, m.sup.Timer(c.Now(), token))
}

// Stop implements [kernel.Behavior].
func (f *fleet) Stop(*kernel.Context[toFleet]) {}

// scan starts every session that waits for it.
func (f *fleet) scan(c *kernel.Context[toFleet]) {
	for _, s := range f.rt.unstarted() {
		f.start(c, &member{session: s})
	}
}

func (f *fleet) start(c *kernel.Context[toFleet], m *member) {
	f.spawned++
	name := fmt.Sprintf("%s#%d", m.session.id, f.spawned)
	behavior, err := actors.NewSession(m.session.core)
	if err == nil {
		err = kernel.Spawn(c, name, m.session.core.Address(), behavior)
	}
	if err != nil {
		f.fail(m, err)
		return
	}
	f.live[name] = m
	m.session.lived.Store(c.Now().UnixNano())
}

// ChildDown implements [kernel.ChildObserver].
func (f *fleet) ChildDown(c *kernel.Context[toFleet], d kernel.Down) error {
	m := f.live[d.Name]
	if m == nil {
		return nil
	}
	delete(f.live, d.Name)
	if len(f.live) == 0 {
		f.live = make(map[string]*member) // a map never gives memory back
	}
	if m.session.core.State().Terminal() && m.session.core.User.Terminated() {
		m.session.core.Retire()
		return nil
	}
	reason := d.Reason
	if reason == nil {
		reason = errors.New("the session actor stopped before its session had ended")
	}
	if m.session.core.Broken() {
		f.fail(m, reason)
		return nil
	}
	if m.sup == nil {
		if err := f.supervise(c, m); err != nil {
			f.fail(m, err)
			return nil
		}
	}
	_, limit := m.sup.Recent(c.Now())
	m.session.crashed(reason, c.Now(), limit)
	f.do(c, m, m.sup.ChildDown(c.Now(), m.session.id, incarnationOf(m), reason))
	return nil
}

func incarnationOf(m *member) int { return m.sup.Snapshot()[0].Incarnation }

// supervise gives a session its supervisor, whose first incarnation is the one
// that has just crashed.
func (f *fleet) supervise(c *kernel.Context[toFleet], m *member) error {
	spec := f.rt.cfg.Supervisor.Spec("fleet/"+m.session.id, supervisor.Child{Name: m.session.id})
	sup, err := supervisor.New(spec, f.rt.sys.Rand(), func(e supervisor.Event) { m.session.emit(&session.Supervision{Decision: e}) })
	if err != nil {
		return err
	}
	sup.Start(c.Now())
	sup.ChildUp(c.Now(), m.session.id, 1)
	m.sup = sup
	return nil
}

func (f *fleet) do(c *kernel.Context[toFleet], m *member, actions []supervisor.Action) {
	for _, action := range actions {
		switch a := action.(type) {
		case *supervisor.StartChild:
			f.start(c, m)
		case *supervisor.SetTimer:
			m.timer, m.due = a.Token, c.Now().Add(a.After)
			f.waiting = append(f.waiting, m)
			c.After(a.After, sessionTimer{m, a.Token})
		case *supervisor.Stopped:
			f.fail(m, a.Reason)
		}
	}
}

// fail ends a session that will have no actor any more.
func (f *fleet) fail(m *member, reason error) {
	f.rt.sys.Executor().Go(func() {
		m.session.core.Fail(reason)
		m.session.core.Retire()
	})
}

// ServeGuard runs the guard and exits if a runtime started this process as one
// (Config.Guard). If this process was started to confine a command (Confine.Landlock of package
// agent/embedded), it becomes that command. Otherwise ServeGuard returns at once. Call it first in
// main, before anything else is started.
func ServeGuard() {
	confine.Serve()
	if os.Getenv(osproc.GuardEnv) == "" {
		return
	}
	if err := osproc.Guard(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// checkGuard finds mistakes in Config.Guard.
func (cfg *Config) checkGuard() error {
	switch {
	case len(cfg.Guard) == 0:
		return nil
	case cfg.StateDir == "":
		return &session.ConfigError{Option: "Guard", Problem: "needs the records of StateDir, which is empty", Fix: "set StateDir"}
	case os.Getenv(osproc.GuardEnv) != "": // it would start itself without end
		return &session.ConfigError{Option: "Guard", Problem: "this process was started as a guard and is none", Fix: "call runtime.ServeGuard first in main"}
	}
	return nil
}

// NewMarker returns the name of a new launch marker. A process that has it in its
// environment (Options.Env, with any value), and all that it starts, can be ended with
// [Runtime.SweepMarker], also by a later program: write the marker down before the start.
func (rt *Runtime) NewMarker() string {
	return fmt.Sprintf("TROUPE_LAUNCH_%d_%s", os.Getpid(), kernel.NewID(rt.sys.Rand()))
}

// SweepMarker kills every process of this machine that carries the marker, and returns
// those that it could not kill. It is meant for what a program that was killed has left.
// Linux only; see docs/deployment.md for the limits.
func (rt *Runtime) SweepMarker(ctx context.Context, marker string) ([]session.ProcInfo, error) {
	sweeper, ok := rt.spawner.(interface {
		SweepMarker(context.Context, string) ([]session.ProcInfo, error)
	})
	if !ok {
		return nil, errors.New("sweep: the spawner of this runtime cannot find processes by a marker")
	}
	return sweeper.SweepMarker(ctx, marker)
}
