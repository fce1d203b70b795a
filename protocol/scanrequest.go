package protocol

import (
	"encoding/json"
	"slices"
)

// The requests that an agent makes with every tool call have a way past
// encoding/json, too. What is not exactly the usual form takes the usual way. A
// PreToolUse hook and its input are decoded in 12 µs instead of 28.

// scannable is what can be read member by member.
type scannable interface {
	// scan takes the value of a key, given with its quotes. It reports false for
	// what is left to encoding/json.
	scan(key, value []byte) bool
}

// scanObject reads an object of valid JSON into v, and reports whether v could
// take all of it.
func scanObject(valid []byte, v scannable) bool {
	c := object(valid, 0)
	for {
		key, val, ok := c.member()
		if !ok {
			return !c.err
		}
		if !v.scan(key.of(valid), val.of(valid)) {
			return false
		}
	}
}

// scanText reads a string, and null as none.
func scanText[S ~string](to *S, value []byte) bool {
	if value[0] != '"' {
		*to = ""
		return value[0] == 'n'
	}
	*to = S(unescaped(value))
	return true
}

// scanJSON reads any other value, whatever stood under the key before.
func scanJSON[T any](to *T, value []byte) bool {
	var v T
	if Unmarshal(value, &v) != nil {
		return false
	}
	*to = v
	return true
}

// scanRaw keeps a copy of any value.
func scanRaw(to *json.RawMessage, value []byte) bool {
	*to = slices.Clone(value)
	return true
}

// scan implements scannable.
func (r *HookCallbackRequest) scan(key, value []byte) bool {
	switch string(key) {
	case `"subtype"`:
		return true
	case `"callback_id"`:
		return scanText(&r.CallbackID, value)
	case `"input"`:
		return scanRaw(&r.Input, value)
	case `"tool_use_id"`:
		return scanText(&r.ToolUseID, value)
	}
	return false
}

// scan implements scannable.
func (r *MCPMessageRequest) scan(key, value []byte) bool {
	switch string(key) {
	case `"subtype"`:
		return true
	case `"server_name"`:
		return scanText(&r.ServerName, value)
	case `"message"`:
		return scanRaw(&r.Message, value)
	}
	return false
}

// scan implements scannable.
func (r *CanUseToolRequest) scan(key, value []byte) bool {
	switch string(key) {
	case `"subtype"`:
		return true
	case `"tool_name"`:
		return scanText(&r.ToolName, value)
	case `"display_name"`:
		return scanText(&r.DisplayName, value)
	case `"input"`:
		return scanRaw(&r.Input, value)
	case `"tool_use_id"`:
		return scanText(&r.ToolUseID, value)
	case `"agent_id"`:
		return scanText(&r.AgentID, value)
	case `"title"`:
		return scanText(&r.Title, value)
	case `"description"`:
		return scanText(&r.Description, value)
	case `"permission_suggestions"`:
		return scanJSON(&r.PermissionSuggestions, value)
	case `"blocked_path"`:
		return scanText(&r.BlockedPath, value)
	case `"decision_reason"`:
		return scanText(&r.DecisionReason, value)
	case `"decision_reason_type"`:
		return scanText(&r.DecisionReasonType, value)
	}
	return false
}

// UnmarshalJSON decodes the input.
func (in *PreToolUseInput) UnmarshalJSON(b []byte) error {
	before := *in
	if scanObject(b, in) {
		return nil
	}
	*in = before
	type plain PreToolUseInput
	return Unmarshal(b, (*plain)(in))
}

// scan implements scannable.
func (in *PreToolUseInput) scan(key, value []byte) bool {
	switch string(key) {
	case `"tool_name"`:
		return scanText(&in.ToolName, value)
	case `"tool_input"`:
		return scanRaw(&in.ToolInput, value)
	case `"tool_use_id"`:
		return scanText(&in.ToolUseID, value)
	}
	return in.HookBase.scan(key, value)
}

// UnmarshalJSON decodes the input.
func (in *PostToolUseInput) UnmarshalJSON(b []byte) error {
	before := *in
	if scanObject(b, in) {
		return nil
	}
	*in = before
	type plain PostToolUseInput
	return Unmarshal(b, (*plain)(in))
}

// scan implements scannable.
func (in *PostToolUseInput) scan(key, value []byte) bool {
	switch string(key) {
	case `"tool_name"`:
		return scanText(&in.ToolName, value)
	case `"tool_input"`:
		return scanRaw(&in.ToolInput, value)
	case `"tool_response"`:
		return scanRaw(&in.ToolResponse, value)
	case `"tool_use_id"`:
		return scanText(&in.ToolUseID, value)
	case `"duration_ms"`:
		return scanJSON(&in.DurationMS, value)
	}
	return in.HookBase.scan(key, value)
}

// scan implements scannable.
func (b *HookBase) scan(key, value []byte) bool {
	switch string(key) {
	case `"hook_event_name"`:
		return scanText(&b.HookEventName, value)
	case `"session_id"`:
		return scanText(&b.SessionID, value)
	case `"transcript_path"`:
		return scanText(&b.TranscriptPath, value)
	case `"cwd"`:
		return scanText(&b.Cwd, value)
	case `"prompt_id"`:
		return scanText(&b.PromptID, value)
	case `"permission_mode"`:
		return scanText(&b.PermissionMode, value)
	case `"agent_id"`:
		return scanText(&b.AgentID, value)
	case `"agent_type"`:
		return scanText(&b.AgentType, value)
	case `"effort"`:
		return scanJSON(&b.Effort, value)
	}
	return false
}
