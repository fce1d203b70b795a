package runtime_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// world is a runtime in virtual time, or in production, and its agents.
type world struct {
	*runtime.Runtime
	t     *testing.T
	sched *sim.Scheduler // nil in production

	mu      sync.Mutex
	serving int // agents that live
	served  int // agents that were ever started
	effects int // side effects of their tools
}

// inSim is a world in virtual time. At the end of the test the runtime is shut
// down, and nothing of it may be left.
func inSim(t *testing.T, seed uint64, change ...func(*kernel.Config)) *world {
	t.Helper()
	s := sim.New(seed)
	seams := s.Config()
	for _, c := range change {
		c(&seams)
	}
	rt, err := runtime.NewOn(runtime.Config{}, seams)
	require.NoError(t, err)
	w := &world{Runtime: rt, t: t, sched: s}
	t.Cleanup(func() {
		assert.NoError(t, rt.Shutdown(context.Background()), "seed %d", seed)
		assert.NoError(t, s.Run(1_000_000), "seed %d", seed)
		assert.Zero(t, s.Parked(), "seed %d: tasks left waiting", seed)
		assert.Zero(t, w.serving, "seed %d: agents left", seed)
		assert.Empty(t, rt.Sessions(), "seed %d", seed)
		s.Close()
	})
	return w
}

// inProduction is a world on goroutines and the wall clock.
func inProduction(t *testing.T) *world {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	w := &world{Runtime: rt, t: t}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		assert.NoError(t, rt.Shutdown(ctx))
		w.mu.Lock()
		defer w.mu.Unlock()
		assert.Zero(t, w.serving, "agents left")
	})
	return w
}

// inBoth runs a test in production and for some seeds in virtual time.
func inBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("production", func(t *testing.T) { t.Parallel(); test(t, inProduction(t)) })
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(5) {
			test(t, inSim(t, seed))
		}
	})
}

// pass lets virtual time go by.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	over := make(chan struct{})
	w.sched.AfterFunc(d, func() { close(over) })
	require.NoError(w.t, w.sched.Await(context.Background(), over))
}

// task runs fn as a task and returns how to wait for it.
func (w *world) task(fn func()) (wait func()) {
	done := make(chan struct{})
	w.Executor().Go(func() { defer close(done); fn() })
	return func() {
		w.t.Helper()
		require.NoError(w.t, w.Executor().Await(context.Background(), done))
	}
}

// program plays a script; the world knows whether it lives.
func (w *world) program(s *scripted.Script) agent.Program {
	a := scripted.New(scripted.WithScript(s), scripted.WithEffect(func(_, _ string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.effects++
		return nil
	}))
	return counted{a, w}
}

type counted struct {
	agent.Program
	w *world
}

func (c counted) Serve(l agent.Launch, p agent.Port) agent.Exit {
	c.w.count(1)
	defer c.w.count(-1)
	return c.Program.Serve(l, p)
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving += n
	w.served += max(n, 0)
}

func (w *world) agents() (living, ever int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serving, w.served
}

// turns is a script without misbehaviour.
func turns(all ...scripted.Steps) *scripted.Script {
	s := &scripted.Script{}
	for _, steps := range all {
		s.Turns = append(s.Turns, scripted.Turn{Steps: steps})
	}
	return s
}

func (w *world) spec(s *scripted.Script) runtime.Spec {
	return runtime.Spec{Dialect: claude.New(), Program: w.program(s)}
}

func (w *world) open(spec runtime.Spec) *runtime.Session {
	w.t.Helper()
	s, err := w.Open(context.Background(), spec)
	require.NoError(w.t, err)
	return s
}

func (w *world) send(s *runtime.Session, prompt string) *runtime.Turn {
	w.t.Helper()
	turn, err := s.Send(context.Background(), text(prompt))
	require.NoError(w.t, err)
	return turn
}

// gate is a tool call that asks for permission and has an effect.
func gate() *scripted.ToolUse {
	return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Result: "now", Effect: "effect"}
}

// allow lets every tool run.
func allow(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
}

var never = make(chan struct{})
