package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Call sends a control request and returns the agent's answer. It is for requests that
// [Client] has no method for: give it a request of package protocol, whose comment says
// what to give as Reply, or [protocol.UnknownHostRequest]. With an answer that no type is
// declared for, Reply can be any. An answer without a value is the zero Reply.
//
//	cost, err := sdk.Call[protocol.TextResponse](ctx, client, protocol.SessionCostRequest{})
//
// If the agent refuses the request, the error is a *[ControlError]; without an answer
// within Limits.Control it is a *[TimeoutError]. A request that the agent is known not to
// have is an *[session.UnsupportedCapabilityError].
func Call[Reply any](ctx context.Context, c *Client, req protocol.HostRequest) (*Reply, error) {
	r := new(Reply)
	if err := c.call(ctx, req, r); err != nil {
		return nil, err
	}
	return r, nil
}

// call is [Call] with the answer decoded into resp, which may be nil.
func (c *Client) call(ctx context.Context, req protocol.HostRequest, resp any) error {
	d, err := c.connected()
	if err != nil {
		return err
	}
	if req == nil {
		return errors.New("control request is nil; pass a request, or use Client.Control")
	}
	if err := d.checkSettings(req); err != nil {
		return err
	}
	return kernel.Ended(ctx, d.session.Call(ctx, req, resp, 0))
}

// Interrupt ends the running turn, whose result is then an error. It may be called from
// the loop that reads the messages. Queued messages stay queued.
func (c *Client) Interrupt(ctx context.Context) (*protocol.InterruptResponse, error) {
	return Call[protocol.InterruptResponse](ctx, c, protocol.InterruptRequest{})
}

// InterruptAll is like [Client.Interrupt] and also cancels the queued messages, whose
// turns end with [session.ErrNotRun]. Claude.
func (c *Client) InterruptAll(ctx context.Context) (*protocol.InterruptResponse, error) {
	return Call[protocol.InterruptResponse](ctx, c, protocol.InterruptRequest{CancelQueued: true})
}

// Stop stops a part of what the session does: the running turn, the messages behind it,
// background tasks, or all of it with the agent. The receipt says what has stopped, what
// still runs and what is still queued. Stop waits until the agent has confirmed, and up to
// Options.InterruptGrace until the interrupted turn has its result; a turn without one is
// in the receipt as running. If a part fails, the receipt says what was stopped
// nevertheless. It may be called from the loop that reads the messages, except with Kill.
// After a Kill the client is closed: call Close to release it.
//
// An interrupt by the user is never the cause of a later error.
func (c *Client) Stop(ctx context.Context, scope session.StopScope) (*session.StopReceipt, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	return d.session.Stop(ctx, scope)
}

// SetPermissionMode changes the permission mode of the running session.
func (c *Client) SetPermissionMode(ctx context.Context, mode PermissionMode) error {
	return c.call(ctx, protocol.SetPermissionModeRequest{Mode: mode}, nil)
}

// SetModel changes the model; "" means the default model. Claude Code also accepts names
// that it does not know (observed on 2.1.329). With Options.ResolveModel the error is a
// *[ConfigError], because SetModel would have no effect.
func (c *Client) SetModel(ctx context.Context, model string) error {
	if err := c.modelIsResolved(); err != nil {
		return err
	}
	req := protocol.SetModelRequest{}
	if model != "" {
		req.Model = &model
	}
	return c.call(ctx, req, nil)
}

// SetMaxThinkingTokens limits the model's thinking, in tokens. An absent limit removes
// the limit.
func (c *Client) SetMaxThinkingTokens(ctx context.Context, limit Opt[int]) error {
	req := protocol.SetMaxThinkingTokensRequest{MaxThinkingTokens: protocol.Null[int]()}
	if n, given := limit.Value(); given {
		req.MaxThinkingTokens = protocol.Some(n)
	}
	return c.call(ctx, req, nil)
}

// ApplyFlagSettings merges settings, a JSON object, over the settings of the command
// line. Only Qoder reports what was applied. Settings that would turn off the session's
// gates are a *[ConfigError], and so are those that Claude Code would drop, see
// Options.Settings. So is a default mode that skips permissions, without
// Options.AllowDangerouslySkipPermissions. The same checks apply to [Call] and [Client.Control].
func (c *Client) ApplyFlagSettings(ctx context.Context, settings json.RawMessage) (*protocol.ApplyFlagSettingsResponse, error) {
	return Call[protocol.ApplyFlagSettingsResponse](ctx, c, protocol.ApplyFlagSettingsRequest{Settings: settings})
}

// UpdateSettings writes settings, a JSON object, to a settings file that the session
// loads. Claude Code 2.1.329 accepts outputStyle in localSettings and effortLevel in
// userSettings, and refuses all other settings. Claude.
func (c *Client) UpdateSettings(ctx context.Context, source string, settings json.RawMessage) error {
	return c.call(ctx, protocol.UpdateSettingsRequest{Source: source, Settings: settings}, nil)
}

// Settings returns the current settings, by source.
func (c *Client) Settings(ctx context.Context) (*protocol.SettingsResponse, error) {
	return Call[protocol.SettingsResponse](ctx, c, protocol.GetSettingsRequest{})
}

// ContextUsage returns what the model's context contains, in tokens.
func (c *Client) ContextUsage(ctx context.Context) (*protocol.ContextUsage, error) {
	return Call[protocol.ContextUsage](ctx, c, protocol.ContextUsageRequest{})
}

