package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// flaky is a program whose processes do not come up while it is broken.
type flaky struct {
	agent.Program
	now    func() time.Time
	broken bool
	exit   agent.Exit
	hangs  bool // in place of ending
	starts []time.Time
}

func (f *flaky) Serve(l agent.Launch, port agent.Port) agent.Exit {
	f.starts = append(f.starts, f.now())
	if f.broken && !f.hangs {
		return f.exit
	}
	if f.broken {
		for {
			if _, err := port.Next(-1); err != nil {
				return agent.Exit{}
			}
		}
	}
	return f.Program.Serve(l, port)
}

// newFlaky is the program of a script in the world.
func newFlaky(w *rig, s *scripted.Script) *flaky {
	return &flaky{Program: w.Agent(s), now: w.Sched.Now, exit: agent.Exit{Code: 1}}
}

// most is the largest number of starts within any second.
func most(starts []time.Time) (n int) {
	for i := range starts {
		j := i
		for j < len(starts) && starts[j].Sub(starts[i]) < time.Second {
			j++
		}
		n = max(n, j-i)
	}
	return n
}

// configured is a rig in virtual time whose runtime is configured.
func configured(t *testing.T, cfg runtime.Config) *rig {
	t.Helper()
	return &rig{newWorldWith(t, 1, cfg)}
}

// breaker is that of the only program.
func (w *rig) breaker() runtime.Breaker {
	w.Helper()
	all := w.Tree(context.Background()).Breakers
	i := slices.IndexFunc(all, func(b runtime.Breaker) bool { return b.Kind == session.BreakerAgent })
	require.GreaterOrEqual(w, i, 0, "%v", all)
	return all[i]
}

// heard keeps what the runtime reports of its breakers, and of held starts.
func (w *rig) heard() *[]string {
	var all []string
	w.Executor().Go(func() { // until the runtime is shut down
		for r := range w.Events(context.Background()) {
			switch e := r.Event.(type) {
			case *session.BreakerOpened, *session.BreakerHalfOpened, *session.BreakerReclosed:
				all = append(all, strings.TrimPrefix(fmt.Sprintf("%T", e), "*session."))
			case *session.StartHeld:
				all = append(all, "StartHeld "+r.Session)
			}
		}
	})
	return &all
}

// TestAProgramThatStartsToFail: a thousand sessions lose their agents at once, and no new
// one comes up for a minute. Together they make at most ten starts a second, and all
// their turns end well.
func TestAProgramThatStartsToFail(t *testing.T) {
	t.Parallel()
	sessions := 1000
	if testing.Short() || sim.Raced() { // which makes them ten times as slow
		sessions = 150
	}
	w := inSim(t, 1)
	script := turns(scripted.Steps{scripted.Text("hello"), scripted.Text("world")})
	script.Misbehave.Die = &scripted.Die{At: agent.MidAssistant, Code: 3, Only: "fresh"}
	program := newFlaky(w, script)
	var all []*runtime.Session
	for i := range sessions {
		spec := runtime.Spec{ID: fmt.Sprintf("s%04d", i), Dialect: w.spec(nil).Dialect, Program: program}
		spec.Options.MaxRestarts, spec.Options.Discard = 5, true
		all = append(all, w.open(spec))
	}
	require.Len(t, program.starts, sessions)
	require.Equal(t, session.BreakerClosed, w.breaker().State)

	program.broken, program.starts = true, nil
	var sent []*runtime.Turn
	for _, s := range all {
		sent = append(sent, w.send(s, "go"))
	}
	w.Pass(time.Minute)
	b := w.breaker()
	assert.NotEqual(t, session.BreakerClosed, b.State)
	assert.Greater(t, b.Held, sessions*9/10)
	assert.Equal(t, "the agent ended during initialize: exit code 1", b.LastFailure)
	assert.LessOrEqual(t, most(program.starts), 10)
	assert.Less(t, len(program.starts), 20, "a few, and then probes")
	tree := all[sessions-1].Tree(t.Context())
	assert.Equal(t, session.StateRecovering, tree.State)
	require.NotEmpty(t, tree.Waits)
	assert.Contains(t, tree.Waits[0].What, "start of the agent: the breaker of agent claude in memory is open since")
	assert.Greater(t, tree.Waits[0].Age, 50*time.Second)

	program.broken = false
	for i, turn := range sent {
		result, err := turn.Result(context.Background())
		require.NoError(t, err, "session %d", i)
		require.True(t, result.Recovered)
	}
	assert.LessOrEqual(t, most(program.starts), 10, "also once it works again")
	assert.Equal(t, session.BreakerClosed, w.breaker().State)
	assert.Zero(t, w.breaker().Held)
	t.Logf("%d sessions: %d starts, at most %d within a second, the last after %v",
		sessions, len(program.starts), most(program.starts), program.starts[len(program.starts)-1].Sub(program.starts[0]))
}

