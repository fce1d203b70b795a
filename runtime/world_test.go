package runtime_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// patience bounds what a test waits for in real time. Only a failure reaches it, also on a
// machine whose processors have ten times as much to do.
const patience = 2 * time.Minute

// maxSteps is how many steps a world may take until nothing is left to do.
const maxSteps = 1_000_000

// World is one run of a test: a runtime, its seams, its agents and a history.
// It is a testing.TB whose failures name the seed. In simulation it must be used
// from the test's goroutine and from tasks of the scheduler.
type world struct {
	testing.TB
	*runtime.Runtime

	Seed  uint64
	Sched *sim.Scheduler // nil in production
	Mute  bool           // keep no history: the memory of a test that measures it is the session's alone

	left   *unfinished
	failed bool // the test had failed before this world

	mu      sync.Mutex // of all below, for production
	history history
	living  int // agents that run
	ever    int // agents that were started
}

// history is what was seen of a run.
type history struct {
	trace   bytes.Buffer
	handled []string
	crashes []kernel.Crash
	wrote   []string
	read    []string
	effects []string
	allowed int
	turns   []error
}

// change alters the kernel's configuration before a simulation starts. Its Chaos
// and OnCrash are called besides the world's own.
type change func(*kernel.Config)

// kill decides, for the n-th message of the run, whether to kill its actor.
type kill func(n int, actor string, at kernel.Moment) bool

// killingWhen is the change that asks kill about each message. A nil kill spares all.
func killingWhen(kill kill) change {
	return func(c *kernel.Config) {
		if kill == nil {
			return
		}
		n := -1
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			if at == kernel.BeforeMessage {
				n++
			}
			return kill(n, actor, at)
		}
	}
}

// newWorld returns a world in virtual time. It is finished at the end of the test if
// [world.Finish] was not called before.
func newWorld(t testing.TB, seed uint64, change ...change) *world {
	t.Helper()
	return newWorldWith(t, seed, runtime.Config{}, change...)
}

// newWorldWith is New with a configuration of the runtime, whose clock is the world's.
func newWorldWith(t testing.TB, seed uint64, cfg runtime.Config, change ...change) *world {
	t.Helper()
	w := &world{TB: t, Seed: seed, Sched: sim.New(seed)}
	config := w.Sched.Config()
	for _, c := range change {
		c(&config)
	}
	w.record(&config)
	cfg.Clock = config.AsClock()
	rt, err := runtime.New(cfg)
	if err != nil {
		w.Fatalf("start a runtime in simulation: %v", err)
	}
	w.Runtime = rt
	w.finishAtEnd()
	return w
}

// production returns a world on goroutines and the wall clock.
func production(t testing.TB) *world {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		t.Fatalf("start a runtime: %v", err)
	}
	w := &world{TB: t, Runtime: rt}
	w.finishAtEnd()
	return w
}

// inBothWorlds runs a test in production, and for each of the first seeds in simulation.
// When the test returns no session may be open.
func inBothWorlds(t *testing.T, seeds uint64, test func(*testing.T, *world)) {
	t.Helper()
	run := func(t *testing.T, w *world) {
		test(t, w)
		w.Quiet()
		if open := unended(w.Runtime); len(open) > 0 {
			w.Errorf("sessions left open: %q", open)
		}
		w.Finish()
	}
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		run(t, production(t))
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range seeds {
			if run(t, newWorld(t, seed)); t.Failed() {
				return
			}
		}
	})
}

// record makes the kernel report messages and crashes to the history.
func (w *world) record(config *kernel.Config) {
	chaos, onCrash := config.Chaos, config.OnCrash
	config.Chaos = func(actor string, m any, at kernel.Moment) bool {
		if at == kernel.BeforeMessage && !w.Mute {
			what := fmt.Sprintf("%s %T", actor, m)
			w.history.handled = append(w.history.handled, what)
			w.Note("%s", what)
		}
		return chaos != nil && chaos(actor, m, at)
	}
	config.OnCrash = func(c kernel.Crash) {
		w.history.crashes = append(w.history.crashes, c)
		w.Note("crash %s: %v", c.Actor, c.Reason)
		if onCrash != nil {
			onCrash(c)
		}
	}
}

// finishAtEnd finishes the world at the end of the test. A world that is
// finished before is not kept until then.
func (w *world) finishAtEnd() {
	w.failed = w.Failed()
	left := &unfinished{w}
	w.left = left
	w.Cleanup(func() {
		if left.world != nil {
			left.world.Finish()
		}
	})
}

