package kernel_test

import (
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

// job is done by one goroutine at a time; each of its rounds runs a task.
type job struct {
	relief *kernel.Relief
	rounds chan func() // closed to end the job
	inside atomic.Int32
	hands  atomic.Int32 // how often it was begun
	ended  chan struct{}
	twice  atomic.Bool
}

func newJob() *job {
	j := &job{rounds: make(chan func()), ended: make(chan struct{})}
	j.relief = kernel.NewSystem(kernel.Config{}).NewRelief(j.do)
	return j
}

func (j *job) do() {
	j.hands.Add(1)
	for {
		if j.inside.Add(1) != 1 {
			j.twice.Store(true)
		}
		task, more := <-j.rounds
		j.inside.Add(-1)
		if !more {
			close(j.ended)
			return
		}
		if !j.relief.During(task) {
			return
		}
	}
}

func (j *job) end(t *testing.T) {
	t.Helper()
	close(j.rounds)
	<-j.ended
	assert.False(t, j.twice.Load(), "the job is one goroutine's at a time")
}

// becomeQuick makes the last task that ended a quick one: then the job stays in the
// same hands.
func (j *job) becomeQuick(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		before := j.hands.Load()
		for range 100 {
			j.rounds <- func() {}
		}
		return j.hands.Load() == before
	}, 10*time.Second, time.Millisecond, "quick tasks keep the job in the same hands")
}

func TestAJobStaysWithQuickTasks(t *testing.T) {
	t.Parallel()
	j := newJob()
	go j.do()
	j.becomeQuick(t)
	j.end(t)
}

func TestAJobIsTakenOverFromASlowTask(t *testing.T) {
	t.Parallel()
	j := newJob()
	go j.do()
	var release []chan struct{}
	for range 3 { // after quick tasks, and after slow ones
		j.becomeQuick(t)
		for range 3 {
			hold := make(chan struct{})
			release = append(release, hold)
			j.rounds <- func() { <-hold }
		}
		j.rounds <- func() {} // somebody takes it
	}
	for _, hold := range release {
		close(hold)
	}
	j.end(t)
}

func TestAJobSurvivesATaskThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	j := newJob()
	go j.do()
	for range 3 {
		j.becomeQuick(t)
		j.rounds <- runtime.Goexit
		j.rounds <- runtime.Goexit
	}
	j.rounds <- func() {}
	j.end(t)
}

// TestNoJobIsLost races the ends of tasks with the look of who takes over.
func TestNoJobIsLost(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			j := newJob()
			go j.do()
			for n := range 300 {
				j.rounds <- func() {
					if n%7 == 0 { // about as long as the patience
						for began := time.Now(); time.Since(began) < time.Duration(n)*10*time.Microsecond; {
							runtime.Gosched()
						}
					}
				}
			}
			j.end(t)
		})
	}
	all.Wait()
}

func TestMeanwhile(t *testing.T) {
	t.Parallel()
	t.Run("the job comes after a quick task", func(t *testing.T) {
		t.Parallel()
		var seen []string
		kernel.NewSystem(kernel.Config{}).Meanwhile(
			func() { seen = append(seen, "task "+goroutine()) },
			func() { seen = append(seen, "job "+goroutine()) })
		assert.Equal(t, []string{"task " + goroutine(), "job " + goroutine()}, seen)
	})
	t.Run("and during a slow one, once", func(t *testing.T) {
		t.Parallel()
		done := make(chan struct{})
		var jobs atomic.Int32
		kernel.NewSystem(kernel.Config{}).Meanwhile(func() { <-done }, func() { jobs.Add(1); close(done) })
		assert.EqualValues(t, 1, jobs.Load())
	})
	t.Run("a simulation has the job first", func(t *testing.T) {
		t.Parallel()
		s := sim.New(1)
		defer s.Close()
		var seen []string
		kernel.NewSystem(s.Config()).Meanwhile(
			func() { seen = append(seen, "task") }, func() { seen = append(seen, "job") })
		assert.Equal(t, []string{"job", "task"}, seen)
	})
}
