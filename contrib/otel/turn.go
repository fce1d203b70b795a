package troupeotel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// turn is a user message that is not over.
type turn struct {
	uuid    string
	ctx     context.Context
	span    trace.Span
	began   time.Time
	written bool // to a process
	marked  bool // that this process has it
}

// sent begins a turn. Its span is below the session's, or below the sender's if that is
// another one than the session was opened with.
func (f *follower) sent(ctx context.Context, at time.Time, m *protocol.UserMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	parent := f.root
	sender := trace.SpanContextFromContext(ctx)
	foreign := sender.IsValid() && sender.SpanID() != f.opener.SpanID()
	if foreign {
		parent = trace.ContextWithSpanContext(f.root, sender)
	}
	at = later(at, f.opened)
	t := &turn{uuid: m.UUID, began: at}
	attrs := []attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent, keyTurn.String(id(m.UUID))}
	if f.model != "" {
		attrs = append(attrs, semconv.GenAIRequestModel(f.model))
	}
	if f.cfg.Content {
		attrs = append(attrs, semconv.GenAIInputMessagesKey.String(spoken("user", protocol.TextOf(m), "")))
	}
	t.ctx, t.span = f.start(parent, at, "invoke_agent "+f.agentName(), trace.SpanKindClient, attrs...)
	if foreign {
		t.span.AddLink(trace.Link{SpanContext: f.span.SpanContext()})
	}
	f.turns = append(f.turns, t)
}

// agentName is the name in the names of spans.
func (f *follower) agentName() string { return f.few[1].Value.AsString() }

// written marks that the agent has the message.
func (f *follower) written(at time.Time, uuid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.turn(uuid); t != nil && !t.marked {
		t.written, t.marked = true, true
		f.mark(t.span, at, "troupe.written")
	}
}

// over ends a turn.
func (f *follower) over(at time.Time, end session.TracedTurn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.turn(end.UUID); t != nil {
		f.endTurn(at, t, end)
	}
}

func (f *follower) turn(uuid string) *turn {
	for _, t := range f.turns {
		if t.uuid == uuid {
			return t
		}
	}
	return nil
}

// currentTurn is the one that the agent works on, or nil.
func (f *follower) currentTurn() *turn {
	for _, t := range f.turns {
		if t.written {
			return t
		}
	}
	return nil
}

// current is its span, or the session's.
func (f *follower) current() trace.Span {
	if t := f.currentTurn(); t != nil {
		return t.span
	}
	return f.span
}

// endTurn ends the span of a turn, and those of its tools that will have no result.
func (f *follower) endTurn(at time.Time, t *turn, end session.TracedTurn) {
	at = later(at, t.began)
	f.turns = slices.DeleteFunc(f.turns, func(open *turn) bool { return open == t })
	r, failed, outcome := end.Result, "", "success"
	switch {
	case end.Err != nil:
		failed, outcome = errorType(end.Err), "no_result"
		f.failed(t.span, failed, end.Err.Error())
	case r.Interrupted():
		outcome = "interrupted"
	case r.Failed():
		failed, outcome = resultType(r), "failed"
		f.failed(t.span, failed, r.Text())
	}
	for _, c := range f.openTools() {
		if c.turn == t && c.parent == "" {
			f.endTool(at, c, cmp.Or(failed, "no_result"), "")
		}
	}
	t.span.SetAttributes(keyTurnOutcome.String(outcome))
	if end.Recovered {
		t.span.SetAttributes(keyTurnRecovered.Bool(true))
	}
	if r != nil {
		f.describe(t.span, r)
	}
	t.span.End(trace.WithTimestamp(at))
	f.metrics.turns.Add(t.ctx, 1, metric.WithAttributes(append(slices.Clone(f.few), keyTurnOutcome.String(outcome))...))
	f.metrics.operation(t.ctx, at.Sub(t.began), failed, append(slices.Clone(f.few), semconv.GenAIOperationNameInvokeAgent)...)
}

// describe adds what the result says to the span of its turn.
func (f *follower) describe(span trace.Span, r *protocol.ResultMessage) {
	u := &r.Usage
	span.SetAttributes(
		semconv.GenAIUsageInputTokens(int(u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens)),
		semconv.GenAIUsageOutputTokens(int(u.OutputTokens)),
		semconv.GenAIUsageCacheReadInputTokens(int(u.CacheReadInputTokens)),
		semconv.GenAIUsageCacheCreationInputTokens(int(u.CacheCreationInputTokens)),
		keyTurnSteps.Int(r.NumTurns), keyTurnDenials.Int(len(r.PermissionDenials)),
	)
	if r.StopReason != "" {
		span.SetAttributes(semconv.GenAIResponseFinishReasons(label(r.StopReason)))
	}
	if model := modelOf(r); model != "" {
		span.SetAttributes(semconv.GenAIResponseModel(model))
	}
	if f.cfg.Content {
		span.SetAttributes(semconv.GenAIOutputMessagesKey.String(spoken("assistant", r.Text(), label(r.StopReason))))
	}
}

// used measures what a result says of the time since the last one. Several turns may have
// the same result, and a turn of the agent's own has one, too.
func (f *follower) used(r *protocol.ResultMessage) {
	count := func(kind attribute.KeyValue, n int64, model string) {
		if n <= 0 {
			return
		}
		attrs := append(slices.Clone(f.few), semconv.GenAIOperationNameInvokeAgent, kind)
		if model != "" {
			attrs = append(attrs, semconv.GenAIResponseModel(f.metrics.models.value(model)))
		}
		f.metrics.tokens.Int64Histogram.Record(f.root, n, metric.WithAttributes(attrs...))
	}
	input, output := semconv.GenAITokenTypeInput, semconv.GenAITokenTypeOutput
	for model, u := range r.ModelUsageSinceLastResult {
		count(input, u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, model)
		count(output, u.OutputTokens, model)
	}
	if len(r.ModelUsageSinceLastResult) == 0 {
		u := &r.Usage
		count(input, u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, modelOf(r))
		count(output, u.OutputTokens, modelOf(r))
	}
	cost := r.TotalCostUSD - f.cost
	switch {
	case len(r.ModelUsageSinceLastResult) > 0:
		cost = 0
		for _, model := range slices.Sorted(maps.Keys(r.ModelUsageSinceLastResult)) {
			cost += r.ModelUsageSinceLastResult[model].CostUSD
		}
	case f.resumed:
		cost = 0 // not known
	case cost < 0: // it counts anew
		cost = r.TotalCostUSD
	}
	if cost > 0 {
		f.metrics.cost.Add(f.root, cost, metric.WithAttributes(f.few...))
		f.current().SetAttributes(keyTurnCost.Float64(cost))
	}
	f.cost, f.resumed = r.TotalCostUSD, false
}

// modelOf is the only model of a result, or "".
func modelOf(r *protocol.ResultMessage) string {
	used := r.ModelUsageSinceLastResult
	if len(used) == 0 {
		used = r.ModelUsage
	}
	if len(used) == 1 {
		for model := range used {
			return label(model)
		}
	}
	return ""
}
