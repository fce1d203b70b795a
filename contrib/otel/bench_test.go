package troupeotel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
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
