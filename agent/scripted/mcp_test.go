package scripted_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

const callsMCP = `
turns:
- steps:
  - mcp_call: {server: srv, tool: echo, arguments: {x: 1}, limit: 2s}
`

func mcpHost(p *tape, call func(f frame) any) {
	p.answering("mcp_message", func(f frame) any {
		var result any = map[string]any{}
		switch f.str("request", "message", "method") {
		case "tools/list":
			result = map[string]any{"tools": []any{map[string]any{"name": "echo"}, map[string]any{"name": "more"}}}
		case "tools/call":
			return call(f)
		}
		return reply(f, result)
	})
}

func reply(f frame, result any) any {
	return success(f.str("request_id"), map[string]any{"mcp_response": map[string]any{
		"jsonrpc": "2.0", "id": f.get("request", "message", "id"), "result": result,
	}})
}

func TestMCPHandshakes(t *testing.T) {
	t.Parallel()
	manifest := map[string]any{"sdkMcpServers": []any{"srv"}, "sdkMcpServerManifests": map[string]any{
		"srv": map[string]any{"toolsListResult": map[string]any{"tools": []any{map[string]any{"name": "echo"}}}},
	}}
	bare := map[string]any{"sdkMcpServers": []any{"srv"}}
	handshake := []string{
		"control_request mcp_message initialize", "control_request mcp_message notifications/initialized",
		"control_request mcp_message tools/list",
	}
	tests := map[string]struct {
		initialize map[string]any
		mode       string
		before     []string
		tools      int
	}{
		"manifest":                         {manifest, "", nil, 1},
		"no manifest":                      {bare, "", handshake, 2},
		"manifest, handshake all the same": {manifest, "handshake", handshake, 2},
		"no manifest, trusted blindly":     {bare, "manifest", nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(tt.initialize))
			p.send(user("go"))
			p.closing(1)
			mcpHost(p, func(f frame) any {
				require.InDelta(t, 2, f.get("request", "message", "id"), 0)
				require.InDelta(t, 2, f.get("request", "message", "params", "_meta", "progressToken"), 0)
				return reply(f, map[string]any{"content": []any{map[string]any{"type": "text", "text": "hey"}}})
			})
			p.serve(callsMCP+"mcp_handshake: "+tt.mode, "--allowedTools=mcp__srv")
			want := append([]string{"control_response success"}, tt.before...)
			want = append(want, "system/init", "assistant tool_use", "control_request mcp_message tools/call", "user tool_result", "result/success")
			require.Equal(t, want, kinds(p.frames))
			require.Contains(t, text(t, p.pick("user tool_result")[0]), "hey")
			listed := 0
			for _, tool := range p.pick("system/init")[0].get("tools").([]any) {
				if tool == "mcp__srv__echo" || tool == "mcp__srv__more" {
					listed++
				}
			}
			require.Equal(t, tt.tools, listed)
		})
	}
}

func TestMCPFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer func(f frame) any
		text   string
	}{
		"tool error": {func(f frame) any {
			return reply(f, map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "boom"}}})
		}, "boom"},
		"rpc error": {func(f frame) any {
			return success(f.str("request_id"), map[string]any{"mcp_response": map[string]any{
				"jsonrpc": "2.0", "id": 2, "error": map[string]any{"code": -32601, "message": "no such method"},
			}})
		}, "no such method"},
		"control error": {func(f frame) any { return failure(f.str("request_id"), "SDK MCP server not found: srv") }, "not found"},
		"nonsense":      {func(f frame) any { return success(f.str("request_id"), "what") }, "not a JSON-RPC response"},
		"no answer":     {func(frame) any { return nil }, "Request timed out"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(map[string]any{"sdkMcpServers": []any{"srv"}}))
			p.send(user("go"))
			p.closing(1)
			mcpHost(p, tt.answer)
			require.Equal(t, agent.Exit{}, p.serve(callsMCP, "--allowedTools=mcp__srv__echo"))
			result := block(p.pick("user tool_result")[0])
			require.Contains(t, result.str("content"), tt.text)
			require.True(t, result.get("is_error").(bool))
			cancelled := p.pick("control_request mcp_message notifications/cancelled")
			require.Len(t, cancelled, map[bool]int{true: 1}[name == "no answer"])
			if name == "no answer" {
				require.Equal(t, 2*time.Second, p.now)
			}
		})
	}
}

func TestMCPUnknownServer(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.serve(callsMCP, "--allowedTools=mcp__srv__echo")
	require.Contains(t, text(t, p.pick("user tool_result")[0]), "No such tool available")
}

// A tool of the host's is the host's, whatever the script says of its result.
func TestToolUseOfTheHosts(t *testing.T) {
	t.Parallel()
	server := map[string]any{"sdkMcpServers": []any{"my srv"}, "sdkMcpServerManifests": map[string]any{
		"my srv": map[string]any{"toolsListResult": map[string]any{"tools": []any{map[string]any{"name": "say it"}}}},
	}}
	tests := map[string]struct {
		step   string
		called bool
		text   string
	}{
		"its own":          {"{name: mcp__my_srv__say_it, input: {x: 1}, result: canned}", true, "hey"},
		"a failure":        {"{name: mcp__my_srv__say_it, error: broken}", false, "broken"},
		"no such tool":     {"{name: mcp__my_srv__say, result: canned}", false, "No such tool available: mcp__my_srv__say"},
		"another server's": {"{name: mcp__other__say_it, result: canned}", false, "canned"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(server))
			p.send(user("go"))
			p.closing(1)
			mcpHost(p, func(f frame) any {
				require.Equal(t, "my srv", f.str("request", "server_name"))
				require.Equal(t, "say it", f.str("request", "message", "params", "name"))
				return reply(f, map[string]any{"content": []any{map[string]any{"type": "text", "text": "hey"}}})
			})
			require.Equal(t, agent.Exit{}, p.serve("turns: [{steps: [tool_use: "+tt.step+"]}]", "--allowedTools=mcp__my_srv,mcp__other"))
			require.Contains(t, text(t, p.pick("user tool_result")[0]), tt.text)
			require.Len(t, p.pick("control_request mcp_message tools/call"), map[bool]int{true: 1}[tt.called])
		})
	}
}
