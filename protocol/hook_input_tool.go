package protocol

import "encoding/json"

// PreToolUseInput is sent before a tool call. It is a gate.
type PreToolUseInput struct {
	HookBase
	ToolName  string               `json:"tool_name"`             // as in [ToolUseBlock]
	ToolInput json.RawMessage      `json:"tool_input"`            // the tool's arguments, an object
	ToolUseID string               `json:"tool_use_id,omitempty"` // the [ToolUseBlock] in question; "": not sent
	MCPServer *MCPServerProvenance `json:"mcp_server,omitempty"`  // the server of an MCP tool; nil for other tools
}

// PostToolUseInput is sent after a tool call that succeeded.
type PostToolUseInput struct {
	HookBase
	ToolName  string          `json:"tool_name"`  // as in [ToolUseBlock]
	ToolInput json.RawMessage `json:"tool_input"` // the arguments that the tool ran with
	// ToolResponse has a shape of the tool's own.
	ToolResponse json.RawMessage      `json:"tool_response"`
	ToolUseID    string               `json:"tool_use_id,omitempty"` // the [ToolUseBlock] in question; "": not sent
	DurationMS   Millis               `json:"duration_ms,omitempty"` // of the tool, in milliseconds, without permission and hooks
	MCPServer    *MCPServerProvenance `json:"mcp_server,omitempty"`  // the server of an MCP tool; nil for other tools
}

// PostToolUseFailureInput is sent after a tool call that failed.
type PostToolUseFailureInput struct {
	HookBase
	ToolName    string               `json:"tool_name"`              // as in [ToolUseBlock]
	ToolInput   json.RawMessage      `json:"tool_input"`             // the arguments that the tool ran with
	ToolUseID   string               `json:"tool_use_id,omitempty"`  // the [ToolUseBlock] in question; "": not sent
	Error       string               `json:"error"`                  // what the model reads
	IsInterrupt bool                 `json:"is_interrupt,omitempty"` // an interrupt ended the tool
	DurationMS  Millis               `json:"duration_ms,omitempty"`  // of the tool, in milliseconds, without permission and hooks
	MCPServer   *MCPServerProvenance `json:"mcp_server,omitempty"`   // the server of an MCP tool; nil for other tools
}

// PostToolBatchInput comes once after the tool calls of one model message.
type PostToolBatchInput struct {
	HookBase
	ToolCalls []BatchToolCall `json:"tool_calls"` // all calls of the message, failed ones too
}

// BatchToolCall is one call of a batch.
type BatchToolCall struct {
	ToolName     string          `json:"tool_name"`               // as in [ToolUseBlock]
	ToolInput    json.RawMessage `json:"tool_input"`              // the tool's arguments, an object
	ToolUseID    string          `json:"tool_use_id"`             // the [ToolUseBlock] in question
	ToolResponse json.RawMessage `json:"tool_response,omitempty"` // of a shape of the tool's own; nil: none
}

// PermissionRequestInput is sent when a tool call needs permission, at the same time as
// the [CanUseToolRequest]. The first of the two answers decides (observed on Claude Code
// 2.1.329).
type PermissionRequestInput struct {
	HookBase
	ToolName              string             `json:"tool_name"`                        // as in [ToolUseBlock]
	ToolInput             json.RawMessage    `json:"tool_input"`                       // the tool's arguments, an object
	ToolUseID             string             `json:"tool_use_id,omitempty"`            // the [ToolUseBlock] in question; "": not sent
	PermissionSuggestions []PermissionUpdate `json:"permission_suggestions,omitempty"` // as in [CanUseToolRequest]
	// MCPServer: the server of an MCP tool; nil for other tools.
	MCPServer *MCPServerProvenance `json:"mcp_server,omitempty"`
}

// PermissionDeniedInput is sent after a tool call was denied.
type PermissionDeniedInput struct {
	HookBase
	ToolName  string               `json:"tool_name"`            // as in [ToolUseBlock]
	ToolInput json.RawMessage      `json:"tool_input"`           // the tool's arguments, an object
	ToolUseID string               `json:"tool_use_id"`          // the [ToolUseBlock] in question
	Reason    string               `json:"reason"`               // the agent's words
	MCPServer *MCPServerProvenance `json:"mcp_server,omitempty"` // the server of an MCP tool; nil for other tools
}

// ElicitationInput is sent when an MCP server asks the person something.
type ElicitationInput struct {
	HookBase
	MCPServerName   string          `json:"mcp_server_name"`            // the server that asks
	Message         string          `json:"message"`                    // the question, text of the server: untrusted
	Mode            string          `json:"mode,omitempty"`             // form, url
	URL             string          `json:"url,omitempty"`              // what to open, with mode url
	ElicitationID   string          `json:"elicitation_id,omitempty"`   // the server's id of the question, with mode url
	RequestedSchema json.RawMessage `json:"requested_schema,omitempty"` // a JSON schema of the answer, with mode form
}

// ElicitationResultInput is sent after the person has answered.
type ElicitationResultInput struct {
	HookBase
	MCPServerName string          `json:"mcp_server_name"`          // the server that asked
	ElicitationID string          `json:"elicitation_id,omitempty"` // the server's id of the question, with mode url
	Mode          string          `json:"mode,omitempty"`           // form, url
	Action        string          `json:"action"`                   // accept, decline, cancel
	Content       json.RawMessage `json:"content,omitempty"`        // the answer, an object of the requested schema; only with accept
}
