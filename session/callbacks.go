package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Callbacks of the host. Each may be called many times concurrently. Its context
// ends when the agent no longer needs the answer, and when the session ends.
type (
	// CanUseTool decides whether a tool call may run. The zero result denies the call.
	// An error, a panic, or no answer within Options.PermissionTimeout denies it, too.
	// The error's text goes to the session's events ([CallbackFailed]), not to the
	// model.
	CanUseTool func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error)

	// HookFunc handles one call of a hook. It returns the vendor's hook output object
	// as JSON; nil lets the agent continue. [Hook.OnFailure] decides what happens
	// after an error, a panic or a timeout.
	HookFunc func(context.Context, *HookCall) (json.RawMessage, error)

	// ResolveModel chooses the model of one call. The call fails after an error, a
	// panic, or no answer within Options.ResolveModelTimeout
	// ([ModelPolicyTimeoutError]). Qoder.
	ResolveModel func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error)

	// ElicitationHandler answers a question of an MCP server to the person: a form to
	// fill in (Mode form, RequestedSchema), or a page to visit (Mode url). The zero
	// result, an error and a panic decline the question. There is no time limit,
	// because a person answers.
	ElicitationHandler func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error)

	// UserDialogHandler shows a dialog of one of the supported dialog kinds. The zero
	// result, an error and a panic cancel the dialog. There is no time limit, because
	// a person answers. Claude.
	UserDialogHandler func(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error)

	// FetchJobToken returns a job token, within a minute. After an error, or for a
	// token without a value, the agent gets the answer that there is no token. Qoder.
	FetchJobToken func(context.Context, *protocol.FetchJobTokenRequest) (Token, error)

	// FetchServiceAccountToken returns a token of a service account, within a minute.
	// After an error, or for a token without a value, the agent gets the answer that
	// there is no token. Qoder.
	FetchServiceAccountToken func(context.Context, *protocol.FetchServiceAccountTokenRequest) (Token, error)

	// TurnGate decides after a turn whether the agent makes memories of it, or reviews
	// its skills. The zero decision means no. So do an error, a panic, and no answer
	// within a minute or [TurnComplete].Timeout. Qoder.
	TurnGate func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error)

	// ResolveSessionArtifacts returns where the files of a session are. The form of
	// the answer has not been observed; it is passed on unchanged. Qoder.
	ResolveSessionArtifacts func(context.Context, *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error)
)

// HookCall is one call of a hook.
type HookCall struct {
	Event     protocol.HookEvent // selects the type of the input
	Input     json.RawMessage    // the event's input, as the agent sent it
	ToolUseID string             // the id of the tool call; a random id if the event belongs to no tool
}

// Hook is a callback that the agent calls at a defined point of its work. Make one
// with sdk.OnPreToolUse and the other functions of package sdk whose names begin
// with On, or fill in the fields yourself.
//
// A handler may be called many times concurrently. The zero output lets the agent
// continue. When a handler fails, panics or takes too long, OnFailure decides; the
// error's text goes to the session's events, not to the model. The handler's context
// ends when the agent cancels the call, for example because the turn is interrupted.
//
// The agent calls all hooks of one event at the same time and combines their
// outputs: deny and block take precedence, then ask. If several hooks return an
// updated input or output, exactly one of them is used, usually the last to arrive.
// All additional contexts are used (observed on Claude Code 2.1.329). Troupe does
// not change this.
type Hook struct {
	Event   protocol.HookEvent // the event that the hook is called for; events that this release does not know are allowed
	Matcher string             // limits the calls, for example to tools, see sdk.Match; empty: every call
	// Timeout is how long the agent waits for the hook. 0: 60 s. The handler's context
	// ends a tenth of Timeout earlier, at most a second, so that the answer to a
	// handler that took too long still arrives in time.
	Timeout   time.Duration
	OnFailure FailureAction // empty: BlockOnFailure for gates, ContinueOnFailure for all other hooks
	Func      HookFunc      // the handler; required
}

// FailureAction is what happens to the action that a hook guards when the hook
// fails: its handler returned an error, panicked, took too long, or returned an
// output that the agent rejects.
type FailureAction string

const (
	// BlockOnFailure blocks the action. It is the default of gates: the events whose
	// hooks can deny or block, such as PreToolUse.
	BlockOnFailure FailureAction = "block"
	// ContinueOnFailure lets the action proceed as if the hook did not exist. It is
	// the default of all other events.
	ContinueOnFailure FailureAction = "continue"
)