// Usage returns the cost of the session and the state of the account's limits. Claude.
func (c *Client) Usage(ctx context.Context) (*protocol.UsageReport, error) {
	return Call[protocol.UsageReport](ctx, c, protocol.UsageRequest{})
}

// ReadFile reads a file through the agent. Claude.
func (c *Client) ReadFile(ctx context.Context, req protocol.ReadFileRequest) (*protocol.ReadFileResponse, error) {
	return Call[protocol.ReadFileResponse](ctx, c, req)
}

// RewindFiles restores the files to their state before the user message with the given
// uuid ([Turn.UUID]). With dryRun it only reports what would change. It needs
// Options.EnableFileCheckpointing. Check CanRewind of the answer: if it is false,
// nothing was done. An agent that refuses it is a *[session.ControlError]; the embedded agent's
// Code says why: rewind_off, no_checkpoint, turn_running, or rewind_failed.
func (c *Client) RewindFiles(ctx context.Context, userMessageUUID string, dryRun bool) (*protocol.RewindFilesResponse, error) {
	return Call[protocol.RewindFilesResponse](ctx, c, protocol.RewindFilesRequest{UserMessageID: userMessageUUID, DryRun: dryRun})
}

// SeedReadState makes the agent treat the file at path as read in its version of the
// time modified, so that it need not read the file before it edits it.
func (c *Client) SeedReadState(ctx context.Context, path string, modified time.Time) error {
	return c.call(ctx, protocol.SeedReadStateRequest{Path: path, MTime: float64(modified.UnixMilli())}, nil)
}

// StopTask stops a background task. An unknown id is not an error (observed on Claude
// Code 2.1.329 and qodercli 1.1.52).
func (c *Client) StopTask(ctx context.Context, taskID string) error {
	return c.call(ctx, protocol.StopTaskRequest{TaskID: taskID}, nil)
}

// BackgroundTasks moves the running task of the tool call toolUseID to the background;
// "" means all running tasks. It reports whether there was such a task. For "" it
// returns true in any case, because the agents do not say (observed on Claude Code
// 2.1.329 and qodercli 1.1.52).
func (c *Client) BackgroundTasks(ctx context.Context, toolUseID string) (bool, error) {
	r, err := Call[protocol.BackgroundTasksResponse](ctx, c, protocol.BackgroundTasksRequest{ToolUseID: toolUseID})
	if err != nil {
		return false, err
	}
	return r.Backgrounded == nil || *r.Backgrounded, nil
}

// CancelMessage cancels a queued user message by its uuid ([Turn.UUID]). It reports
// whether the message was still queued; if so, its turn ends with [session.ErrNotRun].
func (c *Client) CancelMessage(ctx context.Context, uuid string) (bool, error) {
	r, err := Call[protocol.CancelAsyncMessageResponse](ctx, c, protocol.CancelAsyncMessageRequest{MessageUUID: uuid})
	if err != nil {
		return false, err
	}
	return r.Cancelled, nil
}

// GenerateTitle asks the model for a title of the session. It returns "" if the model
// finds no title. persist says whether the agent saves the title; if it is absent, the
// agent decides.
func (c *Client) GenerateTitle(ctx context.Context, description string, persist Opt[bool]) (string, error) {
	req := protocol.GenerateSessionTitleRequest{Description: description}
	if v, given := persist.Value(); given {
		req.Persist = &v
	}
	r, err := Call[protocol.SessionTitleResponse](ctx, c, req)
	if err != nil || r.Title == nil {
		return "", err
	}
	return *r.Title, nil
}

// SideQuestion asks the model a question that does not become part of the
// conversation. Only ctx limits how long it may take.
func (c *Client) SideQuestion(ctx context.Context, question string, history ...protocol.SideQuestionTurn) (*protocol.SideQuestionResponse, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	r := &protocol.SideQuestionResponse{}
	if err := d.session.Call(ctx, protocol.SideQuestionRequest{Question: question, History: history}, r, -1); err != nil {
		return nil, kernel.Ended(ctx, err)
	}
	return r, nil
}

// Commands returns the slash commands that the agent reported when it was initialized.
func (c *Client) Commands() ([]protocol.SlashCommand, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Commands, nil
}

// Models returns the models that the agent reported when it was initialized.
// [Client.CurrentModels] asks the agent again.
func (c *Client) Models() ([]protocol.ModelInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Models, nil
}

// CurrentModels asks the agent for the models that can be used now. [Client.Models]
// returns those of the start.
func (c *Client) CurrentModels(ctx context.Context) ([]protocol.ModelInfo, error) {
	d, err := c.connected()
	if err != nil {
		return nil, err
	}
	var req protocol.HostRequest = protocol.ListModelsRequest{}
	if d.dialect.Name() == qoder.Name {
		req = protocol.GetModelsRequest{}
	}
	r, err := Call[protocol.ModelsResponse](ctx, c, req)
	if err != nil {
		return nil, err
	}
	return r.Models, nil
}

// Agents returns the subagents that the agent reported when it was initialized.
func (c *Client) Agents() ([]protocol.AgentInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return r.Agents, nil
}

// Account returns the account that the agent reported when it was initialized.
func (c *Client) Account() (*protocol.AccountInfo, error) {
	r, err := c.Initialized()
	if err != nil {
		return nil, err
	}
	return &r.Account, nil
}
