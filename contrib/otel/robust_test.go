package troupeotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// TestEachSpanEndsOnce: whatever fails in a session, each span ends once.
func TestEachSpanEndsOnce(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 150}, func(w *simtests.World) {
		r := newRig(w)
		w.Faults(
			simtests.KillActor(0.02), simtests.AgentCrash(0.02), simtests.CrashInTool(0.1), simtests.PanicCallback(0.1, "CanUseTool"), simtests.ErrorCallback(0.1, "CanUseTool"),
			simtests.GoexitCallback(0.1, "CanUseTool"), simtests.SlowCallback(0.25, "CanUseTool", 2*time.Second), simtests.OutliveCallback(0.1, "CanUseTool", 3*time.Second), simtests.CancelInFlight(0.1), simtests.Noise(0.1), simtests.AnswerTwice(0.1), simtests.HostShutdown(0.01),
		)
		o := &sdk.Options{Tracer: r.Session, MaxRestarts: 2, CanUseTool: allow, PermissionTimeout: time.Second}
		call := &scripted.ToolUse{Name: "Bash", Gate: agent.GateAsk, Takes: 5 * time.Millisecond}
		c, err := w.Dial(o, &scripted.Script{Default: scripted.Steps{
			scripted.Parallel{call, call}, &scripted.SubAgent{Description: "d", Prompt: "p", Type: "Explore", Steps: scripted.Steps{call}, Report: "r"}, scripted.Text("done"),
		}})
		if err == nil {
			for range 3 {
				turn, err := c.Send(w.Context(), sdk.UserText("go"))
				if err != nil {
					break
				}
				_, _ = turn.Result(w.Context())
			}
			_ = c.Close(w.Context())
		}
		_ = w.Shutdown()
		r.whole(w)
		sessions := 0
		for _, s := range r.spans.GetSpans() {
			if s.Name == "session claude" {
				sessions++
			} else {
				require.True(w, s.Parent.IsValid(), s.Name)
			}
		}
		require.Equal(w, 1, sessions)
		require.NotContains(w, r.measured(w), "troupe.session.active ({session}) gen_ai.agent.name=claude gen_ai.provider.name=anthropic: 1")
	})
}

