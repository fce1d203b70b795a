package dialect

import (
	"encoding/json"
	"time"
)

// MCPServer is an external MCP server: a process on stdio, or a URL.
type MCPServer struct {
	// Type is stdio, sse or http; empty: stdio.
	Type string `json:"type,omitempty"`

	// Command, Args and Env start a stdio server.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`

	// URL and Headers reach an sse or http server.
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// HeadersHelper is a command that prints headers as a JSON object. Claude.
	HeadersHelper string `json:"headersHelper,omitempty"`
	// OAuth is passed on as it is. Claude.
	OAuth json.RawMessage `json:"oauth,omitempty"`

	// Timeout limits a tool call; 0: the agent's default. The wire carries milliseconds. Claude.
	Timeout time.Duration `json:"-"`
	// AlwaysLoad keeps the server's tools in the prompt from the start. Claude; Qoder has it per tool.
	AlwaysLoad bool `json:"alwaysLoad,omitempty"`
	// Tools are policies for single tools.
	Tools []MCPTool `json:"-"`
	// Extra are further keys, passed on as they are.
	Extra map[string]json.RawMessage `json:"-"`
}

// MCPTool is the policy for one tool of an MCP server.
type MCPTool struct {
	// Name is the tool's name as the server lists it.
	Name string `json:"name"`
	// PermissionPolicy is AlwaysAllow, AlwaysAsk or AlwaysDeny; empty: the session's rules. AlwaysAllow hides
	// CanUseTool for the tool.
	PermissionPolicy string `json:"permission_policy,omitempty"`
	// ExposedName is the name the model sees. Qoder.
	ExposedName string `json:"exposedName,omitempty"`
	// AlwaysLoad keeps the tool in the prompt from the start. Qoder.
	AlwaysLoad bool `json:"alwaysLoad,omitempty"`
}

// Values of MCPTool.PermissionPolicy.
const (
	AlwaysAllow = "always_allow"
	AlwaysAsk   = "always_ask"
	AlwaysDeny  = "always_deny"
)

// SDKMCPServerConfig is what the agent is told of an MCP server that runs in the host.
type SDKMCPServerConfig struct {
	// Timeout limits a tool call; 0: the agent's default. Claude: initialize.sdkMcpServerConfigs, in milliseconds.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Tools are policies for single tools: permission rules in the settings. Qoder shows them to the model as ExposedName
	// and AlwaysLoad say: initialize.sdkMcpToolOverrides.
	Tools []MCPTool `json:"tools,omitempty"`
}

// SDKMCPServer is an MCP server that runs in the host and is reached by mcp_message requests.
type SDKMCPServer struct {
	// Name is the server's key; tools are called mcp__NAME__TOOL.
	Name string
	// InitializeResult and ToolsListResult are the server's own handshake results. With them Claude Code skips
	// the handshake (observed on 2.1.329); nil: it asks.
	InitializeResult, ToolsListResult json.RawMessage
	// Timeout limits a tool call; 0: the agent's default. The wire carries milliseconds. Claude.
	Timeout time.Duration
	// Tools are policies for single tools.
	Tools []MCPTool
}
