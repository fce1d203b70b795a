package protocol

import "github.com/agent-troupe/troupe/base/jsonscan"

// intern returns the text of a string value without allocating for the names
// that most lines carry; "" if the value is not a string.
func intern(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	switch s := jsonscan.Unescaped(value); string(s) {
	case "stream_event":
		return "stream_event"
	case "assistant":
		return "assistant"
	case "user":
		return "user"
	case "system":
		return "system"
	case "result":
		return "result"
	case TypeControlRequest:
		return TypeControlRequest
	case TypeControlResponse:
		return TypeControlResponse
	case TypeControlCancel:
		return TypeControlCancel
	case TypeKeepAlive:
		return TypeKeepAlive
	case "tool_progress":
		return "tool_progress"
	case "command_lifecycle":
		return "command_lifecycle"
	case "success":
		return "success"
	case "error":
		return "error"
	case "can_use_tool":
		return "can_use_tool"
	case "hook_callback":
		return "hook_callback"
	case "mcp_message":
		return "mcp_message"
	case "get_model_policy":
		return "get_model_policy"
	case "init":
		return "init"
	case "status":
		return "status"
	case "session_state_changed":
		return "session_state_changed"
	case "background_tasks_changed":
		return "background_tasks_changed"
	case "task_started":
		return "task_started"
	case "task_progress":
		return "task_progress"
	case "task_updated":
		return "task_updated"
	case "task_notification":
		return "task_notification"
	case "thinking_tokens":
		return "thinking_tokens"
	case "hook_started":
		return "hook_started"
	case "hook_progress":
		return "hook_progress"
	case "hook_response":
		return "hook_response"
	default:
		return string(s)
	}
}
