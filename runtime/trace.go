package runtime

import (
	"context"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// tracing calls the functions of a session.Trace. After a panic it calls none any more.
type tracing struct {
	of     *Session
	broken atomic.Bool
}

// follow has Options.Tracer follow the session.
func (s *Session) follow(ctx context.Context, in *dialect.Input) {
	tracer := in.Tracer
	if tracer == nil {
		return
	}
	t := &tracing{of: s}
	var trace *session.Trace
	t.call("Tracer", func() {
		trace = tracer(ctx, session.TracedSession{ID: s.id, Backend: s.dialect.Name(), At: s.opened, Options: &in.Options})
	})
	if trace != nil {
		s.trace = t.guard(trace)
	}
}

// unfollow ends the trace of a session that was not made after all.
func (s *Session) unfollow(err error) {
	if s.trace != nil {
		s.trace.Event(session.EventRecord{Session: s.id, At: s.rt.sys.Clock().Now(), Event: &session.Ended{Reason: err}})
	}
}

// guard returns the trace with all functions set. None of them panics.
func (t *tracing) guard(trace *session.Trace) *session.Trace {
	return &session.Trace{
		Environ: func() (vars []string) {
			if trace.Environ != nil {
				t.call("Trace.Environ", func() { vars = trace.Environ() })
			}
			return vars
		},
		Event: func(r session.EventRecord) {
			if trace.Event != nil {
				t.call("Trace.Event", func() { trace.Event(r) })
			}
		},
		Sent: func(ctx context.Context, at time.Time, m *protocol.UserMessage) {
			if trace.Sent != nil {
				t.call("Trace.Sent", func() { trace.Sent(ctx, at, m) })
			}
		},
		Written: func(at time.Time, uuid string) {
			if trace.Written != nil {
				t.call("Trace.Written", func() { trace.Written(at, uuid) })
			}
		},
		Message: func(at time.Time, f protocol.Frame) {
			if trace.Message != nil {
				t.call("Trace.Message", func() { trace.Message(at, f) })
			}
		},
		Over: func(at time.Time, turn session.TracedTurn) {
			if trace.Over != nil {
				t.call("Trace.Over", func() { trace.Over(at, turn) })
			}
		},
		Callback: func(ctx context.Context, c session.TracedCallback) (with context.Context, over func(session.TracedAnswer)) {
			var end func(session.TracedAnswer)
			with = ctx
			if trace.Callback != nil {
				t.call("Trace.Callback", func() { with, end = trace.Callback(ctx, c) })
			}
			if with == nil {
				with = ctx
			}
			if end == nil {
				return with, nil
			}
			return with, func(a session.TracedAnswer) { t.call("the function of Trace.Callback", func() { end(a) }) }
		},
	}
}

// call runs f. Locks of the session may be held, so a panic is reported on another task.
func (t *tracing) call(name string, f func()) {
	if t.broken.Load() {
		return
	}
	defer func() {
		p := recover()
		if p == nil || t.broken.Swap(true) {
			return
		}
		err := &session.PanicError{Value: p, Message: name, Stack: debug.Stack()}
		t.of.rt.sys.Executor().Go(func() { t.of.emit(&session.CallbackFailed{Kind: "trace", Name: name, Err: err}) })
	}()
	f()
}

// traced adds what the trace wants to the environment of a process. Variables that the
// options name keep the options' values.
func (s *Session) traced(env []string, in *dialect.Input) []string {
	if s.trace == nil {
		return env
	}
	vars := s.trace.Environ()
	if len(vars) == 0 {
		return env
	}
	o := &in.Options
	own := make(map[string]bool, len(vars))
	added := make([]string, 0, len(vars))
	for _, kv := range vars {
		name := nameOf(kv)
		if _, given := o.Env[name]; name != "" && !given && !slices.Contains(o.UnsetEnv, name) {
			own[name], added = true, append(added, kv)
		}
	}
	all := make([]string, 0, len(env)+len(added))
	for _, kv := range env { // other sessions share it
		if !own[nameOf(kv)] {
			all = append(all, kv)
		}
	}
	all = append(all, added...)
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return all
}
