package troupeotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"

	"github.com/agent-troupe/troupe/session"
)

// metrics are the instruments. None has an attribute with an id.
type metrics struct {
	duration  genaiconv.ClientOperationDuration
	tokens    genaiconv.ClientTokenUsage
	active    metric.Int64UpDownCounter
	ended     metric.Int64Counter
	turns     metric.Int64Counter
	restarts  metric.Int64Counter
	stalls    metric.Int64Counter
	cost      metric.Float64Counter
	callbacks metric.Float64Histogram
	breakers  metric.Int64Gauge
	opened    metric.Int64Counter

	tools, models, errors, names bounded
}

func newMetrics(m metric.Meter) (*metrics, error) {
	x := &metrics{}
	errs := make([]error, 11)
	// The boundaries that the conventions recommend, and two more: an agent works longer than a model.
	x.duration, errs[0] = genaiconv.NewClientOperationDuration(m, metric.WithExplicitBucketBoundaries(
		0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 327.68, 1310.72))
	x.tokens, errs[1] = genaiconv.NewClientTokenUsage(m, metric.WithExplicitBucketBoundaries(
		1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	x.active, errs[2] = m.Int64UpDownCounter("troupe.session.active", metric.WithUnit("{session}"), metric.WithDescription("Sessions that have not ended."))
	x.ended, errs[3] = m.Int64Counter("troupe.session.ended", metric.WithUnit("{session}"), metric.WithDescription("Sessions that have ended."))
	x.turns, errs[4] = m.Int64Counter("troupe.turns", metric.WithUnit("{turn}"), metric.WithDescription("Turns that have ended."))
	x.restarts, errs[5] = m.Int64Counter("troupe.restarts", metric.WithUnit("{restart}"), metric.WithDescription("Deaths of an agent that another process follows."))
	x.stalls, errs[6] = m.Int64Counter("troupe.turn.stalls", metric.WithUnit("{stall}"), metric.WithDescription("Turns that were interrupted because nothing went on."))
	x.cost, errs[7] = m.Float64Counter("troupe.cost", metric.WithUnit("{USD}"), metric.WithDescription("What the agents say that the model has cost."))
	x.callbacks, errs[8] = m.Float64Histogram("troupe.callback.duration", metric.WithUnit("s"), metric.WithDescription("From an agent's request to the end of the callback."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600))
	x.breakers, errs[9] = m.Int64Gauge("troupe.breaker.state", metric.WithUnit("1"), metric.WithDescription("0: closed, 1: half open, 2: open."))
	x.opened, errs[10] = m.Int64Counter("troupe.breaker.opened", metric.WithUnit("{opening}"), metric.WithDescription("How often breakers have opened."))
	return x, errors.Join(errs...)
}

func (x *metrics) breaker(kind session.BreakerKind, name string, state session.BreakerState) {
	with := metric.WithAttributes(keyKind.String(string(kind)), keyName.String(x.names.own(name)))
	value := map[session.BreakerState]int64{session.BreakerHalfOpen: 1, session.BreakerOpen: 2}[state]
	x.breakers.Record(context.Background(), value, with)
	if state == session.BreakerOpen {
		x.opened.Add(context.Background(), 1, with)
	}
}

// operation records how long a turn or a call of a tool took. failed is the type of its
// error, or "".
func (x *metrics) operation(ctx context.Context, took time.Duration, failed string, attrs ...attribute.KeyValue) {
	if failed != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(x.errors.value(failed)))
	}
	x.duration.Float64Histogram.Record(ctx, max(took, 0).Seconds(), metric.WithAttributes(attrs...))
}
