package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

func TestSpecsThatCannotBe(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	for name, c := range map[string]struct {
		change func(s *runtime.Spec)
		want   string
	}{
		"no dialect":       {func(s *runtime.Spec) { s.Dialect = nil }, "Spec.Dialect is required"},
		"a slash":          {func(s *runtime.Spec) { s.ID = "a/b" }, `"a/b" must not contain / or #`},
		"a hash":           {func(s *runtime.Spec) { s.ID = "a#1" }, `"a#1" must not contain / or #`},
		"an option":        {func(s *runtime.Spec) { s.Options.InitializeTimeout = -1 }, "InitializeTimeout"},
		"an empty server":  {func(s *runtime.Spec) { s.Options.SDKMCPServers = []*session.MCPServer{{}} }, "SDKMCPServers[0]: is nil or empty"},
		"a policy":         {func(s *runtime.Spec) { s.Options.Policy = &policy.Rules{Deny: []string{"("}} }, "Policy.Deny[0]"},
		"a broken backoff": {func(s *runtime.Spec) { s.Options.Supervisors.Session.Backoff = supervisor.Backoff{Initial: 2, Max: 1} }, "backoff"},
	} {
		spec := w.spec(turns())
		c.change(&spec)
		_, err := w.Open(t.Context(), spec)
		require.ErrorContains(t, err, c.want, name)
		assert.Empty(t, w.Sessions(), name)
	}
	_, ever := w.Agents()
	assert.Zero(t, ever, "nothing was started")
}

// TestStartsThatFail checks that nothing is left of them, and that the error says why.
func TestStartsThatFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script *scripted.Script
		change func(s *runtime.Spec)
		check  func(t *testing.T, err error)
	}{
		"the agent refuses initialize": {
			script: &scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "refuse", Error: "not today", Code: "nope"}}},
			check: func(t *testing.T, err error) {
				var refusal *session.ControlError
				require.ErrorAs(t, err, &refusal)
				assert.Equal(t, "initialize", refusal.Request)
				assert.Equal(t, "nope", refusal.Code)
				assert.Equal(t, "not today", refusal.Message)
			},
		},
		"the agent never answers initialize": {
			script: &scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}},
			change: func(s *runtime.Spec) { s.Options.Limits.Initialize = 100 * time.Millisecond },
			check: func(t *testing.T, err error) {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.EqualError(t, err, "initialize: no answer within 100ms (set by Limits.Initialize)")
			},
		},
		"the agent writes something else than the answer to initialize": {
			script: &scripted.Script{Misbehave: scripted.Misbehaviour{
				Initialize: scripted.InitializeFault{Mode: "never"}, Stderr: 200, Stdout: 200,
			}},
			change: func(s *runtime.Spec) { s.Options.Limits.Initialize = 5 * time.Second },
			check: func(t *testing.T, err error) {
				var late *session.TimeoutError
				require.ErrorAs(t, err, &late)
				assert.Contains(t, late.StderrTail, "....")
				assert.NotEmpty(t, late.StdoutTail)
				require.ErrorContains(t, err, "(set by Limits.Initialize); stderr: ....")
				require.ErrorContains(t, err, "; stdout: ....")
			},
		},
		"the agent exits before initialize": {
			script: &scripted.Script{Misbehave: scripted.Misbehaviour{Die: &scripted.Die{At: agent.BeforeInitResponse, Code: 3}, Stderr: 200}},
			check: func(t *testing.T, err error) {
				var exit *session.ExitError
				require.ErrorAs(t, err, &exit)
				assert.Equal(t, "initialize", exit.During)
				assert.Equal(t, 3, exit.Status.Code)
				assert.Contains(t, exit.StderrTail, "....")
				require.ErrorContains(t, err, "agent claude ended during initialize: exit code 3; stderr: ....")
			},
		},
		"the agent is killed before initialize": {
			script: &scripted.Script{Misbehave: scripted.Misbehaviour{Die: &scripted.Die{At: agent.BeforeInitResponse, Signal: "KILL"}}},
			check: func(t *testing.T, err error) {
				require.ErrorContains(t, err, "agent claude ended during initialize: signal SIGKILL")
			},
		},
		"there is no such program": {
			change: func(s *runtime.Spec) {
				s.Program = nil
				s.Options.Spawner = transport.InMemory{Clock: nil, Program: nil}
			},
			check: func(t *testing.T, err error) {
				var start *session.StartError
				require.ErrorAs(t, err, &start)
			},
		},
		"there is no such executable": {
			change: func(s *runtime.Spec) {
				s.Program = nil
				s.Options.PathToExecutable = "/nonexistent/agent"
				s.Options.Cwd = "/"
			},
			check: func(t *testing.T, err error) {
				var start *session.StartError
				require.ErrorAs(t, err, &start)
				assert.Equal(t, "/nonexistent/agent", start.Path)
				require.ErrorContains(t, err, "/nonexistent/agent")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, w *rig) {
				spec := w.spec(c.script)
				if c.change != nil {
					c.change(&spec)
				}
				s, err := w.Open(context.Background(), spec)
				require.Nil(t, s)
				require.Error(t, err)
				c.check(t, err)
				living, _ := w.Agents()
				assert.Zero(t, living)
				assert.Empty(t, w.Sessions())
			}
			if name == "there is no such executable" {
				run(t, inProduction(t)) // no simulation starts a process
				return
			}
			inBoth(t, run)
		})
	}
}

