package protocol

import "encoding/json"

// MCPStatusRequest asks for the MCP servers. The answer is an
// [MCPStatusResponse].
type MCPStatusRequest struct{}

// MCPReconnectRequest connects a server again. No answer value; an unknown
// name is an error.
type MCPReconnectRequest struct {
	ServerName string `json:"serverName"` // as [MCPServerStatus] names it
}

// MCPToggleRequest turns a server on or off. No answer value.
type MCPToggleRequest struct {
	ServerName string `json:"serverName"` // as [MCPServerStatus] names it
	Enabled    bool   `json:"enabled"`    // false: MCPServerStatus.Status becomes disabled
}

// MCPSetServersRequest replaces all servers that were set this way before.
// Servers that live in the host are given as type sdk and name alone. The
// answer is an [MCPSetServersResponse].
type MCPSetServersRequest struct {
	Servers map[string]MCPServerConfig `json:"servers"` // by name; one that is left out is removed
}

// MCPReadResourceRequest reads a resource. The answer is an
// [MCPReadResourceResponse].
type MCPReadResourceRequest struct {
	ServerName string `json:"serverName"` // as [MCPServerStatus] names it
	URI        string `json:"uri"`        // Claude Code takes ui:// URIs only
}

// MCPCallRequest calls an MCP tool, by the name that the model knows it by. The
// answer is an [MCPCallResponse].
type MCPCallRequest struct {
	Tool        string          `json:"tool"`                   // mcp__SERVER__TOOL, see [MCPToolName]
	Arguments   json.RawMessage `json:"arguments,omitempty"`    // an object; {{in:NAME}} and {{out:NAME}} stand for the paths of files
	ExpiresAt   string          `json:"expires_at,omitempty"`   // RFC 3339
	TimeoutMS   Millis          `json:"timeout_ms,omitempty"`   // of the tool, in milliseconds: 1,000 to 600,000; 0 is 120,000
	InputFiles  []LaneFile      `json:"input_files,omitempty"`  // staged before the call
	OutputFiles []LaneFile      `json:"output_files,omitempty"` // collected after the call; they need ExpiresAt
}

// MCPAuthenticateRequest begins a login to a server. The answer is an
// [MCPAuthenticateResponse].
type MCPAuthenticateRequest struct {
	ServerName  string `json:"serverName"`            // as [MCPServerStatus] names it
	RedirectURI string `json:"redirectUri,omitempty"` // where the browser goes after the login; "": the agent chooses
}

// MCPOAuthCallbackURLRequest ends a login with the URL that the browser was
// sent to. No answer value.
type MCPOAuthCallbackURLRequest struct {
	ServerName  string `json:"serverName"`  // the server of the login
	CallbackURL string `json:"callbackUrl"` // a secret
}

// MCPClearAuthRequest forgets a login. No answer value.
type MCPClearAuthRequest struct {
	ServerName string `json:"serverName"` // as [MCPServerStatus] names it
}

// MCPInjectTokenRequest gives Qoder a token for a server. No answer value.
type MCPInjectTokenRequest struct {
	ServerName string   `json:"serverName"` // as [MCPServerStatus] names it
	Token      MCPToken `json:"token"`      // what the agent sends the server from then on
}

// MCPPermissionModeOverrideRequest sets the permission mode of one server;
// null takes it back. The answer is an [MCPPermissionModeOverrideResponse].
type MCPPermissionModeOverrideRequest struct {
	ServerName string                   `json:"serverName"`    // as [MCPServerStatus] names it
	Mode       Nullable[PermissionMode] `json:"mode,omitzero"` // default, auto
}

// LaneFile is a file that goes with an [MCPCallRequest].
type LaneFile struct {
	Name     string `json:"name"`               // the NAME of {{in:NAME}} or {{out:NAME}}
	LanePath string `json:"lane_path"`          // the file's path in the synced folder, such as /working/a.docx
	IfMatch  string `json:"if_match,omitempty"` // write only if the file still has this etag; "": write in any case
}

// MCPToken is a token for an MCP server.
type MCPToken struct {
	AccessToken string `json:"accessToken"` // a secret
}

// Subtype implements [Request].
func (MCPStatusRequest) Subtype() string { return "mcp_status" }

// Subtype implements [Request].
func (MCPReconnectRequest) Subtype() string { return "mcp_reconnect" }

// Subtype implements [Request].
func (MCPToggleRequest) Subtype() string { return "mcp_toggle" }

// Subtype implements [Request].
func (MCPSetServersRequest) Subtype() string { return "mcp_set_servers" }

// Subtype implements [Request].
func (MCPReadResourceRequest) Subtype() string { return "mcp_read_resource" }

// Subtype implements [Request].
func (MCPCallRequest) Subtype() string { return "mcp_call" }

// Subtype implements [Request].
func (MCPAuthenticateRequest) Subtype() string { return "mcp_authenticate" }

// Subtype implements [Request].
func (MCPOAuthCallbackURLRequest) Subtype() string { return "mcp_oauth_callback_url" }

// Subtype implements [Request].
func (MCPClearAuthRequest) Subtype() string { return "mcp_clear_auth" }

// Subtype implements [Request].
func (MCPInjectTokenRequest) Subtype() string { return "mcp_inject_token" }

// Subtype implements [Request].
func (MCPPermissionModeOverrideRequest) Subtype() string { return "set_mcp_permission_mode_override" }
