package troupeotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// nowhere drops what is exported.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// BenchmarkTurn is a turn with a tool call behind a permission, a hook and nothing else:
// without telemetry, with spans that are sampled out, and with all spans.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct {
		name    string
		sampler sdktrace.Sampler
	}{{"telemetry=off", nil}, {"telemetry=unsampled", sdktrace.NeverSample()}, {"telemetry=on", sdktrace.AlwaysSample()}} {
		b.Run(c.name, func(b *testing.B) {
			var tracer session.Tracer
			if c.sampler != nil {
				provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(c.sampler), sdktrace.WithBatcher(nowhere{}))
				defer func() { _ = provider.Shutdown(context.Background()) }()
				i, err := troupeotel.New(troupeotel.Config{TracerProvider: provider, MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))})
				require.NoError(b, err)
				tracer = i.Session
			}
			client := sdk.NewClient(&sdk.Options{
				Tracer: tracer, CanUseTool: allow, Discard: true,
				Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
					return sdk.PreToolUseOutput{}, nil
				})},
				Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{
					&scripted.ToolUse{Name: "Bash", Gate: agent.GateAsk, Result: "ok"}, scripted.Text("done"),
				}})),
			})
			require.NoError(b, client.Connect(b.Context()))
			defer func() { _ = client.Close(context.Background()) }()
			b.ReportAllocs()
			for b.Loop() {
				turn, err := client.Send(b.Context(), sdk.UserText("go"))
				require.NoError(b, err)
				_, err = turn.Result(b.Context())
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkFollow is what a session waits for in such a turn: a turn, a tool call and a
// callback, without the session.
func BenchmarkFollow(b *testing.B) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(nowhere{}))
	defer func() { _ = provider.Shutdown(context.Background()) }()
	i, err := troupeotel.New(troupeotel.Config{TracerProvider: provider, MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))})
	require.NoError(b, err)
	now := time.Now()
	t := i.Session(b.Context(), session.TracedSession{ID: "s", Backend: "claude", At: now, Options: &sdk.Options{}})
	frame := func(line string) protocol.Frame {
		f, err := protocol.ParseFrame([]byte(line))
		require.NoError(b, err)
		return f
	}
	call := frame(`{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"date"}}]},"session_id":"s"}`)
	answer := frame(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"today"}]},"session_id":"s"}`)
	ask := frame(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"date"},"tool_use_id":"t1"}}`)
	end := frame(`{"type":"result","subtype":"success","result":"done","usage":{"input_tokens":10,"output_tokens":5},"total_cost_usd":1,"session_id":"s"}`)
	result, ok := protocol.DecodeMessage(end).(*protocol.ResultMessage)
	require.True(b, ok)
	m := message("1", "go")
	b.ReportAllocs()
	for b.Loop() {
		t.Sent(b.Context(), now, &m)
		t.Written(now, m.UUID)
		t.Message(now, call)
		_, over := t.Callback(b.Context(), session.TracedCallback{Kind: session.KindPermission, Name: "Bash", ID: "r", At: now, Request: ask})
		over(session.TracedAnswer{At: now, Response: []byte(`{"behavior":"allow"}`)})
		t.Message(now, answer)
		t.Message(now, end)
		t.Over(now, session.TracedTurn{UUID: m.UUID, Result: result})
	}
}
