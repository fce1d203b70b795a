package simtests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Level is what a scenario runs on.
type Level int

// The levels. A scenario is the same value on each of them.
const (
	// Simulated is the seeded scheduler, on virtual time.
	Simulated Level = iota
	// Concurrent is the dispatcher of production: goroutines that run at the same
	// time, in a testing/synctest bubble, so on virtual time. Run it with the race
	// detector. The order of things does not follow from the seed, so nothing is made
	// smaller or kept. KillActor and the other faults happen, but not ClockJump.
	Concurrent
	// Processes is production: real time, and agents that are processes of the
	// machine with pipes and signals. Their scripts are played in the test, and a
	// small process between carries the lines. The package's TestMain has to call
	// [Main], since that process is the test's own program.
	Processes
)

// String is the level's name.
func (l Level) String() string { return [...]string{"simulated", "concurrent", "processes"}[l] }

// Levels plays a scenario on each level, as subtests. Config.Seeds counts for
// Simulated; on the others a few histories are played.
func Levels(t *testing.T, c Config, scenario func(*World)) {
	t.Helper()
	for _, l := range []Level{Simulated, Concurrent, Processes} {
		t.Run(l.String(), func(t *testing.T) {
			own := c
			if own.Level = l; l != Simulated {
				own.Seeds, own.exact = 0, true
			}
			if dir := t.TempDir(); l == Processes { // another run on this machine has sessions of the same names
				own.Runtime = func(seed uint64) (r runtime.Config) {
					if c.Runtime != nil {
						r = c.Runtime(seed)
					}
					if r.Leases == nil {
						r.Leases = runtime.LocalLeases{Dir: dir}
					}
					return r
				}
			}
			Explore(t, own, scenario)
		})
	}
}

// engine is what runs a world.
type engine interface {
	Config() kernel.Config
	Now() time.Time
	AfterFunc(time.Duration, func()) kernel.Timer
	Await(context.Context, <-chan struct{}) error
	GoAs(lane string, fn func())
	Quiet()
	Run() error
	Close()
	Live() int

	// Without a meaning on other levels than Simulated.
	Plain(bool)
	Jump(time.Duration)
	OnStep(func())
	Decisions() (taken, outOf []uint16)
	Steps() int
	Unseeded() bool
	be(lane string) (before string)
	running() string
	received() origin
	handled()
}

var (
	_ engine = (*baton)(nil)
	_ engine = (*free)(nil)
)

// noProcesses is the process table of a world whose agents are Go values: nothing can be
// started, and a sweep finds nothing. The machine's own table would differ between two runs of a seed.
type noProcesses struct{}

// Spawn implements [session.Spawner].
func (noProcesses) Spawn(_ context.Context, c session.Command) (session.Process, error) {
	return nil, &session.StartError{Path: c.Path, Dir: c.Dir, Err: errNoProcesses}
}

// SweepMarker is that of the runtime's spawner.
func (noProcesses) SweepMarker(context.Context, string) ([]session.ProcInfo, error) { return nil, nil }

var errNoProcesses = errors.New("a simulated world has no processes: open the session with World.Open, or set Options.Backend to a scripted agent")

// free runs a world on the dispatcher of production.
type free struct {
	kernel.GoExecutor // Await
	kernel.Clock
	w    *World
	over chan struct{} // closed when no task is left
	idle chan struct{} // closed, and made anew, when tasks have ended or wait
	live int           // guarded by w.mu, as all here
	wait int           // of them, those in Quiet
}

func newFree(w *World) *free {
	return &free{Clock: kernel.NewClock(nil), w: w, over: make(chan struct{}), idle: make(chan struct{})}
}

// Config is that of production.
func (f *free) Config() kernel.Config { return kernel.Config{} }

// GoAs runs fn as a task.
func (f *free) GoAs(_ string, fn func()) {
	f.w.mu.Lock()
	f.live++
	f.w.mu.Unlock()
	f.Go(func() {
		defer f.changed(func() { f.live-- })
		fn()
	})
}

// changed wakes those who wait for quiescence.
func (f *free) changed(change func()) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	change()
	close(f.idle)
	f.idle = make(chan struct{})
	if f.live == 0 {
		close(f.over)
	}
}

// pollEvery is how often Quiet looks at the sessions.
const pollEvery = 5 * time.Millisecond

// Quiet waits until all other tasks have ended or wait here, and every session waits
// for its user or has ended.
func (f *free) Quiet() {
	f.changed(func() { f.wait++ })
	defer f.changed(func() { f.wait-- })
	for {
		f.w.mu.Lock()
		busy, idle := f.live > f.wait, f.idle
		f.w.mu.Unlock()
		if busy {
			_ = f.Await(context.Background(), idle) // no other end
			continue
		}
		began := f.Now()
		for f.atWork() && f.Now().Sub(began) < settleLimit {
			f.w.Sleep(pollEvery)
		}
		return
	}
}

// atWork reports whether a session neither waits for its user nor has ended, or has
// ended and the world does not know it yet: events come on a separate task.
func (f *free) atWork() bool {
	open := make(map[string]bool)
	for _, s := range f.w.rt.Sessions() {
		open[s.ID()] = true
		if st := s.State(); !st.Terminal() && st != session.StateReady && st != session.StateAwaitingConsumer {
			return true
		}
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	for _, id := range f.w.order {
		if f.w.sessions[id].ended == 0 && !open[id] {
			return true
		}
	}
	return false
}

// Run waits for the end of all tasks.
func (f *free) Run() error { return f.Await(context.Background(), f.over) }

// Close does nothing: all tasks have ended.
func (f *free) Close() {}

// Live is the number of tasks that have not ended.
func (f *free) Live() int {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.live
}

func (f *free) Plain(bool)                 {}
func (f *free) Jump(time.Duration)         {}
func (f *free) OnStep(func())              {}
func (f *free) Decisions() (_, _ []uint16) { return nil, nil }
func (f *free) Steps() int                 { return 0 }
func (f *free) Unseeded() bool             { return false }
func (f *free) be(string) string           { return laneScenario }
func (f *free) running() string            { return laneScenario }
func (f *free) received() origin           { return origin{lane: laneTask} }
func (f *free) handled()                   {}

// enter runs fn where the level's histories are played.
func (x *explorer) enter(about string, fn func()) error {
	switch x.c.Level {
	case Processes:
		fn()
		return nil
	case Concurrent:
		return sim.Enter(x.t, nil, 0, about, fn)
	}
	return sim.Enter(x.t, &x.progress, x.c.Watchdog, about, fn)
}
