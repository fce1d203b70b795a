package simtests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// World is one history of a scenario: a runtime whose actors, callbacks and agents
// run one step at a time in an order that follows from the seed, on virtual time.
// time.Now, time.Sleep, timers and contexts with deadlines of the scenario and of
// the callbacks are virtual, too.
//
// A World is a TestingT of testify: its failures are reported once, after the
// history was made smaller. It is safe for concurrent use by the tasks of the
// scenario.
type World struct {
	c     Config
	h     history
	sched engine
	rt    *runtime.Runtime
	rng   *rand.Rand
	ctx   context.Context
	end   context.CancelFunc
	start time.Time
	full  bool // keep all events, not their hash alone
	store *transcripts
	lease *leases

	leased bool // lease is the runtime's

	mu        sync.Mutex
	count     int // events
	hash      hash.Hash
	scratch   []byte // for the hash
	events    []Event
	failures  []string
	faults    []*applied
	ofKind    map[faultKind][]*applied
	calm      bool // no faults any more
	fired     []string
	faulted   map[string]bool
	sometimes map[string]bool
	sessions  map[string]*watched
	order     []string
	effects   []string
	living    int
	launched  int
	ports     []*faulty       // of the agents that have not ended
	relays    []*relays       // on level Processes
	programs  []clientProgram // in the order of Dial
	reached   map[string]bool // states of sessions
	users     map[string]bool // children of Options.Children, by name
	admission runtime.Admission
	admitted  int64          // sessions so far; the scheduler's, as the next one
	soonest   time.Time      // that another one may be
	delays    time.Duration  // before restarts of actors, in all
	again     map[string]int // actors by session and name: starts after the first, less those that were decided

	dirs, dir string // what World.Dir has made, and what it returns; "": nothing
	loops     *minds // nil without an embedded agent
}

// outcome is what a run came to.
type outcome struct {
	failures         []string
	hash             string
	events           []Event
	taken, outOf     []uint16
	fired            []string
	faults           map[string]bool
	sometimes        map[string]bool
	states           map[string]bool
	steps            int
	unseeded         bool
	nondeterministic bool
}

func (o outcome) failed() bool { return len(o.failures) > 0 }

// play runs a history. full keeps its events.
func (x *explorer) play(h history, full bool) outcome {
	var o outcome
	about := fmt.Sprintf("simtests: %s, seed %d, token %s", x.t.Name(), h.Seed, h.token())
	err := x.enter(about, func() {
		w := newWorld(x.c, h, full)
		o = w.run(x.scenario, &x.progress)
	})
	if err != nil {
		o.failures = append(o.failures, "no-orphans: "+err.Error())
	}
	return o
}

func newWorld(c Config, h history, full bool) *World {
	choices := sim.Draw(h.Seed)
	switch {
	case h.Choices == nil && c.Strategy == PCT:
		choices = sim.DrawPCT(h.Seed, c.Depth)
	case h.Choices != nil:
		choices = sim.Play(h.Seed, h.Choices)
	}
	w := &World{
		c: c, h: h, full: full,
		rng:  rand.New(rand.NewPCG(h.Seed, 0xA0761D6478BD642F)),
		hash: sha256.New(), faulted: make(map[string]bool), sometimes: make(map[string]bool), sessions: make(map[string]*watched), reached: make(map[string]bool), users: make(map[string]bool), again: make(map[string]int), ofKind: make(map[faultKind][]*applied),
	}
	if c.Level == Simulated {
		w.sched = newBaton(w, sim.InBubble(choices, c.Steps))
	} else {
		w.sched = newFree(w)
	}
	w.store = &transcripts{w: w}
	w.lease = &leases{w: w, held: make(map[string]bool), runs: make(map[string]*faulty)}
	w.start = w.sched.Now()
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// run plays the scenario and checks what it leaves.
func (w *World) run(scenario func(*World), progress interface{ Add(int64) int64 }) outcome {
	config := w.sched.Config()
	config.Chaos = w.onMessage
	if w.c.Level != Processes {
		config.Spawner = noProcesses{}
	}
	config.OnCrash = func(c kernel.Crash) {
		w.note(Event{Kind: "crash", Lane: actorLane(c.Actor), What: fmt.Sprint(c.Reason)})
		if c.Reason == nil {
			w.Errorf("sound: %s failed for no reason", actorLane(c.Actor))
		}
	}
	var own runtime.Config
	if w.c.Runtime != nil {
		own = w.c.Runtime(w.h.Seed)
	}
	own.Clock = config.AsClock()
	if own.Logger == nil {
		own.Logger = slog.New(keyless{w: w})
	}
	if own.Leases == nil && w.c.Level != Processes {
		own.Leases, w.leased = w.lease, true
	}
	w.admission = own.Admission
	rt, err := runtime.New(own)
	if err != nil {
		w.Errorf("start the runtime: %v", err)
		return w.outcome()
	}
	w.rt = rt
	w.sched.OnStep(func() {
		progress.Add(1)
		w.hasty()
	})
	w.sched.Plain(w.c.Strategy == Exhaustive) // the orders of the start are not the scenario's
	w.Go(func() {
		defer w.sched.GoAs(laneWorld, w.finish)
		w.sched.Quiet()
		w.sched.Plain(false)
		scenario(w)
	})
	if err := w.sched.Run(); err != nil {
		w.Errorf("liveness: %v%s", err, w.waits())
	}
	w.end()
	w.sched.Close()
	if w.loops != nil {
		w.loops.done()
	}
	if w.dirs != "" {
		_ = os.RemoveAll(w.dirs) // it is in the directory for temporary files
	}
	for _, r := range w.relays {
		r.close()
	}
	return w.outcome()
}

func (w *World) outcome() outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken, outOf := w.sched.Decisions()
	return outcome{
		failures: w.failures, hash: hex.EncodeToString(w.hash.Sum(nil)), events: w.events, taken: taken, outOf: outOf,
		fired: w.fired, faults: w.faulted, sometimes: w.sometimes, states: w.reached, steps: w.sched.Steps(), unseeded: w.sched.Unseeded(),
	}
}

