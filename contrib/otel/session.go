package troupeotel

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/session"
)

// follower follows one session. Nothing of it outlives Ended.
type follower struct {
	*Instrument
	common []attribute.KeyValue // of each span, given at its start
	few    []attribute.KeyValue // of each measurement
	model  string               // that the options ask for
	// servers are the prefixes of the tools that run in this program.
	servers []string
	opener  trace.SpanContext // of the context that opened the session
	root    context.Context   // with the session's span
	opened  time.Time

	mu           sync.Mutex
	span         trace.Span // the session's
	ended        bool
	conversation string // the agent's id of the session
	turns        []*turn
	tools        map[string]*tool // without a result, by id
	// agents are the last calls that something may belong to after their end: of subagents,
	// which may continue in the background, and those of a process that has died.
	agents    map[string]*tool
	oldAgents []string // their ids, oldest first
	callbacks map[*callback]struct{}
	restart   trace.Span // nil: the agent is not being restarted
	restarted time.Time  // when restart began
	restarts  int
	cost      float64 // the sum that the agent has said last
	resumed   bool    // that sum has the costs of an earlier session
	order     int     // of spans
}

// open begins a session.
func (i *Instrument) open(ctx context.Context, s session.TracedSession) *follower {
	provider := i.cfg.Provider
	if provider == "" {
		if provider = s.Backend; provider == "claude" {
			provider = "anthropic"
		}
	}
	agent := cmp.Or(s.Options.Agent, s.Backend)
	f := &follower{
		Instrument: i, opened: s.At, resumed: s.Options.Resume != "" || s.Options.Continue, model: s.Options.Model, opener: trace.SpanContextFromContext(ctx),
		few: []attribute.KeyValue{semconv.GenAIProviderNameKey.String(provider), semconv.GenAIAgentNameKey.String(agent)},
	}
	for _, m := range s.Options.SDKMCPServers {
		f.servers = append(f.servers, "mcp__"+m.Name()+"__")
	}
	f.common = append(slices.Clone(f.few), keySession.String(s.ID))
	attrs := append(slices.Clone(f.common), keyBackend.String(s.Backend))
	if f.model != "" {
		attrs = append(attrs, semconv.GenAIRequestModel(f.model))
	}
	// Its values are of no use to the agent's callbacks, and may keep much alive.
	bare := trace.ContextWithSpanContext(context.Background(), f.opener)
	f.root, f.span = i.tracer.Start(bare, "session "+s.Backend, trace.WithTimestamp(s.At), trace.WithAttributes(attrs...))
	i.metrics.active.Add(f.root, 1, metric.WithAttributes(f.few...))
	return f
}

// trace is what Troupe calls.
func (f *follower) trace() *session.Trace {
	return &session.Trace{
		Environ: f.environ, Event: f.event, Sent: f.sent, Written: f.written, Message: f.message, Over: f.over, Callback: f.callback,
	}
}

// environ is the trace context for the agent.
func (f *follower) environ() []string {
	carrier := propagation.MapCarrier{}
	f.cfg.Propagator.Inject(f.root, carrier)
	vars := make([]string, 0, len(carrier))
	for key, value := range carrier {
		vars = append(vars, strings.ToUpper(strings.ReplaceAll(key, "-", "_"))+"="+value)
	}
	slices.Sort(vars)
	return vars
}

// event handles an event of the session.
func (f *follower) event(r session.EventRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	switch e := r.Event.(type) {
	case *session.StateChanged:
		f.state(r.At, e)
	case *session.Recovering:
		f.recovering(r.At, e)
	case *session.Recovered:
		span := f.restart
		if span == nil {
			span = f.current()
		}
		f.mark(span, r.At, "troupe.recovered", keyTurn.String(id(e.Message)), keySent.String(string(e.Sent)))
	case *session.TurnStalled:
		f.metrics.stalls.Add(f.root, 1, metric.WithAttributes(f.few...))
		f.mark(f.current(), r.At, "troupe.stalled")
	case *session.TurnRetries:
		f.metrics.stalls.Add(f.root, 1, metric.WithAttributes(f.few...))
		f.mark(f.current(), r.At, "troupe.retry_limit")
	case *session.StartHeld:
		f.mark(f.span, r.At, "troupe.start_held", keyKind.String(string(e.Kind)))
	case *session.MessagesDropped:
		f.mark(f.span, r.At, "troupe.messages_dropped", keyCount.Int(e.Count))
	case *session.AuthExpired:
		f.mark(f.span, r.At, "troupe.auth_expired")
	case *session.ActorFailed:
		f.fault(f.span, r.At, "troupe.actor_failed", e.Reason)
	case *session.CallbackFailed:
		if e.RequestID == "" { // without a span
			f.fault(f.span, r.At, "troupe.callback_failed", e.Err, keyCallbackKind.String(e.Kind))
		}
	case *session.Ended:
		f.end(r.At, e.Reason)
	}
}