// stuckSpawner waits until the attempt is given up.
type stuckSpawner struct{ w *rig }

func (s stuckSpawner) Spawn(ctx context.Context, _ session.Command) (session.Process, error) {
	return nil, s.w.Executor().Await(ctx, never)
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	silent := &scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: "never"}}}
	deaf := &scripted.Script{Misbehave: scripted.Misbehaviour{
		Initialize: scripted.InitializeFault{Mode: "never"}, IgnoreEOF: true, TrapTerm: true,
	}}
	for name, build := range map[string]func(w *rig) runtime.Spec{
		"a spawn that hangs": func(w *rig) runtime.Spec {
			return runtime.Spec{Dialect: claude.New(), Options: session.Options{Spawner: stuckSpawner{w}}}
		},
		"an agent that is silent":  func(w *rig) runtime.Spec { return w.spec(silent) },
		"and will not go":          func(w *rig) runtime.Spec { return w.spec(deaf) },
		"an agent that is correct": func(w *rig) runtime.Spec { return w.spec(turns()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBoth(t, func(t *testing.T, w *rig) {
				enough := errors.New("enough")
				ctx, cancel := context.WithCancelCause(context.Background())
				if name == "an agent that is correct" {
					cancel(enough) // before it starts
				} else {
					w.Clock().AfterFunc(20*time.Millisecond, func() { cancel(enough) })
				}
				s, err := w.Open(ctx, build(w))
				require.Nil(t, s)
				require.ErrorIs(t, err, enough)
				require.ErrorContains(t, err, "open session ")
				living, _ := w.Agents()
				assert.Zero(t, living)
				assert.Empty(t, w.Sessions())
				cancel(nil)
			})
		})
	}
}

func TestTwoSessionsOfOneID(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, w *rig) {
		spec := w.spec(turns())
		spec.ID = "one"
		first := w.open(spec)
		_, err := w.Open(context.Background(), spec)
		require.ErrorContains(t, err, `session id "one" is taken`)
		assert.Equal(t, session.StateReady, first.State(), "the first does not notice")
		turn := w.send(first, "hi")
		_, err = turn.Result(context.Background())
		require.NoError(t, err)
		assert.Equal(t, []*runtime.Session{first}, w.Sessions())
	})
}

func TestAnIDCanBeUsedAgainAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		w := inSim(t, seed)
		spec := w.spec(turns())
		spec.ID = "one"
		for range 3 {
			s := w.open(spec)
			require.NoError(t, s.Close(t.Context()))
		}
	}
	w := inProduction(t)
	spec := w.spec(turns())
	spec.ID = "one"
	for range 30 {
		require.NoError(t, w.open(spec).Close(t.Context()))
	}
}

func TestSessionsHaveIDs(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	a, b := w.open(w.spec(turns())), w.open(w.spec(turns()))
	assert.Len(t, a.ID(), 13)
	assert.NotEqual(t, a.ID(), b.ID())
	assert.Len(t, w.Sessions(), 2)
	assert.Less(t, w.Sessions()[0].ID(), w.Sessions()[1].ID())
}

func TestNoSessionAfterShutdown(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	require.NoError(t, w.Shutdown(t.Context()))
	_, err := w.Open(t.Context(), w.spec(turns()))
	require.ErrorIs(t, err, session.ErrShutdown)
	_, ever := w.Agents()
	assert.Zero(t, ever)
}

func TestOpenWaitsForInitialize(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	start := w.Sched.Now()
	s := w.open(w.spec(&scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Delay: time.Minute}}}))
	assert.GreaterOrEqual(t, w.Sched.Now().Sub(start), time.Minute)
	assert.Equal(t, session.StateReady, s.State())
	assert.NotEmpty(t, s.Initialized())
}

func TestInitializeThatIsAnsweredTwiceOrEmpty(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"twice", "empty"} {
		w := inSim(t, 1)
		s := w.open(w.spec(&scripted.Script{Misbehave: scripted.Misbehaviour{Initialize: scripted.InitializeFault{Mode: mode}}}))
		_, err := w.send(s, "hi").Result(t.Context())
		require.NoError(t, err, mode)
	}
}
