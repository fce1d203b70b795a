package sdk_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is where a test runs: on the production seams, or in simulation.
type world struct {
	*testing.T
	rt  *runtime.Runtime
	sim *sim.Scheduler // nil in production
}

// in runs a test on the production seams and on seeds of the simulation.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		rt, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			assert.NoError(t, rt.Shutdown(ctx))
		}()
		test(&world{t, rt, nil})
		assert.Empty(t, open(rt), "sessions left open")
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range seeds(t) {
			s := sim.New(seed)
			rt, err := runtime.NewOn(runtime.Config{}, s.Config())
			require.NoError(t, err)
			test(&world{t, rt, s})
			require.NoError(t, s.Run(1_000_000), "seed %d", seed)
			assert.Empty(t, open(rt), "seed %d: sessions left open", seed)
			require.NoError(t, rt.Shutdown(context.Background()), "seed %d", seed)
			assert.Zero(t, s.Parked(), "seed %d: tasks left waiting", seed)
			s.Close()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	})
}

// seeds is how many each simulation has: two, which takes the race detector long
// enough, or one for each 500 of TROUPE_SEEDS.
func seeds(t *testing.T) uint64 {
	v := os.Getenv("TROUPE_SEEDS")
	if v == "" {
		return 2
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err, "TROUPE_SEEDS")
	return max(2, n/500)
}

// open lists the sessions that have not ended.
func open(rt *runtime.Runtime) []string {
	var ids []string
	for _, s := range rt.Sessions() {
		if !s.State().Terminal() {
			ids = append(ids, s.ID()+" is "+s.State().String())
		}
	}
	return ids
}

// options are those of a session with an agent that plays these turns.
func (w *world) options(turns ...scripted.Turn) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithTurns(turns...))}
}

// script is options with a whole script.
func (w *world) script(s scripted.Script) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithScript(&s))}
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

// await waits for done as a task of the world does.
func (w *world) await(done <-chan struct{}) {
	w.Helper()
	require.NoError(w, w.rt.Executor().Await(w.Context(), done))
}

func turn(steps ...scripted.Step) scripted.Turn { return scripted.Turn{Steps: steps} }

// kinds are the types of messages, without those about state.
func kinds(messages []sdk.Message) []string {
	var all []string
	for _, m := range messages {
		switch m := m.(type) {
		case *sdk.InitMessage:
			all = append(all, "init")
		case *sdk.AssistantMessage:
			all = append(all, "assistant")
		case *sdk.UserMessage:
			all = append(all, "user")
		case *sdk.PartialAssistantMessage:
			all = append(all, "partial")
		case *sdk.ResultMessage:
			all = append(all, "result/"+m.Subtype)
		}
	}
	return all
}

// log keeps what a session reports, up to its end.
type log struct {
	mu    sync.Mutex
	all   []session.Event
	ended chan struct{}
}

// record makes o report to a log.
func record(o *sdk.Options) *log {
	l := &log{ended: make(chan struct{})}
	o.OnEvent = func(r sdk.EventRecord) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, r.Event)
		if _, ok := r.Event.(session.Ended); ok {
			close(l.ended)
		}
	}
	return l
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
func (w *world) failures(l *log) []session.CallbackFailed {
	w.Helper()
	var failed []session.CallbackFailed
	for _, e := range w.events(l) {
		if f, ok := e.(session.CallbackFailed); ok {
			failed = append(failed, f)
		}
	}
	return failed
}
