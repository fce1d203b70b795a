package sim

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Bubble implements the seams of the kernel in a testing/synctest bubble, for
// scenarios that run code of users: what that code does with time, channels and
// goroutines is virtual. Each task is a goroutine, and one of them has the baton.
// The others wait for it, or wait in the user's code. The root goroutine of the
// bubble calls [Bubble.Run], which gives the baton to one after another.
//
// A goroutine of the user's that calls in without the baton waits for it, too. If
// several do at the same instant, their order is not the seed's:
// [Bubble.Unseeded] says so.
type Bubble struct {
	choice *Choices
	max    int // steps; then ErrSteps
	onStep func()
	over   chan struct{} // closed by Close
	poke   chan struct{} // notifies Run, which waits for time to pass, of a ready seat

	mu       sync.Mutex
	ready    []*seat
	fresh    []*seat // that became ready since the last pick
	idle     []*seat // of goroutines that wait for quiescence
	timers   timerHeap
	due      []*timer // of this instant, no longer in timers
	undue    bool     // one of them was stopped
	seq      uint64
	steps    int
	baton    uint64 // number of the last one given
	held     *seat  // the holder, or nil
	adopted  bool   // a worker has called since the baton was given
	arrivals int    // goroutines that took a seat since
	live     int    // tasks that have not ended
	waiting  int    // goroutines in Await or in ready
	unseeded bool
	spare    []chan job // of goroutines that have run their task
	used     []*seat    // whose turn is over
	counts   Counts
	jump     time.Duration // that is to pass
}

// seat is a goroutine that waits for the baton. Its goroutine knows it until its turn
// comes, and the scheduler until the turn is over; then it is another's.
type seat struct {
	seq  uint64
	task uint64 // that the goroutine most likely runs
	turn chan struct{}
	role *kernel.Role // that the goroutine has while it runs task number n
	n    uint64
}

// horizon is how much time passes before goroutines that wait in the user's code,
// without a timer of the kernel, count as stuck.
const horizon = 24 * time.Hour

// InBubble returns a scheduler that takes its choices from c, and at most so many
// steps. Call it, and use it, within one bubble.
func InBubble(c *Choices, steps int) *Bubble {
	return &Bubble{choice: c, max: steps, onStep: func() {}, over: make(chan struct{}), poke: make(chan struct{}, 1)}
}

// Config returns a kernel configuration in which every seam is s.
func (s *Bubble) Config() kernel.Config {
	return kernel.Config{Clock: s, Dispatcher: s, Executor: s, Rand: s}
}

// Inline implements [kernel.Dispatcher]: either way is tried.
func (s *Bubble) Inline(bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.choice.Of(2) == 0 {
		s.counts.Inline++
		return true
	}
	s.counts.Elsewhere++
	return false
}

// Batch implements [kernel.Dispatcher].
func (s *Bubble) Batch() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 1 + s.choice.Of(3)
}

// Uint64 implements [kernel.Rand].
func (s *Bubble) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choice.rest.Uint64()
}

// Int64N implements [kernel.Rand].
func (s *Bubble) Int64N(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choice.rest.Int64N(n)
}

// Now implements [kernel.Clock]: it is the bubble's time.
func (s *Bubble) Now() time.Time { return time.Now().UTC() }

// AfterFunc implements [kernel.Clock]. The order of timers of the same instant is a
// choice.
func (s *Bubble) AfterFunc(d time.Duration, fn func()) kernel.Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	t := &bubbleTimer{timer{at: s.Now().Add(max(d, 0)), seq: s.seq, fn: fn}, s}
	heap.Push(&s.timers, &t.timer)
	s.nudge()
	return t
}

type bubbleTimer struct {
	timer
	of *Bubble
}

// Stop implements [kernel.Timer].
func (t *bubbleTimer) Stop() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	active := t.timer.Stop()
	t.of.undue = t.of.undue || active && t.due
	return active
}

// Go implements [kernel.Dispatcher] and [kernel.Executor]: fn is a task that will
// get the baton some time later.
func (s *Bubble) Go(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return
	}
	st := s.newSeat()
	st.task = st.seq
	s.live++
	s.fresh = append(s.fresh, st)
	s.waiting++
	s.nudge()
	if n := len(s.spare); n > 0 {
		idle := s.spare[n-1]
		s.spare = s.spare[:n-1]
		idle <- job{st, fn}
		return
	}
	go s.work(job{st, fn})
}

// maxSpare is how many goroutines wait for tasks: each keeps its stack.
const maxSpare = 64

// job is a task, and the seat where it waits to begin.
type job struct {
	st *seat
	fn func()
}

// work runs tasks, one after another: the stack of a goroutine that is used again
// has grown to what tasks need.
func (s *Bubble) work(j job) {
	next := make(chan job, 1)
	for again := true; again; {
		again = s.perform(j, next)
		if !again {
			return
		}
		//troupe:select the end of the scheduler and a job do not compete: Go gives none after Close
		select {
		case j = <-next:
		case <-s.over:
			return
		}
	}
}