// TestEndedEndsEverything: at the end of a session whatever is open ends, once, also what
// Troupe does not end, because a bug has broken it.
func TestEndedEndsEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Unix(0, 0)
	s := r.Session(t.Context(), session.TracedSession{ID: "s", Backend: "claude", At: now, Options: &sdk.Options{}})
	m := message("1", "go")
	s.Sent(t.Context(), now, &m)
	s.Written(now, m.UUID)
	call, err := protocol.ParseFrame([]byte(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]}}`))
	require.NoError(t, err)
	s.Message(now, call)
	_, over := s.Callback(t.Context(), session.TracedCallback{Kind: session.KindHook, Name: "PreToolUse", At: now})
	s.Event(session.EventRecord{At: now, Event: &session.Recovering{Death: session.Death{Err: &session.ExitError{}}}})
	ended := session.EventRecord{At: now.Add(time.Second), Event: &session.Ended{Reason: errors.New("broken")}}
	for range 2 {
		s.Event(ended)
		over(session.TracedAnswer{At: now})
		s.Over(now, session.TracedTurn{UUID: m.UUID, Err: session.ErrClosed})
		s.Message(now, call)
		s.Sent(t.Context(), now, &m)
		_, none := s.Callback(t.Context(), session.TracedCallback{At: now})
		assert.Nil(t, none)
	}
	r.whole(t)
	assert.Len(t, r.spans.GetSpans(), 5)
	measured := r.measured(t)
	assert.NotContains(t, measured, "answered")
	for _, once := range []string{"troupe.turn.outcome=no_result: 1\n", "troupe.callback.outcome=failed: 1, ", "error.type=_OTHER gen_ai.agent.name=claude gen_ai.provider.name=anthropic: 1\n"} {
		assert.Contains(t, measured, once)
	}
}

// environment is a program that notes its environment.
type environment struct {
	agent.Program
	env *[]string
}

func (p environment) Serve(l agent.Launch, port agent.Port) agent.Exit {
	*p.env = l.Env
	return p.Program.Serve(l, port)
}

// TestTheAgentGetsTheTraceContext, in its environment.
func TestTheAgentGetsTheTraceContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *troupeotel.Config) {
		c.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	})
	state, err := trace.ParseTraceState("vendor=value")
	require.NoError(t, err)
	outer := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state})
	var env []string
	_, err = sdk.Run(trace.ContextWithSpanContext(t.Context(), outer), "hello", &sdk.Options{Tracer: r.Session, Backend: environment{scripted.New(), &env}})
	require.NoError(t, err)
	for _, s := range r.spans.GetSpans() {
		if s.Name == "session claude" {
			require.Equal(t, outer.SpanID(), s.Parent.SpanID())
			require.Contains(t, env, fmt.Sprintf("TRACEPARENT=00-%s-%s-01", outer.TraceID(), s.SpanContext.SpanID()))
		}
	}
	require.Contains(t, env, "TRACESTATE=vendor=value")
}

// slow exports one span an hour.
type slow struct{ started chan struct{} }

func (s *slow) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	select {
	case s.started <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}
func (s *slow) Shutdown(context.Context) error { return nil }

// TestASlowExporter does not slow a session: spans are dropped.
func TestASlowExporter(t *testing.T) {
	t.Parallel()
	exporter := &slow{make(chan struct{}, 1)}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(4), sdktrace.WithMaxExportBatchSize(1), sdktrace.WithExportTimeout(time.Hour)))
	i, err := troupeotel.New(troupeotel.Config{TracerProvider: provider, MeterProvider: metric.NewMeterProvider()})
	require.NoError(t, err)
	for n := range 8 {
		_, err := sdk.Run(t.Context(), "hello", &sdk.Options{Tracer: i.Session, Backend: scripted.New()})
		require.NoError(t, err)
		if n == 0 {
			<-exporter.started // it is busy from here on
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = provider.Shutdown(over)
}

// TestOpenCallsAreBounded: an agent that calls tools without end has a bounded number of
// open spans, and names in measurements are bounded.
func TestOpenCallsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	steps := make(scripted.Steps, 0, 3000)
	for n := range 3000 {
		steps = append(steps, scripted.Raw(fmt.Sprintf(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"Tool%d","input":{}}]},"parent_tool_use_id":null,"session_id":"s","uuid":"u%d"}`, n, n, n)))
	}
	_, err := sdk.Run(t.Context(), "go", &sdk.Options{Tracer: r.Session, Backend: scripted.New(scripted.WithTurns(scripted.Turn{Steps: steps}))})
	require.NoError(t, err)
	r.whole(t)
	assert.Len(t, r.spans.GetSpans(), 1024+2)
	names := 0
	for line := range strings.Lines(r.measured(t)) {
		if strings.Contains(line, "gen_ai.tool.name=") {
			names++
		}
	}
	assert.Equal(t, 128+1, names)
}

// TestWatch: the state of a runtime's breakers.
func TestWatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rt, err := runtime.New(runtime.Config{Clock: clock.New()})
	require.NoError(t, err)
	watched, ctx := make(chan struct{}), t.Context()
	go func() {
		defer close(watched)
		r.Watch(ctx, rt)
	}()
	open := func(name string) bool {
		return slices.ContainsFunc(rt.Tree(ctx).Breakers, func(b runtime.Breaker) bool { return b.Name == name && b.State == session.BreakerOpen })
	}
	for n := 0; !strings.Contains(r.measured(t), "troupe.breaker.opened"); n++ { // Watch may begin when the first one is open already
		missing := fmt.Sprintf("/nowhere/%d/claude", n)
		for !open(missing) {
			_, err = sdk.Run(ctx, "hello", &sdk.Options{Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{Path: missing}), Tracer: r.Session})
			require.Error(t, err)
		}
	}
	require.NoError(t, rt.Shutdown(ctx))
	<-watched
	assert.Contains(t, r.measured(t), "troupe.breaker.opened ({opening}) troupe.breaker.kind=agent")
	assert.Contains(t, r.measured(t), "troupe.breaker.state (1) troupe.breaker.kind=agent")
	r.whole(t)
}

// TestGlobals: the zero Config uses OpenTelemetry's globals, which do nothing here, and a
// session works.
func TestGlobals(t *testing.T) {
	t.Parallel()
	i, err := troupeotel.New(troupeotel.Config{})
	require.NoError(t, err)
	var env []string
	_, err = sdk.Run(t.Context(), "hello", &sdk.Options{Tracer: i.Session, Backend: environment{scripted.New(), &env}, UnsetEnv: []string{"TRACEPARENT"}})
	require.NoError(t, err)
	for _, kv := range env {
		assert.False(t, strings.HasPrefix(kv, "TRACEPARENT="), "there is no trace")
	}
}
