package runtime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// environments notes the environment of each process that a program runs as.
type environments struct {
	agent.Program
	all *[][]string
}

func (p environments) Serve(l agent.Launch, port agent.Port) agent.Exit {
	*p.all = append(*p.all, l.Env)
	return p.Program.Serve(l, port)
}

// TestTraceEnvironment: each process gets what the trace says by then, but not in place of
// what the options say.
func TestTraceEnvironment(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	var all [][]string
	script := turns(scripted.Steps{scripted.Text("a")})
	script.Misbehave.Die = &scripted.Die{At: agent.MidAssistant, Nth: 2, Only: "fresh"}
	spec := w.spec(script)
	spec.Program = environments{spec.Program, &all}
	spec.ParentEnv = []string{"INHERITED=outer", "PATH=/bin", "GONE=outer"}
	spec.Options.Env = map[string]string{"GIVEN": "user"}
	spec.Options.UnsetEnv = []string{"GONE"}
	spec.Options.MaxRestarts = 1
	processes := 0
	spec.Options.Tracer = func(context.Context, session.TracedSession) *session.Trace {
		return &session.Trace{Environ: func() []string {
			processes++
			return []string{"INHERITED=trace", "GIVEN=trace", "GONE=trace", "ADDED=" + strings.Repeat("x", processes), "no assignment"}
		}}
	}
	s := w.open(spec)
	for range 2 {
		_, err := w.send(s, "go").Result(context.Background())
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(context.Background()))
	require.Len(t, all, 2)
	for i, added := range []string{"ADDED=x", "ADDED=xx"} {
		own := slices.DeleteFunc(all[i], func(kv string) bool {
			return !strings.Contains("INHERITED GIVEN GONE ADDED PATH no assignment", strings.Split(kv, "=")[0])
		})
		assert.Equal(t, []string{added, "GIVEN=user", "INHERITED=trace", "PATH=/bin"}, own)
	}
}

// TestATraceThatPanics: the session continues without it, and an event says so once.
func TestATraceThatPanics(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(*session.Trace) *session.Trace{
		"Tracer":        func(*session.Trace) *session.Trace { panic("planted") },
		"Trace.Environ": func(t *session.Trace) *session.Trace { t.Environ = func() []string { panic("planted") }; return t },
		"Trace.Event": func(t *session.Trace) *session.Trace {
			t.Event = func(session.EventRecord) { panic("planted") }
			return t
		},
		"Trace.Sent": func(t *session.Trace) *session.Trace {
			t.Sent = func(context.Context, time.Time, *protocol.UserMessage) { panic("planted") }
			return t
		},
		"Trace.Written": func(t *session.Trace) *session.Trace {
			t.Written = func(time.Time, string) { panic("planted") }
			return t
		},
		"Trace.Message": func(t *session.Trace) *session.Trace {
			t.Message = func(time.Time, protocol.Frame) { panic("planted") }
			return t
		},
		"Trace.Over": func(t *session.Trace) *session.Trace {
			t.Over = func(time.Time, session.TracedTurn) { panic("planted") }
			return t
		},
		"Trace.Callback": func(t *session.Trace) *session.Trace {
			t.Callback = func(context.Context, session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
				panic("planted")
			}
			return t
		},
		"the function of Trace.Callback": func(t *session.Trace) *session.Trace {
			t.Callback = func(context.Context, session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
				return nil, func(session.TracedAnswer) { panic("planted") } //nolint:nilnil // a mistake that must not matter
			}
			return t
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			spec := w.spec(turns(scripted.Steps{gate()}))
			spec.Options.CanUseTool = allow
			spec.Options.Tracer = func(context.Context, session.TracedSession) *session.Trace { return plant(&session.Trace{}) }
			var failures []session.CallbackFailed
			spec.Options.OnEvent = func(r session.EventRecord) {
				if e, ok := r.Event.(*session.CallbackFailed); ok {
					failures = append(failures, *e)
				}
			}
			s := w.open(spec)
			_, err := w.send(s, "go").Result(context.Background())
			require.NoError(t, err)
			require.NoError(t, s.Close(context.Background()))
			w.Quiet()
			require.Len(t, failures, 1)
			assert.Equal(t, "trace", failures[0].Kind)
			assert.Equal(t, name, failures[0].Name)
			assert.ErrorContains(t, failures[0].Err, "planted")
			assert.Len(t, w.Effects(), 1)
		})
	}
}

