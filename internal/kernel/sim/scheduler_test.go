package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/agent-troupe/troupe/internal/kernel/sim_test.leakedForEver"))
}

func newScheduler(t *testing.T, seed uint64) *sim.Scheduler {
	t.Helper()
	s := sim.New(seed)
	t.Cleanup(s.Close)
	return s
}

// quiet is far more steps than any test here needs.
const quiet = 10_000

// latch is a channel to await.
type latch chan struct{}

func (l latch) open() { close(l) }

var always = func() latch { l := make(latch); l.open(); return l }()

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// race lets tasks, wake-ups and timers race and writes down who came when.
func race(t *testing.T, seed uint64) string {
	t.Helper()
	s := newScheduler(t, seed)
	var trace []string
	note := func(format string, args ...any) {
		trace = append(trace, fmt.Sprintf("%v %s", s.Now().Sub(epoch), fmt.Sprintf(format, args...)))
	}
	for i := range 8 {
		opened := make(latch)
		s.Go(func() {
			note("task %d", i)
			err := s.Await(t.Context(), opened)
			note("task %d went on: %v", i, err)
		})
		s.Go(func() {
			s.Yield(nil, true)
			note("actor %d", i)
			s.Yield(nil, false)
		})
		s.AfterFunc(time.Duration(s.Int64N(3))*time.Second, func() {
			note("timer %d", i)
			opened.open()
		})
	}
	require.NoError(t, s.Run(quiet))
	require.Len(t, trace, 8*4)
	note("%d steps, %d", s.Steps(), s.Uint64())
	return strings.Join(trace, "\n")
}

func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(50) {
		trace := race(t, seed)
		require.Equal(t, trace, race(t, seed), "seed %d", seed)
		seen[trace] = true
	}
	assert.Len(t, seen, 50, "each seed tries another schedule")
}

func TestEveryOrderIsTried(t *testing.T) {
	t.Parallel()
	orders := map[string]int{}
	for seed := range uint64(300) {
		s := newScheduler(t, seed)
		var order strings.Builder
		s.Go(func() { order.WriteByte('a') })
		s.Go(func() { order.WriteByte('b') })
		s.Go(func() { order.WriteByte('c') })
		require.Zero(t, order.Len(), "nothing runs inline")
		require.NoError(t, s.Run(quiet))
		orders[order.String()]++
	}
	require.Len(t, orders, 6)
	for order, n := range orders {
		assert.Greater(t, n, 20, "%s is rare", order)
	}
}

func TestTimers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s := newScheduler(t, seed)
		var fired []string
		set := func(name string, d time.Duration) kernel.Timer {
			return s.AfterFunc(d, func() { fired = append(fired, fmt.Sprintf("%s@%v", name, s.Now().Sub(epoch))) })
		}
		set("c", 2*time.Second)
		set("a", time.Second)
		set("d", 2*time.Second)
		stopped := set("never", time.Second)
		set("b", time.Second)
		set("e", 2*time.Second)
		set("past", -time.Hour)
		s.Go(func() { fired = append(fired, "task") })
		assert.True(t, stopped.Stop())
		assert.False(t, stopped.Stop(), "stopped before")
		require.NoError(t, s.Run(quiet))
		require.Equal(t, []string{"task", "past@0s", "a@1s", "b@1s", "c@2s", "d@2s", "e@2s"}, fired,
			"time stands still while there is work; one instant is first in, first out")
		require.Equal(t, 7, s.Steps(), "a stopped timer is no step")
	}
}

func TestTimerThatRanCannotBeStopped(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	var inside bool
	var timer kernel.Timer
	timer = s.AfterFunc(time.Second, func() { inside = timer.Stop() })
	require.NoError(t, s.Run(quiet))
	assert.False(t, inside, "it is running")
	assert.False(t, timer.Stop(), "it ran")
}

