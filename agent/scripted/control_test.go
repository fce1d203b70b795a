package scripted_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// Every control request that a vendor's SDK makes is answered, once.
func TestEveryControlRequestIsAnswered(t *testing.T) {
	t.Parallel()
	subtypes := map[string][]string{
		"claude": {
			"interrupt", "set_permission_mode", "set_model", "set_max_thinking_tokens", "set_mcp_permission_mode_override",
			"apply_flag_settings", "update_settings", "mcp_status", "get_context_usage", "get_usage", "read_file",
			"reload_plugins", "reload_skills", "reload_output_styles", "rewind_files", "seed_read_state", "mcp_reconnect",
			"mcp_toggle", "mcp_set_servers", "stop_task", "background_tasks", "cancel_async_message",
			"generate_session_title", "get_session_cost", "get_settings", "get_status", "get_binary_version", "list_models",
			"file_suggestions", "get_task_output", "get_hooks_listing", "list_permission_rules", "rename_session",
			"side_question", "mcp_message", "end_session", "what_is_this",
		},
		"qoder": {
			"interrupt", "set_model", "set_permission_mode", "stop_task", "background_tasks", "set_goal", "get_goal",
			"clear_goal", "set_goal_max_turns", "set_plan_mode", "get_plan_mode", "set_proxy", "generate_session_title",
			"side_question", "add_directories", "apply_flag_settings", "get_models", "get_byok_config", "list_byok_configs",
			"validate_byok_model", "mcp_status", "get_context_usage", "get_usage_info", "reload_plugins", "reload_skills",
			"list_plugins", "account_info", "rewind_files", "rewind", "seed_read_state", "flush_memory", "refresh_memory",
			"mcp_set_servers", "mcp_toggle", "mcp_reconnect", "mcp_clear_auth", "mcp_inject_token", "cancel_async_message",
			"set_max_thinking_tokens", "get_settings", "end_session", "what_is_this",
		},
	}
	for dialect, list := range subtypes {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(nil))
			for i, s := range list {
				p.send(control(fmt.Sprint(i), s, map[string]any{"serverName": "none", "mode": "plan"}))
			}
			p.eof()
			require.Equal(t, agent.Exit{}, p.serve("dialect: "+dialect))
			answers := p.pick("control_response")[1:]
			require.Len(t, answers, len(list))
			for i, a := range answers {
				require.Equal(t, fmt.Sprint(i), a.str("response", "request_id"))
				bad := list[i] == "what_is_this" || list[i] == "mcp_reconnect" || strings.HasSuffix(list[i], "_memory") || // which is off
					dialect == "claude" && (list[i] == "rewind_files" || list[i] == "mcp_toggle")
				require.Equal(t, bad, a.str("response", "subtype") == "error", "%s: %v", list[i], a)
			}
		})
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	const slow = "default: [partial: {text: '${prompt}', chunk: 1, pause: 1s}]"
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	p := newTape(t)
	p.send(initialize(nil))
	p.send(userID(id(1), "first"))
	for n := 2; n <= 4; n++ {
		p.sendAt(time.Second, userID(id(n), "more"))
	}
	p.sendAt(2*time.Second, control("one", "cancel_async_message", map[string]any{"message_uuid": id(3)}))
	p.sendAt(2*time.Second, control("none", "cancel_async_message", map[string]any{"message_uuid": "x"}))
	p.sendAt(3*time.Second, control("stop", "interrupt", map[string]any{"cancel_queued": true}))
	p.errAt(time.Hour, errEOF)
	require.Equal(t, agent.Exit{Code: 1}, p.serve(slow))
	answers := map[string]any{}
	for _, a := range p.pick("control_response")[1:] {
		answers[a.str("response", "request_id")] = a.get("response", "response")
	}
	require.Equal(t, map[string]any{
		"one":  map[string]any{"cancelled": true},
		"none": map[string]any{"cancelled": false},
		"stop": map[string]any{"cancelled": []any{id(2), id(4)}, "still_queued": []any{}},
	}, answers)
	require.Len(t, p.pick("result"), 1)
	require.Len(t, p.pick("command_lifecycle cancelled"), 4)
	require.Equal(t, "fir", block(p.pick("assistant text aborted")[0]).str("text"))
}

