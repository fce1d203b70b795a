package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// What permissions are made of.
type (
	// CanUseTool decides whether a tool call may run. The zero PermissionResult
	// is a deny, and so is an error, a panic, or no answer within
	// Options.PermissionTimeout. The error's text goes to the session's events,
	// not to the model.
	CanUseTool = session.CanUseTool
	// ToolPermissionRequest is the call in question.
	ToolPermissionRequest = protocol.CanUseToolRequest
	// PermissionResult is the answer to a [ToolPermissionRequest].
	PermissionResult = protocol.PermissionResult
	// PermissionBehavior is the verdict of a rule or of a callback.
	PermissionBehavior = protocol.PermissionBehavior
	// PermissionUpdate is a change of the permission rules.
	PermissionUpdate = protocol.PermissionUpdate
	// PermissionUpdateType is the kind of a [PermissionUpdate].
	PermissionUpdateType = protocol.PermissionUpdateType
	// PermissionDestination is where a [PermissionUpdate] is kept.
	PermissionDestination = protocol.PermissionDestination
	// PermissionRule is a rule about one tool.
	PermissionRule = protocol.PermissionRule
	// PermissionMode is how an agent treats tool calls that no rule decides.
	PermissionMode = protocol.PermissionMode
	// DecisionClassification says how lasting a person's decision is.
	DecisionClassification = protocol.DecisionClassification
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

// Verdicts of a [PermissionResult] or a [PermissionUpdate]; BehaviorAsk is for
// rules alone.
const (
	BehaviorAllow = protocol.BehaviorAllow
	BehaviorDeny  = protocol.BehaviorDeny
	BehaviorAsk   = protocol.BehaviorAsk
)

// Kinds of a [PermissionUpdate], and where it is kept.
const (
	AddRules          = protocol.AddRules
	ReplaceRules      = protocol.ReplaceRules
	RemoveRules       = protocol.RemoveRules
	SetMode           = protocol.SetMode
	AddDirectories    = protocol.AddDirectories
	RemoveDirectories = protocol.RemoveDirectories

	ToUserSettings    = protocol.ToUserSettings
	ToProjectSettings = protocol.ToProjectSettings
	ToLocalSettings   = protocol.ToLocalSettings
	ToSession         = protocol.ToSession
	ToCLIArg          = protocol.ToCLIArg
)

// How lasting a person's decision is.
const (
	UserTemporary = protocol.UserTemporary
	UserPermanent = protocol.UserPermanent
	UserReject    = protocol.UserReject
)

// Allow lets the call run as the model wrote it.
func Allow() PermissionResult { return PermissionResult{Behavior: BehaviorAllow} }

// AllowInput lets the call run with another input, a JSON object in the tool's
// own shape. With anything else, nil included, the call is denied.
func AllowInput(input json.RawMessage) PermissionResult {
	if input == nil {
		input = json.RawMessage{} // nil would be the input as it was
	}
	return PermissionResult{Behavior: BehaviorAllow, UpdatedInput: input}
}

// Deny keeps the call from running; the model reads why.
func Deny(message string) PermissionResult {
	return PermissionResult{Behavior: BehaviorDeny, Message: message}
}

// DenyAndStop keeps the call from running and ends the turn.
func DenyAndStop(message string) PermissionResult {
	return PermissionResult{Behavior: BehaviorDeny, Message: message, Interrupt: true, DecisionClassification: UserReject}
}

// AllowAlways lets the call run and takes up the updates that the agent
// suggests, so that it need not ask again. Where it suggests none, or says not
// to offer this, the call is allowed once.
func AllowAlways(r *ToolPermissionRequest) PermissionResult {
	result := Allow()
	if suggested := r.Suggestions(); len(suggested) > 0 && !r.SuppressAlwaysAllowRule {
		result.UpdatedPermissions, result.DecisionClassification = suggested, UserPermanent
	}
	return result
}

// What the choice of a model is made of. Qoder.
type (
	// ResolveModel chooses the model of one call. Without an answer within
	// Options.ResolveModelTimeout the call does not happen.
	ResolveModel = session.ResolveModel
	// ModelPolicyRequest is Qoder's question which model to use for one call.
	ModelPolicyRequest = protocol.ModelPolicyRequest
	// ModelPolicyResult answers a [ModelPolicyRequest].
	ModelPolicyResult = protocol.ModelPolicyReply
	// CustomModel are the credentials of a model of the user's own.
	CustomModel = protocol.CustomModel
)
