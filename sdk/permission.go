package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Permission requests and their answers. The parts of a rule are in package
// protocol: [protocol.PermissionUpdate], [protocol.PermissionRule].
type (
	// CanUseTool decides whether a tool call may run. The zero PermissionResult
	// is a deny, and so is an error, a panic, or no answer within
	// Options.PermissionTimeout. The error's text goes to the session's events,
	// not to the model. It is [session.CanUseTool].
	CanUseTool = session.CanUseTool
	// ToolPermissionRequest is the call that needs permission. It is
	// [protocol.CanUseToolRequest].
	ToolPermissionRequest = protocol.CanUseToolRequest
	// PermissionResult is the answer to a [ToolPermissionRequest]; [Allow] and [Deny]
	// make the usual ones. It is [protocol.PermissionResult].
	PermissionResult = protocol.PermissionResult
	// PermissionMode is how an agent treats tool calls that no rule decides. It is
	// [protocol.PermissionMode].
	PermissionMode = protocol.PermissionMode
)

// The permission modes, for calls that no rule decides. ModeDefault asks,
// ModeAcceptEdits lets files be edited, ModePlan lets nothing be changed,
// ModeDontAsk denies, ModeAuto leaves it to the agent's classifier.
// ModeBypassPermissions asks about nothing, and ModeYolo is Qoder's name for it;
// both need Options.AllowDangerouslySkipPermissions. ModeDelegate is of older
// releases of Claude Code, and refused.
const (
	ModeDefault           = protocol.ModeDefault
	ModeAcceptEdits       = protocol.ModeAcceptEdits
	ModeBypassPermissions = protocol.ModeBypassPermissions
	ModePlan              = protocol.ModePlan
	ModeDontAsk           = protocol.ModeDontAsk
	ModeAuto              = protocol.ModeAuto
	ModeYolo              = protocol.ModeYolo
	ModeDelegate          = protocol.ModeDelegate
)

// Allow lets the call run as the model wrote it.
func Allow() PermissionResult { return PermissionResult{Behavior: protocol.BehaviorAllow} }

// AllowInput lets the call run with another input, a JSON object in the tool's
// own shape. With anything else, nil included, the call is denied.
func AllowInput(input json.RawMessage) PermissionResult {
	if input == nil {
		input = json.RawMessage{} // nil would be the input as it was
	}
	return PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: input}
}

// Deny keeps the call from running; the model reads why.
func Deny(message string) PermissionResult {
	return PermissionResult{Behavior: protocol.BehaviorDeny, Message: message}
}

// DenyAndStop keeps the call from running and ends the turn.
func DenyAndStop(message string) PermissionResult {
	return PermissionResult{Behavior: protocol.BehaviorDeny, Message: message, Interrupt: true, DecisionClassification: protocol.UserReject}
}

// AllowAlways lets the call run and takes up the updates that the agent
// suggests, so that it need not ask again. Where it suggests none, or says not
// to offer this, the call is allowed once.
func AllowAlways(r *ToolPermissionRequest) PermissionResult {
	result := Allow()
	if suggested := r.Suggestions(); len(suggested) > 0 && !r.SuppressAlwaysAllowRule {
		result.UpdatedPermissions, result.DecisionClassification = suggested, protocol.UserPermanent
	}
	return result
}

// Requests to Options.ResolveModel and their answers. Qoder.
type (
	// ModelPolicyRequest is Qoder's question which model to use for one call. It is
	// [protocol.ModelPolicyRequest].
	ModelPolicyRequest = protocol.ModelPolicyRequest
	// ModelPolicyResult answers a [ModelPolicyRequest]; [UseModel] and [KeepModel]
	// make the usual ones. It is [protocol.ModelPolicyReply].
	ModelPolicyResult = protocol.ModelPolicyReply
	// CustomModel holds the credentials of the user's own model. It is
	// [protocol.CustomModel].
	CustomModel = protocol.CustomModel
)
