package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Permission requests and their answers. The parts of a rule are in package
// protocol: [protocol.PermissionUpdate], [protocol.PermissionRule].
type (
	// CanUseTool decides whether a tool call may run. The zero PermissionResult denies
	// the call. An error, a panic, or no answer within Options.PermissionTimeout denies
	// it, too. The error's text goes to the session's events, not to the model. It is
	// [session.CanUseTool].
	CanUseTool = session.CanUseTool
	// ToolPermissionRequest is a tool call that needs permission. It is
	// [protocol.CanUseToolRequest].
	ToolPermissionRequest = protocol.CanUseToolRequest
	// PermissionResult is the answer to a [ToolPermissionRequest]. Make one with
	// [Allow], [Deny] or a related function. It is [protocol.PermissionResult].
	PermissionResult = protocol.PermissionResult
	// PermissionMode is how an agent decides about tool calls that match no rule. It is
	// [protocol.PermissionMode].
	PermissionMode = protocol.PermissionMode
)

// The permission modes, for calls that match no rule. ModeDefault asks.
// ModeAcceptEdits allows edits of files. ModePlan allows no changes. ModeDontAsk
// denies. With ModeAuto the agent's classifier decides. ModeBypassPermissions allows
// everything; ModeYolo is Qoder's name for it; both need
// Options.AllowDangerouslySkipPermissions. ModeDelegate belongs to older releases of
// Claude Code and is a *[ConfigError].
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

// AllowInput lets the call run with another input, which must be a JSON object in the
// shape of the tool's input. If input is anything else, nil included, the call is
// denied.
func AllowInput(input json.RawMessage) PermissionResult {
	if input == nil {
		input = json.RawMessage{} // nil would be the input as it was
	}
	return PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: input}
}

// Deny denies the call. The model reads message.
func Deny(message string) PermissionResult {
	return PermissionResult{Behavior: protocol.BehaviorDeny, Message: message}
}

// DenyAndStop denies the call and ends the turn.
func DenyAndStop(message string) PermissionResult {
	return PermissionResult{Behavior: protocol.BehaviorDeny, Message: message, Interrupt: true, DecisionClassification: protocol.UserReject}
}

// AllowAlways lets the call run and accepts the rules that the agent suggests, so that
// the agent does not ask again. If the agent suggests no rules, or says that a user
// interface must not offer them, the call is allowed once.
func AllowAlways(r *ToolPermissionRequest) PermissionResult {
	result := Allow()
	if suggested := r.Suggestions(); len(suggested) > 0 && !r.SuppressAlwaysAllowRule {
		result.UpdatedPermissions, result.DecisionClassification = suggested, protocol.UserPermanent
	}
	return result
}