// unfinished is what the end of a test has to finish.
type unfinished struct{ world *world } // or nil

// Errorf fails the test and names the seed.
func (w *world) Errorf(format string, args ...any) {
	w.Helper()
	w.TB.Errorf("%s"+format, append([]any{w.where()}, args...)...)
}

// Fatalf is [world.Errorf], and ends the test.
func (w *world) Fatalf(format string, args ...any) {
	w.Helper()
	w.TB.Fatalf("%s"+format, append([]any{w.where()}, args...)...)
}

func (w *world) where() string {
	if w.Sched == nil {
		return "production: "
	}
	return fmt.Sprintf("seed %d: ", w.Seed)
}

// Quiet runs a simulation until nothing is left to do; virtual time passes.
func (w *world) Quiet() {
	w.Helper()
	if w.Sched == nil {
		return
	}
	if err := w.Sched.Run(maxSteps); err != nil {
		w.Errorf("%v", err)
	}
}

// Finish shuts the runtime down and checks that nothing is left of it: no
// session, no agent, no task, no timer.
func (w *world) Finish() {
	w.Helper()
	if w.left.world == nil {
		return
	}
	w.left.world = nil
	ctx, cancel := context.Background(), func() {}
	if w.Sched == nil { // a simulation that cannot continue reports it
		ctx, cancel = kernel.WithTimeout(ctx, w.Clock(), &session.TimeoutError{What: "the end of a test's runtime", Limit: patience})
	}
	defer cancel()
	if err := w.Shutdown(ctx); err != nil {
		w.Errorf("shut down: %v", err)
	}
	if w.Sched != nil {
		at := w.Sched.Now()
		w.Quiet()
		if now := w.Sched.Now(); now != at {
			w.Errorf("a timer outlives the runtime by %v", now.Sub(at))
		}
		if n := w.Sched.Parked(); n > 0 {
			w.Errorf("%d tasks left waiting", n)
		}
		w.Sched.Close()
	}
	if living, _ := w.Agents(); living > 0 {
		w.Errorf("%d agents left", living)
	}
	if left := w.Sessions(); len(left) > 0 {
		w.Errorf("%d sessions left", len(left))
	}
	if w.Failed() && !w.failed && w.Sched != nil {
		w.Logf("the failure is that of seed %d", w.Seed)
	}
}

// unended lists the sessions that have not ended, with their states.
func unended(rt *runtime.Runtime) []string {
	var open []string
	for _, s := range rt.Sessions() {
		if !s.State().Terminal() {
			open = append(open, s.ID()+" is "+s.State().String())
		}
	}
	return open
}

// Await waits for done as a task of the world does.
func (w *world) Await(done <-chan struct{}) {
	w.Helper()
	if err := w.Executor().Await(w.Context(), done); err != nil {
		w.Fatalf("wait: %v", err)
	}
}

// Pass lets time go by.
func (w *world) Pass(d time.Duration) {
	w.Helper()
	over := make(chan struct{})
	w.Clock().AfterFunc(d, func() { close(over) })
	w.Await(over)
}

// Task runs fn as a task, and returns how to wait for its end.
func (w *world) Task(fn func()) (wait func()) {
	done := make(chan struct{})
	w.Executor().Go(func() { defer close(done); fn() })
	return func() { w.Helper(); w.Await(done) }
}

// Note adds a line to the trace, with the virtual time.
func (w *world) Note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(format, args...)
}

func (w *world) note(format string, args ...any) {
	if w.Sched == nil || w.Mute {
		return // a trace without a seed is useless
	}
	fmt.Fprintf(&w.history.trace, "%d ", w.Sched.Now().UnixNano())
	fmt.Fprintf(&w.history.trace, format+"\n", args...)
}

// Trace is all that was noted, a line each.
func (w *world) Trace() string { return w.history.trace.String() }

// Hash is that of the trace: equal seeds and scenarios have equal hashes.
func (w *world) Hash() string {
	sum := sha256.Sum256(w.history.trace.Bytes())
	return hex.EncodeToString(sum[:])
}

// Handled names every message of every actor, in order.
func (w *world) Handled() []string { return w.history.handled }

// Crashes are those of the actors, in order.
func (w *world) Crashes() []kernel.Crash { return w.history.crashes }
