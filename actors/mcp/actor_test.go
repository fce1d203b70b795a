package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// served is the actor in virtual time, with one server.
func served(t *testing.T, s session.MCPHandler) *callbacktest.Rig {
	t.Helper()
	return callbacktest.New(t, func(r *callbacktest.Rig) *callback.Actor {
		return &callback.Actor{Kind: session.KindMCP, Refuses: true, Prepare: mcp.Prepare(mcp.NewBridge(mcp.BridgeConfig{
			Options: serving(s), Clock: r.Sched, Exec: r.Sched, NotificationReply: json.RawMessage(claudeReply),
			Notify: func(string, string, json.RawMessage) error { return nil },
		}))}
	}, func(f protocol.Frame, reason string) ([]byte, string) { return mcp.Denial(f, reason) })
}

// rpcLine is a request of the agent that carries a JSON-RPC message.
func rpcLine(id, rpc string) string {
	return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"mcp_message","server_name":"srv","message":%s}}`, id, rpc)
}

func toolsCall(id int, tool string) string {
	return rpcLine(fmt.Sprint("r", id), fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":%d}}}`, id, tool, id))
}

// wait is a server whose tools wait, and tell of progress at given moments.
func wait(r **callbacktest.Rig, timeout time.Duration, progress ...time.Duration) *fake {
	return &fake{name: "srv", timeout: map[string]time.Duration{"slow": timeout},
		handle: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			for i, at := range progress {
				moment := make(chan struct{})
				(*r).Sched.AfterFunc(at, func() { close(moment) })
				if err := mcp.Await(ctx, moment); err != nil {
					return nil, err
				}
				if notify, _ := mcp.NotifierFromContext(ctx); i%2 == 0 {
					_ = notify("notifications/progress", json.RawMessage(`{"progressToken":1}`))
				} else {
					mcp.Alive(ctx) // for an agent that asked for no progress
				}
			}
			return nil, mcp.Await(ctx, make(chan struct{}))
		}}
}

func TestToolsDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout  time.Duration
		progress []time.Duration // after one another
		expires  time.Duration
		says     string
	}{
		"by default":            {0, nil, 10 * time.Minute, "mcp__srv__slow did not finish within 10m0s"},
		"shorter":               {time.Second, nil, time.Second, "mcp__srv__slow did not finish within 1s"},
		"longer":                {time.Hour, nil, time.Hour, "mcp__srv__slow did not finish within 1h0m0s"},
		"progress":              {time.Minute, []time.Duration{50 * time.Second, 50 * time.Second, 50 * time.Second}, 210 * time.Second, "mcp__srv__slow made no progress for 1m0s"},
		"progress, by default":  {0, []time.Duration{9 * time.Minute}, 19 * time.Minute, "mcp__srv__slow made no progress for 10m0s"},
		"progress, and nothing": {time.Minute, []time.Duration{time.Second}, 61 * time.Second, "mcp__srv__slow made no progress for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *callbacktest.Rig
			r = served(t, wait(&r, c.timeout, c.progress...))
			r.Ask(toolsCall(1, "slow"), c.expires-1)
			require.Empty(t, r.Lines)
			r.Pass(1)
			require.Len(t, r.Lines, 1)
			assert.JSONEq(t, fmt.Sprintf(`{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":%q}],"isError":true}}}`, c.says), r.Answer())
			require.Len(t, r.Failed, 1)
			var late *session.TimeoutError
			require.ErrorAs(t, r.Failed[0], &late)
			assert.Equal(t, "mcp callback for mcp__srv__slow", late.What)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		var r *callbacktest.Rig
		r = served(t, wait(&r, -1))
		r.Ask(toolsCall(1, "slow"), 1000*time.Hour)
		assert.Empty(t, r.Lines)
	})
}

