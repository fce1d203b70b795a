package kernel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// link is an actor that does as its messages say.
type link struct{}

type order func(*kernel.Context[order])

func (link) Start(*kernel.Context[order]) error             { return nil }
func (link) Handle(c *kernel.Context[order], o order) error { o(c); return nil }
func (link) Stop(*kernel.Context[order])                    {}

func links(t *testing.T, sys *kernel.System, names ...string) []*kernel.Address[order] {
	t.Helper()
	all := make([]*kernel.Address[order], len(names))
	for i, name := range names {
		all[i] = &kernel.Address[order]{}
		require.NoError(t, kernel.SpawnRoot(sys, name, all[i], link{}))
		t.Cleanup(func() { _ = kernel.StopAndWait(context.Background(), all[i]) })
	}
	return all
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	buf := make([]byte, 64)
	return string(buf[:runtime.Stack(buf, false)])[:20]
}

// idle waits until the actors have started.
func idle(t *testing.T, all []*kernel.Address[order]) {
	t.Helper()
	for _, a := range all {
		require.Eventually(t, a.Idle, time.Minute, time.Millisecond)
	}
}

// task is one that has nothing to say afterwards.
func task(fn func()) kernel.Task { return func() func(*kernel.Worker) { fn(); return nil } }

func TestGoroutinesKeepOneOfSeveralTasks(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")
	blocked, release := make(chan struct{}), make(chan struct{})
	var others atomic.Int32
	var done sync.WaitGroup
	done.Add(3)
	a[0].Tell(nil, func(c *kernel.Context[order]) {
		c.Go(task(func() { defer done.Done(); close(blocked); <-release }))
		for range 2 {
			c.Go(task(func() { others.Add(1); done.Done() }))
		}
	})
	<-blocked
	answer := make(chan struct{})
	a[0].Tell(nil, func(*kernel.Context[order]) { close(answer) })
	<-answer
	close(release)
	done.Wait()
	assert.EqualValues(t, 2, others.Load())
}

func TestGoroutinesLeaveABusyActorToWhoRunsIt(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")[0]
	busy, release, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	a.Tell(nil, func(*kernel.Context[order]) { close(busy); <-release })
	<-busy
	w := sys.Guest()
	a.Tell(w, func(*kernel.Context[order]) { close(told) })
	w.Run() // it has nothing to run
	close(release)
	<-told
}

func TestGoroutinesAreNotKeptByAnActorThatIsNeverDone(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")
	idle(t, a)
	here, mine, all := goroutine(), 0, 0
	done := make(chan struct{})
	var again order
	again = func(*kernel.Context[order]) {
		if all++; goroutine() == here {
			mine++
		}
		if all == 5000 {
			close(done)
			return
		}
		a[0].Tell(nil, again)
	}
	w := sys.Guest()
	a[0].Tell(w, again)
	w.Run()
	<-done
	assert.Positive(t, mine)
	assert.Less(t, mine, 1000, "the worker has more to do")
}

func TestGoroutinesLoseNothing(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	all := links(t, sys, "a", "b", "c")
	const each = 2000
	var handled atomic.Int64
	var tasks, tellers sync.WaitGroup
	for i := range 4 {
		tellers.Go(func() {
			for n := range each {
				tasks.Add(1)
				hop := func(c *kernel.Context[order]) {
					handled.Add(1)
					all[(i+n+1)%3].Tell(c.Worker(), func(c *kernel.Context[order]) { c.Go(task(tasks.Done)) })
				}
				if n%2 == 0 {
					all[n%3].Tell(nil, hop)
					continue
				}
				w := sys.Guest()
				all[n%3].Tell(w, hop)
				w.Run()
			}
		})
	}
	tellers.Wait()
	tasks.Wait()
	assert.EqualValues(t, 4*each, handled.Load())
}

// TestAGuestRunsNoTask: a goroutine of the user's runs actors at most. Tasks take
// time, which it must not wait for.
func TestAGuestRunsNoTask(t *testing.T) {
	t.Parallel()
	inline := 0
	for seed := range seeds(t, 50) {
		s := sim.New(seed)
		sys := kernel.NewSystem(s.Config())
		all := links(t, sys, "a", "b")
		require.NoError(t, s.Run(1000))
		hour := make(chan struct{})
		s.AfterFunc(time.Hour, func() { close(hour) })
		tasks, told := 0, make(chan struct{})
		s.Go(func() {
			began := s.Now()
			for range 5 {
				w := sys.Guest()
				all[0].Tell(w, func(c *kernel.Context[order]) {
					all[1].Tell(c.Worker(), func(c *kernel.Context[order]) {
						if c.Worker() == w {
							inline++
						}
						c.Go(task(func() { _ = s.Await(t.Context(), hour); tasks++ }))
					})
				})
				w.Run()
			}
			assert.Equal(t, began, s.Now(), "seed %d", seed)
			close(told)
		})
		require.NoError(t, s.Await(t.Context(), told), "seed %d", seed)
		assert.Zero(t, tasks, "seed %d", seed)
		require.NoError(t, s.Run(1000), "seed %d", seed)
		assert.Equal(t, 5, tasks, "seed %d", seed)
		s.Close()
	}
	assert.Positive(t, inline, "some actors ran on the guest")
}

// reader is a role that handles numbers as they come: each is told to an actor,
// which runs a task for it, which may take its time.
type reader struct {
	s       *sim.Scheduler
	sys     *kernel.System
	role    *kernel.Role
	actors  []*kernel.Address[order]
	unread  int
	next    int
	rng     *rand.Rand
	inside  bool // somebody does the job
	resting bool
	late    int // what was read while a task took its time
	busy    int
	tasks   []int
	thens   []int
}

