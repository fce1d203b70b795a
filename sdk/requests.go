package sdk

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Requests to the agent and its answers.
type (
	// HostRequest is any control request; package protocol has them all.
	HostRequest = protocol.HostRequest
	// InitializeResponse is what the agent says of itself at the start.
	InitializeResponse = protocol.InitializeResponse
	// InterruptReceipt names the user messages that were queued: those that
	// still are, and run later, and those that were cancelled.
	InterruptReceipt = protocol.InterruptResponse
	// ApplyFlagSettingsResponse answers [Client.ApplyFlagSettings] of Qoder.
	ApplyFlagSettingsResponse = protocol.ApplyFlagSettingsResponse
	// SettingsResponse answers [Client.Settings].
	SettingsResponse = protocol.SettingsResponse
	// ContextUsage is the answer to [Client.ContextUsage].
	ContextUsage = protocol.ContextUsage
	// UsageReport is the answer to [Client.Usage], which Claude's SDK calls
	// experimental.
	UsageReport = protocol.UsageReport
	// ReadFileRequest reads a file through the agent.
	ReadFileRequest = protocol.ReadFileRequest
	// ReadFileResponse answers a [ReadFileRequest].
	ReadFileResponse = protocol.ReadFileResponse
	// RewindFilesResponse answers [Client.RewindFiles].
	RewindFilesResponse = protocol.RewindFilesResponse
	// TaskOutputResponse answers [Client.TaskOutput].
	TaskOutputResponse = protocol.TaskOutputResponse
	// SideQuestionTurn is an earlier side question and its answer.
	SideQuestionTurn = protocol.SideQuestionTurn
	// SideQuestionResponse answers [Client.SideQuestion].
	SideQuestionResponse = protocol.SideQuestionResponse
	// SetCwdRequest changes the working directory.
	SetCwdRequest = protocol.SetCwdRequest
	// SetCwdResponse answers a [SetCwdRequest].
	SetCwdResponse = protocol.SetCwdResponse
	// SlashCommand is a slash command or a skill.
	SlashCommand = protocol.SlashCommand
	// ModelInfo is a model that can be used.
	ModelInfo = protocol.ModelInfo
	// AgentInfo is a subagent that can be used.
	AgentInfo = protocol.AgentInfo
	// AccountInfo is the account that the agent runs under.
	AccountInfo = protocol.AccountInfo
)

// ask makes a request with an answer of type R.
func ask[R any](ctx context.Context, c *Client, req HostRequest) (*R, error) {
	r := new(R)
	if err := c.Call(ctx, req, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Interrupt ends the running turn, which then has an error result. It works
// also from the loop that reads the messages. Queued messages stay queued.
func (c *Client) Interrupt(ctx context.Context) (*InterruptReceipt, error) {
	return ask[InterruptReceipt](ctx, c, protocol.InterruptRequest{})
}

// InterruptAll is Interrupt that also cancels the messages that are queued:
// their turns end with [ErrNotRun]. Claude.
func (c *Client) InterruptAll(ctx context.Context) (*InterruptReceipt, error) {
	return ask[InterruptReceipt](ctx, c, protocol.InterruptRequest{CancelQueued: true})
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
func (c *Client) ApplyFlagSettings(ctx context.Context, settings json.RawMessage) (*ApplyFlagSettingsResponse, error) {
	return ask[ApplyFlagSettingsResponse](ctx, c, protocol.ApplyFlagSettingsRequest{Settings: settings})
}

// UpdateSettings writes an object of settings to a settings file that the
// session loads. Claude Code 2.1.329 takes outputStyle in localSettings and
// effortLevel in userSettings, and refuses all else. Claude.
func (c *Client) UpdateSettings(ctx context.Context, source string, settings json.RawMessage) error {
	return c.Call(ctx, protocol.UpdateSettingsRequest{Source: source, Settings: settings}, nil)
}

// Settings are the settings in force, by source.
func (c *Client) Settings(ctx context.Context) (*SettingsResponse, error) {
	return ask[SettingsResponse](ctx, c, protocol.GetSettingsRequest{})
}

// ContextUsage says what fills the model's context.
func (c *Client) ContextUsage(ctx context.Context) (*ContextUsage, error) {
	return ask[ContextUsage](ctx, c, protocol.ContextUsageRequest{})
}

// Usage is what the session cost and what is left of limits. Claude.
func (c *Client) Usage(ctx context.Context) (*UsageReport, error) {
	return ask[UsageReport](ctx, c, protocol.UsageRequest{})
}

// ReadFile reads a file through the agent. Claude.
func (c *Client) ReadFile(ctx context.Context, req ReadFileRequest) (*ReadFileResponse, error) {
	return ask[ReadFileResponse](ctx, c, req)
}

// RewindFiles puts files back to how they were before a user message, by its
// uuid ([Turn.UUID]); dryRun only says what would change. It needs
// Options.EnableFileCheckpointing. The answer can say that nothing was done:
// look at CanRewind.
func (c *Client) RewindFiles(ctx context.Context, userMessageUUID string, dryRun bool) (*RewindFilesResponse, error) {
	return ask[RewindFilesResponse](ctx, c, protocol.RewindFilesRequest{UserMessageID: userMessageUUID, DryRun: dryRun})
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
func (c *Client) TaskOutput(ctx context.Context, taskID string) (*TaskOutputResponse, error) {
	return ask[TaskOutputResponse](ctx, c, protocol.TaskOutputRequest{TaskID: taskID})
}

// CancelMessage takes back a user message that is still queued, by its uuid
// ([Turn.UUID]), and reports whether it was. Its turn ends with [ErrNotRun].
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
func (c *Client) SideQuestion(ctx context.Context, question string, history ...SideQuestionTurn) (*SideQuestionResponse, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	r := &SideQuestionResponse{}
	if err := d.session.Call(ctx, protocol.SideQuestionRequest{Question: question, History: history}, r, -1); err != nil {
		return nil, ended(ctx, err)
	}
	return r, nil
}

// SetCwd changes the agent's working directory. The answer can say that it was
// not changed: look at Status. Claude.
func (c *Client) SetCwd(ctx context.Context, req SetCwdRequest) (*SetCwdResponse, error) {
	return ask[SetCwdResponse](ctx, c, req)
}

// Commands are the slash commands that the agent had when it was initialized.
func (c *Client) Commands() ([]SlashCommand, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Commands, nil
}

// Models are the models that the agent had when it was initialized.
func (c *Client) Models() ([]ModelInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Models, nil
}

// Agents are the subagents that the agent had when it was initialized.
func (c *Client) Agents() ([]AgentInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Agents, nil
}

// Account is the account that the agent runs under.
func (c *Client) Account() (*AccountInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return &r.Account, nil
}
