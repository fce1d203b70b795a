package troupeotel_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/simtests"
)

var update = flag.Bool("update", false, "write the golden files")

// rig is an instrument whose spans and measurements stay in memory.
type rig struct {
	*troupeotel.Instrument
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
	metrics  *metric.ManualReader
	counts   *counter
}

// counter counts how often spans begin and end.
type counter struct {
	mu           sync.Mutex
	begun, ended map[trace.SpanID]int
}

func (c *counter) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) { c.count(c.begun, s) }
func (c *counter) OnEnd(s sdktrace.ReadOnlySpan)                       { c.count(c.ended, s) }

func (c *counter) count(of map[trace.SpanID]int, s sdktrace.ReadOnlySpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of[s.SpanContext().SpanID()]++
}

func (c *counter) Shutdown(context.Context) error   { return nil }
func (c *counter) ForceFlush(context.Context) error { return nil }

func newRig(t require.TestingT, change ...func(*troupeotel.Config)) *rig {
	r := &rig{spans: tracetest.NewInMemoryExporter(), metrics: metric.NewManualReader(), counts: &counter{begun: map[trace.SpanID]int{}, ended: map[trace.SpanID]int{}}}
	r.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.counts), sdktrace.WithSyncer(r.spans))
	cfg := troupeotel.Config{TracerProvider: r.provider, MeterProvider: metric.NewMeterProvider(metric.WithReader(r.metrics))}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	r.Instrument, err = troupeotel.New(cfg)
	require.NoError(t, err)
	return r
}

// whole checks that each span has ended, once, and is within its parent's life.
func (r *rig) whole(t require.TestingT) {
	r.counts.mu.Lock()
	defer r.counts.mu.Unlock()
	for id := range r.counts.begun {
		require.Equal(t, 1, r.counts.ended[id], "ends of span %s", id)
	}
	all := map[trace.SpanID]tracetest.SpanStub{}
	for _, s := range r.spans.GetSpans() {
		require.False(t, s.EndTime.Before(s.StartTime), s.Name)
		all[s.SpanContext.SpanID()] = s
	}
	for _, s := range all {
		if parent, ok := all[s.Parent.SpanID()]; ok {
			require.False(t, s.StartTime.Before(parent.StartTime), "%s begins before %s", s.Name, parent.Name)
		}
	}
}

// tree prints the spans: each below its parent, with the times since start.
func (r *rig) tree(start time.Time) string {
	all := r.spans.GetSpans()
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), cmp.Compare(a.Name, b.Name), cmp.Compare(fmt.Sprint(a.Attributes), fmt.Sprint(b.Attributes)))
	})
	below := map[trace.SpanID][]tracetest.SpanStub{}
	names := map[trace.SpanID]string{}
	for _, s := range all {
		names[s.SpanContext.SpanID()] = s.Name
	}
	for _, s := range all {
		parent := s.Parent.SpanID()
		if _, ours := names[parent]; !ours {
			parent = trace.SpanID{}
		}
		below[parent] = append(below[parent], s)
	}
	var b strings.Builder
	at := func(t time.Time) string { return fmt.Sprint(t.Sub(start)) }
	var show func(parent trace.SpanID, indent string)
	show = func(parent trace.SpanID, indent string) {
		for _, s := range below[parent] {
			fmt.Fprintf(&b, "%s%s (%v) %s – %s", indent, s.Name, s.SpanKind, at(s.StartTime), at(s.EndTime))
			if s.Status.Code != codes.Unset {
				fmt.Fprintf(&b, " %v %q", s.Status.Code, s.Status.Description)
			}
			b.WriteString("\n")
			for _, l := range s.Links {
				fmt.Fprintf(&b, "%s    link: %s\n", indent, names[l.SpanContext.SpanID()])
			}
			for _, kv := range inOrder(s.Attributes) {
				fmt.Fprintf(&b, "%s    %s: %s\n", indent, kv.Key, kv.Value.String())
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, "%s    at %s: %s", indent, at(e.Time), e.Name)
				for _, kv := range inOrder(e.Attributes) {
					fmt.Fprintf(&b, " %s=%s", kv.Key, kv.Value.String())
				}
				b.WriteString("\n")
			}
			show(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	show(trace.SpanID{}, "")
	return b.String()
}

func inOrder(attrs []attribute.KeyValue) []attribute.KeyValue {
	return slices.SortedFunc(slices.Values(attrs), func(a, b attribute.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
}

// measured prints the measurements.
func (r *rig) measured(t require.TestingT) string {
	var all metricdata.ResourceMetrics
	require.NoError(t, r.metrics.Collect(context.Background(), &all))
	var lines []string
	note := func(m metricdata.Metrics, attrs attribute.Set, format string, args ...any) {
		var b strings.Builder
		fmt.Fprintf(&b, "%s (%s)", m.Name, m.Unit)
		for _, kv := range attrs.ToSlice() {
			fmt.Fprintf(&b, " %s=%s", kv.Key, kv.Value.String())
		}
		lines = append(lines, b.String()+": "+fmt.Sprintf(format, args...))
	}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					note(m, p.Attributes, "%d, sum %.4g", p.Count, p.Sum)
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					note(m, p.Attributes, "%d, sum %d", p.Count, p.Sum)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					note(m, p.Attributes, "%d", p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					note(m, p.Attributes, "%.4g", p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					note(m, p.Attributes, "%d", p.Value)
				}
			default:
				lines = append(lines, fmt.Sprintf("%s: %T", m.Name, d))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// golden compares with testdata/name.txt.
func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	assert.Equal(t, string(want), got)
}

// simulate plays a scenario once, in virtual time, and returns what was seen of it.
func simulate(t *testing.T, scenario func(w *simtests.World, r *rig)) (tree, measured string) {
	t.Helper()
	simtests.Explore(t, simtests.Config{Seeds: 1, Twice: -1, DoNotKeep: true, Shrink: -1}, func(w *simtests.World) {
		if w.Seed() != 0 {
			return // TROUPE_SEEDS asks for more
		}
		r := newRig(t)
		start := w.Runtime().Clock().Now()
		scenario(w, r)
		if err := w.Shutdown(); err != nil {
			w.Errorf("shutdown: %v", err)
		}
		r.whole(w)
		tree, measured = r.tree(start), r.measured(w)
	})
	return tree, measured
}
