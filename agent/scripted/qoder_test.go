package scripted_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

const qoder = "dialect: qoder\n"

func qoderInit() map[string]any {
	return map[string]any{"type": "control_request", "request_id": "init", "request": map[string]any{
		"type": "initialize", "subtype": "initialize", "modelPolicyProvider": true,
	}}
}

func TestQoderTurn(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(qoderInit())
	p.send(userID("u", "go"))
	p.closing(1)
	exit := p.serve(qoder + "turns: [{steps: [text: hi]}]")
	require.Equal(t, agent.Exit{}, exit)
	require.Equal(t, []string{
		"control_response success", "system/init", "command_lifecycle queued", "command_lifecycle started",
		"assistant text", "result/success", "command_lifecycle completed",
	}, kinds(p.frames))
	require.NotContains(t, p.frames[0].get("response"), "pending_permission_requests")
	require.Contains(t, p.frames[0].get("response", "response", "capabilities"), "interrupt_receipt_v1")
	require.Equal(t, "1.4.0", p.frames[1].str("protocol_version"))
	require.Equal(t, "1.1.52", p.frames[1].str("qodercli_version"))
	require.Equal(t, "end_turn", p.frames[4].str("message", "stop_reason"))
}

func TestQoderVersion(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(qoderInit())
	p.eof()
	p.serve(qoder + "protocol_version: 2.0.0\ncapabilities: []")
	require.Equal(t, "2.0.0", p.frames[1].str("protocol_version"))
	require.Empty(t, p.frames[1].get("capabilities"))
}

func TestQoderNeedsInitialize(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(user("go"))
	require.Equal(t, agent.Exit{Code: 1}, p.serve(qoder))
	require.Equal(t, "initialize_required", p.frames[0].str("terminal_reason"))
}

func TestQoderAllowNeedsInput(t *testing.T) {
	t.Parallel()
	for _, input := range []any{nil, map[string]any{"command": "y"}} {
		p := newTape(t)
		p.send(qoderInit())
		p.send(user("go"))
		p.closing(1)
		p.answering("can_use_tool", func(f frame) any {
			answer := map[string]any{"behavior": "allow"}
			if input != nil {
				answer["updatedInput"] = input
			}
			return success(f.str("request_id"), answer)
		})
		_, ran := effects(p, qoder+counted, "--permission-prompt-tool", "stdio")
		require.Equal(t, input != nil, len(ran) == 1)
	}
}

func TestQoderModelPolicy(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(qoderInit())
	p.send(user("go"))
	p.closing(1)
	p.answering("get_model_policy", func(f frame) any {
		require.Equal(t, "get_model_policy", f.str("request", "type"))
		require.Equal(t, "subagent", f.str("request", "purpose"))
		return success(f.str("request_id"), map[string]any{"type": "get_model_policy", "model": "lite"})
	})
	p.serve(qoder + `turns: [{steps: [model_policy: {purpose: subagent}, text: "${answer}"]}]`)
	require.Contains(t, p.pick("result")[0].str("result"), `"lite"`)
}

func TestQoderControl(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send("junk is ignored")
	p.send("[1,2]")
	p.send(qoderInit())
	p.send(map[string]any{"type": "control_request", "request_id": "a", "request": map[string]any{"type": "get_plan_mode"}})
	p.send(control("b", "set_plan_mode", map[string]any{"active": true}))
	p.send(control("c", "set_permission_mode", map[string]any{"mode": "yolo"}))
	p.send(control("d", "set_permission_mode", map[string]any{"mode": "acceptEdits"}))
	p.send(control("e", "set_model", map[string]any{"model": "lite"}))
	p.send(control("f", "channel_enable", nil))
	p.send(control("g", "mcp_status", nil))
	p.send(control("h", "rewind_files", map[string]any{"user_message_id": "u1"}))
	p.send(map[string]any{"type": "control_request", "request_id": "i", "request": map[string]any{}})
	p.eof()
	require.Equal(t, agent.Exit{}, p.serve(qoder))
	require.Equal(t, []string{
		"control_response success", "system/init",
		"control_response success",
		"system/status", "system/plan_mode_changed", "control_response success",
		"control_response error",
		"system/status", "system/plan_mode_changed", "control_response success",
		"control_response success",
		"control_response error",
		"control_response success", "control_response success",
	}, kinds(p.frames))
	require.Equal(t, "unknown permission_mode: yolo", p.frames[6].str("response", "error"))
	require.NotContains(t, p.frames[10].get("response"), "response", "set_model has no answer value")
	require.Equal(t, `Unsupported control request type: "channel_enable"`, p.frames[11].str("response", "error"))
}
