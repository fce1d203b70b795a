package kernel_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// The tests named TestProduction cover each line of production.go in virtual time:
// see TestCoverage.

func TestProductionRunsActorsAndTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := kernel.NewSystem(kernel.Config{})
		all := links(t, sys, "a", "b")
		synctest.Wait() // they have started
		var seen []string
		done := make(chan struct{})
		all[0].Tell(nil, func(c *kernel.Context[order]) {
			c.Go(task(func() { time.Sleep(time.Hour); seen = append(seen, "task"); close(done) }))
			all[1].Tell(c.Worker(), func(*kernel.Context[order]) { seen = append(seen, "b") })
			seen = append(seen, "a")
		})
		began := time.Now()
		<-done
		assert.Equal(t, []string{"a", "b", "task"}, seen)
		assert.Equal(t, time.Hour, time.Since(began))
	})
}

// TestProductionPassesActorsOnOneGoroutine: a message wakes nobody on its way.
func TestProductionPassesActorsOnOneGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := kernel.NewSystem(kernel.Config{})
		all := links(t, sys, "a", "b", "c")
		synctest.Wait() // they have started
		var seen []string
		done := make(chan struct{})
		note := func(what string) { seen = append(seen, what+" "+goroutine()) }
		sys.NewRole(func(w *kernel.Worker) {
			note("job")
			all[0].Tell(w, func(c *kernel.Context[order]) {
				c.Go(func() func(*kernel.Worker) {
					note("task")
					return func(w *kernel.Worker) {
						note("then")
						all[2].Tell(w, func(*kernel.Context[order]) { note("c") })
					}
				})
				all[1].Tell(c.Worker(), func(*kernel.Context[order]) { note("b") })
				note("a")
			})
			w.Run()
			note("job")
			assert.True(t, w.HasRole())
			close(done)
		}).Start()
		<-done
		here := seen[0][len("job"):]
		for i, what := range []string{"job", "a", "b", "task", "then", "c", "job"} {
			assert.Equal(t, what+here, seen[i])
		}
	})
}

// TestProductionKeepsNoGoroutineWithoutATask: synctest fails if one is left.
func TestProductionKeepsNoGoroutineWithoutATask(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	synctest.Test(t, func(t *testing.T) {
		exec := kernel.NewSystem(kernel.Config{}).Executor()
		for range 3 {
			var all sync.WaitGroup
			for n := range 10 { // more than are kept, which end one after the other
				all.Add(1)
				exec.Go(func() { defer all.Done(); time.Sleep(time.Duration(n) * time.Second) })
			}
			time.Sleep(5 * time.Second)
			here := runtime.NumGoroutine()
			all.Add(1)
			exec.Go(all.Done) // on one that was kept
			synctest.Wait()
			assert.LessOrEqual(t, runtime.NumGoroutine(), here)
			exec.Go(runtime.Goexit)
			all.Wait()
		}
	})
}

func TestProductionAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		exec := kernel.GoExecutor{}
		over := make(chan struct{})
		exec.Go(func() { time.Sleep(time.Second); close(over) })
		require.NoError(t, exec.Await(t.Context(), over))
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		require.ErrorIs(t, exec.Await(ctx, make(chan struct{})), cause)
		for range 100 {
			require.NoError(t, exec.Await(ctx, over), "done wins")
		}
	})
}

func TestProductionClockAndRand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, clk := range []kernel.Clock{kernel.NewClock(nil), kernel.NewClock(clock.New())} {
			began, fired := clk.Now(), make(chan struct{})
			clk.AfterFunc(time.Minute, func() { close(fired) })
			<-fired
			assert.Equal(t, time.Minute, clk.Now().Sub(began))
			assert.True(t, clk.AfterFunc(time.Minute, func() { t.Error("it was stopped") }).Stop())
		}
		seed := uint64(1)
		one, two, three := kernel.NewRand(&seed), kernel.NewRand(&seed), kernel.NewRand(nil)
		assert.Equal(t, one.Uint64(), two.Uint64())
		assert.Equal(t, one.Int64N(1000), two.Int64N(1000))
		assert.NotEqual(t, one.Uint64(), three.Uint64())
	})
}

// stint is a role whose rounds each run a task.
type stint struct {
	a      *kernel.Address[order]
	rounds chan func() // closed to end the job
	inside bool
	hands  []string // who did each round
}

func newStint(t *testing.T) *stint {
	sys := kernel.NewSystem(kernel.Config{})
	s := &stint{a: links(t, sys, "a")[0], rounds: make(chan func())}
	sys.NewRole(func(w *kernel.Worker) {
		for w.HasRole() {
			assert.False(t, s.inside, "the role is one goroutine's at a time")
			s.inside = true
			fn, more := <-s.rounds
			s.hands = append(s.hands, goroutine())
			s.inside = false
			if !more {
				w.EndRole()
				return
			}
			s.a.Tell(w, func(c *kernel.Context[order]) { c.Go(task(fn)) })
			w.Run()
		}
	}).Start()
	return s
}

// TestProductionHandsOff: a task keeps its goroutine's role for 2 ms at most, and
// after one that lasted the next 8 do not have it at all.
func TestProductionHandsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStint(t)
		quick := func() {}
		for range 10 {
			s.rounds <- quick
		}
		synctest.Wait()
		assert.Equal(t, s.hands[0], s.hands[9], "quick tasks leave the role where it is")

		for range 3 {
			began := time.Now()
			s.rounds <- func() { time.Sleep(time.Hour) }
			s.rounds <- quick
			assert.LessOrEqual(t, time.Since(began), 2*time.Millisecond)
			synctest.Wait()
			for range 7 {
				began = time.Now()
				s.rounds <- func() { time.Sleep(time.Minute) }
			}
			s.rounds <- quick
			assert.Zero(t, time.Since(began), "given away before it begins")
			s.rounds <- quick
			time.Sleep(time.Second) // nobody is watched any more
		}
		close(s.rounds)
		time.Sleep(2 * time.Hour)
	})
}

// TestProductionKeepsARoleFromATaskThatEndsItsGoroutine: another one takes it.
func TestProductionKeepsARoleFromATaskThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStint(t)
		for range 20 {
			s.rounds <- runtime.Goexit
			s.rounds <- func() {}
		}
		s.rounds <- func() { time.Sleep(time.Second); runtime.Goexit() }
		for range 10 {
			s.rounds <- runtime.Goexit
		}
		close(s.rounds)
		time.Sleep(2 * time.Second)
	})
}

// TestProductionWatchesManyRoles: those that go on, those that end, and those that
// begin while others are looked at.
func TestProductionWatchesManyRoles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		for n := range 20 {
			s := newStint(t)
			all.Go(func() {
				for i := range 50 {
					s.rounds <- func() { time.Sleep(time.Duration((n*7+i*13)%40) * 100 * time.Microsecond) }
				}
				close(s.rounds)
			})
		}
		all.Wait()
		time.Sleep(time.Second)
	})
}
