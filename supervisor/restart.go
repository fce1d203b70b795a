package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// restart is one restart under way: first its children are stopped, then the delay is
// waited out, then they are started.
type restart struct {
	children []*child // in the order of the spec
	cause    *child   // that called for it last
	reason   error
	why      string // of the strategy
	delay    time.Duration
	wait     Token     // of the delay; zero before
	at       time.Time // end of the delay; zero before
}

func (r *restart) has(c *child) bool { return slices.Contains(r.children, c) }

// failed counts a failure and asks the strategy, or calls for the end.
func (s *Supervisor) failed(c *child) {
	limit := s.intensity
	s.failures = slices.DeleteFunc(s.failures, func(f Failed) bool { return s.now.Sub(f.At) > limit.Window })
	f := Failed{s.now, c.spec.Name, c.incarnation, c.reason}
	s.failures = append(s.failures, f)
	n := len(s.failures)
	earlier := s.failures[:n-1]
	if n > limit.Max {
		s.emit(&IntensityExceeded{s.origin(), c.spec.Name, n, limit})
		s.giveUp(c, c.reason, "", limit, earlier)
		return
	}
	switch d, err := s.decide(f); {
	case err != nil:
		s.giveUp(c, errors.Join(c.reason, err), "", Intensity{}, earlier)
	case d.Escalate:
		s.giveUp(c, c.reason, cmp.Or(d.Why, "the strategy escalates"), Intensity{}, earlier)
	default:
		back := slices.Contains(d.Restart, c.spec.Name)
		if !back {
			s.leave(c)
			s.emit(&NotRestarted{s.origin(), c.spec.Name, c.incarnation, c.reason, cmp.Or(d.Why, "the strategy leaves it down")})
			if c.spec.Significant {
				s.end(significantEnded(c.spec.Name, c.incarnation, c.reason), nil)
				return
			}
		}
		if len(d.Restart) == 0 {
			return
		}
		r := s.restart(c, c.reason, d)
		if back {
			c.restarts++
			r.delay = max(r.delay, c.tries.next(s.rnd, c.spec.Backoff))
		}
	}
}

// leave takes a child that stays down out of the restart it was to come back with.
func (s *Supervisor) leave(c *child) {
	s.restarts = slices.DeleteFunc(s.restarts, func(r *restart) bool {
		r.children = slices.DeleteFunc(r.children, func(other *child) bool { return other == c })
		return len(r.children) == 0
	})
}

// restart begins a restart on behalf of c, and takes those under way that touch the same
// children into it. A child in backoff resumes its remaining delay.
func (s *Supervisor) restart(c *child, reason error, d Decision) *restart {
	r := &restart{cause: c, reason: reason, why: d.Why}
	in := make(map[*child]bool, len(d.Restart))
	for _, name := range d.Restart {
		in[s.find(name)] = true
	}
	for again := true; again; {
		again = false
		s.restarts = slices.DeleteFunc(s.restarts, func(old *restart) bool {
			if !slices.ContainsFunc(old.children, func(c *child) bool { return in[c] }) {
				return false
			}
			left := old.delay
			if old.wait != 0 {
				left = old.at.Sub(s.now)
			}
			r.delay = max(r.delay, left)
			for _, c := range old.children {
				in[c] = true
			}
			again = true
			return true
		})
	}
	for _, c := range s.children {
		if in[c] {
			r.children = append(r.children, c)
		}
	}
	s.restarts = append(s.restarts, r)
	return r
}

// giveUp ends the supervisor with a failure. Nothing is counted any more after
// that, so the failure may keep the list.
func (s *Supervisor) giveUp(c *child, reason error, why string, limit Intensity, earlier []Failed) {
	f := &Failure{s.name, c.spec.Name, c.incarnation, reason, why, limit, earlier}
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
		if s.template != nil {
			s.children = slices.DeleteFunc(s.children, s.over)
		}
	case ending:
		if !s.stopNext(s.children) {
			s.finish()
		}
	}
	return s.flush()
}

// over reports whether a child has ended and will not come back.
func (s *Supervisor) over(c *child) bool {
	return c.state == StateStopped && !slices.ContainsFunc(s.restarts, func(r *restart) bool { return r.has(c) })
}

// advance takes a restart as far as it goes now and reports whether it is done.
func (s *Supervisor) advance(r *restart) bool {
	if r.wait != 0 || s.stopNext(r.children) {
		return false
	}
	s.emit(&RestartScheduled{s.origin(), r.cause.spec.Name, r.reason, r.why, r.delay, r.returning()})
	if r.delay > 0 {
		r.wait, r.at = s.timer(r.delay), s.now.Add(r.delay)
		return false
	}
	s.startAll(r)
	return true
}

// stopNext reports whether one of the children is not down yet. If none is being
// stopped, it begins to stop the last.
func (s *Supervisor) stopNext(children []*child) bool {
	for _, c := range children {
		if c.state == StateStopping {
			return true
		}
	}
	for _, c := range slices.Backward(children) {
		if c.up() {
			s.stop(c)
			return true
		}
	}
	return false
}

func (s *Supervisor) stop(c *child) {
	c.state = StateStopping
	if c.spec.Shutdown == Brutal {
		s.kill(c, "it gets no time to stop")
		return
	}
	s.do(&StopChild{c.spec.Name, c.incarnation})
	c.deadline = s.timer(c.spec.Shutdown)
}

func (s *Supervisor) kill(c *child, why string) {
	c.killed = true
	s.emit(&ChildKilled{s.origin(), c.spec.Name, c.incarnation, why})
	s.do(&KillChild{c.spec.Name, c.incarnation})
	c.deadline = s.timer(c.spec.Kill)
}

// overdue handles a child that did not start or end within its deadline.
func (s *Supervisor) overdue(c *child) {
	switch {
	case c.state == StateStarting:
		c.state, c.late = StateStopping, true
		s.kill(c, fmt.Sprintf("it did not start within %v", c.spec.Start))
		return
	case !c.killed:
		s.kill(c, fmt.Sprintf("it did not stop within %v", c.spec.Shutdown))
		return
	}
	c.state, c.deadline, c.late = StateStuck, 0, false
	s.emit(&ChildStuck{s.origin(), c.spec.Name, c.incarnation})
	if s.phase == supervising {
		// A next incarnation would live beside this one.
		s.giveUp(c, ErrStuck, "", Intensity{}, s.failures)
	}
}

// startAll starts the children of a restart, all of which are down.
func (s *Supervisor) startAll(r *restart) {
	for _, c := range r.children {
		if c.spec.Class != Temporary {
			s.start(c)
		}
	}
	s.emit(&Restarted{s.origin(), r.cause.spec.Name, r.returning()})
}

// returning names the children that a restart starts.
func (r *restart) returning() []string {
	var names []string
	for _, c := range r.children {
		if c.spec.Class != Temporary {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

func (s *Supervisor) start(c *child) {
	c.incarnation++
	c.state, c.killed, c.startedAt = StateStarting, false, s.now
	c.tries.begin(s.now)
	s.do(&StartChild{c.spec.Name, c.incarnation})
	if c.spec.Start > 0 {
		c.deadline = s.timer(c.spec.Start)
	}
	s.emit(&ChildStarted{s.origin(), c.spec.Name, c.incarnation})
}
