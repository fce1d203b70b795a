package supervisor

import (
	"errors"
	"slices"
	"time"
)

// Supervisor is the state machine of supervision. Its methods are the inputs; they return
// the actions to carry out, in order. It belongs to one actor and is not safe for
// concurrent use.
type Supervisor struct {
	name      string
	strategy  Strategy
	intensity Intensity
	backoff   Backoff // of children that are added
	template  *Child  // nil unless the strategy is SimpleOneForOne

	rnd      Rand
	observe  func(Event)
	children []*child   // in the order of the spec
	restarts []*restart // under way; no child is in two of them
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
	tries       tries
	deadline    Token // of the start, stop or kill under way
	killed      bool
	late        bool // killed because it did not start in time
	startedAt   time.Time
	failedAt    time.Time
}

// up reports whether the child runs and was not asked to end.
func (c *child) up() bool { return c.state == StateStarting || c.state == StateRunning }

// New returns a supervisor that has not started. rnd provides the jitter. observe is
// called with each event, unless it is nil; it must not call the supervisor. The error
// joins a *[SpecError] for each mistake in spec.
func New(spec Spec, rnd Rand, observe func(Event)) (*Supervisor, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if rnd == nil {
		return nil, &SpecError{Supervisor: spec.Name, Problem: "the source of randomness is nil; pass the kernel's"}
	}
	if observe == nil {
		observe = func(Event) {}
	}
	spec = spec.withDefaults()
	s := &Supervisor{name: spec.Name, strategy: spec.Strategy, intensity: spec.Intensity, backoff: spec.Backoff, rnd: rnd, observe: observe}
	if spec.simple() {
		template := spec.Template
		s.template = &template
	}
	all := make([]child, len(spec.Children))
	s.children = make([]*child, len(spec.Children))
	for i, c := range spec.Children {
		all[i] = newChild(c)
		s.children[i] = &all[i]
	}
	return s, nil
}

func newChild(c Child) child { return child{spec: c} }

// find returns the child called name, nil if there is no such child.
func (s *Supervisor) find(name string) *child {
	for _, c := range s.children {
		if c.spec.Name == name {
			return c
		}
	}
	return nil
}

// Start starts the children. A second start, or one after a stop, does nothing.
func (s *Supervisor) Start(now time.Time) []Action {
	if s.phase != created {
		return nil
	}
	s.now, s.phase = now, supervising
	for _, c := range s.children {
		s.start(c)
	}
	return s.flush()
}

// StartChild adds a child after the others and starts it, as OTP's start_child does. With
// [SimpleOneForOne] c has only a name, and Spec.Template the rest; its incarnations are
// counted from 1, also when a child that had the name was forgotten. The input is
// ignored and counted if a child has that name already, before Start, and after
// the supervisor has begun to stop. The error joins a *[SpecError] for each mistake.
func (s *Supervisor) StartChild(now time.Time, c Child) ([]Action, error) {
	if s.template != nil {
		if c != (Child{Name: c.Name}) {
			return nil, &SpecError{s.name, c.Name, "it is not made of the template; give a name alone"}
		}
		name := c.Name
		c = *s.template
		c.Name = name
	}
	one := Spec{Name: s.name, Backoff: s.backoff, Children: []Child{c}}
	if err := one.Validate(); err != nil {
		return nil, err
	}
	if s.phase != supervising || s.find(c.Name) != nil {
		s.ignored++
		return nil, nil
	}
	s.now = now
	added := newChild(one.withDefaults().Children[0])
	s.children = append(s.children, &added)
	s.start(&added)
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
		c.state, c.deadline = StateRunning, 0
		c.tries.begin(now)
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
	asked := !c.up() && !c.late
	if c.late {
		reason = notStarted(c.spec.Start, reason)
	}
	c.state, c.reason, c.deadline, c.late = StateStopped, reason, 0, false
	c.tries.end(now, c.spec.Backoff)
	if asked || reason == nil && c.spec.Class != Permanent {
		s.emit(&ChildStopped{s.origin(), name, incarnation, reason})
	} else {
		c.failedAt = now
		s.emit(&ChildFailed{s.origin(), name, incarnation, reason})
	}
	switch {
	case asked || s.phase == ending:
	case c.spec.Class.restarts(reason):
		s.failed(c)
	case c.spec.Significant:
		s.end(significantEnded(name, incarnation, reason), nil)
	case reason != nil:
		s.emit(&NotRestarted{s.origin(), name, incarnation, reason, "it is " + c.spec.Class.String()})
	}
	return s.proceed()
}

// Timer reports that the time of a SetTimer is over.
func (s *Supervisor) Timer(now time.Time, t Token) []Action {
	if t == 0 {
		return nil
	}
	s.now = now
	for _, c := range s.children {
		if c.deadline == t {
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
// restart is restarted at once; a transient child that has ended is started again. A
// strategy that escalates or would leave the child down cannot prevent that: the child is
// then restarted alone, or too. For an unknown or temporary child the input is ignored
// and counted.
func (s *Supervisor) RestartChild(now time.Time, name string, reason error) []Action {
	c := s.find(name)
	if c == nil || c.spec.Class == Temporary || s.phase != supervising {
		s.ignored++
		return nil
	}
	s.now = now
	d, err := s.decide(Failed{now, name, c.incarnation, reason})
	if err != nil {
		s.giveUp(c, errors.Join(reason, err), "", Intensity{}, nil)
		return s.proceed()
	}
	s.restart(c, reason, Decision{Restart: append(d.Restart, name), Why: d.Why}).delay = 0
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
	c := s.find(name)
	if c == nil || s.phase == ended {
		return nil
	}
	if c.incarnation == incarnation && c.state != StateStopped {
		return c
	}
	return nil
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

func (s *Supervisor) origin() Origin { return Origin{s.now, s.name} }

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
