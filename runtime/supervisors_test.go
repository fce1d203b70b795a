package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// strategy is one of a user.
type strategy func(supervisor.Failed) supervisor.Decision

func (s strategy) Decide(f supervisor.Failed, _ []supervisor.ChildState) supervisor.Decision {
	return s(f)
}

// killing kills an actor whose name begins with victim once, when it is armed.
func killing(victim string) (change func(*kernel.Config), arm func()) {
	armed := false
	return func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			strike := armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, victim)
			armed = armed && !strike
			return strike
		}
	}, func() { armed = true }
}

// TestAStrategyForTheActors: what the user's strategy restarts is restarted, the agent does
// not notice, and the decision is an event with its reason.
func TestAStrategyForTheActors(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		change, arm := killing("router#")
		w := inSim(t, seed, change)
		spec := w.spec(turns(scripted.Steps{gate(), scripted.Delay(time.Minute), gate(), scripted.Text("done")}))
		spec.ID, spec.Options.CanUseTool = "s", allow
		spec.Options.Supervisors.Session.Strategy = strategy(func(f supervisor.Failed) supervisor.Decision {
			return supervisor.Decision{Restart: []string{"transport", f.Child}, Why: "they go together"}
		})
		var why []string
		spec.Options.OnEvent = func(r session.EventRecord) {
			if s, ok := r.Event.(*session.Supervision); ok {
				if e, ok := s.Decision.(*supervisor.RestartScheduled); ok {
					why = append(why, e.Why)
				}
			}
		}
		s := w.open(spec)
		turn := w.send(s, "go")
		w.Pass(time.Second)
		arm()
		result, err := turn.Result(t.Context())
		require.NoError(t, err, "seed %d", seed)
		assert.Equal(t, "done", result.Result)
		w.Pass(time.Minute)
		assert.Equal(t, []string{"s#1", "transport#2", "router#2"}, names(s.Tree(t.Context()).Actors)[:3], "seed %d", seed)
		assert.Equal(t, []string{"they go together"}, why)
		require.NoError(t, s.Close(t.Context()))
	}
}

// TestAStrategyEndsTheSession with its reason; one that would leave the session without its
// router does so, too.
func TestAStrategyEndsTheSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decision supervisor.Decision
		want     string
	}{
		"escalates":       {supervisor.Decision{Escalate: true, Why: "not worth it"}, "not worth it"},
		"leaves it down":  {supervisor.Decision{Why: "who needs it"}, "it leaves a permanent child down"},
		"restarts nobody": {supervisor.Decision{Restart: []string{"nobody"}}, `it restarts "nobody", which is no child`},
	} {
		for seed := range uint64(5) {
			change, arm := killing("router#")
			w := inSim(t, seed, change)
			spec := w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)}))
			spec.Options.Supervisors.Session.Strategy = strategy(func(supervisor.Failed) supervisor.Decision { return c.decision })
			s := w.open(spec)
			turn := w.send(s, "go")
			w.Pass(time.Second)
			arm()
			s.Tree(t.Context()) // a message for the router
			require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
			assert.Equal(t, session.StateFailed, s.State(), name)
			var failure *supervisor.Failure
			require.ErrorAs(t, s.Err(), &failure, name)
			require.ErrorContains(t, s.Err(), c.want, name)
			_, err := turn.Result(t.Context())
			require.Error(t, err)
		}
	}
}

// TestTheSupervisorsOfASession: callbacks have a separate policy, and an actor a
// backoff.
func TestTheSupervisorsOfASession(t *testing.T) {
	t.Parallel()
	change, arm := killing("permission#")
	w := inSim(t, 1, change)
	spec := w.spec(turns(scripted.Steps{gate(), scripted.Delay(time.Minute), gate()}))
	spec.Options.CanUseTool = allow
	spec.Options.Supervisors.Session.Backoff = supervisor.Backoff{Initial: time.Hour, Max: time.Hour}
	spec.Options.Supervisors.Callbacks.Backoff = supervisor.Backoff{Initial: 2 * time.Hour, Max: 2 * time.Hour}
	spec.Options.Supervisors.Backoffs = map[string]supervisor.Backoff{"permission": {Initial: supervisor.NoBackoff}}
	s := w.open(spec)
	turn := w.send(s, "go")
	w.Pass(time.Second)
	arm()
	_, err := turn.Result(t.Context())
	require.NoError(t, err)
	w.Pass(time.Second)
	assert.Contains(t, names(s.Tree(t.Context()).Actors), "callbacks/permission#2", "it came back at once")
}

// TestMistakesInSupervisors are found before anything starts, all at once.
func TestMistakesInSupervisors(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.Options.Supervisors = session.Supervisors{
		Session:   supervisor.Policy{Strategy: supervisor.Standard(9), Intensity: supervisor.Intensity{Window: -1}},
		Callbacks: supervisor.Policy{Strategy: supervisor.SimpleOneForOne},
		Backoffs:  map[string]supervisor.Backoff{"rooter": {}, "router": {Factor: 0.5}},
	}
	_, err := w.Open(t.Context(), spec)
	for _, want := range []string{
		"Supervisors.Session", "unknown strategy 9", "the intensity window is -1ns", "Supervisors.Callbacks", "SimpleOneForOne lists no children",
		"Supervisors.Backoffs[rooter]", "names no actor", "Supervisors.Backoffs[router]", "the factor 0.5",
	} {
		require.ErrorContains(t, err, want)
	}
	var mistake *session.ConfigError
	require.ErrorAs(t, err, &mistake)
	assert.NotEmpty(t, mistake.Fix)

	_, err = runtime.New(runtime.Config{Supervisor: supervisor.Policy{Backoff: supervisor.Backoff{Max: -1}}})
	require.ErrorAs(t, err, &mistake)
	assert.Equal(t, "Supervisor", mistake.Option)
}

// TestAStrategyForTheActorOfASession: the runtime's policy decides about the actor that owns
// a session, and affects no other session.
func TestAStrategyForTheActorOfASession(t *testing.T) {
	t.Parallel()
	change, arm := killing("s#")
	var config *kernel.Config
	w := inSim(t, 1, change, func(c *kernel.Config) { config = c })
	require.NoError(t, w.Shutdown(t.Context()))
	rt, err := runtime.New(runtime.Config{Clock: config.AsClock(), Supervisor: supervisor.Policy{
		Strategy: strategy(func(supervisor.Failed) supervisor.Decision {
			return supervisor.Decision{Escalate: true, Why: "one crash is enough"}
		}),
	}})
	require.NoError(t, err)
	w.Runtime = rt
	spec := w.spec(turns(scripted.Steps{scripted.Delay(time.Hour)}))
	spec.ID = "s"
	s, other := w.open(spec), w.open(w.spec(turns(scripted.Steps{scripted.Text("hi")})))
	arm()
	s.Tree(t.Context()) // a message for the actor
	require.NoError(t, w.Executor().Await(t.Context(), s.Done()))
	assert.Equal(t, session.StateFailed, s.State())
	require.ErrorContains(t, s.Err(), "one crash is enough")
	_, err = w.send(other, "go").Result(t.Context())
	require.NoError(t, err)
	require.NoError(t, other.Close(t.Context()))
}