// What the agent cancelled by a notification is not answered: neither when its
// handler heeds it, nor later, nor when its time is over.
func TestACancelledCallIsNotAnswered(t *testing.T) {
	t.Parallel()
	var r *callbacktest.Rig
	var causes []error
	s := &fake{name: "srv", timeout: map[string]time.Duration{"deaf": time.Minute},
		handle: func(ctx context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
			if strings.Contains(string(params), `"deaf"`) {
				ctx = mcp.ContextWithExecutor(context.Background(), r.Sched)
				over := make(chan struct{})
				r.Sched.AfterFunc(2*time.Minute, func() { close(over) })
				return json.RawMessage(`{"late":true}`), mcp.Await(ctx, over)
			}
			err := mcp.Await(ctx, make(chan struct{}))
			causes = append(causes, err)
			return nil, err
		}}
	r = served(t, s)
	r.Ask(toolsCall(1, "heeds"), 0)
	r.Ask(toolsCall(2, "deaf"), 0)
	for i := 1; i <= 2; i++ {
		r.Ask(rpcLine(fmt.Sprint("n", i), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i)), 0)
		assert.JSONEq(t, `{"mcp_response":`+claudeReply+`}`, r.Answer())
	}
	require.Len(t, causes, 1)
	require.ErrorIs(t, causes[0], context.Canceled)
	r.Pass(time.Hour)
	assert.Len(t, r.Lines, 2, "the notifications have theirs")
	assert.Empty(t, r.Failed)
	assert.Empty(t, r.Waits())
	r.Ask(toolsCall(1, "heeds"), time.Hour)
	assert.Len(t, r.Lines, 3, "asked again it is a new call, with an answer of its own")
	assert.Len(t, causes, 2)
}

// rude is a server that fails where it is only asked.
type rude struct {
	fake
	where string
}

func (s *rude) Timeout(tool string) time.Duration {
	if s.where == "Timeout" && tool == "rude" {
		panic("a secret")
	}
	return time.Minute
}

func (s *rude) Enter(tool string) mcp.Place {
	if s.where == "Enter" && tool == "rude" {
		panic("a secret")
	}
	return nil
}

func TestAServerThatPanicsBeforeTheCall(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"Timeout", "Enter"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			r := served(t, &rude{where: where, fake: fake{name: "srv", handle: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`{"ran":true}`), nil
			}}})
			r.Ask(toolsCall(1, "rude"), 0)
			assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the callback failed"}],"isError":true}}}`, r.Answer())
			require.Len(t, r.Failed, 1)
			require.ErrorAs(t, r.Failed[0], new(*session.PanicError))
			r.Ask(toolsCall(2, "polite"), 0)
			assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0","id":2,"result":{"ran":true}}}`, r.Answer(), "the actor lives")
		})
	}
}

// A server that does not say how long its tool may take is not waited for.
func TestAServerThatHangsBeforeTheCall(t *testing.T) {
	t.Parallel()
	var r *callbacktest.Rig
	r = served(t, &hanging{fake: fake{name: "srv"}, exec: func() kernel.Executor { return r.Sched }})
	r.Ask(toolsCall(1, "slow"), mcp.DefaultTimeout-1)
	require.Empty(t, r.Lines)
	r.Pass(1)
	assert.Contains(t, r.Answer(), "did not finish within 10m0s")
}

// A place that is never given holds up its own call, and others only as long.
func TestAServerThatHangsOverAPlace(t *testing.T) {
	t.Parallel()
	var r *callbacktest.Rig
	s := &recorder{fake: fake{name: "srv", handle: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"ran":true}`), nil
	}}}
	s.enter = func(tool string) {
		if tool == "stuck" {
			_ = r.Sched.Await(context.Background(), make(chan struct{}))
		}
	}
	r = served(t, s)
	r.Ask(toolsCall(1, "stuck"), time.Minute)
	r.Ask(toolsCall(2, "quick"), time.Minute)
	require.Empty(t, r.Lines, "it comes after the first")
	r.Ask(rpcLine("n", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), 0)
	require.Len(t, r.Lines, 2)
	assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0","id":2,"result":{"ran":true}}}`, r.Answer())

	r.Ask(toolsCall(3, "stuck"), mcp.DefaultTimeout-time.Second)
	r.Ask(toolsCall(4, "quick"), 0)
	require.Len(t, r.Lines, 2)
	r.Pass(time.Second)
	require.Len(t, r.Lines, 4, "the first has had its time")
	assert.JSONEq(t, `{"mcp_response":{"jsonrpc":"2.0","id":4,"result":{"ran":true}}}`, r.Answer())
}

type hanging struct {
	fake
	exec func() kernel.Executor
}

func (s *hanging) Timeout(string) time.Duration {
	_ = s.exec().Await(context.Background(), make(chan struct{}))
	return 0
}
