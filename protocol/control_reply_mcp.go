package protocol

import "encoding/json"

// MCPStatusResponse answers an [MCPStatusRequest]. Claude Code and Qoder use
// different keys; see All.
type MCPStatusResponse struct {
	MCPServers []MCPServerStatus `json:"mcpServers,omitempty"`
	Servers    []MCPServerStatus `json:"servers,omitempty"`
}

// All returns the servers, under whichever key they came.
func (r *MCPStatusResponse) All() []MCPServerStatus {
	if r.MCPServers != nil {
		return r.MCPServers
	}
	return r.Servers
}

// MCPServerStatus is the state of an MCP server.
type MCPServerStatus struct {
	Name string `json:"name"`
	// Status is connected, failed, needs-auth, pending, disabled or, from
	// Qoder, disconnected.
	Status     string           `json:"status"`
	ServerInfo *MCPServerInfo   `json:"serverInfo,omitempty"`
	Error      string           `json:"error,omitempty"`
	Config     *MCPServerConfig `json:"config,omitempty"`
	Scope      string           `json:"scope,omitempty"`
	Source     string           `json:"source,omitempty"`
	Transport  string           `json:"transport,omitempty"`
	Tools      []MCPTool        `json:"tools,omitempty"`
}

// MCPServerInfo is what a server says of itself.
type MCPServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Annotations *MCPToolAnnotations `json:"annotations,omitempty"`
	Meta        json.RawMessage     `json:"_meta,omitempty"`
}

// MCPToolAnnotations are a tool's hints about itself.
type MCPToolAnnotations struct {
	ReadOnly    bool `json:"readOnly,omitempty"`
	Destructive bool `json:"destructive,omitempty"`
	OpenWorld   bool `json:"openWorld,omitempty"`
}

// MCPSetServersResponse answers an [MCPSetServersRequest].
type MCPSetServersResponse struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Errors are by server.
	Errors map[string]string `json:"errors"`
}

// MCPReadResourceResponse answers an [MCPReadResourceRequest].
type MCPReadResourceResponse struct {
	Contents []MCPResource `json:"contents"`
}

// MCPCallResponse answers an [MCPCallRequest] with the result of the tool, as
// MCP has it (observed on Claude Code 2.1.329).
type MCPCallResponse struct {
	Content           json.RawMessage `json:"content,omitempty"` // a list of content blocks
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
	Meta              json.RawMessage `json:"_meta,omitempty"`
}

// MCPResource is the content of a resource: Text, or Blob in base64.
type MCPResource struct {
	URI      string          `json:"uri"`
	MIMEType string          `json:"mimeType,omitempty"`
	Text     string          `json:"text,omitempty"`
	Blob     string          `json:"blob,omitempty"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

// MCPResourceLink points to a resource.
type MCPResourceLink struct {
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mimeType,omitempty"`
	Size        int64           `json:"size,omitempty"` // bytes
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// MCPAuthenticateResponse answers an [MCPAuthenticateRequest].
type MCPAuthenticateResponse struct {
	AuthURL            string `json:"authUrl,omitempty"`
	RequiresUserAction bool   `json:"requiresUserAction"`
}

// MCPPermissionModeOverrideResponse answers an [MCPPermissionModeOverrideRequest].
type MCPPermissionModeOverrideResponse struct {
	Warning string `json:"warning,omitempty"`
}