func (r *reader) job(w *kernel.Worker) {
	for w.HasRole() {
		if r.inside {
			panic("two have the role")
		}
		r.inside = true
		if r.unread == 0 {
			r.inside, r.resting = false, true
			return
		}
		r.unread--
		n := r.next
		r.next++
		if r.busy > 0 {
			r.late++
		}
		r.s.Yield(nil, false) // as in a read
		r.inside = false
		r.actors[n%2].Tell(w, func(c *kernel.Context[order]) {
			for range 1 + n%2 {
				c.Go(r.task(n))
			}
			r.actors[2].Tell(c.Worker(), func(*kernel.Context[order]) {})
		})
		w.Run()
	}
}

func (r *reader) task(n int) kernel.Task {
	pause := time.Duration(0)
	if r.rng.IntN(3) > 0 {
		pause = time.Duration(r.rng.IntN(50)) * time.Millisecond
	}
	return func() func(*kernel.Worker) {
		if pause > 0 {
			over := make(chan struct{})
			r.s.AfterFunc(pause, func() { close(over) })
			r.busy++
			_ = r.s.Await(context.Background(), over)
			r.busy--
		}
		r.tasks = append(r.tasks, n)
		return func(w *kernel.Worker) {
			r.actors[2].Tell(w, func(*kernel.Context[order]) { r.thens = append(r.thens, n) })
		}
	}
}

// wake brings more to read.
func (r *reader) wake(n int) {
	r.unread += n
	if r.resting {
		r.resting = false
		r.s.Go(r.role.Take)
	}
}

// TestARoleIsOneGoroutinesAtATime, is never lost, and is not held up by tasks.
func TestARoleIsOneGoroutinesAtATime(t *testing.T) {
	t.Parallel()
	var total sim.Counts
	late := 0
	for seed := range seeds(t, 100) {
		s := sim.New(seed)
		r := &reader{s: s, sys: kernel.NewSystem(s.Config()), rng: rand.New(rand.NewPCG(seed, 3))}
		r.actors = links(t, r.sys, "a", "b", "c")
		r.role = r.sys.NewRole(r.job)
		r.role.Start()
		const all = 40
		for n := range all / 4 {
			s.AfterFunc(time.Duration(n)*20*time.Millisecond, func() { r.wake(4) })
		}
		require.NoError(t, s.Run(100_000), "seed %d", seed)
		require.Equal(t, all, r.next, "seed %d: all was read", seed)
		require.True(t, r.resting, "seed %d", seed)
		require.Len(t, r.tasks, all+all/2, "seed %d", seed)
		require.Len(t, r.thens, all+all/2, "seed %d", seed)
		late += r.late
		total.HandOffs += s.Counts().HandOffs
		total.Inline += s.Counts().Inline
		total.Elsewhere += s.Counts().Elsewhere
		s.Close()
	}
	assert.Positive(t, late, "it was read while tasks took their time")
	assert.Positive(t, total.HandOffs)
	assert.Positive(t, total.Inline)
	assert.Positive(t, total.Elsewhere)
}

// TestATaskNeverHoldsUpItsReader: with a task that waits for what is read behind
// it, every schedule must read on.
func TestATaskNeverHoldsUpItsReader(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 200) {
		s := sim.New(seed)
		sys := kernel.NewSystem(s.Config())
		a := links(t, sys, "a")[0]
		read := make([]chan struct{}, 20)
		for i := range read {
			read[i] = make(chan struct{})
		}
		next, done := 0, 0
		sys.NewRole(func(w *kernel.Worker) {
			for w.HasRole() {
				if next == len(read) {
					w.EndRole()
					return
				}
				n := next
				next++
				close(read[n])
				a.Tell(w, func(c *kernel.Context[order]) {
					c.Go(task(func() {
						if n+1 < len(read) {
							assert.NoError(t, s.Await(t.Context(), read[n+1]))
						}
						done++
					}))
				})
				w.Run()
			}
		}).Start()
		require.NoError(t, s.Run(10_000), "seed %d", seed)
		require.Equal(t, len(read), done, "seed %d", seed)
		s.Close()
	}
}

func TestAnActorThatWaitsFails(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	cfg := s.Config()
	var reason error
	cfg.OnCrash = func(c kernel.Crash) { reason = c.Reason }
	a := links(t, kernel.NewSystem(cfg), "a")[0]
	a.Tell(nil, func(*kernel.Context[order]) { _ = s.Await(context.Background(), make(chan struct{})) })
	require.NoError(t, s.Run(100))
	require.ErrorContains(t, reason, "an actor waits")
}

func TestSameSeedSameSchedule(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(20) {
		var first string
		for range 2 {
			s := sim.New(seed)
			all := links(t, kernel.NewSystem(s.Config()), "a", "b", "c")
			var trace []string
			for n := range 12 {
				all[n%3].Tell(nil, func(c *kernel.Context[order]) {
					trace = append(trace, fmt.Sprint(n))
					c.Go(task(func() { trace = append(trace, fmt.Sprint("task ", n)) }))
					all[(n+1)%3].Tell(c.Worker(), func(*kernel.Context[order]) { trace = append(trace, fmt.Sprint("told ", n)) })
				})
			}
			require.NoError(t, s.Run(1000))
			require.Len(t, trace, 36)
			if first == "" {
				first = fmt.Sprint(trace)
			}
			require.Equal(t, first, fmt.Sprint(trace), "seed %d", seed)
			s.Close()
		}
		seen[first] = true
	}
	assert.Greater(t, len(seen), 15)
}
