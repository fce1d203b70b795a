package troupeotel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// scope is the name of the instrumentation.
const scope = "github.com/agent-troupe/troupe/contrib/otel"

// Config configures an [Instrument]. The zero value uses OpenTelemetry's globals.
type Config struct {
	// TracerProvider makes the spans. A session waits while a span is handed over, so use
	// a batcher, which drops what it cannot hold; the SDK's WithSyncer exports before the
	// session continues. nil: otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments. nil: otel.GetMeterProvider.
	MeterProvider metric.MeterProvider
	// Propagator writes the trace context into the agent's environment: the keys in upper
	// case, such as TRACEPARENT. nil: otel.GetTextMapPropagator, or propagation.TraceContext
	// if none was set.
	Propagator propagation.TextMapPropagator
	// Content adds to spans what was said: prompts, results, the arguments and results of
	// tools, and the texts of errors, cut to 16 KiB each. Default: false, they are never sent.
	Content bool
	// Provider is gen_ai.provider.name. Default: anthropic for Claude, otherwise the name of
	// the backend.
	Provider string
}

// Instrument follows sessions. It is safe for concurrent use by any number of them, and
// needs no shutdown: shut down the providers.
type Instrument struct {
	cfg     Config
	tracer  trace.Tracer
	metrics *metrics
}

// New returns an instrument. The error is that of the meter provider.
func New(cfg Config) (*Instrument, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if cfg.Propagator == nil {
		if cfg.Propagator = otel.GetTextMapPropagator(); len(cfg.Propagator.Fields()) == 0 {
			cfg.Propagator = propagation.TraceContext{}
		}
	}
	i := &Instrument{cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
	var err error
	if i.metrics, err = newMetrics(cfg.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))); err != nil {
		return nil, fmt.Errorf("troupeotel: %w", err)
	}
	return i, nil
}

// Session is a session.Tracer: set it as Options.Tracer of each session to follow.
func (i *Instrument) Session(ctx context.Context, s session.TracedSession) *session.Trace {
	return i.open(ctx, s).trace()
}

// Watch measures the breakers of a runtime. It returns when ctx has ended or the runtime
// was shut down, so run it on its own goroutine.
func (i *Instrument) Watch(ctx context.Context, rt *runtime.Runtime) {
	for r := range rt.Events(ctx) {
		switch e := r.Event.(type) {
		case *session.BreakerOpened:
			i.metrics.breaker(e.Kind, e.Name, session.BreakerOpen)
		case *session.BreakerHalfOpened:
			i.metrics.breaker(e.Kind, e.Name, session.BreakerHalfOpen)
		case *session.BreakerReclosed:
			i.metrics.breaker(e.Kind, e.Name, session.BreakerClosed)
		}
	}
}
