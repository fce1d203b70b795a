package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// SetGoal sets the session's goal and returns it. Qoder.
func (c *Client) SetGoal(ctx context.Context, req protocol.SetGoalRequest) (*protocol.Goal, error) {
	return goal(ctx, c, req)
}

// Goal returns the session's goal, nil if it has no goal. Qoder.
func (c *Client) Goal(ctx context.Context) (*protocol.Goal, error) {
	return goal(ctx, c, protocol.GetGoalRequest{})
}

func goal(ctx context.Context, c *Client, req protocol.HostRequest) (*protocol.Goal, error) {
	r, err := Call[protocol.GoalResponse](ctx, c, req)
	if err != nil {
		return nil, err
	}
	return r.Goal, nil
}

// ClearGoal removes the session's goal and reports whether it had one. Qoder.
func (c *Client) ClearGoal(ctx context.Context) (bool, error) {
	r, err := Call[protocol.ClearGoalResponse](ctx, c, protocol.ClearGoalRequest{})
	if err != nil {
		return false, err
	}
	return r.Cleared, nil
}

// SetGoalMaxTurns limits the turns spent on a goal, and returns the current limit. An
// absent limit means the agent's default. Qoder.
func (c *Client) SetGoalMaxTurns(ctx context.Context, limit Opt[int]) (int, error) {
	req := protocol.SetGoalMaxTurnsRequest{}
	if n, given := limit.Value(); given {
		req.MaxTurns = &n
	}
	r, err := Call[protocol.GoalMaxTurnsResponse](ctx, c, req)
	if err != nil {
		return 0, err
	}
	return r.GoalMaxTurns, nil
}

// SetPlanMode turns plan mode on or off. Qoder.
func (c *Client) SetPlanMode(ctx context.Context, active bool) error {
	return c.call(ctx, protocol.SetPlanModeRequest{Active: active}, nil)
}

// PlanMode reports whether plan mode is on. Qoder.
func (c *Client) PlanMode(ctx context.Context) (bool, error) {
	r, err := Call[protocol.PlanModeResponse](ctx, c, protocol.GetPlanModeRequest{})
	if err != nil {
		return false, err
	}
	return r.PlanMode.Active, nil
}

// SetProxy sets the URL of the proxy through which the agent reaches the model; ""
// removes the proxy. Qoder.
func (c *Client) SetProxy(ctx context.Context, url string) error {
	req := protocol.SetProxyRequest{}
	if url != "" {
		req.Proxy = &url
	}
	return c.call(ctx, req, nil)
}

// Rewind restores the conversation, the files, or both (the default) to their state
// before a user message. The answer can say that nothing was done. Qoder.
func (c *Client) Rewind(ctx context.Context, req protocol.RewindRequest) (*protocol.RewindResponse, error) {
	return Call[protocol.RewindResponse](ctx, c, req)
}

// AddDirectories adds directories to the workspace. Qoder.
func (c *Client) AddDirectories(ctx context.Context, directories ...string) (*protocol.AddDirectoriesResponse, error) {
	return Call[protocol.AddDirectoriesResponse](ctx, c, protocol.AddDirectoriesRequest{Directories: directories})
}

// AccountInfo asks the agent for the account as it is now. [Client.Account] returns the
// account as it was at the start. Qoder.
func (c *Client) AccountInfo(ctx context.Context) (*protocol.AccountInfo, error) {
	r, err := Call[protocol.AccountInfoResponse](ctx, c, protocol.AccountInfoRequest{})
	if err != nil {
		return nil, err
	}
	return &r.Account, nil
}

// UsageInfo returns the usage of the account and the session. Qoder.
func (c *Client) UsageInfo(ctx context.Context) (*protocol.UsageInfo, error) {
	return Call[protocol.UsageInfo](ctx, c, protocol.UsageInfoRequest{})
}

// Plugins returns the plugins. Qoder.
func (c *Client) Plugins(ctx context.Context) ([]protocol.Plugin, error) {
	r, err := Call[protocol.PluginsResponse](ctx, c, protocol.ListPluginsRequest{})
	if err != nil {
		return nil, err
	}
	return r.Plugins, nil
}

