package agent

import (
	"errors"
	"iter"
	"time"
)

var (
	// errAborted is returned by waits of a turn or task that the host has interrupted. A
	// turn function must return it, or an error that wraps it.
	errAborted = errors.New("agent: interrupted by the host")
	// ErrTimeout says that a wait exceeded its limit.
	ErrTimeout = errors.New("agent: waited too long")

	errKilledTask = errors.New("agent: task stopped")
	errOver       = errors.New("agent: over")
)

// scope is what ends together: a turn, a background task.
type scope struct {
	parent *scope
	err    error
}

// cause returns why the scope ended, nil while it lives.
func (c *scope) cause() error {
	for ; c != nil; c = c.parent {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// within reports whether c is outer or inside it.
func (c *scope) within(outer *scope) bool {
	for ; c != nil; c = c.parent {
		if c == outer {
			return true
		}
	}
	return false
}

// Strand is one concurrent activity of an agent: a turn, a parallel tool call, a
// background task. Strands are coroutines. One strand runs at a time, until it waits, so
// strands share the engine's state without locks and always interleave in the same way.
type Strand struct {
	e        *engine
	scope    *scope
	resume   func() (struct{}, bool)
	stop     func()
	yield    func(struct{}) bool
	ready    func() bool
	deadline time.Duration // of the wait; < 0: none
	waiting  bool
	done     bool
	slept    time.Duration // the waits of Sleep, added up
}

// spawn starts fn as a separate strand; it first runs when the scheduler comes to it.
func (e *engine) spawn(sc *scope, fn func(*Strand)) *Strand {
	s := &Strand{e: e, scope: sc}
	s.resume, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.yield = yield
		fn(s)
		s.done = true
	})
	e.strands = append(e.strands, s)
	return s
}

// Err returns why the strand's turn or task was ended from outside; nil while it runs.
func (s *Strand) Err() error {
	if s.e.exit != nil {
		return errOver
	}
	return s.scope.cause()
}

// Sleep waits for d. It returns early, with the reason, when the strand's turn
// or task is aborted.
func (s *Strand) Sleep(d time.Duration) error {
	if d <= 0 {
		return s.scope.cause()
	}
	if err := s.wait(d, nil); !errors.Is(err, ErrTimeout) {
		return err
	}
	s.slept += d
	return nil
}

// wait parks the strand until ready says so (nil), limit has passed
// (ErrTimeout; limit < 0: never), or the scope ends (its cause).
func (s *Strand) wait(limit time.Duration, ready func() bool) error {
	return s.park(s.scope, limit, ready)
}

// join parks the strand until ready says so, whatever becomes of its scope.
func (s *Strand) join(ready func() bool) error { return s.park(nil, -1, ready) }

func (s *Strand) park(sc *scope, limit time.Duration, ready func() bool) error {
	deadline := time.Duration(-1)
	if limit >= 0 {
		deadline = s.e.now() + limit
	}
	for {
		switch {
		case s.e.exit != nil:
			return errOver
		case sc.cause() != nil:
			return sc.cause()
		case ready != nil && ready():
			return nil
		case deadline >= 0 && s.e.now() >= deadline:
			return ErrTimeout
		}
		s.deadline = deadline
		s.ready = func() bool {
			return sc.cause() != nil || ready != nil && ready() || deadline >= 0 && s.e.now() >= deadline
		}
		if !s.suspend() {
			return errOver
		}
	}
}

// schedule runs strands, oldest first, until every one of them waits.
func (e *engine) schedule() {
	for progress := true; progress && e.exit == nil; {
		progress = false
		for i := 0; i < len(e.strands) && e.exit == nil; i++ {
			s := e.strands[i]
			if s.waiting && !s.ready() {
				continue
			}
			progress = true
			e.advance(s)
		}
		e.strands = deleteDone(e.strands)
	}
}

// advance runs s until it waits, and on the way what it wants done on the
// engine's own goroutine.
func (e *engine) advance(s *Strand) {
	for {
		e.current = s
		s.resume()
		e.current = nil
		job := e.job
		if job == nil {
			return
		}
		e.job = nil
		job()
	}
}

// onPort runs fn, which uses the port. A port may belong to the goroutine that
// serves it (in a simulation, that goroutine is a task), so a strand hands fn
// over and waits.
func (e *engine) onPort(fn func()) {
	s := e.current
	if s == nil {
		fn()
		return
	}
	e.job = fn
	s.deadline, s.ready = -1, func() bool { return true }
	s.suspend()
}

// suspend gives control back to the scheduler; false means for good.
func (s *Strand) suspend() bool {
	s.waiting = true
	ok := s.yield(struct{}{})
	s.waiting = false
	return ok
}

func deleteDone(strands []*Strand) []*Strand {
	kept := strands[:0]
	for _, s := range strands {
		if !s.done {
			kept = append(kept, s)
		}
	}
	clear(strands[len(kept):])
	return kept
}

// nextDeadline returns how long until some strand's limit passes; < 0: none has
// one.
func (e *engine) nextDeadline() time.Duration {
	wait := time.Duration(-1)
	for _, s := range e.strands {
		if s.deadline < 0 {
			continue
		}
		if d := max(s.deadline-e.now(), 0); wait < 0 || d < wait {
			wait = d
		}
	}
	return wait
}

// stopStrands unwinds whatever still waits.
func (e *engine) stopStrands() {
	for len(e.strands) > 0 {
		s := e.strands[0]
		e.strands = e.strands[1:]
		s.stop()
	}
}

// Yield lets the engine read once what the host has written.
func (s *Strand) Yield() error {
	if err := s.scope.cause(); err != nil {
		return err
	}
	e, looked := s.e, s.e.looks
	s.deadline = e.now()
	s.ready = func() bool { return e.looks > looked }
	if !s.suspend() {
		return errOver
	}
	return s.scope.cause()
}
