// Command example runs a session of a scripted agent and prints its spans.
package main

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agent-troupe/troupe/agent/scripted"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/sdk"
)

// printer stands for the exporter of your collector.
type printer struct{}

func (printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, s := range spans {
		fmt.Println(s.Name(), s.Status().Code)
	}
	return nil
}

func (printer) Shutdown(context.Context) error { return nil }

func main() {
	ctx := context.Background()
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(printer{}))
	defer func() { _ = traces.Shutdown(ctx) }()
	metrics := metric.NewMeterProvider() // with a reader of your own
	defer func() { _ = metrics.Shutdown(ctx) }()

	telemetry, err := troupeotel.New(troupeotel.Config{TracerProvider: traces, MeterProvider: metrics})
	if err != nil {
		log.Fatal(err)
	}
	agent := scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Result: "today"}, scripted.Text("It is today."),
	}}))
	opts := &sdk.Options{Backend: agent, Tracer: telemetry.Session, AllowedTools: []string{"Bash"}}
	if _, err := sdk.Run(ctx, "Which day is it?", opts); err != nil {
		log.Println(err)
	}
}