// Seed is the seed of this history.
func (w *World) Seed() uint64 { return w.h.Seed }

// Context is the scenario's. It ends with the world.
func (w *World) Context() context.Context { return w.ctx }

// Rand draws from the seed, apart from the scheduler's decisions. Use it from one
// task at a time.
func (w *World) Rand() *rand.Rand { return w.rng }

// Runtime is where the world's sessions run, for options that want one.
func (w *World) Runtime() *runtime.Runtime { return w.rt }

// Elapsed is how much virtual time has passed since the world began.
func (w *World) Elapsed() time.Duration { return w.sched.Now().Sub(w.start) }

// Open connects a client to a scripted agent. The options are those of production,
// callbacks and all, but for Runtime and Backend, which are the world's. An error
// ends the scenario as a failure; [World.Dial] returns it.
func (w *World) Open(o *sdk.Options, s *scripted.Script) *sdk.Client {
	w.Helper()
	c, err := w.Dial(o, s)
	if err != nil {
		w.Fatalf("open a session: %v", err)
	}
	return c
}

// Dial is [World.Open] for sessions that may not start.
func (w *World) Dial(o *sdk.Options, s *scripted.Script) (*sdk.Client, error) {
	return w.dial(o, func(o *sdk.Options) *program { return w.agent(s, o) })
}

func (w *World) dial(o *sdk.Options, agent func(*sdk.Options) *program) (*sdk.Client, error) {
	var own sdk.Options
	if o != nil {
		own = *o
	}
	own.Runtime = w.rt
	p := agent(&own)
	if own.Backend = p.backend; p.backend == nil {
		own.Backend = p
	}
	if w.c.Level == Processes {
		if err := w.asProcess(p, &own); err != nil {
			return nil, err
		}
	}
	w.watch(&own, p)
	p.rests(&own)
	c := sdk.NewClient(&own)
	w.mu.Lock()
	w.programs = append(w.programs, clientProgram{c, p})
	for _, child := range own.Children {
		w.users[child.Spec().Name] = true
	}
	w.mu.Unlock()
	if err := c.Connect(w.ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Go runs fn as a task of the world. Goroutines that fn or a callback starts by
// itself are virtual, too, but the order in which several of them call in at the
// same instant does not follow from the seed.
func (w *World) Go(fn func()) {
	w.sched.GoAs(laneScenario, func() {
		defer w.caught()
		fn()
	})
}

// caught makes a failure of a panic in the scenario.
func (w *World) caught() {
	if r := recover(); r != nil {
		w.Errorf("the scenario panicked: %v\n%s", r, debug.Stack())
	}
}

// Run waits until nothing is left to do: no task is ready and no timer is set.
// Virtual time passes.
func (w *World) Run() { w.sched.Quiet() }

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) {
	over := make(chan struct{})
	w.sched.AfterFunc(d, func() { close(over) })
	_ = w.sched.Await(context.Background(), over) // the end of the world
}

// Note adds a line to the trace.
func (w *World) Note(format string, args ...any) {
	w.note(Event{Kind: "note", Lane: "scenario", What: fmt.Sprintf(format, args...)})
}

// Sometimes says that a scenario is meant to get somewhere in some of its histories.
// Explore reports in how many it did, and fails if it was never and at least 100
// were played.
func (w *World) Sometimes(name string, reached bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sometimes[name] = w.sometimes[name] || reached
}

// Effects are the side effects that tools of scripted agents had, in order: the
// Effect of each step that ran.
func (w *World) Effects() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.effects)
}

// Agents is how many agents run, and how many were started.
func (w *World) Agents() (living, started int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living, w.launched
}

// Shutdown ends the runtime with all sessions, as a host does on SIGTERM.
func (w *World) Shutdown() error { return w.rt.Shutdown(w.ctx) }

// Calm ends all faults: what comes now goes well.
func (w *World) Calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

// --- as a test -----------------------------------------------------------------

// Errorf makes the history one that fails. The scenario continues.
func (w *World) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.failures = append(w.failures, text)
	w.mu.Unlock()
	w.note(Event{Kind: "failure", Lane: "scenario", What: text})
}

// FailNow ends the calling task; the history has failed.
func (w *World) FailNow() {
	if !w.Failed() {
		w.Errorf("FailNow")
	}
	// The deferred functions of the task undo its work.
	exitTask()
}

// Fatalf is [World.Errorf] and [World.FailNow].
func (w *World) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	w.FailNow()
}

// Failed reports whether the history has failed.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// Helper does nothing; testify looks for it.
func (w *World) Helper() {}

// Logf is [World.Note].
func (w *World) Logf(format string, args ...any) { w.Note(format, args...) }

// Name is the world's name in messages.
func (w *World) Name() string { return fmt.Sprintf("seed %d", w.h.Seed) }
