package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Errors of a scheduler that cannot continue.
var (
	// ErrDeadlock says that a wait can never end: nothing is ready and no
	// timer is set.
	ErrDeadlock = errors.New("sim: nothing is ready and no timer is set")
	// ErrClosed is what waits return once the scheduler was closed.
	ErrClosed = errors.New("sim: scheduler closed")
	// ErrSteps says that the budget of steps was used up.
	ErrSteps = errors.New("sim: no quiescence within the budget of steps")
)

// Scheduler implements all four seams of the kernel on one goroutine. A goroutine of
// production is a coroutine here: one runs at a time and gives up control only in
// Await, in Yield, or at its end. It must be used from one goroutine.
type Scheduler struct {
	rng     *rand.Rand
	ready   []*task
	parked  []*task
	timers  timerHeap
	now     time.Time
	seq     uint64
	steps   int
	current *task
	outside task // what runs when no task does: the test
	closed  bool
	counts  Counts
}

// Counts says how often a scheduler chose what.
type Counts struct {
	Inline    int // a worker ran the next actor or task itself
	Elsewhere int // another one did
	HandOffs  int // a role changed hands because a task waited
}

// New returns a scheduler whose choices follow from seed. Virtual time starts
// at 2026-01-01 UTC.
func New(seed uint64) *Scheduler {
	s := &Scheduler{
		rng: rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	s.current = &s.outside
	return s
}

// Config returns a kernel configuration in which every seam is s.
func (s *Scheduler) Config() kernel.Config {
	return kernel.Config{Clock: s, Dispatcher: s, Executor: s, Rand: s}
}

// Inline implements [kernel.Dispatcher]: either way is tried.
func (s *Scheduler) Inline(bool) bool {
	if s.rng.IntN(2) == 0 {
		s.counts.Inline++
		return true
	}
	s.counts.Elsewhere++
	return false
}

// Batch implements [kernel.Dispatcher].
func (s *Scheduler) Batch() int { return 1 + s.rng.IntN(3) }

// Yield implements [kernel.Dispatcher]: between any two things that a worker does
// others may run, as goroutines would. It is not a wait: no role is handed off.
func (s *Scheduler) Yield(_ *kernel.Seat, actor bool) {
	t := s.current
	t.inActor = actor
	if t != &s.outside && !t.killed && !s.closed && s.rng.IntN(2) == 0 {
		t.yielded = true
		t.park()
	}
}

// Watch implements [kernel.Dispatcher]: time passes in waits alone, so a task that
// waits is one that lasts.
func (s *Scheduler) Watch(r *kernel.Role, n uint64) { s.current.role, s.current.n = r, n }

// Counts says what was chosen so far.
func (s *Scheduler) Counts() Counts { return s.counts }

// Uint64 implements [kernel.Rand].
func (s *Scheduler) Uint64() uint64 { return s.rng.Uint64() }

// Int64N implements [kernel.Rand].
func (s *Scheduler) Int64N(n int64) int64 { return s.rng.Int64N(n) }

// Now implements [kernel.Clock].
func (s *Scheduler) Now() time.Time { return s.now }

// Steps is the number of steps taken so far.
func (s *Scheduler) Steps() int { return s.steps }

type task struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	ctx    context.Context
	done   <-chan struct{}
	killed bool

	yielded bool         // it gave up control without waiting
	inActor bool         // it runs a handler
	role    *kernel.Role // that it has, if any, while it runs task number n
	n       uint64
}

// park gives up control until the scheduler picks the task again.
func (t *task) park() {
	if !t.yield(struct{}{}) {
		t.killed = true
	}
}

// Go implements [kernel.Dispatcher] and [kernel.Executor]: fn becomes a task that
// the scheduler will pick some time later.
func (s *Scheduler) Go(fn func()) {
	if s.closed {
		return
	}
	t := &task{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		fn()
	})
	s.ready = append(s.ready, t)
}

func (s *Scheduler) resume(t *task) {
	outer := s.current
	s.current = t
	_, parked := t.next()
	s.current = outer
	switch {
	case parked && t.yielded:
		t.yielded = false
		s.ready = append(s.ready, t)
	case parked:
		s.parked = append(s.parked, t)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Await implements [kernel.Executor]. Called from a task it parks the task;
// called from outside any task, by the test itself, it runs the simulation
// until the wait is over.
func (s *Scheduler) Await(ctx context.Context, done <-chan struct{}) error {
	t := s.current
	if t.inActor {
		panic("sim: an actor waits; actors must never block")
	}
	for {
		switch {
		case isClosed(done):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.closed:
			return ErrClosed
		}
		switch {
		case t.killed:
			return ErrClosed
		case t != &s.outside:
			if t.role != nil && t.role.HandOff(t.n) {
				s.counts.HandOffs++
			}
			t.role = nil
			t.ctx, t.done = ctx, done
			t.park()
		case !s.Step():
			return ErrDeadlock
		}
	}
}

// Step runs one ready piece of work, or else fires the next timer. It reports false
// when there is neither.
func (s *Scheduler) Step() bool {
	s.wake()
	if n := len(s.ready); n > 0 {
		i := s.rng.IntN(n)
		t := s.ready[i]
		s.ready[i], s.ready[n-1] = s.ready[n-1], nil
		s.ready = s.ready[:n-1]
		s.steps++
		s.resume(t)
		return true
	}
	for len(s.timers) > 0 {
		t := heap.Pop(&s.timers).(*timer)
		if t.stopped {
			continue
		}
		s.now, t.fired = t.at, true
		s.steps++
		t.fn()
		return true
	}
	return false
}

// wake moves parked tasks whose wait is over to the ready list, in the order
// in which they parked.
func (s *Scheduler) wake() {
	kept := s.parked[:0]
	for _, t := range s.parked {
		if isClosed(t.done) || t.ctx.Err() != nil {
			s.ready = append(s.ready, t)
			continue
		}
		kept = append(kept, t)
	}
	clear(s.parked[len(kept):])
	s.parked = kept
}

// Run steps until nothing is left to do, or returns [ErrSteps].
func (s *Scheduler) Run(maxSteps int) error {
	for range maxSteps {
		if !s.Step() {
			return nil
		}
	}
	return fmt.Errorf("%w: %d", ErrSteps, maxSteps)
}

// Parked is the number of tasks that wait.
func (s *Scheduler) Parked() int { return len(s.parked) }

// Close ends every task: one that waits gets [ErrClosed], or continues if its wait was
// over; one that has not begun never runs.
func (s *Scheduler) Close() {
	s.closed = true
	tasks := slices.Concat(s.parked, s.ready)
	s.parked, s.ready = nil, nil
	for _, t := range tasks {
		s.current = t
		t.stop()
		s.current = &s.outside
	}
}

// AfterFunc implements [kernel.Clock]. Timers of the same instant fire in the
// order in which they were set.
func (s *Scheduler) AfterFunc(d time.Duration, fn func()) kernel.Timer {
	s.seq++
	t := &timer{at: s.now.Add(max(d, 0)), seq: s.seq, fn: fn}
	heap.Push(&s.timers, t)
	return t
}

type timer struct {
	at             time.Time
	seq            uint64
	fn             func()
	stopped, fired bool
	due            bool // of a [Bubble]: its time has come
}

func (t *timer) Stop() bool {
	active := !t.stopped && !t.fired
	t.stopped = true
	return active
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].seq < h[j].seq
	}
	return h[i].at.Before(h[j].at)
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(*timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	last := len(old) - 1
	t := old[last]
	old[last] = nil
	*h = old[:last]
	return t
}
