package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// rests are the processes of a session that is passivated.
type rests struct {
	spec runtime.Spec
	args [][]string // of each process
}

func newRests(w *world) *rests {
	r := &rests{}
	s := gated("count")
	s.Turns = append(s.Turns, scripted.Turn{Steps: scripted.Steps{scripted.Text("again")}})
	s.Default = scripted.Steps{scripted.Text("more")}
	r.spec = w.Gated(s)
	r.spec.Program = launches{r.spec.Program, &r.args}
	return r
}

// reading reads all messages of a session, on a separate task.
func reading(w *world, s *runtime.Session) (wait func()) {
	r, err := s.Read()
	require.NoError(w, err)
	return w.Task(func() {
		defer r.Close()
		for {
			m, err := r.Next(context.Background())
			if err != nil {
				return
			}
			w.Note("saw %T", m)
		}
	})
}

func say(s *runtime.Session, prompt string) error {
	ctx := context.Background()
	turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(prompt)}})
	if err != nil {
		return err
	}
	_, err = turn.Result(ctx)
	return err
}

// TestPassivate: an idle session gives up its process, and the next message starts
// another one, which takes up the session.
func TestPassivate(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 10, 20) {
		w := newWorld(t, seed)
		r := newRests(w)
		ctx := context.Background()
		s, err := w.Open(ctx, r.spec)
		require.NoError(w, err)
		done := reading(w, s)
		require.NoError(w, say(s, "go"))
		for range 2 { // the second one finds nothing to do
			require.NoError(w, s.Passivate(ctx))
			require.Equal(w, session.StatePassivated, s.State())
			living, _ := w.Agents()
			require.Zero(w, living)
		}
		require.Zero(w, s.PID())
		var receipt protocol.InterruptResponse
		require.NoError(w, s.Call(ctx, protocol.InterruptRequest{}, &receipt, 0))
		require.Equal(w, session.StatePassivated, s.State(), "there is nothing to interrupt")
		require.NoError(w, say(s, "on"))
		require.Len(w, r.args, 2)
		require.Contains(w, r.args[1], "--resume="+s.AgentSessionID())
		require.NoError(w, s.Passivate(ctx))
		require.NoError(w, s.Close(ctx)) // of a session without a process
		require.Len(w, r.args, 2, "a close starts nothing")
		require.ErrorIs(w, s.Passivate(ctx), session.ErrClosed)
		done()
		w.Finish()
		require.Len(w, w.Effects(), 6, "the three tools of each process's first turn")
	}
}

// TestPassivateBeforeTheFirstTurn: there is nothing to resume, so the next process is
// started like the first.
func TestPassivateBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	r := newRests(w)
	s, err := w.Open(t.Context(), r.spec)
	require.NoError(w, err)
	require.NoError(w, s.Passivate(t.Context()))
	done := reading(w, s)
	require.NoError(w, say(s, "go"))
	require.Len(w, r.args, 2)
	require.Equal(w, r.args[0], r.args[1])
	require.NoError(w, s.Close(t.Context()))
	done()
}

// TestPassivateAtAnyMoment: one task sends, and others want the process to go, all the
// time. Each message has its result, and no process ends that is needed.
func TestPassivateAtAnyMoment(t *testing.T) {
	t.Parallel()
	woken, refused := 0, 0
	for seed := range sim.Seeds(t, 60, 5) {
		w := newWorld(t, seed)
		r := newRests(w)
		ctx := context.Background()
		s, err := w.Open(ctx, r.spec)
		require.NoError(w, err)
		done := reading(w, s)
		over := false
		var idle []func()
		for range 2 {
			idle = append(idle, w.Task(func() {
				for !over {
					err := s.Passivate(ctx)
					if problem := new(session.PassivateError); errors.As(err, &problem) {
						refused++
					} else if err != nil {
						require.ErrorIs(w, err, session.ErrClosed)
					}
					w.Pass(time.Millisecond)
				}
			}))
		}
		for i := range 5 {
			require.NoError(w, say(s, fmt.Sprint("message ", i)))
			w.Pass(time.Millisecond)
		}
		over = true
		require.NoError(w, s.Close(ctx))
		for _, wait := range append(idle, done) {
			wait()
		}
		w.Finish()
		w.FailClosed(fmt.Sprint("seed ", seed))
		require.Zero(w, len(w.Effects())%3, "seed %d: no process ended in a turn", seed)
		woken += len(r.args) - 1
	}
	assert.Positive(t, woken)
	assert.Positive(t, refused)
}

