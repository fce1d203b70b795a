package protocol

import "encoding/json"

// MCPStatusResponse answers an [MCPStatusRequest]. Claude Code and Qoder use
// different keys; see All.
type MCPStatusResponse struct {
	MCPServers []MCPServerStatus `json:"mcpServers,omitempty"` // Claude Code
	Servers    []MCPServerStatus `json:"servers,omitempty"`    // qodercli
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
	Name string `json:"name"` // as configured
	// Status is connected, failed, needs-auth, pending, disabled or, from
	// Qoder, disconnected.
	Status     string           `json:"status"`
	ServerInfo *MCPServerInfo   `json:"serverInfo,omitempty"` // nil unless connected
	Error      string           `json:"error,omitempty"`      // for people, with status failed
	Config     *MCPServerConfig `json:"config,omitempty"`     // nil: not sent
	Scope      string           `json:"scope,omitempty"`      // project, user, local, claudeai, managed, flag (qodercli), …
	Source     string           `json:"source,omitempty"`     // sdk, plugin, or a scope; Claude Code only
	Transport  string           `json:"transport,omitempty"`  // stdio, http, sdk, …
	Tools      []MCPTool        `json:"tools,omitempty"`      // empty unless connected
}

// MCPServerInfo is what a server says of itself.
type MCPServerInfo struct {
	Name    string `json:"name"`    // the server's own name
	Version string `json:"version"` // the server's own
}

// MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name        string              `json:"name"`                  // at its server, without mcp__SERVER__
	Description string              `json:"description,omitempty"` // shown to the model
	Annotations *MCPToolAnnotations `json:"annotations,omitempty"` // nil: the server gave none
	Meta        json.RawMessage     `json:"_meta,omitempty"`       // the tool's _meta, an object; nil: none
}

// MCPToolAnnotations are a tool's hints about itself.
type MCPToolAnnotations struct {
	ReadOnly    bool `json:"readOnly,omitempty"`    // readOnlyHint: the tool changes nothing. Qoder may run such calls at the same time
	Destructive bool `json:"destructive,omitempty"` // destructiveHint: the tool may destroy something
	OpenWorld   bool `json:"openWorld,omitempty"`   // openWorldHint: the tool reaches beyond the machine
}

// MCPSetServersResponse answers an [MCPSetServersRequest].
type MCPSetServersResponse struct {
	Added   []string `json:"added"`   // server names
	Removed []string `json:"removed"` // server names; host servers that are replaced are listed too
	// Errors are by server.
	Errors map[string]string `json:"errors"`
}

// MCPReadResourceResponse answers an [MCPReadResourceRequest].
type MCPReadResourceResponse struct {
	Contents []MCPResource `json:"contents"` // one entry per part of the resource
}

// MCPCallResponse answers an [MCPCallRequest] with the result of the tool, as
// MCP has it (observed on Claude Code 2.1.329).
type MCPCallResponse struct {
	Content           json.RawMessage `json:"content,omitempty"`           // a list of content blocks
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"` // an object of the tool's output schema; nil: none
	IsError           bool            `json:"isError,omitempty"`           // the tool reported a failure: Content says which
	Meta              json.RawMessage `json:"_meta,omitempty"`             // the result's _meta, an object; nil: none
}

// MCPResource is the content of a resource: Text, or Blob in base64.
type MCPResource struct {
	URI      string          `json:"uri"`                // of this part
	MIMEType string          `json:"mimeType,omitempty"` // "": not sent
	Text     string          `json:"text,omitempty"`     // "" if Blob is set
	Blob     string          `json:"blob,omitempty"`     // base64; "" if Text is set
	Meta     json.RawMessage `json:"_meta,omitempty"`    // the part's _meta, an object; nil: none
}

// MCPResourceLink points to a resource.
type MCPResourceLink struct {
	URI         string          `json:"uri"`                   // what to read with [MCPReadResourceRequest]
	Name        string          `json:"name"`                  // the server's name of it
	Title       string          `json:"title,omitempty"`       // for people; "": use Name
	Description string          `json:"description,omitempty"` // for people or the model; may be ""
	MIMEType    string          `json:"mimeType,omitempty"`    // "": not sent
	Size        int64           `json:"size,omitempty"`        // bytes
	Annotations json.RawMessage `json:"annotations,omitempty"` // MCP's audience, priority and so on, an object; nil: none
}

// MCPAuthenticateResponse answers an [MCPAuthenticateRequest].
type MCPAuthenticateResponse struct {
	AuthURL            string `json:"authUrl,omitempty"`  // what to open in a browser; "" if no person is needed
	RequiresUserAction bool   `json:"requiresUserAction"` // false: the agent renewed the login by itself
}

// MCPPermissionModeOverrideResponse answers an [MCPPermissionModeOverrideRequest].
type MCPPermissionModeOverrideResponse struct {
	Warning string `json:"warning,omitempty"` // for people; "": none
}