func TestTimersSetByTimers(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	var at []time.Duration
	var again func()
	again = func() {
		at = append(at, s.Now().Sub(epoch))
		if len(at) < 4 {
			s.AfterFunc(time.Minute, again)
		}
	}
	s.AfterFunc(0, again)
	require.NoError(t, s.Run(quiet))
	assert.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, at)
}

func TestAwaitInsideATask(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	opened := make(latch)
	var got []error
	s.Go(func() {
		got = append(got, s.Await(t.Context(), opened))
		got = append(got, s.Await(t.Context(), opened)) // open already: no parking
	})
	require.NoError(t, s.Run(quiet))
	require.Empty(t, got)
	require.Equal(t, 1, s.Parked())
	opened.open()
	require.NoError(t, s.Run(quiet))
	assert.Equal(t, []error{nil, nil}, got)
	assert.Zero(t, s.Parked())
}

func TestAwaitOutsideATaskRunsTheSimulation(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	opened := make(latch)
	s.Go(func() { s.AfterFunc(time.Hour, opened.open) })
	s.AfterFunc(2*time.Hour, func() { t.Error("it ran on after the wait was over") })
	require.NoError(t, s.Await(t.Context(), opened))
	assert.Equal(t, time.Hour, s.Now().Sub(epoch))
}

func TestTasksAwaitEachOther(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		s := newScheduler(t, seed)
		const n = 10
		var latches [n + 1]latch
		for i := range latches {
			latches[i] = make(latch)
		}
		var order []int
		for i := range n {
			s.Go(func() {
				if !assert.NoError(t, s.Await(t.Context(), latches[i])) {
					return
				}
				order = append(order, i)
				latches[i+1].open()
			})
		}
		s.Go(latches[0].open)
		require.NoError(t, s.Await(t.Context(), latches[n]), "seed %d", seed)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
	}
}

func TestDeadlockIsAnError(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	never := make(latch)
	s.Go(func() { _ = s.Await(t.Context(), never) })
	s.AfterFunc(time.Second, func() {}).Stop()
	require.ErrorIs(t, s.Await(t.Context(), never), sim.ErrDeadlock)
	assert.Equal(t, 1, s.Parked(), "the task, which something outside might still wake")
}

func TestBudgetOfSteps(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	var forever func()
	forever = func() { s.Go(forever) }
	forever()
	err := s.Run(100)
	require.ErrorIs(t, err, sim.ErrSteps)
	assert.ErrorContains(t, err, "100")
	assert.Equal(t, 100, s.Steps())
}

func TestEndOfAContextEndsTheWait(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	for _, c := range []struct {
		name         string
		open, cancel bool
		want         error
	}{
		{"done", true, false, nil},
		{"cancelled", false, true, why},
		{"both: done wins", true, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := func(opened latch, cancel context.CancelCauseFunc) {
				if c.cancel { // first, so that done cannot win by being earlier
					cancel(why)
				}
				if c.open {
					opened.open()
				}
			}
			got := map[string]error{"inside, before": errors.New("did not end"), "inside, while parked": errors.New("did not end")}

			s := newScheduler(t, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			opened := make(latch)
			set(opened, cancel)
			got["outside, before"] = s.Await(ctx, opened)
			s.Go(func() { got["inside, before"] = s.Await(ctx, opened) })
			require.NoError(t, s.Run(quiet))

			ctx, cancel = context.WithCancelCause(t.Context())
			opened = make(latch)
			s.Go(func() { got["inside, while parked"] = s.Await(ctx, opened) })
			s.AfterFunc(time.Second, func() { set(opened, cancel) })
			got["outside, while it runs"] = s.Await(ctx, opened)
			require.NoError(t, s.Run(quiet))

			for where, err := range got {
				assert.Equal(t, c.want, err, where)
			}
		})
	}
}

