package sdk_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// toolTurn plays one turn of an agent that calls tools of s, and returns the
// texts of the tool results by the id of the tool use.
func toolTurn(t *testing.T, rt *runtime.Runtime, d dialect.Dialect, s *sdk.MCPServer, steps ...scripted.Step) map[string]*protocol.ToolResultBlock {
	t.Helper()
	ctx := context.Background()
	session, err := rt.Open(ctx, runtime.Spec{
		Dialect: d,
		Program: scripted.New(scripted.WithScript(&scripted.Script{
			Dialect: agent.Dialect(d.Name()), Turns: []scripted.Turn{{Steps: steps}},
		})),
		Options: session.Options{Auth: auth(d), SDKMCPServers: []*session.MCPServer{s}},
	})
	require.NoError(t, err)
	turn, err := session.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
	require.NoError(t, err)
	results := map[string]*protocol.ToolResultBlock{}
	for m, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		for _, r := range protocol.ToolResults(m) {
			results[r.ToolUseID] = r
		}
	}
	require.NoError(t, session.Close(ctx))
	return results
}

func auth(d dialect.Dialect) *session.Auth {
	if d.Name() == "qoder" {
		return sdk.QoderCLIAuth()
	}
	return nil
}

// everywhere runs a test with both dialects, on the production seams and on
// seeds of the simulation.
func everywhere(t *testing.T, test func(t *testing.T, d dialect.Dialect, rt *runtime.Runtime, ex kernel.Executor)) {
	t.Helper()
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		t.Run(d.Name()+", production", func(t *testing.T) {
			t.Parallel()
			rt, err := runtime.New(runtime.Config{})
			require.NoError(t, err)
			test(t, d, rt, kernel.GoExecutor{})
			require.NoError(t, rt.Shutdown(context.Background()))
		})
		t.Run(d.Name()+", simulation", func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				w := virtual(t, seed)
				test(t, d, w.rt, w.sim)
				w.quiet()
				w.Finish()
			}
		})
	}
}

func use(id, tool string, arguments map[string]any) *scripted.MCPCall {
	return &scripted.MCPCall{ID: id, Server: "srv", Tool: tool, Arguments: arguments, Gate: agent.GateAllow}
}

func TestToolsInASession(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/function/tool", "qoder/function/tool", "both/ask/mcp_message", "claude/feature/MCP-Server-Integration")
	everywhere(t, func(t *testing.T, d dialect.Dialect, rt *runtime.Runtime, ex kernel.Executor) {
		var began atomic.Bool
		var cause error
		ended := make(chan struct{})
		s := server(t,
			sdk.NewTool("echo", "d", echo),
			sdk.NewTool("boom", "d", func(context.Context, none) (*sdk.ToolResult, error) { panic("kaboom") }),
			sdk.NewTool("prog", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
				return sdk.JSONResult([]any{sdk.Progress(ctx, 1, 2, "half"), string(sdk.ToolCallMeta(ctx))}), nil
			}),
			sdk.NewTool("slow", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
				began.Store(true)
				cause = mcp.Await(ctx, make(chan struct{}))
				close(ended)
				return nil, cause
			}),
		)
		slow := use("slow", "slow", nil)
		slow.Limit = 20 * time.Millisecond // then the agent cancels it
		got := toolTurn(t, rt, d, s,
			use("echo", "echo", map[string]any{"x": "hey"}), use("bad", "echo", map[string]any{"x": 5, "y": 1}),
			use("boom", "boom", nil), use("nosuch", "nosuch", nil), use("prog", "prog", nil), slow,
		)
		text := func(id string, isError bool) string {
			require.Contains(t, got, id)
			assert.Equal(t, isError, got[id].IsError, id)
			return protocol.TextOf(&protocol.UserMessage{Message: protocol.UserContent{Content: got[id].Content}})
		}
		assert.Contains(t, text("echo", false), "hey")
		assert.Contains(t, text("bad", true), "x: expected string, got 5; y: unknown field, the fields are x")
		assert.Equal(t, "the tool failed; the host's events say why", text("boom", true), "a panic's text is not for the model")
		assert.Contains(t, text("nosuch", true), "Tool nosuch not found")
		assert.Contains(t, text("prog", false), "[true,")
		assert.Contains(t, text("prog", false), "progressToken")
		text("slow", true)
		if _, production := ex.(kernel.GoExecutor); production && !began.Load() {
			return // cancelled before a busy machine came to run it
		}
		require.NoError(t, ex.Await(context.Background(), ended))
		assert.Error(t, cause, "the handler's context ended")
	})
}

func TestSequentialInASession(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, d dialect.Dialect, rt *runtime.Runtime, _ kernel.Executor) {
		running := 0
		var wrote []string
		s := server(t, sdk.NewTool("write", "d", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
			running++ // without a lock: the order is the lock
			assert.Equal(t, 1, running)
			wrote = append(wrote, in.X)
			running--
			return sdk.Text("ok"), nil
		})).Sequential()
		var calls scripted.Parallel
		var want []string
		for i := range 8 {
			x := fmt.Sprint("w", i)
			want = append(want, x)
			calls = append(calls, use(x, "write", map[string]any{"x": x}))
		}
		got := toolTurn(t, rt, d, s, calls)
		assert.Len(t, got, len(want))
		assert.Equal(t, strings.Join(want, " "), strings.Join(wrote, " "), "in the order of the agent's calls")
	})
}
