package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func TestCloseIsIdempotent(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(turns()))
		var waits []func()
		for range 4 {
			waits = append(waits, w.Task(func() { assert.NoError(t, s.Close(context.Background())) }))
		}
		for _, wait := range waits {
			wait()
		}
		require.NoError(t, s.Close(context.Background()))
		assert.Equal(t, session.StateClosed, s.State())
		require.NoError(t, s.Err())
		living, _ := w.Agents()
		assert.Zero(t, living)

		_, err := s.Send(context.Background(), text("late"))
		require.ErrorIs(t, err, session.ErrClosed)
		require.ErrorIs(t, s.Call(context.Background(), &protocol.UnknownHostRequest{Name: "interrupt", Raw: []byte(`{"subtype":"interrupt"}`)}, nil, 0), session.ErrClosed)
		require.NoError(t, s.AwaitIdle(context.Background()))
		for m, err := range s.Messages(context.Background()) {
			t.Error("there is nothing to read", m, err)
		}
	})
}

func TestCloseOfAnIdleSessionTakesNoTime(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	s := w.open(w.spec(turns()))
	_, err := w.send(s, "hi").Result(t.Context())
	require.NoError(t, err)
	start := w.Sched.Now()
	require.NoError(t, s.Close(t.Context()))
	assert.Less(t, w.Sched.Now().Sub(start), 100*time.Millisecond)
}

// deaf is an agent in a turn of an hour that does not stop for anything but
// SIGKILL.
func deaf() *scripted.Script {
	s := turns(scripted.Steps{scripted.Delay(time.Hour)})
	s.Misbehave = scripted.Misbehaviour{Ignore: []string{"interrupt"}, TrapTerm: true, IgnoreEOF: true}
	return s
}

func TestCloseInterruptsARunningTurn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		w := inSim(t, seed)
		s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour), gate()})))
		turn := w.send(s, "go")
		w.Pass(time.Second)
		require.Equal(t, session.StateRunning, s.State())
		start := w.Sched.Now()
		require.NoError(t, s.Close(t.Context()))
		assert.Less(t, w.Sched.Now().Sub(start), time.Minute)
		assert.Empty(t, w.Effects())
		r, err := turn.Result(t.Context())
		require.NoError(t, err, "the turn has a result: it was stopped first")
		assert.True(t, r.IsError)
		assert.Equal(t, session.StateClosed, s.State())
	}
}

func TestCloseOfAnAgentThatIsDeaf(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(deaf())
	spec.Options.InterruptGrace = 7 * time.Second
	spec.Options.Graces = session.Graces{EOF: time.Hour, Terminate: 5 * time.Second}
	s := w.open(spec)
	turn := w.send(s, "go")
	w.Pass(time.Second)
	start := w.Sched.Now()
	require.NoError(t, s.Close(t.Context()))
	assert.Equal(t, 12*time.Second, w.Sched.Now().Sub(start), "interrupt, then SIGTERM: stdin is not closed under a turn")
	_, err := turn.Result(t.Context())
	require.ErrorIs(t, err, session.ErrClosed)
	assert.Equal(t, session.StateClosed, s.State(), "it was the user's wish")
}

func TestCloseRunsOutOfTime(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		spec := w.spec(deaf())
		spec.Options.InterruptGrace = time.Hour
		spec.Options.OnEvent = func(e session.EventRecord) {
			if c, ok := e.Event.(*session.StateChanged); ok && c.To == session.StateClosing.String() {
				cancel(enough)
			}
		}
		s := w.open(spec)
		turn := w.send(s, "go")
		for _, err := range turn.Messages(context.Background()) { // it is under way
			require.NoError(t, err)
			break
		}
		err := s.Close(ctx)
		require.ErrorIs(t, err, enough)
		require.ErrorContains(t, err, "close session "+s.ID()+": still clos")
		require.ErrorContains(t, err, "(killed), agent killed: enough")
		require.NoError(t, w.Executor().Await(context.Background(), s.Done()), "it ends all the same")
		living, _ := w.Agents()
		assert.Zero(t, living)
		assert.Equal(t, session.StateClosed, s.State())
		_, err = turn.Result(context.Background())
		require.ErrorIs(t, err, session.ErrClosed)
	})
}

// TestCloseFromInsideTheLoop closes a session from the loop that consumes it,
// while the agent has more to say than may be held.
func TestCloseFromInsideTheLoop(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(turns(scripted.Steps{
			scripted.Text("first"), &scripted.Flood{Count: 200, Size: 1000}, &scripted.Huge{Bytes: 300 << 10}, &scripted.Huge{Bytes: 300 << 10},
		}))
		spec.Options.Limits = session.Limits{Messages: 8, Bytes: 4 << 10, HardBytes: 16 << 10}
		spec.Options.InterruptGrace = 200 * time.Millisecond
		spec.Options.Graces = session.Graces{EOF: 200 * time.Millisecond, Terminate: 200 * time.Millisecond, Output: 100 * time.Millisecond}
		s := w.open(spec)
		w.send(s, "go")
		for m, err := range s.Messages(context.Background()) {
			require.NoError(t, err)
			if protocol.TextOf(m) != "first" {
				continue
			}
			require.NoError(t, s.Close(context.Background()))
			break
		}
		assert.Equal(t, session.StateClosed, s.State())
		living, _ := w.Agents()
		assert.Zero(t, living)
	})
}