func TestDoneThatComesWhileATaskIsOnItsWayWins(t *testing.T) {
	t.Parallel()
	// The context wakes the task; before its turn the latch is opened too.
	for seed := range uint64(50) {
		s := newScheduler(t, seed)
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(latch)
		got := errors.New("did not end")
		s.Go(func() { got = s.Await(ctx, opened) })
		require.NoError(t, s.Run(quiet))
		cancel()
		first := true
		s.Go(func() {
			opened.open()
			first = got != nil && got.Error() == "did not end"
		})
		require.NoError(t, s.Run(quiet))
		if first {
			require.NoError(t, got, "seed %d", seed)
		} else {
			require.ErrorIs(t, got, context.Canceled, "seed %d", seed)
		}
	}
}

func TestNestedGo(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	var order []string
	var grow func(depth int)
	grow = func(depth int) {
		order = append(order, fmt.Sprintf("in %d", depth))
		if depth < 3 {
			born := make(latch)
			s.Go(func() {
				grow(depth + 1)
				born.open()
			})
			assert.NoError(t, s.Await(t.Context(), born))
		}
		order = append(order, fmt.Sprintf("out %d", depth))
	}
	s.Go(func() { grow(0) })
	require.NoError(t, s.Run(quiet))
	assert.Equal(t, []string{"in 0", "in 1", "in 2", "in 3", "out 3", "out 2", "out 1", "out 0"}, order)
}

func TestGoFromTimersAndActors(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	var n int
	s.Go(func() { s.Yield(nil, true); s.Go(func() { n++ }) })
	s.AfterFunc(time.Second, func() { s.Go(func() { n++ }) })
	require.NoError(t, s.Run(quiet))
	assert.Equal(t, 2, n)
}

func TestActorsMustNotWait(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	s.Go(func() {
		s.Yield(nil, true)
		s.Yield(nil, false)
		_ = s.Await(t.Context(), always)
		s.Yield(nil, true)
		_ = s.Await(t.Context(), always)
	})
	assert.PanicsWithValue(t, "sim: an actor waits; actors must never block", func() { _ = s.Run(quiet) })
}

func TestCloseEndsParkedTasks(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	var got []error
	var cleanups int
	for range 3 {
		s.Go(func() {
			defer func() { cleanups++ }()
			got = append(got, s.Await(t.Context(), make(latch)))
			s.Go(func() { t.Error("a task of a closed scheduler ran") })
			got = append(got, s.Await(t.Context(), make(latch)))
		})
	}
	require.NoError(t, s.Run(quiet))
	require.Equal(t, 3, s.Parked())
	s.Close()
	assert.Len(t, got, 6)
	for _, err := range got {
		require.ErrorIs(t, err, sim.ErrClosed)
	}
	assert.Equal(t, 3, cleanups)
	assert.Zero(t, s.Parked())
	assert.False(t, s.Step())
	require.ErrorIs(t, s.Await(t.Context(), make(latch)), sim.ErrClosed)
	s.Close()
}

func TestConfigPutsTheSchedulerBehindEverySeam(t *testing.T) {
	t.Parallel()
	s := newScheduler(t, 1)
	cfg := s.Config()
	assert.Same(t, s, cfg.Clock)
	assert.Same(t, s, cfg.Dispatcher)
	assert.Same(t, s, cfg.Executor)
	assert.Same(t, s, cfg.Rand)
	assert.Positive(t, s.Batch())
	for range 100 {
		n := s.Int64N(10)
		assert.True(t, 0 <= n && n < 10)
	}
}

func TestCloseEndsTasksThatWereAboutToGoOn(t *testing.T) {
	t.Parallel()
	// Two tasks are woken at once; one step lets only one of them go on.
	s := sim.New(1)
	opened := make(latch)
	var ended int
	for range 2 {
		s.Go(func() {
			defer func() { ended++ }()
			_ = s.Await(t.Context(), opened)
		})
	}
	require.NoError(t, s.Run(quiet))
	opened.open()
	require.True(t, s.Step())
	require.Equal(t, 1, ended)
	s.Close()
	assert.Equal(t, 2, ended)
}

func TestCloseForgetsTasksThatNeverRan(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	s.Go(func() { t.Error("it ran") })
	s.Close()
	assert.False(t, s.Step())
	// That its coroutine is gone is for the leak check of TestMain.
}
