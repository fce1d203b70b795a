package protocol

import "github.com/agent-troupe/troupe/base/jsonscan"

// intern returns the text of a string value without allocating for the names
// that most lines carry; "" if the value is not a string.
func intern(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	s := jsonscan.Unescaped(value)
	if name, ok := interned[string(s)]; ok {
		return name
	}
	return string(s)
}

var interned = byThemselves( //nolint:gochecknoglobals // only read
	"stream_event", "assistant", "user", "system", "result", TypeControlRequest, TypeControlResponse,
	TypeControlCancel, TypeKeepAlive, "tool_progress", "command_lifecycle", "success", "error", "can_use_tool",
	"hook_callback", "mcp_message", "get_model_policy", "init", "status", "session_state_changed",
	"background_tasks_changed", "task_started", "task_progress", "task_updated", "task_notification",
	"thinking_tokens", "hook_started", "hook_progress", "hook_response",
)

func byThemselves(names ...string) map[string]string {
	all := make(map[string]string, len(names))
	for _, name := range names {
		all[name] = name
	}
	return all
}
