package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

const counted = `
turns:
- steps:
  - tool_use: {name: Bash, input: {command: touch x}, gate: ask, result: ok, effect: count}
  - text: done
`

// effects plays a script and returns what its tools did.
func effects(p *tape, script string, args ...string) (agent.Exit, []string) {
	p.t.Helper()
	var done []string
	a := scripted.New(
		scripted.WithScript(parse(p.t, script)),
		scripted.WithEffect(func(file, line string) error {
			done = append(done, file+": "+line)
			return nil
		}),
	)
	return a.Serve(agent.Launch{Args: args, Dir: "/work", Seed: 7}, p), done
}

// What happens to gates when the host closes stdin, as observed on Claude Code
// 2.1.329.
func TestGatesAtEOF(t *testing.T) {
	t.Parallel()
	hook := map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"hookCallbackIds": []any{"hook_0"}}},
	}}
	tests := []struct {
		name       string
		initialize map[string]any
		args       []string
		eofOn      string // closes stdin on this kind of frame; "" at once
		text       string
		ran        int
		asked      int
	}{
		{name: "pending hook", initialize: hook, args: []string{"--allowedTools=Bash"}, eofOn: "control_request hook_callback", text: "The user doesn't want to take this action right now", asked: 1},
		{name: "pending can_use_tool", args: []string{"--permission-prompt-tool=stdio"}, eofOn: "control_request can_use_tool", text: "Tool permission stream closed before response received", asked: 1},
		{name: "hook registered, eof before", initialize: hook, args: []string{"--allowedTools=Bash"}, text: "The user doesn't want to take this action right now"},
		{name: "can_use_tool, eof before", args: []string{"--permission-prompt-tool=stdio"}, text: "Tool permission stream closed before response received"},
		{name: "no gate", args: []string{"--allowedTools=Bash"}, ran: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(tt.initialize))
			p.send(user("go"))
			if tt.eofOn == "" {
				p.eof()
			}
			p.host = func(f frame) {
				if tt.eofOn != "" && strings.HasPrefix(kind(f), tt.eofOn) {
					p.eof()
				}
			}
			exit, done := effects(p, counted, tt.args...)
			require.Equal(t, agent.Exit{}, exit)
			require.Len(t, done, tt.ran)
			require.Len(t, p.pick("control_request"), tt.asked)
			result := p.pick("user tool_result")
			require.Len(t, result, 1)
			if tt.text != "" {
				require.Contains(t, text(t, result[0]), tt.text)
			}
			require.Equal(t, "done", p.pick("result/success")[0].str("result"))
		})
	}
}

// text is the frame as JSON.
func text(t *testing.T, f frame) string {
	t.Helper()
	b, err := json.Marshal(f)
	require.NoError(t, err)
	return string(b)
}

func TestDenyNeverRuns(t *testing.T) {
	t.Parallel()
	answers := map[string]any{
		"deny":               map[string]any{"behavior": "deny", "message": "no"},
		"deny without words": map[string]any{"behavior": "deny", "message": ""},
		"deny, interrupt":    map[string]any{"behavior": "deny", "message": "no", "interrupt": true},
		"no message":         map[string]any{"behavior": "deny"},
		"unknown":            map[string]any{"behavior": "maybe"},
		"old form":           map[string]any{"allowed": true},
		"string":             "allow",
		"nothing":            nil,
		"input of a shape":   map[string]any{"behavior": "allow", "updatedInput": "x"},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(nil))
			p.send(user("go"))
			p.closing(1)
			p.answering("can_use_tool", func(f frame) any { return success(f.str("request_id"), answer) })
			_, done := effects(p, counted, "--permission-prompt-tool=stdio")
			require.Empty(t, done)
			require.Len(t, p.pick("result"), 1)
			require.False(t, p.stuck)
		})
	}
}

func TestUpdatedInputRuns(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{
			map[string]any{"matcher": "Write|Edit", "hookCallbackIds": []any{"never"}},
			map[string]any{"matcher": "Ba.*", "hookCallbackIds": []any{"first"}},
		},
	}}))
	p.send(user("go"))
	p.closing(1)
	p.answering("hook_callback", func(f frame) any {
		require.Equal(t, "first", f.str("request", "callback_id"))
		return success(f.str("request_id"), map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": "PreToolUse", "updatedInput": map[string]any{"command": "by hook"},
		}})
	})
	p.answering("can_use_tool", func(f frame) any {
		require.Equal(t, "by hook", f.str("request", "input", "command"))
		return success(f.str("request_id"), map[string]any{
			"behavior": "allow", "updatedInput": map[string]any{"command": "by host"},
		})
	})
	_, done := effects(p, counted, "--permission-prompt-tool=stdio")
	require.Len(t, done, 1)
	require.Contains(t, done[0], `{"command":"by host"}`)
	require.Contains(t, text(t, p.pick("assistant tool_use")[0]), "touch x", "the assistant frame keeps the model's input")
}

func TestHookTimeoutDenies(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(map[string]any{"hooks": map[string]any{
		"PreToolUse": []any{map[string]any{"hookCallbackIds": []any{"a", "b"}, "timeout": 1.5}},
	}}))
	p.send(user("go"))
	p.closing(1)
	p.answering("hook_callback", func(f frame) any {
		if f.str("request", "callback_id") == "a" {
			return success(f.str("request_id"), map[string]any{})
		}
		return nil
	})
	_, done := effects(p, counted, "--allowedTools=Bash")
	require.Empty(t, done)
	require.Len(t, p.pick("control_cancel_request"), 1)
	require.Equal(t, 1500*time.Millisecond, p.now)
}

func TestParallelAsks(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	var asks []string
	p.answering("can_use_tool", func(f frame) any {
		asks = append(asks, f.str("request_id"))
		if len(asks) == 3 { // out of order, one denied
			p.send(success(asks[2], map[string]any{"behavior": "allow"}))
			p.send(success(asks[0], map[string]any{"behavior": "deny", "message": "no"}))
			p.send(success(asks[1], map[string]any{"behavior": "allow"}))
		}
		return nil
	})
	_, done := effects(p, `
session_state: true
turns:
- steps:
  - parallel:
    - tool_use: {id: t0, name: Bash, input: {command: a}, gate: ask, effect: n}
    - tool_use: {id: t1, name: Bash, input: {command: b}, gate: ask, effect: n}
    - tool_use: {id: t2, name: Bash, input: {command: c}, gate: ask, effect: n}
`, "--permission-prompt-tool=stdio")
	require.Equal(t, []string{`n: Bash t2 {"command":"c"}`, `n: Bash t1 {"command":"b"}`}, done)
	require.Equal(t, []string{
		"control_response success", "system/session_state_changed running", "system/init",
		"assistant tool_use", "assistant tool_use", "assistant tool_use",
		"system/session_state_changed requires_action",
		"control_request can_use_tool", "control_request can_use_tool", "control_request can_use_tool",
		"user tool_result", "user tool_result", "system/session_state_changed running", "user tool_result",
		"result/success", "system/session_state_changed idle",
	}, kinds(p.frames))
	require.InDelta(t, 4, p.pick("result")[0].get("num_turns"), 0)
}