func TestNoToolRunsInATurnWrittenAfterClose(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w := inSim(t, seed)
		s := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Second), &scripted.ToolUse{Name: "Bash", Gate: agent.GateAllow, Effect: "effect"}})))
		turn := w.send(s, "go")
		require.NoError(t, s.Close(t.Context()))
		assert.Empty(t, w.Effects(), "seed %d", seed)
		select {
		case <-turn.Done():
		default:
			t.Errorf("seed %d: the turn is open", seed)
		}
	}
}

func TestCloseWhileAGateIsDecided(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		w := inSim(t, seed)
		var cause error
		spec := w.spec(turns(scripted.Steps{gate()}))
		spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			_ = w.Executor().Await(ctx, never)
			cause = context.Cause(ctx)
			return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
		}
		s := w.open(spec)
		turn := w.send(s, "go")
		w.Pass(time.Second)
		require.Equal(t, session.StateAwaitingHost, s.State())
		require.NoError(t, s.Close(t.Context()))
		require.ErrorIs(t, cause, context.Canceled, "the callback hears that nobody waits")
		assert.Empty(t, w.Effects(), "fail-closed, seed %d", seed)
		_, err := turn.Result(t.Context())
		require.NoError(t, err)
	}
}

// TestASessionActorThatDiesWhileItWaitsForTheInterrupt must not forget how long
// it wanted to wait.
func TestASessionActorThatDiesWhileItWaitsForTheInterrupt(t *testing.T) {
	t.Parallel()
	var s *runtime.Session
	struck := false
	w := inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			if s == nil || struck || at != kernel.AfterMessage || !strings.HasPrefix(actor, s.ID()+"#") || s.State() != session.StateClosing {
				return false
			}
			struck = true
			return true
		}
	})
	s = w.open(w.spec(deaf()))
	w.send(s, "go")
	w.Pass(time.Second)
	start := w.Sched.Now()
	require.NoError(t, s.Close(t.Context()))
	assert.True(t, struck)
	assert.Less(t, w.Sched.Now().Sub(start), time.Minute)
}

func TestWhatAnAgentSaysBeforeItDiesIsRead(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(turns(scripted.Steps{scripted.Text("a"), &scripted.Result{}, &scripted.Exit{Code: 3}})))
		turn := w.send(s, "go")
		require.NoError(t, w.Executor().Await(context.Background(), s.Done()))
		assert.Equal(t, []string{"system/init", "assistant", "result/success"}, content(kinds(context.Background(), t, turn)), "nobody had read it")
		_, err := turn.Result(context.Background())
		require.NoError(t, err)
		var exit *session.ExitError
		require.ErrorAs(t, s.Err(), &exit)
		assert.Equal(t, 3, exit.Status.Code)
		assert.Equal(t, session.StateFailed, s.State())
		_, err = s.Send(context.Background(), text("more"))
		require.ErrorIs(t, err, session.ErrClosed)
		require.ErrorAs(t, err, &exit, "and why")
		require.NoError(t, s.Close(context.Background()), "nothing is left")
	})
}

func TestATurnThatTheAgentDoesNotSurvive(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		s := w.open(w.spec(turns(scripted.Steps{scripted.Text("a"), scripted.Text("b"), &scripted.Exit{Signal: "KILL"}})))
		turn := w.send(s, "go")
		var got []string
		var last error
		for m, err := range turn.Messages(context.Background()) {
			if last = err; err == nil {
				if text := protocol.TextOf(m); text != "" {
					got = append(got, text)
				}
			}
		}
		assert.Equal(t, []string{"a", "b"}, got)
		var exit *session.ExitError
		require.ErrorAs(t, last, &exit)
		assert.Equal(t, "a turn", exit.During)
		require.ErrorContains(t, last, "agent claude ended during a turn: signal SIGKILL")
		_, err := turn.Result(context.Background())
		require.ErrorAs(t, err, &exit)
	})
}

func TestAnErrorResultIsToldWithTheExit(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	isError, why := true, "out of credit"
	failed := &scripted.Result{IsError: &isError, Text: &why, APIErrorStatus: 402, TerminalReason: "api_error"}
	s := w.open(w.spec(turns(scripted.Steps{failed, &scripted.Exit{Code: 1}})))
	_, err := w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
	require.ErrorContains(t, s.Err(), "exit code 1; last result: api_error, status 402: out of credit")
}

// The diagnostic of a turn that was interrupted explains nothing that comes after
// it.
func TestAnInterruptedTurnIsNoCauseOfTheExit(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	isError := true
	interrupted := &scripted.Result{
		IsError: &isError, Subtype: "error_during_execution", TerminalReason: "aborted_streaming",
		Errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"},
	}
	s := w.open(w.spec(turns(scripted.Steps{interrupted, &scripted.Exit{Code: 1}})))
	r, err := w.send(s, "go").Result(t.Context())
	require.NoError(t, err)
	assert.True(t, r.Interrupted())
	require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
	require.EqualError(t, s.Err(), "agent claude ended during a turn: exit code 1")
}

