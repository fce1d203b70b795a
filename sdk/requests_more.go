package sdk

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// FileSuggestions returns files whose names match query. Claude.
func (c *Client) FileSuggestions(ctx context.Context, query string) ([]protocol.FileSuggestion, error) {
	r, err := ask[protocol.FileSuggestionsResponse](ctx, c, protocol.FileSuggestionsRequest{Query: query})
	if err != nil {
		return nil, err
	}
	return r.Suggestions, nil
}

// BinaryVersion returns the version of the agent's program. Claude.
func (c *Client) BinaryVersion(ctx context.Context) (*protocol.BinaryVersionResponse, error) {
	return ask[protocol.BinaryVersionResponse](ctx, c, protocol.BinaryVersionRequest{})
}

// SessionCost returns the cost of the session as text for a person. For numbers use
// [ResultMessage]. Claude.
func (c *Client) SessionCost(ctx context.Context) (string, error) {
	r, err := ask[protocol.TextResponse](ctx, c, protocol.SessionCostRequest{})
	if err != nil {
		return "", err
	}
	return r.Text, nil
}

// ExportConversation returns the conversation as text. Claude.
func (c *Client) ExportConversation(ctx context.Context) (*protocol.TextResponse, error) {
	return ask[protocol.TextResponse](ctx, c, protocol.ExportConversationRequest{})
}

// Plan returns the plan of plan mode, which the agent keeps in a file. Claude.
func (c *Client) Plan(ctx context.Context) (*protocol.PlanResponse, error) {
	return ask[protocol.PlanResponse](ctx, c, protocol.GetPlanRequest{})
}

// StatusPage returns the content of the agent's own status page. Claude.
func (c *Client) StatusPage(ctx context.Context) (*protocol.StatusResponse, error) {
	return ask[protocol.StatusResponse](ctx, c, protocol.GetStatusRequest{})
}

// CallMCPTool calls a tool of an external MCP server without the model, and decodes the
// answer into resp. The form of the answer has not been observed. Claude.
func (c *Client) CallMCPTool(ctx context.Context, req protocol.MCPCallRequest, resp any) error {
	return c.Call(ctx, req, resp)
}

// RegisterRepoRoot adds a repository to the workspace. Claude.
func (c *Client) RegisterRepoRoot(ctx context.Context, req protocol.RegisterRepoRootRequest) error {
	return c.Call(ctx, req, nil)
}

// SetColor sets the color of the session. Claude.
func (c *Client) SetColor(ctx context.Context, color string) error {
	return c.Call(ctx, protocol.SetColorRequest{Color: color}, nil)
}

// SetHasSubscribers tells the agent whether a client watches the session; absent:
// unknown. Claude.
func (c *Client) SetHasSubscribers(ctx context.Context, has Opt[bool]) error {
	req := protocol.SetHasSubscribersRequest{}
	if v, given := has.Value(); given {
		req.HasSubscribers = &v
	}
	return c.Call(ctx, req, nil)
}
