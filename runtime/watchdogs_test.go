package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// retries are reports that the agent tries again, one each five minutes.
func retries(n, status int) (all scripted.Steps) {
	for i := range n {
		all = append(all, &scripted.APIRetry{Attempt: i + 1, Delay: 5 * time.Minute, Status: status})
	}
	return all
}

// TestATurnThatOnlyRetries is ended, with an error that says whether to try again.
func TestATurnThatOnlyRetries(t *testing.T) {
	t.Parallel()
	answered := scripted.Text("at last")
	for name, c := range map[string]struct {
		steps scripted.Steps
		limit time.Duration
		stall time.Duration
		after time.Duration // zero: the turn goes well
		again bool
		text  string
	}{
		"for long":         {steps: retries(20, 529), after: 30 * time.Minute, again: true, text: "the agent only tried the model's API again for 30m0s (retries: 6, last: status 529"},
		"another limit":    {steps: retries(20, 503), limit: 10 * time.Minute, after: 10 * time.Minute, again: true, text: "Limits.Retry is 10m0s)"},
		"no stall at all":  {steps: retries(20, 429), stall: -1, after: 30 * time.Minute, again: true, text: "last: status 429"},
		"no limit":         {steps: append(retries(20, 529), answered), limit: -1, stall: -1},
		"not for long":     {steps: append(append(append(retries(5, 529), answered), retries(5, 529)...), answered)},
		"a refused login":  {steps: retries(20, 401), text: "the model's API refuses the login, and the agent tries again (status 401"},
		"a forbidden call": {steps: retries(20, 403), text: "(status 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			spec := w.spec(turns(c.steps, scripted.Steps{scripted.Text("on")}))
			spec.Options.Limits.Retry, spec.Options.Limits.Stall = c.limit, c.stall
			if spec.Options.Limits.Stall == 0 {
				spec.Options.Limits.Stall = 3 * time.Hour
			}
			var said []error
			spec.Options.OnEvent = func(r session.EventRecord) {
				if e, ok := r.Event.(*session.TurnRetries); ok {
					said = append(said, e.Err)
				}
			}
			s := w.open(spec)
			began := w.Sched.Now()
			turn := w.send(s, "go")
			if c.text == "" {
				_, err := turn.Result(context.Background())
				require.NoError(t, err)
				return
			}
			w.Pass(time.Second)
			if c.after > 0 {
				waits := s.Tree(t.Context()).Waits
				require.GreaterOrEqual(t, len(waits), 2)
				assert.Equal(t, "retries of the model's API", waits[1].What)
				assert.Equal(t, "Limits.Retry", waits[1].SetBy)
				assert.Equal(t, c.after, waits[1].Limit)
			}
			_, err := turn.Result(context.Background())
			var retried *session.RetryLimitError
			require.ErrorAs(t, err, &retried)
			assert.Contains(t, err.Error(), c.text)
			assert.Equal(t, c.again, sdk.Retryable(err))
			assert.InDelta(t, c.after, w.Sched.Now().Sub(began), float64(2*time.Second))
			assert.Equal(t, []string{"on"}, texts(t, w.send(s, "on")), "the session goes on")
			assert.Equal(t, []error{retried}, said)
		})
	}
}

// TestAStartThatTakesTooLong: a spawner that hangs is given up.
func TestAStartThatTakesTooLong(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, time.Minute} {
		w := inSim(t, 1)
		spec := w.spec(turns())
		spec.Program, spec.Options.Limits.Start = nil, limit
		spec.Options.Spawner = hangs{w}
		s, err := w.Start(t.Context(), spec)
		require.NoError(t, err)
		w.Pass(30 * time.Second)
		waits := s.Tree(t.Context()).Waits
		want := 5 * time.Minute
		if limit > 0 {
			want = limit
		}
		require.Len(t, waits, 1)
		assert.Equal(t, session.Wait{What: "start of the agent", Age: 30 * time.Second, Limit: want, SetBy: "Limits.Start", Since: w.Sched.Now().Add(-30 * time.Second)}, waits[0])
		err = s.AwaitReady(context.Background())
		var timeout *session.TimeoutError
		require.ErrorAs(t, err, &timeout)
		assert.Equal(t, "Limits.Start", timeout.SetBy)
		assert.Equal(t, want, timeout.Limit)
		assert.Equal(t, session.StateFailed, s.State())
	}
}

// hangs is a spawner that never returns by itself.
type hangs struct{ w *rig }

func (h hangs) Spawn(ctx context.Context, _ session.Command) (session.Process, error) {
	return nil, h.w.Executor().Await(ctx, never)
}

// succeeded is a program that is another one from its second process on.
type succeeded struct {
	agent.Program
	by agent.Program
	n  int
}

func (s *succeeded) Serve(l agent.Launch, port agent.Port) agent.Exit {
	if s.n++; s.n > 1 {
		return s.by.Serve(l, port)
	}
	return s.Program.Serve(l, port)
}

// TestAStalledAgentThatIsKilled: what does not heed the interrupt is killed, if that is
// wanted, and another process takes its place, if that is.
func TestAStalledAgentThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, restarts := range []int{0, 1} {
		w := inSim(t, 1)
		script := turns(scripted.Steps{scripted.Text("hm"), scripted.Delay(10 * time.Hour)})
		script.Misbehave.Ignore = []string{"interrupt"}
		spec := w.spec(script)
		spec.Program = &succeeded{Program: spec.Program, by: w.Agent(turns(scripted.Steps{scripted.Text("done")}))}
		spec.Options.Limits.StallKill, spec.Options.MaxRestarts = 10*time.Minute, restarts
		s := w.open(spec)
		began := w.Sched.Now()
		result, err := w.send(s, "go").Result(context.Background())
		assert.InDelta(t, 40*time.Minute, w.Sched.Now().Sub(began), float64(2*time.Second))
		if restarts > 0 {
			require.NoError(t, err)
			assert.True(t, result.Recovered)
			continue
		}
		var exit *session.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Contains(t, exit.LadderStep, "a turn made no progress (Limits.StallKill)")
	}
}
