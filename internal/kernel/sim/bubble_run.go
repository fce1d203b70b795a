package sim

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// Run gives the baton to one goroutine after another until no task is left. It
// returns [ErrSteps] when the steps are used up, and [ErrDeadlock] when tasks wait
// for what cannot come.
func (s *Bubble) Run() error {
	synctest.Wait()
	for {
		s.mu.Lock()
		if s.held == nil && s.arrivals > 1 {
			s.unseeded = true
		}
		s.arrivals = 0
		st := s.pick()
		s.mu.Unlock()
		if st == nil {
			switch waited, err := s.pass(); {
			case err != nil:
				return err
			case !waited:
				return nil
			}
			synctest.Wait()
			continue
		}
		if err := s.give(st); err != nil {
			return err
		}
	}
}

// pick takes a seat that is ready, or returns nil. mu is held.
func (s *Bubble) pick() *seat {
	// Seats become ready side by side: their order is that in which they were taken.
	slices.SortFunc(s.fresh, func(a, b *seat) int { return cmp.Compare(a.seq, b.seq) })
	s.ready = append(s.ready, s.fresh...)
	clear(s.fresh)
	s.fresh = s.fresh[:0]
	if len(s.ready) == 0 {
		return nil
	}
	i := s.choice.Pick(len(s.ready), func(i int) uint64 { return s.ready[i].task })
	st := s.ready[i]
	s.ready = slices.Delete(s.ready, i, i+1)
	return st
}

// give lets a goroutine run until it waits again, for the baton or for anything
// else, or has ended.
func (s *Bubble) give(st *seat) error {
	s.mu.Lock()
	s.steps++
	if s.steps > s.max {
		s.mu.Unlock()
		return fmt.Errorf("%w: %d", ErrSteps, s.max)
	}
	s.baton++
	s.held, s.adopted, s.arrivals = st, false, 0
	s.waiting--
	live := s.live
	s.mu.Unlock()
	st.turn <- struct{}{}
	synctest.Wait()
	s.mu.Lock()
	s.held = nil
	if s.arrivals > 1 {
		s.unseeded = true
	}
	inUserCode := s.arrivals == 0 && s.live >= live
	s.arrivals = 0
	jump := s.jump
	s.jump = 0
	s.mu.Unlock()
	s.onStep()
	if inUserCode {
		s.handOff(st)
	}
	if jump > 0 {
		time.Sleep(jump)
		synctest.Wait()
	}
	st.role = nil
	s.mu.Lock()
	s.used = append(s.used, st)
	s.mu.Unlock()
	return nil
}

// pass lets time go by until a timer fires or a goroutine is ready. It reports
// false when there is nothing to wait for.
func (s *Bubble) pass() (bool, error) {
	s.mu.Lock()
	for len(s.timers) > 0 && s.timers[0].stopped {
		heap.Pop(&s.timers)
	}
	s.moveDue()
	wait, inUserCode := horizon, s.live > s.waiting
	if len(s.timers) > 0 {
		wait = s.timers[0].at.Sub(s.Now())
	}
	switch {
	case len(s.due) > 0:
		t := s.takeDue()
		s.steps++
		s.mu.Unlock()
		t.fn()
		return true, nil
	case len(s.timers) == 0 && !inUserCode:
		return s.quiescent()
	}
	select {
	case <-s.poke: // of before
	default:
	}
	s.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	//troupe:select either way Run looks again
	select {
	case <-s.poke:
	case <-t.C:
		s.mu.Lock()
		if len(s.timers) == 0 && len(s.fresh) == 0 {
			return s.quiescent()
		}
		s.mu.Unlock()
	}
	return true, nil
}

// moveDue takes the timers of this instant out of the heap, and drops those that were
// stopped; mu is held. Many sessions have their timers at the same instant.
func (s *Bubble) moveDue() {
	if s.undue {
		s.undue = false
		s.due = slices.DeleteFunc(s.due, func(t *timer) bool { return t.stopped })
	}
	if len(s.timers) == 0 {
		return
	}
	now := s.Now()
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		if t := heap.Pop(&s.timers).(*timer); !t.stopped {
			t.due = true
			s.due = append(s.due, t)
		}
	}
}

// takeDue takes one of the timers of this instant; mu is held.
func (s *Bubble) takeDue() *timer {
	i := s.choice.Of(len(s.due))
	t := s.due[i]
	s.due = slices.Delete(s.due, i, i+1)
	t.fired = true
	return t
}

// quiescent continues with a seat that waits for quiescence. mu is held, and released.
func (s *Bubble) quiescent() (bool, error) {
	defer s.mu.Unlock()
	switch {
	case len(s.idle) > 0:
		s.fresh = append(s.fresh, s.idle[0])
		s.idle = s.idle[1:]
		return true, nil
	case s.live > 0:
		return false, fmt.Errorf("%w: %d tasks wait", ErrDeadlock, s.live)
	}
	return false, nil
}
