package transport_test

import (
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// side is the user's side with its routing in virtual time, without an actor: what the
// routing is told is handled at once, so that a test can say what the link does meanwhile.
type side struct {
	*user.Side
	kernel.Clock
	box       *router.Box
	router    kernel.Address[machine.Input] // nobody lives at any of these
	session   kernel.Address[machine.LifeInput]
	transport kernel.Address[machine.ToTransport]
	callbacks router.Lazy
	tell      func(machine.ToTransport)
	busy      bool
	told      machine.Summary
	failed    error
}

func newSide(s *sim.Scheduler, cfg routertest.Config, tell func(machine.ToTransport)) *side {
	l := &side{Clock: s, tell: tell}
	l.Side = user.New(user.Config{
		Limits: cfg.Limits, Clock: s, Rand: s, Exec: s, Budget: cfg.Budget, UserLine: cfg.UserLine, Emit: cfg.Emit,
		Router: func(in machine.Input, _ bool) { l.Tell(in) },
	})
	limits := l.Limits()
	cfg.Config.Limits = &limits
	l.box = router.NewBox(router.Config{
		Clock: l, User: l.Side, Budget: cfg.Budget, Emit: cfg.Emit,
		Self: &l.router, Session: &l.session, Transport: &l.transport, Callbacks: &l.callbacks,
		Named: func(string) {}, Mirror: func([]byte) {},
	}, cfg.Config)
	return l
}

// AfterFunc is a timer whose inputs are handled at once.
func (l *side) AfterFunc(d time.Duration, f func()) kernel.Timer {
	return l.Clock.AfterFunc(d, func() { f(); l.drain() })
}

// Tell gives the routing an input, after those that are being handled.
func (l *side) Tell(in machine.Input) {
	l.router.Tell(nil, in)
	l.drain()
}

func (l *side) drain() {
	for !l.busy && l.router.Depth() > 0 {
		l.busy = true
		l.box.Drain()
		for _, m := range l.session.Take() {
			switch m := m.(type) {
			case machine.Unusable:
				l.failed = m.Err
			case machine.Changed:
				l.told = *l.box.Routing().Told
			}
		}
		for _, m := range l.transport.Take() {
			l.tell(m)
		}
		l.busy = false
	}
}

// waits is what the routing waits for.
func (l *side) waits() (all []session.Wait) {
	for _, w := range l.box.Routing().Waits(l.Now()) {
		all = append(all, w.Wait)
	}
	return all
}

// begin answers the initialize call of a session that has just been connected.
func (l *side) begin() {
	for _, w := range l.waits() {
		if w.What == "control request initialize" {
			line := `{"type":"control_response","response":{"subtype":"success","response":{},"request_id":"` + w.ID + `"}}`
			if f, err := protocol.ParseFrame([]byte(line)); err == nil {
				l.Tell(machine.FramesRead{Frames: []protocol.Frame{f}})
			}
		}
	}
}

func (l *side) unread() int {
	n, _ := l.Unread()
	return n
}
