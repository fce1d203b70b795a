package sdk

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// MCPStatus returns the state of the agent's MCP servers and their tools. Tools have the
// names that their servers gave them, see [MCPToolName]. The names of annotations lack
// the Hint suffix (readOnly for readOnlyHint).
func (c *Client) MCPStatus(ctx context.Context) ([]protocol.MCPServerStatus, error) {
	r, err := Call[protocol.MCPStatusResponse](ctx, c, protocol.MCPStatusRequest{})
	if err != nil {
		return nil, err
	}
	return r.All(), nil
}

// ReconnectMCPServer reconnects a server; the agent then asks it for its tools again. A
// name that the agent does not know is a *[ControlError]. On Claude Code a server of
// this process is a *[ControlError], too: use [Client.ToggleMCPServer] to turn it off
// and on instead (observed on 2.1.329).
func (c *Client) ReconnectMCPServer(ctx context.Context, server string) error {
	return c.call(ctx, protocol.MCPReconnectRequest{ServerName: server}, nil)
}

// ToggleMCPServer turns a server on or off. When a server is turned on, the agent asks
// it for its tools again.
func (c *Client) ToggleMCPServer(ctx context.Context, server string, enabled bool) error {
	return c.call(ctx, protocol.MCPToggleRequest{ServerName: server, Enabled: enabled}, nil)
}

// ReadMCPResource reads a resource of a server. Claude.
func (c *Client) ReadMCPResource(ctx context.Context, server, uri string) ([]protocol.MCPResource, error) {
	r, err := Call[protocol.MCPReadResourceResponse](ctx, c, protocol.MCPReadResourceRequest{ServerName: server, URI: uri})
	if err != nil {
		return nil, err
	}
	return r.Contents, nil
}

// AuthenticateMCPServer starts a login to a server; redirectURI may be empty.
// [Client.FinishMCPLogin] completes the login.
func (c *Client) AuthenticateMCPServer(ctx context.Context, server, redirectURI string) (*protocol.MCPAuthenticateResponse, error) {
	return Call[protocol.MCPAuthenticateResponse](ctx, c, protocol.MCPAuthenticateRequest{ServerName: server, RedirectURI: redirectURI})
}

// FinishMCPLogin completes a login. callbackURL is the URL to which the browser was
// redirected; it is a secret.
func (c *Client) FinishMCPLogin(ctx context.Context, server, callbackURL string) error {
	return c.call(ctx, protocol.MCPOAuthCallbackURLRequest{ServerName: server, CallbackURL: callbackURL}, nil)
}

// ClearMCPLogin removes the stored login to a server.
func (c *Client) ClearMCPLogin(ctx context.Context, server string) error {
	return c.call(ctx, protocol.MCPClearAuthRequest{ServerName: server}, nil)
}

// OverrideMCPPermissionMode sets the permission mode of one server to ModeDefault or
// ModeAuto; "" removes the override. It returns the agent's warning, or "". Claude.
func (c *Client) OverrideMCPPermissionMode(ctx context.Context, server string, mode PermissionMode) (string, error) {
	req := protocol.MCPPermissionModeOverrideRequest{ServerName: server, Mode: protocol.Null[PermissionMode]()}
	if mode != "" {
		req.Mode = protocol.Some(mode)
	}
	r, err := Call[protocol.MCPPermissionModeOverrideResponse](ctx, c, req)
	if err != nil {
		return "", err
	}
	return r.Warning, nil
}

// ReloadPlugins loads the plugins again.
func (c *Client) ReloadPlugins(ctx context.Context, req protocol.ReloadPluginsRequest) (*protocol.ReloadPluginsResponse, error) {
	return Call[protocol.ReloadPluginsResponse](ctx, c, req)
}

// ReloadSkills loads the skills again and returns them.
func (c *Client) ReloadSkills(ctx context.Context) ([]protocol.SlashCommand, error) {
	r, err := Call[protocol.ReloadSkillsResponse](ctx, c, protocol.ReloadSkillsRequest{})
	if err != nil {
		return nil, err
	}
	return r.Skills, nil
}

// ReloadOutputStyles loads the output styles again and returns their names. Claude.
func (c *Client) ReloadOutputStyles(ctx context.Context) ([]string, error) {
	r, err := Call[protocol.ReloadOutputStylesResponse](ctx, c, protocol.ReloadOutputStylesRequest{})
	if err != nil {
		return nil, err
	}
	return r.AvailableOutputStyles, nil
}