// TestATraceOfNothing: a session that is refused after its trace has begun ends in it.
func TestATraceOfNothing(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	spec.ID = "taken"
	first := w.open(spec)
	var ends []error
	spec.Options.Tracer = func(context.Context, session.TracedSession) *session.Trace {
		return &session.Trace{Event: func(r session.EventRecord) { ends = append(ends, r.Event.(*session.Ended).Reason) }}
	}
	_, err := w.Open(context.Background(), spec)
	require.ErrorContains(t, err, "taken")
	require.Equal(t, []error{err}, ends)
	require.NoError(t, first.Close(context.Background()))
}

// TestTheTraceOfACallback: the callback's context is the trace's, and the trace gets the
// answer, the error, the deadline or the withdrawal.
func TestTheTraceOfACallback(t *testing.T) {
	t.Parallel()
	type key struct{}
	for name, c := range map[string]struct {
		decide func(context.Context) (protocol.PermissionResult, error)
		check  func(*testing.T, session.TracedAnswer)
	}{
		"answers": {
			func(context.Context) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
			},
			func(t *testing.T, a session.TracedAnswer) {
				assert.Contains(t, string(a.Response), `"allow"`)
				assert.NoError(t, a.Err)
			},
		},
		"fails": {
			func(context.Context) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{}, assert.AnError
			},
			func(t *testing.T, a session.TracedAnswer) {
				assert.Nil(t, a.Response)
				assert.ErrorIs(t, a.Err, assert.AnError)
			},
		},
		"panics": {
			func(context.Context) (protocol.PermissionResult, error) { panic("planted") },
			func(t *testing.T, a session.TracedAnswer) { var p *session.PanicError; assert.ErrorAs(t, a.Err, &p) },
		},
		"is late": {
			func(ctx context.Context) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{}, context.Canceled
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inSim(t, 1)
			spec := w.spec(turns(scripted.Steps{gate()}))
			if c.check == nil {
				spec.Options.PermissionTimeout = time.Second
				c.check = func(t *testing.T, a session.TracedAnswer) { var e *session.TimeoutError; assert.ErrorAs(t, a.Err, &e) }
				c.decide = func(ctx context.Context) (protocol.PermissionResult, error) {
					_ = w.Sched.Await(ctx, never)
					return protocol.PermissionResult{}, context.Cause(ctx)
				}
			}
			var begun []session.TracedCallback
			var answers []session.TracedAnswer
			spec.Options.Tracer = func(context.Context, session.TracedSession) *session.Trace {
				return &session.Trace{Callback: func(ctx context.Context, c session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
					begun = append(begun, c)
					return context.WithValue(ctx, key{}, c.ID), func(a session.TracedAnswer) { answers = append(answers, a) }
				}}
			}
			spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				assert.Equal(t, begun[0].ID, ctx.Value(key{}))
				return c.decide(ctx)
			}
			s := w.open(spec)
			_, err := w.send(s, "go").Result(context.Background())
			require.NoError(t, err)
			require.NoError(t, s.Close(context.Background()))
			require.Len(t, begun, 1)
			require.Len(t, answers, 1)
			assert.Equal(t, session.KindPermission, begun[0].Kind)
			assert.Equal(t, "Bash", begun[0].Name)
			assert.False(t, answers[0].At.Before(begun[0].At))
			c.check(t, answers[0])
		})
	}
}
