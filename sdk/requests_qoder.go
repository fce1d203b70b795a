package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// SetGoal sets the goal and returns it.
func (c *Client) SetGoal(ctx context.Context, req protocol.SetGoalRequest) (*protocol.Goal, error) {
	return goal(ctx, c, req)
}

// Goal is the goal, nil if there is none.
func (c *Client) Goal(ctx context.Context) (*protocol.Goal, error) {
	return goal(ctx, c, protocol.GetGoalRequest{})
}

func goal(ctx context.Context, c *Client, req protocol.HostRequest) (*protocol.Goal, error) {
	r, err := ask[protocol.GoalResponse](ctx, c, req)
	if err != nil {
		return nil, err
	}
	return r.Goal, nil
}

// ClearGoal drops the goal and reports whether there was one.
func (c *Client) ClearGoal(ctx context.Context) (bool, error) {
	r, err := ask[protocol.ClearGoalResponse](ctx, c, protocol.ClearGoalRequest{})
	if err != nil {
		return false, err
	}
	return r.Cleared, nil
}

// SetGoalMaxTurns limits the turns spent on a goal and returns the limit in
// force; absent is the agent's default.
func (c *Client) SetGoalMaxTurns(ctx context.Context, limit Opt[int]) (int, error) {
	req := protocol.SetGoalMaxTurnsRequest{}
	if n, given := limit.Value(); given {
		req.MaxTurns = &n
	}
	r, err := ask[protocol.GoalMaxTurnsResponse](ctx, c, req)
	if err != nil {
		return 0, err
	}
	return r.GoalMaxTurns, nil
}

// SetPlanMode turns plan mode on or off.
func (c *Client) SetPlanMode(ctx context.Context, active bool) error {
	return c.Call(ctx, protocol.SetPlanModeRequest{Active: active}, nil)
}

// PlanMode reports whether plan mode is on.
func (c *Client) PlanMode(ctx context.Context) (bool, error) {
	r, err := ask[protocol.PlanModeResponse](ctx, c, protocol.GetPlanModeRequest{})
	if err != nil {
		return false, err
	}
	return r.PlanMode.Active, nil
}

// SetProxy sets the proxy to reach the model through; "" takes it away.
func (c *Client) SetProxy(ctx context.Context, url string) error {
	req := protocol.SetProxyRequest{}
	if url != "" {
		req.Proxy = &url
	}
	return c.Call(ctx, req, nil)
}

// Rewind goes back to before a user message: of the conversation, the files, or
// both, which is the default scope. The answer can say that nothing was done.
func (c *Client) Rewind(ctx context.Context, req protocol.RewindRequest) (*protocol.RewindResponse, error) {
	return ask[protocol.RewindResponse](ctx, c, req)
}

// AddDirectories adds directories to the workspace.
func (c *Client) AddDirectories(ctx context.Context, directories ...string) (*protocol.AddDirectoriesResponse, error) {
	return ask[protocol.AddDirectoriesResponse](ctx, c, protocol.AddDirectoriesRequest{Directories: directories})
}

// AccountInfo asks for the account as it is now.
func (c *Client) AccountInfo(ctx context.Context) (*protocol.AccountInfo, error) {
	r, err := ask[protocol.AccountInfoResponse](ctx, c, protocol.AccountInfoRequest{})
	if err != nil {
		return nil, err
	}
	return &r.Account, nil
}

// UsageInfo asks for what the account and the session used.
func (c *Client) UsageInfo(ctx context.Context) (*protocol.UsageInfo, error) {
	return ask[protocol.UsageInfo](ctx, c, protocol.UsageInfoRequest{})
}

// Plugins lists the plugins.
func (c *Client) Plugins(ctx context.Context) ([]protocol.Plugin, error) {
	r, err := ask[protocol.PluginsResponse](ctx, c, protocol.ListPluginsRequest{})
	if err != nil {
		return nil, err
	}
	return r.Plugins, nil
}

