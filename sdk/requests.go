package sdk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
)

// ask makes a request with an answer of type R.
func ask[R any](ctx context.Context, c *Client, req protocol.HostRequest) (*R, error) {
	r := new(R)
	if err := c.Call(ctx, req, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Interrupt ends the running turn, which then has an error result. It works
// also from the loop that reads the messages. Queued messages stay queued.
func (c *Client) Interrupt(ctx context.Context) (*protocol.InterruptResponse, error) {
	return ask[protocol.InterruptResponse](ctx, c, protocol.InterruptRequest{})
}

// InterruptAll is Interrupt that also cancels the messages that are queued:
// their turns end with [session.ErrNotRun]. Claude.
func (c *Client) InterruptAll(ctx context.Context) (*protocol.InterruptResponse, error) {
	return ask[protocol.InterruptResponse](ctx, c, protocol.InterruptRequest{CancelQueued: true})
}

// SetPermissionMode changes the permission mode.
func (c *Client) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	return c.Call(ctx, protocol.SetPermissionModeRequest{Mode: mode}, nil)
}

// SetModel changes the model; "" goes back to the default. Claude Code takes
// names that it does not know, too (observed on 2.1.329). With
// Options.ResolveModel it would change nothing and is a *[ConfigError].
func (c *Client) SetModel(ctx context.Context, model string) error {
	if err := c.modelIsResolved(); err != nil {
		return err
	}
	req := protocol.SetModelRequest{}
	if model != "" {
		req.Model = &model
	}
	return c.Call(ctx, req, nil)
}

// SetMaxThinkingTokens limits the model's thinking; absent takes the limit
// away.
func (c *Client) SetMaxThinkingTokens(ctx context.Context, limit Opt[int]) error {
	req := protocol.SetMaxThinkingTokensRequest{MaxThinkingTokens: protocol.Null[int]()}
	if n, given := limit.Value(); given {
		req.MaxThinkingTokens = protocol.Some(n)
	}
	return c.Call(ctx, req, nil)
}

// ApplyFlagSettings lays an object of settings over those of the command line.
// Only Qoder says what was applied. Settings that would switch off the gates of
// the session are a *[ConfigError], as is a default mode that skips
// permissions without Options.AllowDangerouslySkipPermissions. So it is with the
// same request made by [Client.Call] or [Client.Control].
func (c *Client) ApplyFlagSettings(ctx context.Context, settings json.RawMessage) (*protocol.ApplyFlagSettingsResponse, error) {
	return ask[protocol.ApplyFlagSettingsResponse](ctx, c, protocol.ApplyFlagSettingsRequest{Settings: settings})
}

// UpdateSettings writes an object of settings to a settings file that the
// session loads. Claude Code 2.1.329 takes outputStyle in localSettings and
// effortLevel in userSettings, and refuses all else. Claude.
func (c *Client) UpdateSettings(ctx context.Context, source string, settings json.RawMessage) error {
	return c.Call(ctx, protocol.UpdateSettingsRequest{Source: source, Settings: settings}, nil)
}

// Settings are the settings in force, by source.
func (c *Client) Settings(ctx context.Context) (*protocol.SettingsResponse, error) {
	return ask[protocol.SettingsResponse](ctx, c, protocol.GetSettingsRequest{})
}

// ContextUsage says what fills the model's context.
func (c *Client) ContextUsage(ctx context.Context) (*protocol.ContextUsage, error) {
	return ask[protocol.ContextUsage](ctx, c, protocol.ContextUsageRequest{})
}

// Usage is what the session cost and what is left of limits. Claude.
func (c *Client) Usage(ctx context.Context) (*protocol.UsageReport, error) {
	return ask[protocol.UsageReport](ctx, c, protocol.UsageRequest{})
}

// ReadFile reads a file through the agent. Claude.
func (c *Client) ReadFile(ctx context.Context, req protocol.ReadFileRequest) (*protocol.ReadFileResponse, error) {
	return ask[protocol.ReadFileResponse](ctx, c, req)
}

// RewindFiles puts files back to how they were before a user message, by its
// uuid ([Turn.UUID]); dryRun only says what would change. It needs
// Options.EnableFileCheckpointing. The answer can say that nothing was done:
// look at CanRewind.
func (c *Client) RewindFiles(ctx context.Context, userMessageUUID string, dryRun bool) (*protocol.RewindFilesResponse, error) {
	return ask[protocol.RewindFilesResponse](ctx, c, protocol.RewindFilesRequest{UserMessageID: userMessageUUID, DryRun: dryRun})
}

// SeedReadState tells the agent that it has read a file as of its modification
// time.
func (c *Client) SeedReadState(ctx context.Context, path string, modified time.Time) error {
	return c.Call(ctx, protocol.SeedReadStateRequest{Path: path, MTime: float64(modified.UnixMilli())}, nil)
}

// StopTask stops a background task. An unknown id is no error (observed on both
// agents).
func (c *Client) StopTask(ctx context.Context, taskID string) error {
	return c.Call(ctx, protocol.StopTaskRequest{TaskID: taskID}, nil)
}

// BackgroundTasks moves running tasks to the background: that of a tool call,
// or with "" all. It reports whether there was one, as far as the agent tells:
// asked for all, neither agent does, and it is true (observed on Claude Code
// 2.1.329 and qodercli 1.1.52).
func (c *Client) BackgroundTasks(ctx context.Context, toolUseID string) (bool, error) {
	r, err := ask[protocol.BackgroundTasksResponse](ctx, c, protocol.BackgroundTasksRequest{ToolUseID: toolUseID})
	if err != nil {
		return false, err
	}
	return r.Backgrounded == nil || *r.Backgrounded, nil
}

// TaskOutput is the output of a background task. Claude.
func (c *Client) TaskOutput(ctx context.Context, taskID string) (*protocol.TaskOutputResponse, error) {
	return ask[protocol.TaskOutputResponse](ctx, c, protocol.TaskOutputRequest{TaskID: taskID})
}

// CancelMessage takes back a user message that is still queued, by its uuid
// ([Turn.UUID]), and reports whether it was. Its turn ends with [session.ErrNotRun].
func (c *Client) CancelMessage(ctx context.Context, uuid string) (bool, error) {
	r, err := ask[protocol.CancelAsyncMessageResponse](ctx, c, protocol.CancelAsyncMessageRequest{MessageUUID: uuid})
	if err != nil {
		return false, err
	}
	return r.Cancelled, nil
}

// GenerateTitle has the model find a title for the session; "" if it finds
// none. persist absent leaves it to the agent whether the title is kept.
func (c *Client) GenerateTitle(ctx context.Context, description string, persist Opt[bool]) (string, error) {
	req := protocol.GenerateSessionTitleRequest{Description: description}
	if v, given := persist.Value(); given {
		req.Persist = &v
	}
	r, err := ask[protocol.SessionTitleResponse](ctx, c, req)
	if err != nil || r.Title == nil {
		return "", err
	}
	return *r.Title, nil
}

// Rename sets the session's title. Claude.
func (c *Client) Rename(ctx context.Context, title string) error {
	return c.Call(ctx, protocol.RenameSessionRequest{Title: title}, nil)
}

// SideQuestion asks the model something aside from the conversation. It has no
// time limit but ctx.
func (c *Client) SideQuestion(ctx context.Context, question string, history ...protocol.SideQuestionTurn) (*protocol.SideQuestionResponse, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	r := &protocol.SideQuestionResponse{}
	if err := d.session.Call(ctx, protocol.SideQuestionRequest{Question: question, History: history}, r, -1); err != nil {
		return nil, ended(ctx, err)
	}
	return r, nil
}

// SetCwd changes the agent's working directory. The answer can say that it was
// not changed: look at Status. Claude.
func (c *Client) SetCwd(ctx context.Context, req protocol.SetCwdRequest) (*protocol.SetCwdResponse, error) {
	return ask[protocol.SetCwdResponse](ctx, c, req)
}

// Commands are the slash commands that the agent had when it was initialized.
func (c *Client) Commands() ([]protocol.SlashCommand, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Commands, nil
}

// Models are the models that the agent had when it was initialized.
// [Client.CurrentModels] asks the agent.
func (c *Client) Models() ([]protocol.ModelInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Models, nil
}

// CurrentModels asks the agent for the models that can be used now. [Client.Models]
// are those of the start.
func (c *Client) CurrentModels(ctx context.Context) ([]protocol.ModelInfo, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	var req protocol.HostRequest = protocol.ListModelsRequest{}
	if d.dialect.Name() == qoder.Name {
		req = protocol.GetModelsRequest{}
	}
	r, err := ask[protocol.ModelsResponse](ctx, c, req)
	if err != nil {
		return nil, err
	}
	return r.Models, nil
}

// Agents are the subagents that the agent had when it was initialized.
func (c *Client) Agents() ([]protocol.AgentInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Agents, nil
}

// Account is the account that the agent runs under.
func (c *Client) Account() (*protocol.AccountInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return &r.Account, nil
}