// TestKillWhilePassivated kills each actor at each message of a run in which the session
// is passivated and wakes.
func TestKillWhilePassivated(t *testing.T) {
	t.Parallel()
	play := func(w *world) []error {
		r := newRests(w)
		ctx := context.Background()
		s, err := w.Open(ctx, r.spec)
		if err != nil {
			return []error{err}
		}
		done := reading(w, s)
		errs := []error{say(s, "go")}
		errs = append(errs, s.Passivate(ctx))
		errs = append(errs, say(s, "on"), s.Passivate(ctx), s.Close(ctx))
		done()
		return errs
	}
	for seed := range sim.Seeds(t, 1, 200) {
		calm := newWorld(t, seed)
		require.Equal(calm, make([]error, 5), play(calm))
		calm.Finish()
		for n, what := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
				struck := false
				w := newWorld(t, seed, strike(n, at, &struck))
				require.Equal(w, make([]error, 5), play(w), "killed %v message %d (%s)", at, n, what)
				w.Finish()
				w.FailClosed("")
			}
		}
	}
}

// TestPassivateAfter: by the clock, and only an idle session.
func TestPassivateAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	r := newRests(w)
	r.spec.Options.PassivateAfter = time.Minute
	s, err := w.Open(t.Context(), r.spec)
	require.NoError(w, err)
	done := reading(w, s)
	for range 3 { // each turn begins the minute anew
		require.NoError(w, say(s, "go"))
		w.Pass(50 * time.Second)
		require.Equal(w, session.StateReady, s.State())
	}
	w.Pass(20 * time.Second)
	require.Equal(w, session.StatePassivated, s.State())
	require.Len(w, r.args, 1)
	require.NoError(w, s.Call(t.Context(), &protocol.MCPStatusRequest{}, nil, 0)) // a call wakes it, too
	require.Len(w, r.args, 2)
	w.Pass(50 * time.Second)
	require.NoError(w, s.Call(t.Context(), &protocol.MCPStatusRequest{}, nil, 0))
	w.Pass(50 * time.Second)
	require.Equal(w, session.StateReady, s.State(), "a call is use")
	w.Pass(20 * time.Second)
	require.Equal(w, session.StatePassivated, s.State())
	require.NoError(w, s.Close(t.Context()))
	done()
}

// TestWhatKeepsAProcess: a process that is needed does not go, and a session whose next
// process would differ keeps the one that it has.
func TestWhatKeepsAProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	r := newRests(w)
	r.spec.Options.PassivateAfter = time.Minute
	hold := make(chan struct{})
	r.spec.Options.CanUseTool = func(ctx context.Context, q *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		w.Await(hold)
		return protocol.PermissionResult{Behavior: "allow"}, nil
	}
	s, err := w.Open(t.Context(), r.spec)
	require.NoError(w, err)
	done := reading(w, s)
	asked := w.Task(func() { require.NoError(w, say(s, "go")) })
	w.Pass(time.Hour)
	require.Equal(w, session.StateAwaitingHost, s.State())
	problem := new(session.PassivateError)
	require.ErrorAs(w, s.Passivate(t.Context()), &problem)
	assert.Equal(w, "a request of the agent is open", problem.Problem)
	close(hold)
	asked()
	require.NoError(w, s.Call(t.Context(), &protocol.SetModelRequest{}, nil, 0))
	require.ErrorAs(w, s.Passivate(t.Context()), &problem)
	assert.Contains(w, problem.Problem, "a call may have changed what the options say")
	w.Pass(time.Hour)
	require.Equal(w, session.StateReady, s.State())
	require.NoError(w, s.Close(t.Context()))
	done()
	require.Len(w, r.args, 1)
}