// TestNewSessionsOfABrokenProgram: the first ones fail with their own error, the others at
// once with that of the breaker, and a later one finds out that it works again.
func TestNewSessionsOfABrokenProgram(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*flaky){
		"it exits":              func(*flaky) {},
		"it dies":               func(f *flaky) { f.exit = agent.Exit{Code: 137} },
		"it exits successfully": func(f *flaky) { f.exit = agent.Exit{} },
		"it does not answer":    func(f *flaky) { f.hangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			program := newFlaky(w, turns())
			program.broken = true
			breaks(program)
			events := w.heard()
			var open *session.BreakerOpenError
			for i := range 20 {
				_, err := w.Open(context.Background(), runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program})
				require.Error(t, err)
				require.Equal(t, i >= 5, errors.As(err, &open), "%d: %v", i, err)
			}
			assert.Len(t, program.starts, 5)
			assert.Equal(t, session.BreakerAgent, open.Kind)
			assert.Equal(t, 5, open.Failures)
			assert.Positive(t, open.RetryAfter)
			program.broken = false
			w.Pass(open.RetryAfter)
			s := w.open(runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program})
			require.NoError(t, s.Close(t.Context()))
			w.Pass(time.Second)
			assert.Equal(t, []string{"BreakerOpened", "BreakerHalfOpened", "BreakerReclosed"}, *events)
		})
	}
}

// TestWhoIsHeldCanBeGivenUp: a session that waits for an open breaker is closed, killed,
// drained, or opened with a context that ends, and the runtime is shut down meanwhile.
func TestWhoIsHeldCanBeGivenUp(t *testing.T) {
	t.Parallel()
	hold := runtime.Config{Breakers: runtime.Breakers{Hold: true, Agent: runtime.BreakerPolicy{Failures: 1, CoolDown: time.Hour, MaxCoolDown: time.Hour}}}
	for name, over := range map[string]func(t *testing.T, w *rig, s *runtime.Session){
		"closed":    func(t *testing.T, _ *rig, s *runtime.Session) { require.NoError(t, s.Close(t.Context())) },
		"killed":    func(t *testing.T, _ *rig, s *runtime.Session) { require.NoError(t, s.Kill(t.Context())) },
		"drained":   func(t *testing.T, _ *rig, s *runtime.Session) { require.NoError(t, s.Drain(t.Context())) },
		"shut down": func(t *testing.T, w *rig, _ *runtime.Session) { require.NoError(t, w.Shutdown(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := configured(t, hold)
			program := newFlaky(w, turns())
			program.broken = true
			spec := runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program}
			_, err := w.Open(t.Context(), spec)
			require.Error(t, err)
			s, err := w.Start(t.Context(), spec)
			require.NoError(t, err)
			w.Pass(time.Minute)
			assert.Equal(t, session.StateAdmitting, s.State())
			tree := s.Tree(t.Context())
			require.Len(t, tree.Waits, 1)
			assert.Contains(t, tree.Waits[0].What, "next probe in")
			assert.Equal(t, 1, w.breaker().Held)
			began := w.Sched.Now()
			over(t, w, s)
			assert.Less(t, w.Sched.Now().Sub(began), time.Second)
			require.NoError(t, s.Err())
			assert.Equal(t, session.StateClosed, s.State())
			assert.Zero(t, w.breaker().Held)
			assert.Len(t, program.starts, 1)
		})
	}
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		w := configured(t, hold)
		program := newFlaky(w, turns())
		program.broken = true
		spec := runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program}
		_, err := w.Open(t.Context(), spec)
		require.Error(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		w.Sched.AfterFunc(time.Minute, cancel)
		_, err = w.Open(ctx, spec)
		var unfinished *session.UnfinishedError
		require.ErrorAs(t, err, &unfinished)
		require.Len(t, unfinished.Waits, 1)
		assert.Contains(t, unfinished.Error(), "waiting for start of the agent: the breaker of agent claude in memory is open since")
		assert.Empty(t, w.Sessions())
	})
	t.Run("it waits for the probe", func(t *testing.T) {
		t.Parallel()
		w := configured(t, hold)
		program := newFlaky(w, turns())
		program.broken = true
		spec := runtime.Spec{ID: "s", Dialect: w.spec(nil).Dialect, Program: program}
		events := w.heard()
		_, err := w.Open(t.Context(), spec)
		require.Error(t, err)
		program.broken = false
		s := w.open(spec)
		assert.Equal(t, session.StateReady, s.State())
		w.Pass(time.Second)
		assert.GreaterOrEqual(t, program.starts[1].Sub(program.starts[0]), 30*time.Minute)
		assert.Equal(t, []string{"BreakerOpened", "StartHeld s", "BreakerHalfOpened", "BreakerReclosed"}, *events)
	})
}

