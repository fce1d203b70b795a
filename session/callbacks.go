package session

import (
	"context"
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// Callbacks of the host. Each may be called many times at once. Its context ends
// when the agent no longer wants the answer, and when the session ends.
type (
	// CanUseTool decides whether a tool call may run. The zero result is a denial,
	// and so is an error, a panic, or no answer within the permission timeout. The
	// error's text goes to the session's events ([CallbackFailed]), not to the
	// model.
	CanUseTool func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error)

	// HookFunc handles a hook. Its answer is the vendor's hook output object; nil
	// lets the agent go on. What happens after an error, a panic or a timeout is up
	// to the hook's registration: gates deny, all other hooks let the agent go on.
	HookFunc func(context.Context, *HookCall) (json.RawMessage, error)

	// ResolveModel chooses the model of one call. An error, a panic, or no answer
	// in time ([ModelPolicyTimeoutError]) fails the call. Qoder.
	ResolveModel func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error)

	// ElicitationHandler answers the question of an MCP server to the person: a form
	// to fill in (Mode form, RequestedSchema), or a page to visit (Mode url). The
	// zero result turns it down, and so does an error or a panic. It has no time
	// limit, because it asks a person.
	ElicitationHandler func(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error)

	// UserDialogHandler shows a dialog of one of the supported dialog kinds. The
	// zero result cancels it, and so does an error or a panic. It has no time limit,
	// because it asks a person. Claude.
	UserDialogHandler func(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error)

	// FetchJobToken gets a job token, within a minute. An error, or a token
	// without a value, tells the agent that there is none. Qoder.
	FetchJobToken func(context.Context, *protocol.FetchJobTokenRequest) (Token, error)

	// FetchServiceAccountToken gets a service account's token, within a minute. An
	// error, or a token without a value, tells the agent that there is none. Qoder.
	FetchServiceAccountToken func(context.Context, *protocol.FetchServiceAccountTokenRequest) (Token, error)

	// TurnGate decides whether a turn that has ended is worth a memory, or a
	// review of the skills. The zero decision is a no, and so is an error, a
	// panic, or no answer within a minute (or the limit that the option sets). Qoder.
	TurnGate func(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error)

	// ResolveSessionArtifacts says where the files of a session are. The form of
	// the answer has not been observed: it is passed on as it is. Qoder.
	ResolveSessionArtifacts func(context.Context, *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error)
)

// HookCall is one call of a hook.
type HookCall struct {
	Event     protocol.HookEvent // selects the type of the input
	Input     json.RawMessage    // the event's input, as the agent sent it
	ToolUseID string             // a random id for events that belong to no tool
}
