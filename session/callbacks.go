package session

import (
	"context"
	"encoding/json"
	"time"

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

// Hook is a callback at a moment of the agent's work. Make one with
// sdk.OnPreToolUse and the other functions of package sdk that begin with On, or fill
// it in yourself.
//
// A handler may be called many times at once. The zero output lets everything
// go on. When the handler of a gate fails, panics or takes too long, what it
// guards is denied, see FailureAction; the error's text goes to the session's
// events, not to the model. Its context ends when the agent takes the question
// back, as it does when the turn is interrupted.
//
// All hooks of one event are asked at the same time, and the agent combines their
// outputs: a deny or a block wins, then an ask. Of several updated inputs or outputs
// exactly one is used, usually the last to arrive. All additional contexts are passed
// on (observed on Claude Code 2.1.329). Troupe adds nothing to that.
type Hook struct {
	Event   protocol.HookEvent // when it is called; one that this release does not know is passed on
	Matcher string             // what it is called for, see sdk.Match; empty: everything
	// Timeout is how long the agent waits for the hook. Default: 60 s. The handler gets
	// a tenth less, at most a second, so that its own denial is in time.
	Timeout   time.Duration
	OnFailure FailureAction // empty: gates block, all other hooks let the agent go on
	Func      HookFunc      // the handler; required
}

// FailureAction says what happens to what a hook guards when the hook fails: its
// handler returned an error, panicked, took too long, or answered something that
// the agent refuses.
type FailureAction string

const (
	// BlockOnFailure blocks it. It is the default of gates.
	BlockOnFailure FailureAction = "block"
	// ContinueOnFailure lets it go on, as if the hook did not exist. It is the
	// default of all other events.
	ContinueOnFailure FailureAction = "continue"
)
