package supervisor

import (
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Supervisor is the state machine of supervision. Its methods are the inputs; they return
// the actions to carry out, in order. It belongs to one actor and is not safe for
// concurrent use.
type Supervisor struct {
	spec     Spec
	rnd      kernel.Rand
	observe  func(Event)
	children []child
	restarts []*restart // under way; at most one unless one_for_one
	failures []Failed   // within the intensity window, oldest first
	phase    phase
	reason   error    // of the end
	failure  *Failure // to escalate at the end
	tokens   Token    // given out so far
	ignored  int
	now      time.Time // of the input being handled
	actions  []Action  // answer to the input being handled
}

type phase int

const (
	created phase = iota
	supervising
	ending
	ended
)

type child struct {
	spec        Child
	state       State // never StateWaiting, which follows from the restarts
	incarnation int
	restarts    int // that its own failures caused
	reason      error
	backoff     BackoffState
	deadline    Token // of the stop or kill under way
	killed      bool
}

// up reports whether the child runs and was not asked to end.
func (c *child) up() bool { return c.state == StateStarting || c.state == StateRunning }

// restart is one restart under way, of the children in [from, to): first they
// are stopped, then the delay is waited out, then they are started.
type restart struct {
	from, to int
	cause    int // the child that called for it last
	reason   error
	delay    time.Duration
	wait     Token     // of the delay; zero before
	at       time.Time // end of the delay; zero before
}

// New returns a supervisor that has not started. rnd provides the jitter. observe is
// called with each event, unless it is nil; it must not call the supervisor. The error
// joins a *[SpecError] for each mistake in spec.
func New(spec Spec, rnd kernel.Rand, observe func(Event)) (*Supervisor, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	if rnd == nil {
		return nil, &SpecError{Supervisor: spec.Name, Problem: "the source of randomness is nil; pass the kernel's"}
	}
	if observe == nil {
		observe = func(Event) {}
	}
	s := &Supervisor{spec: spec.withDefaults(), rnd: rnd, observe: observe}
	s.children = make([]child, 0, len(spec.Children))
	for _, c := range s.spec.Children {
		s.add(c)
	}
	s.spec.Children = nil // each is in its child
	return s, nil
}

func (s *Supervisor) add(c Child) {
	s.children = append(s.children, child{spec: c, backoff: BackoffState{Backoff: s.spec.Backoff}})
}

// index returns the place of the child called name, -1 if there is no such child.
func (s *Supervisor) index(name string) int {
	return slices.IndexFunc(s.children, func(c child) bool { return c.spec.Name == name })
}

// Start starts the children. A second start, or one after a stop, does nothing.
func (s *Supervisor) Start(now time.Time) []Action {
	if s.phase != created {
		return nil
	}
	s.now, s.phase = now, supervising
	for i := range s.children {
		s.start(i)
	}
	return s.flush()
}

// StartChild adds a child after the others and starts it, as OTP's start_child does. The
// input is ignored and counted if a child has that name already, before Start, and after
// the supervisor has begun to stop. The error joins a *[SpecError] for each mistake.
func (s *Supervisor) StartChild(now time.Time, c Child) ([]Action, error) {
	one := Spec{Name: s.spec.Name, Children: []Child{c}}
	if err := one.validate(); err != nil {
		return nil, err
	}
	if s.phase != supervising || s.index(c.Name) >= 0 {
		s.ignored++
		return nil, nil
	}
	s.now = now
	s.add(one.withDefaults().Children[0])
	s.start(len(s.children) - 1)
	return s.flush(), nil
}

// ChildUp reports that a child has started. No action waits for it. It changes the
// child's state to running and begins a new healthy period. A report about an
// incarnation that is not the current one is ignored and counted.
func (s *Supervisor) ChildUp(now time.Time, name string, incarnation int) {
	c := s.present(name, incarnation)
	switch {
	case c == nil:
		s.ignored++
	case c.state == StateStarting:
		c.state = StateRunning
		c.backoff.Up(now)
	}
}

// ChildDown reports that a child has ended. reason is nil if it ended normally, otherwise
// why it failed or could not be started. A report about an incarnation that is not the
// current one, or is down already, is ignored and counted.
func (s *Supervisor) ChildDown(now time.Time, name string, incarnation int, reason error) []Action {
	c := s.present(name, incarnation)
	if c == nil {
		s.ignored++
		return nil
	}
	s.now = now
	asked := !c.up()
	c.state, c.reason, c.deadline = StateStopped, reason, 0
	c.backoff.Down(now)
	if asked || reason == nil && c.spec.Class != Permanent {
		s.emit(&ChildStopped{s.origin(), name, incarnation, reason})
	} else {
		s.emit(&ChildFailed{s.origin(), name, incarnation, reason})
	}
	switch {
	case asked || s.phase == ending:
	case c.spec.Class.restarts(reason):
		s.failed(c)
	case c.spec.Significant:
		s.end(significantEnded(name, incarnation, reason), nil)
	}
	return s.proceed()
}

// Timer reports that the time of a SetTimer is over.
func (s *Supervisor) Timer(now time.Time, t Token) []Action {
	if t == 0 {
		return nil
	}
	s.now = now
	for i := range s.children {
		if c := &s.children[i]; c.deadline == t {
			s.overdue(c)
		}
	}
	s.restarts = slices.DeleteFunc(s.restarts, func(r *restart) bool {
		if r.wait != t {
			return false
		}
		s.startAll(r)
		return true
	})
	return s.proceed()
}

// RestartChild restarts a child, and the children that the strategy restarts with it,
// without a delay and without counting for the intensity. A child that waits for its
// restart is restarted at once; a transient child that has ended is started again. For
// an unknown or temporary child the input is ignored and counted.
func (s *Supervisor) RestartChild(now time.Time, name string, reason error) []Action {
	i := s.index(name)
	if i < 0 || s.children[i].spec.Class == Temporary || s.phase != supervising {
		s.ignored++
		return nil
	}
	s.now = now
	s.restart(i, reason).delay = 0
	return s.proceed()
}

// Stop ends the supervisor in any state. The children are stopped one by one in reverse
// order, each with its deadlines. Stopped always follows, provided the timers fire. If
// the supervisor is already stopping, nothing changes: the first reason is kept, and a
// supervisor that has given up still escalates.
func (s *Supervisor) Stop(now time.Time, reason error) []Action {
	if s.phase >= ending {
		return nil
	}
	s.now = now
	s.end(reason, nil)
	return s.proceed()
}

// Ignored returns the number of inputs that were ignored because they were outdated or
// out of order.
func (s *Supervisor) Ignored() int { return s.ignored }

// present returns the child if that incarnation of it has not ended.
func (s *Supervisor) present(name string, incarnation int) *child {
	i := s.index(name)
	if i < 0 || s.phase == ended {
		return nil
	}
	if c := &s.children[i]; c.incarnation == incarnation && c.state != StateStopped {
		return c
	}
	return nil
}

// failed counts a failure and calls for a restart, or for the end.
func (s *Supervisor) failed(c *child) {
	limit := s.spec.Intensity
	s.failures = slices.DeleteFunc(s.failures, func(f Failed) bool { return s.now.Sub(f.At) > limit.Window })
	s.failures = append(s.failures, Failed{s.now, c.spec.Name, c.incarnation, c.reason})
	if n := len(s.failures); n > limit.Max {
		s.emit(&IntensityExceeded{s.origin(), c.spec.Name, n, limit})
		s.giveUp(c, c.reason, limit, s.failures[:n-1])
		return
	}
	c.restarts++
	r := s.restart(s.index(c.spec.Name), c.reason)
	r.delay = max(r.delay, c.backoff.Next(s.rnd))
}

// restart begins a restart on behalf of child i, or widens the one under way
// that touches the same children. One that waits is to wait anew for what is
// left of its delay.
func (s *Supervisor) restart(i int, reason error) *restart {
	from, to := s.affected(i)
	for _, r := range s.restarts {
		if r.from < to && from < r.to {
			if r.wait != 0 {
				r.delay, r.wait, r.at = r.at.Sub(s.now), 0, time.Time{}
			}
			r.from, r.to, r.cause, r.reason = min(r.from, from), max(r.to, to), i, reason
			return r
		}
	}
	r := &restart{from: from, to: to, cause: i, reason: reason}
	s.restarts = append(s.restarts, r)
	return r
}

// affected is the range of children that the end of child i affects.
func (s *Supervisor) affected(i int) (from, to int) {
	switch s.spec.Strategy {
	case OneForAll:
		return 0, len(s.children)
	case RestForOne:
		return i, len(s.children)
	default:
		return i, i + 1
	}
}

// giveUp ends the supervisor with a failure. Nothing is counted any more after
// that, so the failure may keep the list.
func (s *Supervisor) giveUp(c *child, reason error, limit Intensity, earlier []Failed) {
	f := &Failure{s.spec.Name, c.spec.Name, c.incarnation, reason, limit, earlier}
	s.end(f, f)
}

func (s *Supervisor) end(reason error, f *Failure) {
	s.phase, s.reason, s.failure, s.restarts = ending, reason, f, nil
	s.emit(&Stopping{s.origin(), reason})
}

// proceed takes whatever is under way as far as it goes now.
func (s *Supervisor) proceed() []Action {
	switch s.phase {
	case supervising:
		s.restarts = slices.DeleteFunc(s.restarts, s.advance)
	case ending:
		if !s.stopNext(0, len(s.children)) {
			s.finish()
		}
	}
	return s.flush()
}

// advance takes a restart as far as it goes now and reports whether it is done.
func (s *Supervisor) advance(r *restart) bool {
	if r.wait != 0 || s.stopNext(r.from, r.to) {
		return false
	}
	s.emit(&RestartScheduled{s.origin(), s.children[r.cause].spec.Name, r.reason, r.delay, s.returning(r)})
	if r.delay > 0 {
		r.wait, r.at = s.timer(r.delay), s.now.Add(r.delay)
		return false
	}
	s.startAll(r)
	return true
}

// stopNext reports whether a child in [from, to) is not down yet. If none is
// being stopped, it begins to stop the last.
func (s *Supervisor) stopNext(from, to int) bool {
	for i := from; i < to; i++ {
		if s.children[i].state == StateStopping {
			return true
		}
	}
	for i := to - 1; i >= from; i-- {
		if c := &s.children[i]; c.up() {
			s.stop(c)
			return true
		}
	}
	return false
}

func (s *Supervisor) stop(c *child) {
	c.state = StateStopping
	if c.spec.Shutdown == Brutal {
		s.kill(c)
		return
	}
	s.do(&StopChild{c.spec.Name, c.incarnation})
	c.deadline = s.timer(c.spec.Shutdown)
}

func (s *Supervisor) kill(c *child) {
	c.killed = true
	s.do(&KillChild{c.spec.Name, c.incarnation})
	c.deadline = s.timer(c.spec.Kill)
}

// overdue handles a child that did not end within its deadline.
func (s *Supervisor) overdue(c *child) {
	if !c.killed {
		s.kill(c)
		return
	}
	c.state, c.deadline = StateStuck, 0
	s.emit(&ChildStuck{s.origin(), c.spec.Name, c.incarnation})
	if s.phase == supervising {
		// A next incarnation would live beside this one.
		s.giveUp(c, ErrStuck, Intensity{}, s.failures)
	}
}

// startAll starts the children of a restart, all of which are down.
func (s *Supervisor) startAll(r *restart) {
	for i := r.from; i < r.to; i++ {
		if s.children[i].spec.Class != Temporary {
			s.start(i)
		}
	}
	s.emit(&Restarted{s.origin(), s.children[r.cause].spec.Name, s.returning(r)})
}

// returning names the children that a restart starts.
func (s *Supervisor) returning(r *restart) []string {
	var names []string
	for _, c := range s.children[r.from:r.to] {
		if c.spec.Class != Temporary {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

func (s *Supervisor) start(i int) {
	c := &s.children[i]
	c.incarnation++
	c.state, c.killed = StateStarting, false
	c.backoff.Up(s.now)
	s.do(&StartChild{c.spec.Name, c.incarnation})
	s.emit(&ChildStarted{s.origin(), c.spec.Name, c.incarnation})
}

func (s *Supervisor) finish() {
	s.phase = ended
	if s.failure != nil {
		s.emit(&Escalated{s.origin(), s.failure})
		s.do(&Escalate{s.failure})
	}
	last := &Stopped{Origin: s.origin(), Reason: s.reason}
	for _, c := range s.children {
		if c.state == StateStuck {
			last.Stuck = append(last.Stuck, c.spec.Name)
		}
	}
	s.emit(last)
	s.do(last)
}

func (s *Supervisor) origin() Origin { return Origin{s.now, s.spec.Name} }

func (s *Supervisor) emit(e Event) { s.observe(e) }

func (s *Supervisor) do(a Action) { s.actions = append(s.actions, a) }

func (s *Supervisor) timer(after time.Duration) Token {
	s.tokens++
	s.do(&SetTimer{s.tokens, after})
	return s.tokens
}

func (s *Supervisor) flush() []Action {
	actions := s.actions
	s.actions = nil
	return actions
}