func TestRulesLearned(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.answering("can_use_tool", func(f frame) any {
		behavior := "allow"
		if f.str("request", "tool_name") == "Write" {
			behavior = "deny"
		}
		return success(f.str("request_id"), map[string]any{
			"behavior": "allow", "updatedPermissions": []any{map[string]any{
				"type": "addRules", "behavior": behavior, "destination": "session",
				"rules": []any{map[string]any{"toolName": f.str("request", "tool_name")}},
			}},
		})
	})
	_, ran := effects(p, `
turns:
- steps:
  - tool_use: {id: a, name: Bash, gate: ask, effect: n}
  - tool_use: {id: b, name: Bash, gate: ask, effect: n}
  - tool_use: {id: c, name: Write, effect: n}
  - tool_use: {id: d, name: Write, effect: n}
`, "--permission-prompt-tool=stdio")
	require.Equal(t, []string{"n: Bash a {}", "n: Bash b {}", "n: Write c {}"}, ran)
	require.Len(t, p.pick("control_request can_use_tool"), 2)
	require.Contains(t, text(t, p.pick("user tool_result")[3]), "No such tool available: Write")
	require.Empty(t, p.pick("result")[0].get("permission_denials"))
}

// The answer to the first question changes the rules; the calls that are still
// asked about show them.
func TestRulesChanged(t *testing.T) {
	t.Parallel()
	update := func(kind, destination string, tools ...string) map[string]any {
		rules := []any{}
		for _, name := range tools {
			rules = append(rules, map[string]any{"toolName": name})
		}
		u := map[string]any{"type": kind, "behavior": "allow", "rules": rules}
		if destination != "" {
			u["destination"] = destination
		}
		return u
	}
	directories := func(kind string, dirs ...any) map[string]any {
		return map[string]any{"type": kind, "directories": dirs, "destination": "session"}
	}
	for name, tt := range map[string]struct {
		updates []any
		asked   []any
	}{
		"added":               {[]any{update("addRules", "session", "Edit")}, []any{"Write", "Read"}},
		"without destination": {[]any{update("addRules", "", "Edit")}, []any{"Write", "Edit", "Read"}},
		"replaced":            {[]any{update("replaceRules", "session", "Edit")}, []any{"Write", "Bash", "Read"}},
		"removed":             {[]any{update("removeRules", "session", "Bash", "x")}, []any{"Write", "Edit", "Bash", "Read"}},
		"a mode":              {[]any{map[string]any{"type": "setMode", "mode": "acceptEdits", "destination": "session"}}, []any{"Write", "Read"}},
		"a directory":         {[]any{directories("addDirectories", "/other", "/more")}, []any{"Write", "Edit"}},
		"a directory removed": {[]any{directories("addDirectories", "/other", "/more"), directories("removeDirectories", "/other")}, []any{"Write", "Edit", "Read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(nil))
			p.send(user("go"))
			p.closing(1)
			first := true
			p.answering("can_use_tool", func(f frame) any {
				answer := map[string]any{"behavior": "allow"}
				if first {
					answer["updatedPermissions"], first = tt.updates, false
				}
				return success(f.str("request_id"), answer)
			})
			effects(p, `
turns:
- steps:
  - tool_use: {name: Write, effect: n}
  - tool_use: {name: Edit, effect: n}
  - tool_use: {name: Bash, effect: n}
  - tool_use: {name: Read, input: {file_path: /other/a}, effect: n}
`, "--permission-prompt-tool=stdio", "--allowedTools=Bash")
			var asked []any
			for _, f := range p.pick("control_request can_use_tool") {
				asked = append(asked, f.get("request", "tool_name"))
			}
			require.Equal(t, tt.asked, asked)
		})
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	const script = `
turns:
- steps:
  - tool_use: {name: Write, effect: n}
  - tool_use: {name: Bash, effect: n}
  - tool_use: {name: Read, effect: n}
`
	tests := map[string]struct {
		args []string
		ran  int
	}{
		"default":           {nil, 1},
		"acceptEdits":       {[]string{"--permission-mode=acceptEdits"}, 2},
		"bypass":            {[]string{"--permission-mode", "bypassPermissions"}, 3},
		"dontAsk":           {[]string{"--permission-mode=dontAsk", "--permission-prompt-tool=stdio"}, 1},
		"yolo":              {[]string{"--yolo"}, 3},
		"rules":             {[]string{"--allowedTools=Bash,Write(*)"}, 3},
		"bypass, but not X": {[]string{"--dangerously-skip-permissions", "--disallowedTools=Read,Bash"}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(user("go"))
			p.closing(1)
			_, ran := effects(p, script, tt.args...)
			require.Len(t, ran, tt.ran)
		})
	}
}