// state marks the states outside of turns.
func (f *follower) state(at time.Time, e *session.StateChanged) {
	switch e.To {
	case session.StateRecovering.String(), session.StatePassivated.String(), session.StateClosing.String():
		f.mark(f.span, at, "troupe.state", keyState.String(e.To))
	case session.StateStarting.String():
		if e.From == session.StatePassivated.String() {
			f.mark(f.span, at, "troupe.state", keyState.String(e.To))
		}
	case session.StateReady.String(), session.StateRunning.String(), session.StateAwaitingHost.String():
		f.endRestart(at, nil)
	}
}

// recovering begins the span of a restart. The calls of the dead process are over.
func (f *follower) recovering(at time.Time, e *session.Recovering) {
	f.endRestart(at, e.Death.Err)
	f.restarts++
	f.metrics.restarts.Add(f.root, 1, metric.WithAttributes(append(slices.Clone(f.few), keyPolicy.String(string(e.Policy)))...))
	for _, t := range f.openTools() {
		f.endTool(at, t, "agent_exit", "")
	}
	f.cost = 0
	parent, began := f.placeOf("")
	at = later(at, began)
	for _, t := range f.turns {
		t.marked = false
	}
	f.restarted = at
	_, f.restart = f.start(parent, at, "restart agent", trace.SpanKindInternal, keyAttempt.Int(e.Death.Attempt),
		keyPolicy.String(string(e.Policy)), keyBackoff.Int64(e.Backoff.Milliseconds()), keyMessages.Int(len(e.Death.Messages)),
		semconv.ErrorTypeKey.String(errorType(e.Death.Err)))
}

func (f *follower) endRestart(at time.Time, err error) {
	if f.restart == nil {
		return
	}
	f.fail(f.restart, err)
	f.restart.End(trace.WithTimestamp(later(at, f.restarted)))
	f.restart = nil
}

// end ends the session, and whatever is open in it.
func (f *follower) end(at time.Time, reason error) {
	f.ended = true
	why := reason
	if why == nil {
		why = session.ErrClosed
	}
	for _, c := range sorted(f.callbacks, func(c *callback) int { return c.order }) {
		f.endCallback(c, session.TracedAnswer{At: at, Err: why})
	}
	for _, t := range f.openTools() {
		f.endTool(at, t, errorType(why), "")
	}
	for _, t := range slices.Clone(f.turns) {
		f.endTurn(at, t, session.TracedTurn{Err: why})
	}
	f.endRestart(at, why)
	f.fail(f.span, reason)
	f.span.SetAttributes(keyRestarts.Int(f.restarts))
	f.span.End(trace.WithTimestamp(at))
	attrs := slices.Clone(f.few)
	if reason != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(f.metrics.errors.value(errorType(reason))))
	}
	f.metrics.ended.Add(f.root, 1, metric.WithAttributes(attrs...))
	f.metrics.active.Add(f.root, -1, metric.WithAttributes(f.few...))
	f.turns, f.tools, f.agents, f.callbacks, f.oldAgents = nil, nil, nil, nil, nil
}

// start begins a span.
func (f *follower) start(parent context.Context, at time.Time, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	all := append(slices.Clone(f.common), attrs...)
	if f.conversation != "" {
		all = append(all, semconv.GenAIConversationID(f.conversation))
	}
	f.order++
	return f.tracer.Start(parent, name, trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithAttributes(all...))
}

// mark adds an event to a span, if there is one.
func (f *follower) mark(span trace.Span, at time.Time, name string, attrs ...attribute.KeyValue) {
	if span != nil {
		span.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
	}
}

// fault is mark for an error.
func (f *follower) fault(span trace.Span, at time.Time, name string, err error, attrs ...attribute.KeyValue) {
	attrs = append(attrs, semconv.ErrorTypeKey.String(errorType(err)))
	if f.cfg.Content && err != nil {
		attrs = append(attrs, semconv.ExceptionMessage(cut(err.Error())))
	}
	f.mark(span, at, name, attrs...)
}

// fail gives a span the status of an error. Its text may be the agent's, or a user's.
func (f *follower) fail(span trace.Span, err error) {
	if err != nil {
		f.failed(span, errorType(err), err.Error())
	}
}

func (f *follower) failed(span trace.Span, typ, text string) {
	span.SetAttributes(semconv.ErrorTypeKey.String(typ))
	if !f.cfg.Content {
		text = typ
	}
	span.SetStatus(codes.Error, cut(text))
}

// learn takes note of the agent's id of the session.
func (f *follower) learn(sessionID string) {
	if sessionID = id(sessionID); sessionID != "" && sessionID != f.conversation {
		f.conversation = sessionID
		f.span.SetAttributes(semconv.GenAIConversationID(sessionID))
		for _, t := range f.turns {
			t.span.SetAttributes(semconv.GenAIConversationID(sessionID))
		}
	}
}

// sorted are the keys of a set, in their order.
func sorted[K comparable, V any](set map[K]V, order func(K) int) []K {
	keys := make([]K, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int { return cmp.Compare(order(a), order(b)) })
	return keys
}
