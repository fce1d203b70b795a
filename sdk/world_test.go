package sdk_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// world is a runtime for one run of a test. Its failures name the seed. In simulation it
// is used from the test's goroutine, and from tasks of the scheduler.
type world struct {
	testing.TB
	T   *testing.T
	rt  *runtime.Runtime
	sim *sim.Scheduler // nil in production
	end func()
}

// in runs a test on the production seams and on seeds of the simulation. When the test
// returns no session may be open.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	run := func(w *world) {
		test(w)
		w.quiet()
		assert.Empty(w, open(w.rt), "sessions left open")
		w.Finish()
	}
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		run(production(t))
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range sim.Seeds(t, 4, 500) {
			if run(virtual(t, seed)); t.Failed() {
				return
			}
		}
	})
}

// production is a world on the production seams.
func production(t *testing.T) *world {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	return newWorld(t, rt, nil)
}

// virtual is a world in virtual time, where a delay takes no time.
func virtual(t *testing.T, seed uint64) *world {
	t.Helper()
	s := sim.New(seed)
	config := s.Config()
	rt, err := runtime.New(runtime.Config{Clock: config.AsClock()})
	require.NoError(t, err)
	w := newWorld(t, rt, s)
	failed := t.Failed()
	w.end = sync.OnceFunc(func() {
		if w.finish(); t.Failed() && !failed {
			t.Logf("the failure is that of seed %d", seed)
		}
	})
	return w
}

func newWorld(t *testing.T, rt *runtime.Runtime, s *sim.Scheduler) *world {
	t.Helper()
	w := &world{TB: t, T: t, rt: rt, sim: s}
	w.end = sync.OnceFunc(w.finish)
	t.Cleanup(w.Finish)
	return w
}

// Finish ends the runtime, once, and checks that nothing is left of it.
func (w *world) Finish() { w.end() }

func (w *world) finish() {
	assert.NoError(w, w.rt.Shutdown(context.Background()))
	assert.Empty(w, w.rt.Sessions())
	if w.sim == nil {
		return
	}
	at := w.sim.Now()
	w.quiet()
	assert.Equal(w, at, w.sim.Now(), "a timer outlives the runtime")
	assert.Zero(w, w.sim.Parked(), "tasks left waiting")
	w.sim.Close()
}

// quiet runs a simulation until nothing is left to do.
func (w *world) quiet() {
	if w.sim != nil {
		assert.NoError(w, w.sim.Run(1_000_000))
	}
}

func (w *world) await(done <-chan struct{}) {
	w.Helper()
	require.NoError(w, w.rt.Executor().Await(w.Context(), done))
}

// Task runs fn as a task, and returns how to wait for its end.
func (w *world) Task(fn func()) (wait func()) {
	done := make(chan struct{})
	w.rt.Executor().Go(func() { defer close(done); fn() })
	return func() { w.Helper(); w.await(done) }
}

// promptly reports whether less than a second has passed: a session has a second for its
// description, which is incomplete on a machine that needs more.
func (w *world) promptly(began time.Time) bool {
	return w.sim != nil || w.rt.Clock().Now().Sub(began) < time.Second
}

// open lists the sessions that have not ended.
func open(rt *runtime.Runtime) (ids []string) {
	for _, s := range rt.Sessions() {
		if !s.State().Terminal() {
			ids = append(ids, s.ID()+" is "+s.State().String())
		}
	}
	return ids
}

// graces are the defaults in virtual time. In production an agent has longer, in which also a busy
// machine runs it.
func (w *world) graces() session.Graces {
	if w.sim != nil {
		return session.Graces{}
	}
	return session.Graces{EOF: 20 * time.Second, Output: 20 * time.Second}
}

// options are those of a session with an agent that plays these turns.
func (w *world) options(turns ...scripted.Turn) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithTurns(turns...)), Graces: w.graces()}
}

// script is options with a whole script.
func (w *world) script(s scripted.Script) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithScript(&s)), Graces: w.graces()}
}

// connect returns a client that is closed at the end of the test.
func (w *world) connect(o *sdk.Options) *sdk.Client {
	w.Helper()
	c := sdk.NewClient(o)
	require.NoError(w, c.Connect(w.Context()))
	return c
}

func (w *world) close(c *sdk.Client) {
	w.Helper()
	require.NoError(w, c.Close(context.Background()))
}

// log keeps the events of one session, up to its end.
type log struct {
	mu    sync.Mutex
	all   []session.Event
	ended chan struct{}
}

// record makes o report to a log.
func record(o *sdk.Options) *log {
	l := &log{ended: make(chan struct{})}
	o.OnEvent = l.Record
	return l
}

// Record takes an event: it is the session's OnEvent.
func (l *log) Record(r session.EventRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Event)
	if _, ok := r.Event.(*session.Ended); ok {
		close(l.ended)
	}
}

// events returns everything once the session has ended.
func (w *world) events(l *log) []session.Event {
	w.Helper()
	w.await(l.ended)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// failures are the callbacks that failed.
func (w *world) failures(l *log) []*session.CallbackFailed {
	w.Helper()
	var failed []*session.CallbackFailed
	for _, e := range w.events(l) {
		if f, ok := e.(*session.CallbackFailed); ok {
			failed = append(failed, f)
		}
	}
	return failed
}