// FlushMemory makes the agent write its memories to disk. Qoder.
func (c *Client) FlushMemory(ctx context.Context) error {
	return c.call(ctx, protocol.FlushMemoryRequest{}, nil)
}

// RefreshMemory makes the agent read its memories again. Qoder.
func (c *Client) RefreshMemory(ctx context.Context) error {
	return c.call(ctx, protocol.RefreshMemoryRequest{}, nil)
}

// FlushSkillEvolution makes the agent write evolved skills to disk. Qoder.
func (c *Client) FlushSkillEvolution(ctx context.Context) error {
	return c.call(ctx, protocol.FlushSkillEvolutionRequest{}, nil)
}

// InjectMCPToken gives the agent a token for an MCP server. The token is a secret.
// Qoder.
func (c *Client) InjectMCPToken(ctx context.Context, server, token string) error {
	return c.call(ctx, protocol.MCPInjectTokenRequest{ServerName: server, Token: protocol.MCPToken{AccessToken: token}}, nil)
}

// BYOKProviders returns the providers for your own models (BYOK: bring your own key). It
// returns nil if this release of the agent has no such list, and an empty list if the
// account may not use it. Qoder.
func (c *Client) BYOKProviders(ctx context.Context) ([]protocol.BYOKProvider, error) {
	r, err := Call[protocol.BYOKProvidersResponse](ctx, c, protocol.GetBYOKConfigRequest{})
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

// BYOKConfigs returns the configured providers for your own models. Qoder.
func (c *Client) BYOKConfigs(ctx context.Context) ([]protocol.BYOKConfig, error) {
	r, err := Call[protocol.BYOKConfigsResponse](ctx, c, protocol.ListBYOKConfigsRequest{})
	if err != nil {
		return nil, err
	}
	return r.Configs, nil
}

// ValidateBYOKModel tests whether your own model works. Qoder.
func (c *Client) ValidateBYOKModel(ctx context.Context, req protocol.ValidateBYOKModelRequest) (*protocol.SuccessResponse, error) {
	return Call[protocol.SuccessResponse](ctx, c, req)
}

// EnableRemoteProjection starts mirroring the session to a remote session. Qoder.
func (c *Client) EnableRemoteProjection(ctx context.Context, req protocol.EnableRemoteProjectionRequest) (*protocol.RemoteProjectionResponse, error) {
	return Call[protocol.RemoteProjectionResponse](ctx, c, req)
}

// DisableRemoteProjection stops mirroring; see [Client.EnableRemoteProjection]. Qoder.
func (c *Client) DisableRemoteProjection(ctx context.Context) (*protocol.RemoteProjectionResponse, error) {
	return Call[protocol.RemoteProjectionResponse](ctx, c, protocol.DisableRemoteProjectionRequest{})
}

// CreateBYOKConfig adds a provider for your own models. Qoder.
func (c *Client) CreateBYOKConfig(ctx context.Context, config protocol.BYOKConfig) error {
	return c.call(ctx, protocol.CreateBYOKConfigRequest{Config: config}, nil)
}

// UpdateBYOKConfig changes a provider for your own models. Qoder.
func (c *Client) UpdateBYOKConfig(ctx context.Context, config protocol.BYOKConfig) error {
	return c.call(ctx, protocol.UpdateBYOKConfigRequest{Config: config}, nil)
}

// DeleteBYOKConfig removes a provider for your own models. Qoder.
func (c *Client) DeleteBYOKConfig(ctx context.Context, providerID string) error {
	return c.call(ctx, protocol.DeleteBYOKConfigRequest{Target: protocol.BYOKTarget{ProviderID: providerID}}, nil)
}

// CheckBYOKConfig tests whether a provider works. Qoder.
func (c *Client) CheckBYOKConfig(ctx context.Context, config protocol.BYOKConfig) (*protocol.SuccessResponse, error) {
	return Call[protocol.SuccessResponse](ctx, c, protocol.CheckBYOKConfigRequest{Config: config})
}