// FlushMemory writes memories out.
func (c *Client) FlushMemory(ctx context.Context) error {
	return c.Call(ctx, protocol.FlushMemoryRequest{}, nil)
}

// RefreshMemory reads memories anew.
func (c *Client) RefreshMemory(ctx context.Context) error {
	return c.Call(ctx, protocol.RefreshMemoryRequest{}, nil)
}

// FlushSkillEvolution writes skills out.
func (c *Client) FlushSkillEvolution(ctx context.Context) error {
	return c.Call(ctx, protocol.FlushSkillEvolutionRequest{}, nil)
}

// InjectMCPToken gives the agent a token, which is a secret, for an MCP server.
func (c *Client) InjectMCPToken(ctx context.Context, server, token string) error {
	return c.Call(ctx, protocol.MCPInjectTokenRequest{ServerName: server, Token: protocol.MCPToken{AccessToken: token}}, nil)
}

// BYOKProviders lists the providers of models of the user's own: nil when this
// release of the agent has no such list, empty when the account may not use it.
func (c *Client) BYOKProviders(ctx context.Context) ([]protocol.BYOKProvider, error) {
	r, err := ask[protocol.BYOKProvidersResponse](ctx, c, protocol.GetBYOKConfigRequest{})
	if refused(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Providers == nil {
		r.Providers = []protocol.BYOKProvider{}
	}
	return r.Providers, nil
}

// refused says whether the agent does not know the request at all (the text was
// observed on qodercli 1.1.52).
func refused(err error) bool {
	var control *ControlError
	return errors.As(err, &control) &&
		(control.Code == "unsupported_request" || strings.HasPrefix(control.Message, "Unsupported control request"))
}

// BYOKConfigs lists the configured providers.
func (c *Client) BYOKConfigs(ctx context.Context) ([]protocol.BYOKConfig, error) {
	r, err := ask[protocol.BYOKConfigsResponse](ctx, c, protocol.ListBYOKConfigsRequest{})
	if err != nil {
		return nil, err
	}
	return r.Configs, nil
}

// ValidateBYOKModel tries a model of the user's own.
func (c *Client) ValidateBYOKModel(ctx context.Context, req protocol.ValidateBYOKModelRequest) (*protocol.SuccessResponse, error) {
	return ask[protocol.SuccessResponse](ctx, c, req)
}

// EnableRemoteProjection mirrors the session to a remote one.
func (c *Client) EnableRemoteProjection(ctx context.Context, req protocol.EnableRemoteProjectionRequest) (*protocol.RemoteProjectionResponse, error) {
	return ask[protocol.RemoteProjectionResponse](ctx, c, req)
}

// DisableRemoteProjection ends that.
func (c *Client) DisableRemoteProjection(ctx context.Context) (*protocol.RemoteProjectionResponse, error) {
	return ask[protocol.RemoteProjectionResponse](ctx, c, protocol.DisableRemoteProjectionRequest{})
}

// CreateBYOKConfig adds a provider of models of the user's own.
func (c *Client) CreateBYOKConfig(ctx context.Context, config protocol.BYOKConfig) error {
	return c.Call(ctx, protocol.CreateBYOKConfigRequest{Config: config}, nil)
}

// UpdateBYOKConfig changes a provider.
func (c *Client) UpdateBYOKConfig(ctx context.Context, config protocol.BYOKConfig) error {
	return c.Call(ctx, protocol.UpdateBYOKConfigRequest{Config: config}, nil)
}

// DeleteBYOKConfig removes a provider.
func (c *Client) DeleteBYOKConfig(ctx context.Context, providerID string) error {
	return c.Call(ctx, protocol.DeleteBYOKConfigRequest{Target: protocol.BYOKTarget{ProviderID: providerID}}, nil)
}

// CheckBYOKConfig tries a provider.
func (c *Client) CheckBYOKConfig(ctx context.Context, config protocol.BYOKConfig) (*protocol.SuccessResponse, error) {
	return ask[protocol.SuccessResponse](ctx, c, protocol.CheckBYOKConfigRequest{Config: config})
}
