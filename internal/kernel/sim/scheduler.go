package sim

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Errors of a scheduler that cannot go on.
var (
	// ErrDeadlock says that a wait can never end: nothing is ready and no
	// timer is set.
	ErrDeadlock = errors.New("sim: nothing is ready and no timer is set")
	// ErrClosed is what waits return once the scheduler was closed.
	ErrClosed = errors.New("sim: scheduler closed")
	// ErrSteps says that the budget of steps was used up.
	ErrSteps = errors.New("sim: no quiescence within the budget of steps")
)

// Scheduler implements all four seams of the kernel on one goroutine. Tasks
// are coroutines: one runs at a time and gives up control only in Await or at
// its end. It must be used from one goroutine.
type Scheduler struct {
	rng     *rand.Rand
	ready   []step
	parked  []*task
	timers  timerHeap
	now     time.Time
	seq     uint64
	steps   int
	current *task
	inActor bool
	closed  bool
}

// New returns a scheduler whose choices follow from seed. Virtual time starts
// at 2026-01-01 UTC.
func New(seed uint64) *Scheduler {
	return &Scheduler{
		rng: rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Config returns a kernel configuration in which every seam is s.
func (s *Scheduler) Config() kernel.Config {
	return kernel.Config{Clock: s, Dispatcher: s, Executor: s, Rand: s, Strict: true}
}

// Schedule implements [kernel.Dispatcher].
func (s *Scheduler) Schedule(fn func()) {
	s.ready = append(s.ready, step{run: func() {
		s.inActor = true
		defer func() { s.inActor = false }()
		fn()
	}})
}

// Throughput implements [kernel.Dispatcher]: the order of messages is chosen one by
// one.
func (s *Scheduler) Throughput() int { return 1 }

// Uint64 implements [kernel.Rand].
func (s *Scheduler) Uint64() uint64 { return s.rng.Uint64() }

// Int64N implements [kernel.Rand].
func (s *Scheduler) Int64N(n int64) int64 { return s.rng.Int64N(n) }

// Now implements [kernel.Clock].
func (s *Scheduler) Now() time.Time { return s.now }

// Steps is the number of steps taken so far.
func (s *Scheduler) Steps() int { return s.steps }

// step is a ready piece of work: of a task, unless task is nil.
type step struct {
	run  func()
	task *task
}

func (s *Scheduler) resumption(t *task) step { return step{func() { s.resume(t) }, t} }

type task struct {
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	ctx    context.Context
	done   <-chan struct{}
	killed bool
}

// Go implements [kernel.Executor]: fn becomes a task that the scheduler will
// pick some time later.
func (s *Scheduler) Go(fn func()) {
	if s.closed {
		return
	}
	t := &task{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		fn()
	})
	s.ready = append(s.ready, s.resumption(t))
}

func (s *Scheduler) resume(t *task) {
	outer := s.current
	s.current = t
	_, parked := t.next()
	s.current = outer
	if parked {
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
	if s.inActor && s.current == nil {
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
		if t := s.current; t != nil {
			if t.killed {
				return ErrClosed
			}
			t.ctx, t.done = ctx, done
			if !t.yield(struct{}{}) {
				t.killed = true
			}
			continue
		}
		if !s.Step() {
			return ErrDeadlock
		}
	}
}

// Step runs one ready piece of work, or, when there is none, fires the next
// timer. It reports false when there is neither.
func (s *Scheduler) Step() bool {
	s.wake()
	if n := len(s.ready); n > 0 {
		i := s.rng.IntN(n)
		run := s.ready[i].run
		s.ready[i], s.ready[n-1] = s.ready[n-1], step{}
		s.ready = s.ready[:n-1]
		s.steps++
		run()
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
			s.ready = append(s.ready, s.resumption(t))
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

// Close ends every task: one that waits gets [ErrClosed], or goes on if its
// wait was over; one that never ran never will.
func (s *Scheduler) Close() {
	s.closed = true
	tasks := s.parked
	for _, r := range s.ready {
		if r.task != nil {
			tasks = append(tasks, r.task)
		}
	}
	s.parked, s.ready = nil, nil
	for _, t := range tasks {
		s.current = t
		t.stop()
		s.current = nil
	}
	s.ready = nil
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