// perform runs a task, and reports whether the goroutine may be used again: not if
// the task has ended it.
func (s *Bubble) perform(j job, next chan job) (again bool) {
	returned := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live--
		if again = returned && !s.isOver() && len(s.spare) < maxSpare; again {
			s.spare = append(s.spare, next)
		}
	}()
	if s.take(j.st) {
		j.fn()
	}
	returned = true
	return true
}

// Watch implements [kernel.Dispatcher]: a task that waits is one that lasts.
func (s *Bubble) Watch(r *kernel.Role, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != nil {
		s.held.role, s.held.n = r, n
	}
}

// Yield implements [kernel.Dispatcher]. A worker that has lost the baton, since its
// task waited in the user's code, waits for it here.
func (s *Bubble) Yield(at *kernel.Seat, _ bool) {
	s.mu.Lock()
	if s.isOver() {
		s.mu.Unlock()
		return
	}
	mine := s.held != nil && (at.N == s.baton || !s.adopted)
	if mine {
		s.adopted = true
		at.N = s.baton
		if s.choice.Of(2) == 0 {
			s.mu.Unlock()
			return
		}
	}
	st := s.newSeat()
	s.arrivals++
	s.fresh = append(s.fresh, st)
	s.waiting++
	s.nudge()
	s.mu.Unlock()
	s.take(st)
	s.mu.Lock()
	at.N = s.baton
	s.adopted = true
	s.mu.Unlock()
}

// Await implements [kernel.Executor].
func (s *Bubble) Await(ctx context.Context, done <-chan struct{}) error {
	if isClosed(done) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	if s.isOver() {
		s.mu.Unlock()
		return ErrClosed
	}
	st := s.newSeat()
	s.arrivals++
	s.waiting++
	held := s.held
	s.mu.Unlock()
	s.handOff(held)
	//troupe:select whichever wins, the outcome is settled below
	select {
	case <-done:
	case <-ctx.Done():
	case <-s.over:
		return ErrClosed
	}
	s.mu.Lock()
	s.fresh = append(s.fresh, st)
	s.nudge()
	s.mu.Unlock()
	s.take(st)
	switch {
	case isClosed(done):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return ErrClosed
}

// Quiet waits until nothing is left to do but what waits here: no goroutine is
// ready and no timer is set. Virtual time passes.
func (s *Bubble) Quiet() {
	s.mu.Lock()
	st := s.newSeat()
	s.arrivals++
	s.waiting++
	s.idle = append(s.idle, st)
	s.mu.Unlock()
	s.take(st)
}

// take waits for the baton. It reports false if the scheduler was closed.
func (s *Bubble) take(st *seat) bool {
	//troupe:select the baton is given to nobody once the scheduler is closed
	select {
	case <-st.turn:
		return true
	case <-s.over:
		return false
	}
}

func (s *Bubble) newSeat() *seat {
	s.seq++
	var st *seat
	if n := len(s.used); n > 0 {
		st = s.used[n-1]
		s.used = s.used[:n-1]
		st.seq, st.task = s.seq, s.seq
	} else {
		st = &seat{seq: s.seq, task: s.seq, turn: make(chan struct{})}
	}
	if s.held != nil {
		st.task = s.held.task
	}
	return st
}

// handOff gives the role of the seat's goroutine, if it has one, to another.
func (s *Bubble) handOff(st *seat) {
	if st == nil || st.role == nil {
		return
	}
	role := st.role
	st.role = nil
	if role.HandOff(st.n) {
		s.mu.Lock()
		s.counts.HandOffs++
		s.mu.Unlock()
	}
}

// nudge ends the wait of Run for time to pass; mu is held.
func (s *Bubble) nudge() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

func (s *Bubble) isOver() bool { return isClosed(s.over) }

// Jump lets d pass at the next step, before anything that is due by then.
func (s *Bubble) Jump(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jump += d
}

// OnStep has fn called at each step.
func (s *Bubble) OnStep(fn func()) { s.onStep = fn }

// Decisions are those taken so far; see [Choices.Taken].
func (s *Bubble) Decisions() (taken, outOf []uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choice.Taken()
}

// Plain says whether the plainest decision is taken from now on, without keeping it.
func (s *Bubble) Plain(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choice.plain = on
}

// Steps is the number of steps taken so far.
func (s *Bubble) Steps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps
}

// Counts says what was chosen so far.
func (s *Bubble) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Live is the number of tasks that have not ended.
func (s *Bubble) Live() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// Unseeded reports whether goroutines that the scheduler does not know called in at the
// same instant. The history after that may differ for the same seed.
func (s *Bubble) Unseeded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unseeded
}

// Close ends all waits with [ErrClosed]. Tasks that never ran never will.
func (s *Bubble) Close() { close(s.over) }
