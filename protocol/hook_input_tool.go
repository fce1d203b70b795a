package protocol

import "encoding/json"

// PreToolUseInput comes before a tool call. It is a gate.
type PreToolUseInput struct {
	HookBase
	ToolName  string               `json:"tool_name"`
	ToolInput json.RawMessage      `json:"tool_input"`
	ToolUseID string               `json:"tool_use_id,omitempty"`
	MCPServer *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// PostToolUseInput comes after a tool call that went well.
type PostToolUseInput struct {
	HookBase
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	// ToolResponse has a shape of the tool's own.
	ToolResponse json.RawMessage      `json:"tool_response"`
	ToolUseID    string               `json:"tool_use_id,omitempty"`
	DurationMS   Millis               `json:"duration_ms,omitempty"`
	MCPServer    *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// PostToolUseFailureInput comes after a tool call that failed.
type PostToolUseFailureInput struct {
	HookBase
	ToolName    string               `json:"tool_name"`
	ToolInput   json.RawMessage      `json:"tool_input"`
	ToolUseID   string               `json:"tool_use_id,omitempty"`
	Error       string               `json:"error"`
	IsInterrupt bool                 `json:"is_interrupt,omitempty"`
	DurationMS  Millis               `json:"duration_ms,omitempty"`
	MCPServer   *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// PostToolBatchInput comes once after the tool calls of one model message.
type PostToolBatchInput struct {
	HookBase
	ToolCalls []BatchToolCall `json:"tool_calls"`
}

// BatchToolCall is one call of a batch.
type BatchToolCall struct {
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	ToolUseID    string          `json:"tool_use_id"`
	ToolResponse json.RawMessage `json:"tool_response,omitempty"`
}

// PermissionRequestInput comes when a tool call needs permission, beside the
// [CanUseToolRequest]; the first answer wins (observed on Claude Code 2.1.329).
type PermissionRequestInput struct {
	HookBase
	ToolName              string               `json:"tool_name"`
	ToolInput             json.RawMessage      `json:"tool_input"`
	ToolUseID             string               `json:"tool_use_id,omitempty"`
	PermissionSuggestions []PermissionUpdate   `json:"permission_suggestions,omitempty"`
	MCPServer             *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// PermissionDeniedInput comes after a tool call was denied.
type PermissionDeniedInput struct {
	HookBase
	ToolName  string               `json:"tool_name"`
	ToolInput json.RawMessage      `json:"tool_input"`
	ToolUseID string               `json:"tool_use_id"`
	Reason    string               `json:"reason"`
	MCPServer *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// ElicitationInput comes when an MCP server asks the person something.
type ElicitationInput struct {
	HookBase
	MCPServerName   string          `json:"mcp_server_name"`
	Message         string          `json:"message"`
	Mode            string          `json:"mode,omitempty"` // form, url
	URL             string          `json:"url,omitempty"`
	ElicitationID   string          `json:"elicitation_id,omitempty"`
	RequestedSchema json.RawMessage `json:"requested_schema,omitempty"`
}

// ElicitationResultInput comes after the person has answered.
type ElicitationResultInput struct {
	HookBase
	MCPServerName string          `json:"mcp_server_name"`
	ElicitationID string          `json:"elicitation_id,omitempty"`
	Mode          string          `json:"mode,omitempty"`
	Action        string          `json:"action"` // accept, decline, cancel
	Content       json.RawMessage `json:"content,omitempty"`
}