// TestAPassivatedSessionWaits for the program of its agent, which fails meanwhile.
func TestAPassivatedSessionWaits(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	program := newFlaky(w, turns(scripted.Steps{scripted.Text("one")}, scripted.Steps{scripted.Text("two")}))
	spec := runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program}
	s := w.open(spec)
	assert.Equal(t, []string{"one"}, texts(t, w.send(s, "go")))
	w.Pass(time.Second)
	require.NoError(t, s.Passivate(t.Context()))
	program.broken = true
	for range 6 {
		_, err := w.Open(t.Context(), spec)
		require.Error(t, err)
	}
	turn := w.send(s, "on")
	w.Pass(100 * time.Millisecond)
	tree := s.Tree(t.Context())
	assert.Equal(t, session.StatePassivated, tree.State)
	require.NotEmpty(t, tree.Waits)
	assert.Contains(t, tree.Waits[0].What, "start of the agent: the breaker of agent claude in memory is open since")
	program.broken = false
	result, err := turn.Result(context.Background())
	require.NoError(t, err)
	assert.False(t, result.Failed())
	require.NoError(t, s.Close(t.Context()))
}

// TestFailuresThatSayNothingAboutTheProgram do not open its breaker.
func TestFailuresThatSayNothingAboutTheProgram(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	program := newFlaky(w, turns())
	program.broken, program.hangs = true, true
	for range 20 {
		s, err := w.Start(t.Context(), runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program})
		require.NoError(t, err)
		w.Pass(time.Second)
		require.NoError(t, s.Kill(t.Context()), "the user gives it up")
	}
	assert.Equal(t, session.BreakerClosed, w.breaker().State)
	assert.Zero(t, w.breaker().Failures)
}

// TestSessionsThatShareNoBreaker: a program that fails holds up no other one.
func TestSessionsThatShareNoBreaker(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	bad := newFlaky(w, turns())
	bad.broken = true
	for range 10 {
		_, err := w.Open(t.Context(), runtime.Spec{Dialect: w.spec(nil).Dialect, Program: bad})
		require.Error(t, err)
	}
	good := newFlaky(w, turns())
	s := w.open(runtime.Spec{Dialect: w.spec(nil).Dialect, Program: good})
	require.NoError(t, s.Close(t.Context()))
	for range 200 { // unused ones are forgotten
		s := w.open(w.spec(turns()))
		require.NoError(t, s.Close(t.Context()))
		w.Pass(2 * time.Second)
	}
	assert.LessOrEqual(t, len(w.Tree(t.Context()).Breakers), 64)
}

func TestBreakersThatCannotBe(t *testing.T) {
	t.Parallel()
	_, err := runtime.New(runtime.Config{Breakers: runtime.Breakers{
		Agent: runtime.BreakerPolicy{CoolDown: -1, MaxCoolDown: -2},
	}})
	require.Len(t, session.ConfigErrors(err), 2)
	_, err = runtime.New(runtime.Config{Breakers: runtime.Breakers{Agent: runtime.BreakerPolicy{CoolDown: 3, MaxCoolDown: 2}}})
	require.ErrorContains(t, err, "option Breakers.Agent.MaxCoolDown: is 2ns, less than CoolDown, 3ns; raise it or lower CoolDown")
}

// TestBreakersThatAreOff limit nothing.
func TestBreakersThatAreOff(t *testing.T) {
	t.Parallel()
	w := configured(t, runtime.Config{Breakers: runtime.Breakers{Agent: runtime.BreakerPolicy{Failures: -1}, StartsPerSecond: -1}})
	program := newFlaky(w, turns())
	program.broken = true
	for range 50 {
		_, err := w.Open(t.Context(), runtime.Spec{Dialect: w.spec(nil).Dialect, Program: program})
		require.ErrorAs(t, err, new(*session.ExitError))
	}
	assert.Len(t, program.starts, 50)
}