func TestShutdownInEveryState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		w := inSim(t, seed)
		sessions := make(map[session.State]*runtime.Session)
		var opening []error
		open := func(spec runtime.Spec) {
			w.Sched.Go(func() {
				_, err := w.Open(context.Background(), spec)
				opening = append(opening, err)
			})
			w.Pass(time.Millisecond)
		}
		silent := &scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}}
		stuck := w.spec(nil)
		stuck.Program, stuck.Options.Spawner = nil, stuckSpawner{w}
		open(stuck)
		open(w.spec(silent))

		sessions[session.StateReady] = w.open(w.spec(turns()))
		sessions[session.StateRunning] = w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)})))
		asks := w.spec(turns(scripted.Steps{gate()}))
		asks.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			return protocol.PermissionResult{}, w.Executor().Await(ctx, never)
		}
		sessions[session.StateAwaitingHost] = w.open(asks)
		talks := w.spec(turns(scripted.Steps{scripted.Text("1"), scripted.Text("2"), scripted.Text("3"), scripted.Text("4")}))
		talks.Options.Limits.Messages = 2
		sessions[session.StateAwaitingConsumer] = w.open(talks)
		closing := w.spec(deaf())
		closing.Options.InterruptGrace = time.Minute
		sessions[session.StateClosing] = w.open(closing)
		sessions[session.StateClosed] = w.open(w.spec(turns()))
		sessions[session.StateFailed] = w.open(w.spec(turns(scripted.Steps{&scripted.Exit{Code: 1}})))
		for state, s := range sessions {
			if state != session.StateReady && state != session.StateClosed {
				w.send(s, "go")
			}
		}
		w.Pass(time.Second)
		w.Sched.Go(func() { _ = sessions[session.StateClosing].Close(context.Background()) })
		require.NoError(t, sessions[session.StateClosed].Close(t.Context()))
		for state, s := range sessions {
			require.Equal(t, state, s.State(), "seed %d", seed)
		}
		states := make(map[session.State]bool)
		for _, s := range w.Sessions() {
			states[s.State()] = true
		}
		require.True(t, states[session.StateStarting] && states[session.StateInitializing], "seed %d: %v", seed, states)

		require.NoError(t, w.Shutdown(t.Context()))
		for state, s := range sessions {
			require.True(t, s.State().Terminal(), "seed %d: %v", seed, state)
		}
		require.Len(t, opening, 2)
		for _, err := range opening {
			require.Error(t, err, "seed %d", seed)
		}
		assert.Empty(t, w.Sessions())
		living, _ := w.Agents()
		assert.Zero(t, living)
		assert.Empty(t, w.Effects())
		require.NoError(t, w.Shutdown(t.Context()), "again")
	}
}

func TestShutdownRunsOutOfTime(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(deaf())
		spec.ID, spec.Options.InterruptGrace = "deaf", time.Hour
		closing := make(chan struct{})
		spec.Options.OnEvent = func(r session.EventRecord) {
			if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StateClosing.String() {
				close(closing)
			}
		}
		deafOne := w.open(spec)
		w.send(deafOne, "go")
		polite := w.open(w.spec(turns()))
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		w.Task(func() { // when all that can end has ended
			assert.NoError(t, w.Executor().Await(context.Background(), polite.Done()))
			assert.NoError(t, w.Executor().Await(context.Background(), closing))
			cancel(enough)
		})
		err := w.Shutdown(ctx)
		require.ErrorIs(t, err, enough)
		require.EqualError(t, err, "1 session has not ended: deaf (closing): enough")
		assert.Equal(t, session.StateClosed, polite.State())
		require.NoError(t, w.Executor().Await(context.Background(), deafOne.Done()), "it was killed")
		require.NoError(t, w.Shutdown(context.Background()))
		cancel(nil)
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	busy := w.open(w.spec(turns(scripted.Steps{scripted.Delay(time.Minute), scripted.Text("done")})))
	idle := w.open(w.spec(turns()))
	turn := w.send(busy, "hi")
	ctx, cancel := context.WithCancel(t.Context())
	w.Sched.AfterFunc(time.Second, cancel)
	err := w.Drain(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "1 session has not ended: "+busy.ID()+" (running)")
	assert.Equal(t, session.StateClosed, idle.State(), "it had nothing to do")
	_, err = w.Open(t.Context(), w.spec(turns()))
	require.ErrorIs(t, err, session.ErrShutdown, "no new ones")
	_, err = busy.Send(t.Context(), text("more"))
	require.ErrorIs(t, err, session.ErrDraining)
	drained := w.Task(func() { assert.NoError(t, w.Drain(t.Context())) })
	r, err := turn.Result(t.Context())
	require.NoError(t, err, "the turn ends")
	assert.Equal(t, "done", r.Result)
	drained()
	assert.Equal(t, session.StateClosed, busy.State())
}
