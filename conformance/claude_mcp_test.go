//go:build conformance

package conformance_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

type echoInput struct {
	X string `json:"x" jsonschema:"what to say again"`
}

func echo(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
	return sdk.Text("again: " + in.X), nil
}

// served are options with one tool, called echo and allowed by rule.
func (r *rig) served(h func(context.Context, echoInput) (*sdk.ToolResult, error)) *sdk.Options {
	r.t.Helper()
	server, err := sdk.NewMCPServer("srv", "1.2.3", sdk.NewTool("echo", "Says it again.", h, sdk.AlwaysLoad()))
	require.NoError(r.t, err)
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{server}
	o.AllowedTools = []string{"mcp__srv__echo"}
	return o
}

func checkToolOfThisProcess(t *testing.T, rel release) {
	for name, tc := range map[string]struct {
		handler func(context.Context, echoInput) (*sdk.ToolResult, error)
		isError bool
		says    string
		failed  int // callbacks that the operator is told of
	}{
		"success": {handler: echo, says: "again: hey"},
		"error result": {
			handler: func(context.Context, echoInput) (*sdk.ToolResult, error) { return sdk.ErrorText("cannot now"), nil },
			isError: true, says: "cannot now",
		},
		"error": {
			handler: func(context.Context, echoInput) (*sdk.ToolResult, error) { return nil, errors.New("out of order") },
			isError: true, says: "out of order",
		},
		"panic": {
			handler: func(context.Context, echoInput) (*sdk.ToolResult, error) { panic("boom") },
			isError: true, says: "the tool failed", failed: 1, // its text is for the host's events
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			c := r.connect(r.served(tc.handler))
			all, result := r.ask(c, "use the tool [[scn:mcp]]")
			told := r.toolResult(all)
			assert.Equal(t, tc.isError, told.IsError)
			assert.Contains(t, told.Content.Text(), tc.says)
			assert.Equal(t, "MCP done.", result.Result)
			seen := r.modelSaw("mcp")
			assert.Contains(t, seen.Tools, "mcp__srv__echo")
			require.Len(t, seen.ToolResults(), 1)
			assert.Equal(t, tc.isError, seen.ToolResults()[0].IsError)
			assert.Contains(t, seen.ToolResults()[0].Text, tc.says)
			assert.NotContains(t, seen.ToolResults()[0].Text, "boom")
			want := []string{"tools/call"}
			if rel.handshake {
				want = []string{"initialize", "notifications/initialized", "tools/list", "tools/call"}
			}
			assert.Equal(t, want, r.wire.rpcs())
			init := only[*sdk.InitMessage](all)[0]
			require.Len(t, init.MCPServers, 1)
			assert.Equal(t, "connected", init.MCPServers[0].Status)
			_, after := r.ask(c, "and now [[scn:text]]")
			assert.False(t, after.Failed(), "the session goes on")
			r.close(c)
			assert.Len(t, r.failed(), tc.failed)
		})
	}
}

func TestToolOfThisProcessNeedsPermission(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.served(func(context.Context, echoInput) (*sdk.ToolResult, error) {
		t.Error("the tool ran")
		return sdk.Text("ran"), nil
	})
	o.AllowedTools = nil
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		assert.Equal(t, "mcp__srv__echo", ask.ToolName)
		assert.JSONEq(t, `{"x":"hey"}`, string(ask.Input))
		return sdk.Deny("no echo today"), nil
	}
	all, result := r.once(o, "use the tool [[scn:mcp]]")
	assert.Equal(t, "no echo today", r.toolResult(all).Content.Text())
	assert.Len(t, result.PermissionDenials, 1)
}

// Both messages are answered by one result: the second one came while a tool
// of the first one's turn ran.
func TestMessageInjectedDuringATool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	called, release := make(chan struct{}, 1), make(chan struct{})
	c := r.connect(r.served(func(ctx context.Context, _ echoInput) (*sdk.ToolResult, error) {
		called <- struct{}{}
		select {
		case <-release:
			return sdk.Text("released"), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}))
	first := r.send(c, "use the tool [[scn:mcp]]")
	rd := r.read(c)
	await(r, "the tool", called)
	second := r.send(c, "by the way, hurry up")
	rd.until("the second message's place in the queue", func(m sdk.Message) bool {
		l, ok := m.(*protocol.CommandLifecycleMessage)
		return ok && l.CommandUUID == second.UUID() && l.State == "queued"
	})
	close(release)

	one, err := first.Result(r.ctx)
	require.NoError(t, err)
	other, err := second.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, one.UUID, other.UUID, "one result ends both turns")
	assert.ElementsMatch(t, []string{first.UUID(), second.UUID()}, one.UserMessageUUIDs)
	assert.Equal(t, "MCP done.", one.Result)
	assert.Contains(t, texts(r.modelSaw("mcp")), "by the way, hurry up")
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.close(c)
	require.NoError(t, rd.rest())
	assert.Len(t, only[*sdk.ResultMessage](rd.seen), 1)
}

func TestInterruptEndsTheToolsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	called, ended := make(chan struct{}, 1), make(chan error, 1)
	c := r.connect(r.served(func(ctx context.Context, _ echoInput) (*sdk.ToolResult, error) {
		called <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}))
	turn := r.send(c, "use the tool [[scn:mcp]]")
	await(r, "the tool", called)
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	require.ErrorIs(t, await(r, "the end of the tool's context", ended), context.Canceled)
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	// The agent calls a tool while the model's message may still be streaming, so the
	// reason is aborted_tools or aborted_streaming (both observed on 2.1.329).
	assert.True(t, result.Interrupted(), result.TerminalReason)
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed())
	r.close(c)
}
