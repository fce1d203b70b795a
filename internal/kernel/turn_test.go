package kernel_test

import (
	"context"
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
		require.Eventually(t, all[i].Idle, 5*time.Second, time.Millisecond) // it has started
		t.Cleanup(func() { _ = kernel.StopAndWait(context.Background(), all[i]) })
	}
	return all
}

// goroutine names the goroutine that calls it.
func goroutine() string {
	buf := make([]byte, 64)
	return string(buf[:runtime.Stack(buf, false)])[:20]
}

func TestATurnPassesActorsOnOneGoroutine(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	all := links(t, sys, "a", "b")
	var seen []string
	note := func(what string) { seen = append(seen, what+" "+goroutine()) }

	turn := sys.NewTurn()
	all[0].TellAfter(turn, func(c *kernel.Context[order]) {
		c.Go(func() { note("task") })
		all[1].TellAfter(c, func(*kernel.Context[order]) { note("b") })
		note("a")
	})
	turn.Run()
	require.True(t, turn.Left(), "the task is for the end")
	turn.Finish()
	here := " " + goroutine()
	assert.Equal(t, []string{"a" + here, "b" + here, "task" + here}, seen)
}

func TestATaskDoesNotHoldUpItsActor(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")[0]
	blocked, release := make(chan struct{}), make(chan struct{})
	var others atomic.Int32
	var done sync.WaitGroup
	done.Add(3)
	a.Tell(func(c *kernel.Context[order]) {
		for range 2 {
			c.Go(func() { others.Add(1); done.Done() })
		}
		c.Go(func() { defer done.Done(); close(blocked); <-release })
	})
	<-blocked
	answer := make(chan struct{})
	a.Tell(func(*kernel.Context[order]) { close(answer) })
	<-answer
	close(release)
	done.Wait()
	assert.EqualValues(t, 2, others.Load())
}

func TestATurnLeavesABusyActorToWhoRunsIt(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")[0]
	busy, release, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	a.Tell(func(*kernel.Context[order]) { close(busy); <-release })
	<-busy
	turn := sys.NewTurn()
	a.TellAfter(turn, func(*kernel.Context[order]) { close(told) })
	turn.Run() // it has nothing to run
	close(release)
	<-told
	assert.False(t, turn.Left())
}

func TestATurnIsNotKeptByAnActorThatIsNeverDone(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	a := links(t, sys, "a")[0]
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
		a.Tell(again)
	}
	turn := sys.NewTurn()
	a.TellAfter(turn, again)
	turn.Run()
	turn.Finish()
	<-done
	assert.Positive(t, mine)
	assert.Less(t, mine, 1000, "whoever has the turn has more to do")
}

func TestNothingIsLostBetweenTurns(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	all := links(t, sys, "a", "b", "c")
	const each = 2000
	var handled atomic.Int64
	var tasks sync.WaitGroup
	var tellers sync.WaitGroup
	for i := range 4 {
		tellers.Go(func() {
			for n := range each {
				tasks.Add(1)
				hop := func(c *kernel.Context[order]) {
					handled.Add(1)
					all[(i+n+1)%3].TellAfter(c, func(c *kernel.Context[order]) { c.Go(tasks.Done) })
				}
				if n%2 == 0 {
					all[n%3].Tell(hop)
					continue
				}
				turn := sys.NewTurn()
				all[n%3].TellAfter(turn, hop)
				turn.Run()
				turn.Finish()
			}
		})
	}
	tellers.Wait()
	tasks.Wait()
	assert.EqualValues(t, 4*each, handled.Load())
}

func TestASimulationProlongsNothing(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	sys := kernel.NewSystem(s.Config())
	require.Nil(t, sys.NewTurn())
	var nobody *kernel.Turn
	nobody.Run()
	nobody.Finish()
	var a kernel.Address[order]
	a.TellAfter(sys.NewTurn(), func(*kernel.Context[order]) {})
	require.NoError(t, kernel.SpawnRoot(sys, "a", &a, link{}))
	ran := false
	a.TellAfter(nil, func(c *kernel.Context[order]) { c.Go(func() { ran = true }) })
	require.NoError(t, s.Run(1000))
	assert.True(t, ran)
}

func TestNoGoroutineStaysWithoutATask(t *testing.T) { //nolint:paralleltest // it counts goroutines
	before := runtime.NumGoroutine()
	exec := kernel.NewSystem(kernel.Config{}).Executor()
	for range 3 {
		var all sync.WaitGroup
		for range 10 {
			all.Add(1)
			exec.Go(func() { all.Done() })
		}
		exec.Go(runtime.Goexit)
		all.Wait()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 /* this one */ }, 5*time.Second, time.Millisecond)
}
