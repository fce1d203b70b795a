//go:build conformance

package conformance_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestTraceContext: the trace context that a Trace gives reaches the agent, and the
// commands that its Bash tool runs. The Trace is told of the turn, the tool and the
// permission, in order.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var mu sync.Mutex
	var log []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, what)
	}
	o := r.options()
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		note("asked")
		return sdk.Allow(), nil
	}
	o.Tracer = func(context.Context, session.TracedSession) *session.Trace {
		return &session.Trace{
			Environ: func() []string { return []string{"TRACEPARENT=" + parent, "TRACESTATE=vendor=value"} },
			Sent:    func(context.Context, time.Time, *protocol.UserMessage) { note("sent") },
			Message: func(_ time.Time, m protocol.Frame) {
				switch {
				case strings.Contains(string(m.Raw), `"type":"tool_use"`) && m.Type == "assistant":
					note("tool")
				case strings.Contains(string(m.Raw), `"type":"tool_result"`):
					note("result")
				}
			},
			Callback: func(ctx context.Context, c session.TracedCallback) (context.Context, func(session.TracedAnswer)) {
				if c.Kind != session.KindPermission {
					return ctx, nil
				}
				note("callback " + c.Name)
				return ctx, func(a session.TracedAnswer) {
					assert.NoError(t, a.Err)
					note("answered")
				}
			},
			Over: func(_ time.Time, turn session.TracedTurn) {
				assert.NotNil(t, turn.Result)
				note("over")
			},
		}
	}
	all, _ := r.once(o, r.run(`touch traced; echo "parent=$TRACEPARENT state=$TRACESTATE"`))
	assert.Contains(t, r.toolResult(all).Content.Text(), "parent="+parent)
	assert.Contains(t, r.toolResult(all).Content.Text(), "state=vendor=value")
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, []string{"sent", "tool", "callback Bash", "asked", "answered", "result", "over"}, log)
}
