package troupeotel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// callback is a request of the agent that is not over.
type callback struct {
	kind  session.Kind
	ctx   context.Context
	span  trace.Span
	began time.Time
	order int
}

// callback begins the span of a callback, which is in the callback's context.
func (f *follower) callback(ctx context.Context, c session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
	call := toolOf(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return ctx, nil
	}
	kind, name := c.Kind.String(), label(c.Name)
	attrs := []attribute.KeyValue{keyCallbackKind.String(kind), keyCallbackName.String(name)}
	if f.tools[call] != nil || f.agents[call] != nil {
		attrs = append(attrs, semconv.GenAIToolCallID(id(call)))
	}
	place, began := f.placeOf(call)
	b := &callback{kind: c.Kind, began: later(c.At, began)}
	b.ctx, b.span = f.start(place, b.began, "callback "+kind+" "+name, trace.SpanKindInternal, attrs...)
	b.order = f.order
	if f.callbacks == nil {
		f.callbacks = make(map[*callback]struct{})
	}
	f.callbacks[b] = struct{}{}
	return trace.ContextWithSpan(ctx, b.span), func(a session.TracedAnswer) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.endCallback(b, a)
	}
}

// endCallback ends the span of a callback, once.
func (f *follower) endCallback(b *callback, a session.TracedAnswer) {
	if _, open := f.callbacks[b]; !open {
		return
	}
	delete(f.callbacks, b)
	a.At = later(a.At, b.began)
	outcome := outcomeOf(b.kind, a)
	b.span.SetAttributes(keyCallbackOutcome.String(outcome))
	if a.Err != nil && outcome != "canceled" {
		f.fail(b.span, a.Err)
	}
	b.span.End(trace.WithTimestamp(a.At))
	f.metrics.callbacks.Record(b.ctx, max(a.At.Sub(b.began), 0).Seconds(), metric.WithAttributes(append(slices.Clone(f.few),
		keyCallbackKind.String(b.kind.String()), keyCallbackOutcome.String(outcome))...))
}

// outcomeOf says in one word how a callback has ended.
func outcomeOf(kind session.Kind, a session.TracedAnswer) string {
	switch {
	case a.Err == nil && kind == session.KindPermission:
		var decided struct {
			Behavior protocol.PermissionBehavior `json:"behavior"`
		}
		if json.Unmarshal(a.Response, &decided) == nil && decided.Behavior == protocol.BehaviorAllow {
			return "allowed"
		}
		return "denied"
	case a.Err == nil:
		return "answered"
	case errorType(a.Err) == "panic":
		return "panicked"
	case errorType(a.Err) == "timeout":
		return "timeout"
	case errors.Is(a.Err, context.Canceled), errors.Is(a.Err, session.ErrClosed):
		return "canceled"
	}
	return "failed"
}

// toolOf is the id of the tool call that the agent asks a callback about, or "".
func toolOf(c session.TracedCallback) string {
	if c.Kind == session.KindMCP && !bytes.Contains(c.Request.Raw, []byte("toolUseId")) {
		return ""
	}
	req, err := protocol.DecodeAgentRequest(c.Request)
	if err != nil {
		return ""
	}
	switch req := req.(type) {
	case *protocol.CanUseToolRequest:
		return req.ToolUseID
	case *protocol.HookCallbackRequest:
		return req.ToolUseID
	case *protocol.MCPMessageRequest:
		var call struct {
			Params struct {
				Meta struct {
					ToolUseID string `json:"claudecode/toolUseId"`
				} `json:"_meta"`
			} `json:"params"`
		}
		_ = protocol.Unmarshal(req.Message, &call)
		return call.Params.Meta.ToolUseID
	}
	return ""
}