// hookHost registers one callback for an event and answers it.
func hookHost(p *tape, event string, answer any) {
	p.send(initialize(map[string]any{"hooks": map[string]any{
		event: []any{map[string]any{"hookCallbackIds": []any{"h"}}},
	}}))
	p.answering("hook_callback", func(f frame) any { return success(f.str("request_id"), answer) })
}

func TestHookReplacesOutput(t *testing.T) {
	t.Parallel()
	replace := func(key string, v any) any {
		return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PostToolUse", key: v}}
	}
	tests := map[string]struct {
		answer any
		want   string
	}{
		"object":         {replace("updatedToolOutput", map[string]any{"stdout": "new", "stderr": ""}), "new"},
		"another shape":  {replace("updatedToolOutput", "new"), "old"},
		"meant for MCP":  {replace("updatedMCPToolOutput", "new"), "old"},
		"nothing at all": {nil, "old"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			hookHost(p, "PostToolUse", tt.answer)
			p.send(user("go"))
			p.closing(1)
			p.serve("turns: [{steps: [tool_use: {name: Bash, gate: allow, result: old}]}]")
			require.Equal(t, tt.want, block(p.pick("user tool_result")[0]).str("content"))
		})
	}
}

func TestHookStep(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	hookHost(p, "Notification", map[string]any{"systemMessage": "seen"})
	p.send(user("go"))
	p.closing(1)
	p.serve("turns: [{steps: [hook: {event: Notification, input: {message: hi}}, text: '${answer}']}]")
	require.Equal(t, "hi", p.pick("control_request hook_callback Notification")[0].str("request", "input", "message"))
	require.JSONEq(t, `{"systemMessage":"seen"}`, p.pick("result")[0].str("result"))
}

func TestDialogAndElicitation(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.answering("request_user_dialog", func(f frame) any {
		return success(f.str("request_id"), map[string]any{"behavior": "completed", "result": f.get("request", "payload", "n")})
	})
	p.serve(`
session_state: true
turns:
- steps:
  - dialog: {kind: pick, payload: {n: 3}}
  - text: "${answer}"
  - elicitation: {server: s, message: m, limit: 1s}
`)
	require.Equal(t, []string{
		"control_response success", "system/session_state_changed running", "system/init",
		"system/session_state_changed requires_action", "control_request request_user_dialog",
		"system/session_state_changed running", "assistant text",
		"system/session_state_changed requires_action", "control_request elicitation", "control_cancel_request",
		"system/session_state_changed running", "result/success", "system/session_state_changed idle",
	}, kinds(p.frames))
	require.JSONEq(t, `{"behavior":"completed","result":3}`, block(p.pick("assistant text")[0]).str("text"))
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(user("go"))
	p.closing(1)
	p.serve("turns: [{steps: [tool_use: {id: t, name: Bash, gate: allow, takes: 65s}]}]")
	require.Equal(t, []string{
		"system/init", "assistant tool_use", "system/task_started", "tool_progress", "tool_progress",
		"system/task_notification", "user tool_result", "result/success",
	}, kinds(p.frames))
	require.Equal(t, "t-heartbeat-1", p.frames[4].str("tool_use_id"))
	require.InDelta(t, 65000, p.pick("result")[0].get("duration_ms"), 0)
}

func TestAutoCompaction(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(user("go"))
	p.closing(1)
	p.serve("turns: [{steps: [text: a, compact: {summary: s, takes: 1s}, text: b]}]")
	require.Equal(t, []string{
		"system/init", "assistant text", "system/status", "system/status", "system/compact_boundary", "user text",
		"assistant text", "result/success",
	}, kinds(p.frames))
	require.Equal(t, "auto", p.pick("system/compact_boundary")[0].str("compact_metadata", "trigger"))
}

func TestTurnsOption(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(user("go"))
	p.closing(1)
	a := scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
		scripted.Stderr("diagnosis"), scripted.Text("one"), &scripted.Exit{Signal: "SIGTERM"},
	}}))
	require.Equal(t, agent.Exit{Signal: "TERM"}, a.Serve(agent.Launch{}, p))
	require.Equal(t, "diagnosis\n", p.stderr.String())
}
