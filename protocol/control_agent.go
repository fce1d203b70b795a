package protocol

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/base/wire"
)

// AgentRequest is a control request of the agent to its host. The concrete
// types are the pointers that [DecodeAgentRequest] returns.
type AgentRequest interface {
	Request
	isAgentRequest()
}

// DecodeAgentRequest decodes a control_request line of the agent. A kind that
// this package does not know gives *[UnknownAgentRequest]. If the fields of a known kind
// do not decode, it returns an error, so that no gate answers a request that it did not
// understand. If an object of the request has a key twice, the error wraps a
// *[DuplicateKeyError].
func DecodeAgentRequest(f Frame) (AgentRequest, error) {
	r := agentRequests.New(f.Subtype)
	if r == nil {
		if err := f.distinct(); err != nil {
			return nil, fmt.Errorf("protocol: decode %s request %.80s: %w", f.Subtype, f.ID, err)
		}
		return &UnknownAgentRequest{Name: f.Subtype, Raw: slices.Clone(f.Body())}, nil
	}
	if err := decodeRequest(&f, r); err != nil {
		return nil, err
	}
	return r, nil
}

var agentRequests = wire.TypesBy[AgentRequest](AgentRequest.Subtype, //nolint:gochecknoglobals // only read
	new(CanUseToolRequest), new(HookCallbackRequest), new(MCPMessageRequest), new(ElicitationRequest),
	new(ElicitationPromptRequest), new(UserDialogRequest), new(ModelPolicyRequest), new(FetchJobTokenRequest),
	new(FetchServiceAccountTokenRequest), new(MemoryShouldGenerateRequest),
	new(SkillEvolutionShouldReviewRequest), new(ResolveSessionArtifactsRequest),
)

// UnknownAgentRequest is a request of a kind that this package does not know.
type UnknownAgentRequest struct {
	Name string // the request's subtype
	// Raw is the original request.
	Raw json.RawMessage
}

func (r *UnknownAgentRequest) rawRequest() json.RawMessage { return orEmptyObject(r.Raw) }

// CanUseToolRequest asks whether a tool call may run. It is a gate; the answer
// is a [PermissionResult]. There is no time limit of the agent's own: a person
// may be asked.
type CanUseToolRequest struct {
	ToolName    string          `json:"tool_name"`              // as in [ToolUseBlock]
	DisplayName string          `json:"display_name,omitempty"` // the tool's name for people
	Input       json.RawMessage `json:"input"`                  // the tool's arguments, an object
	ToolUseID   string          `json:"tool_use_id,omitempty"`  // the [ToolUseBlock] in question
	// AgentID is the subagent that makes the call; "" for the main agent.
	AgentID string `json:"agent_id,omitempty"`

	// Cwd is the absolute directory in which the call runs, "" if it is not known. The agent
	// sends it to hooks and not in this request: package sdk sets it in sessions with a
	// Policy.
	Cwd string `json:"-"`

	// Title and Description are texts for a person, made by the agent.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"` // a second line under Title

	// PermissionSuggestions are updates after which the agent would not ask again.
	// AltSuggestions is another spelling of the field, which Qoder's SDK accepts, too.
	PermissionSuggestions []PermissionUpdate `json:"permission_suggestions,omitempty"`
	AltSuggestions        []PermissionUpdate `json:"suggestions,omitempty"`  // read only if PermissionSuggestions is absent
	BlockedPath           string             `json:"blocked_path,omitempty"` // the path that made the agent ask; "": no path did

	// DecisionReason says why the agent asks. DecisionReasonType is rule,
	// mode, subcommandResults, hook, workingDir, safetyCheck, classifier, …;
	// DecisionReasonCode narrows some of them. Claude Code sends none, or
	// other, for a call that no rule allows (observed on 2.1.329).
	DecisionReason           string `json:"decision_reason,omitempty"`
	DecisionReasonType       string `json:"decision_reason_type,omitempty"`        // open set: treat unknown values as other
	DecisionReasonCode       string `json:"decision_reason_code,omitempty"`        // outside_reads_blocked, org_ask_ceiling, …: something that a host can change
	DecisionReasonRuleSource string `json:"decision_reason_rule_source,omitempty"` // the settings source of a rule that asks
	// DecisionReasonHookEvent is the event of a hook that asked, with
	// DecisionReasonType hook.
	DecisionReasonHookEvent HookEvent `json:"decision_reason_hook_event,omitempty"`
	// DecisionReasonHookSource is where that hook comes from: plugin:NAME,
	// skill:NAME, settings, …; "": not known.
	DecisionReasonHookSource string          `json:"decision_reason_hook_source,omitempty"`
	MatchedAskRule           *MatchedAskRule `json:"matched_ask_rule,omitempty"` // nil: no ask rule had a part
	// ClassifierApprovable is set when a safety check has part in the
	// question: true if a classifier may approve all of them, false if a person
	// has to.
	ClassifierApprovable *bool `json:"classifier_approvable,omitempty"`
	// SuppressAlwaysAllowRule: do not offer a person to allow this for good.
	// DefaultToNo: do not offer to allow it as the first choice.
	SuppressAlwaysAllowRule bool `json:"suppress_always_allow_rule,omitempty"`
	DefaultToNo             bool `json:"default_to_no,omitempty"` // a terminal puts the cursor on "no" and takes no digit
	// RequiresUserInteraction is set for AskUserQuestion and ExitPlanMode:
	// an allow without a person's word means nothing there.
	RequiresUserInteraction bool                 `json:"requires_user_interaction,omitempty"`
	MCPServer               *MCPServerProvenance `json:"mcp_server,omitempty"` // the server of an MCP tool; nil for other tools
	// ServerPolicyAskOnly: nothing asked for a person but the default for a
	// tool that no rule allows, or the host's own policy for an MCP tool.
	ServerPolicyAskOnly bool `json:"server_policy_ask_only,omitempty"`
	// ServerPrompt names the prompt of the vendor's session service that worded
	// the question, and Plugin the plugin that started the run. Both are
	// claims: a host shows the call whatever they say.
	ServerPrompt string `json:"server_prompt,omitempty"`
	Plugin       string `json:"plugin,omitempty"` // the plugin's name; "": no plugin
	// ExitPlanMode is about the plan to approve, of a shape that was never
	// observed. Qoder's document has it; its SDK does not pass it on.
	ExitPlanMode json.RawMessage `json:"exit_plan_mode,omitempty"`

	// The following fields are Qoder's: the kind of question, the choices of the person,
	// and an object whose shape depends on the kind.
	PermissionKind string             `json:"permission_kind,omitempty"`
	Options        []PermissionOption `json:"options,omitempty"` // what a person may choose; empty on Claude Code
	Details        json.RawMessage    `json:"details,omitempty"` // an object; nil on Claude Code
}

// Suggestions returns the suggested updates, under whichever spelling they came.
func (r *CanUseToolRequest) Suggestions() []PermissionUpdate {
	if r.PermissionSuggestions != nil {
		return r.PermissionSuggestions
	}
	return r.AltSuggestions
}

// MatchedAskRule is the ask rule that made the agent ask.
type MatchedAskRule struct {
	Source      string `json:"source"`                 // the settings source of the rule, such as userSettings or session
	ToolName    string `json:"tool_name"`              // such as Bash
	RuleContent string `json:"rule_content,omitempty"` // the rule's pattern; "": every call of the tool
}

// PermissionOption is a choice that Qoder offers.
type PermissionOption struct {
	Outcome string `json:"outcome"` // proceed_once, …
	Name    string `json:"name"`    // the label of the choice
	Allowed bool   `json:"allowed"` // the choice lets the call run
}

// HookCallbackRequest calls a hook of the host. The answer is a
// [HookJSONOutput].
type HookCallbackRequest struct {
	// CallbackID is one of the initialize request's HookCallbackIDs.
	CallbackID string `json:"callback_id,omitempty"`
	// Input is what [DecodeHookInput] decodes.
	Input json.RawMessage `json:"input"`
	// ToolUseID is always set by Claude Code, with a random value for events
	// that have no tool (observed on 2.1.329).
	ToolUseID string `json:"tool_use_id,omitempty"`
	// HookID and HookEvent are a second form in Qoder's types, which its own
	// SDK refuses.
	HookID    string    `json:"hook_id,omitempty"`
	HookEvent HookEvent `json:"hook_event,omitempty"` // of the second form: the hook's event
}

// MCPMessageRequest carries a JSON-RPC message of an MCP server that lives in
// the host. It goes in both directions. The answer is an [MCPMessageReply].
type MCPMessageRequest struct {
	ServerName string          `json:"server_name"` // a key of InitializeRequest.SDKMCPServers
	Message    json.RawMessage `json:"message"`     // one JSON-RPC 2.0 request, notification or response
}

// ElicitationRequest is a question of an MCP server to the person. The answer
// is an [ElicitationResult].
type ElicitationRequest struct {
	MCPServerName   string          `json:"mcp_server_name"`            // the server that asks
	Message         string          `json:"message"`                    // the question, text of the server: untrusted
	Mode            string          `json:"mode,omitempty"`             // form, url
	URL             string          `json:"url,omitempty"`              // what to open, with Mode url
	ElicitationID   string          `json:"elicitation_id,omitempty"`   // set with Mode url; [ElicitationCompleteMessage] repeats it
	RequestedSchema json.RawMessage `json:"requested_schema,omitempty"` // a JSON schema of the answer, with Mode form
	PropertyOrder   []string        `json:"property_order,omitempty"`   // the schema's top-level properties in the server's order
	Title           string          `json:"title,omitempty"`            // a heading from the server: untrusted
	// DisplayName is a short label of the tool or the server, from the server:
	// untrusted.
	DisplayName string `json:"display_name,omitempty"`
	Description string `json:"description,omitempty"` // a line under Title, from the server: untrusted
	// Options are the answers to choose from; only in Qoder's older form.
	Options []string `json:"options,omitempty"`
}

// ElicitationPromptRequest is elicitation_response, an older form of an
// [ElicitationRequest] that Qoder's SDK still takes, with the same answer.
type ElicitationPromptRequest struct {
	ElicitationID string   `json:"elicitation_id,omitempty"` // the server's id of the question
	Prompt        string   `json:"prompt,omitempty"`         // the question
	Options       []string `json:"options,omitempty"`        // the answers to choose from; empty: free text
}

// UserDialogRequest asks the host to show a dialog of a kind that the
// initialize request listed. The answer is a [UserDialogResult].
type UserDialogRequest struct {
	DialogKind string `json:"dialog_kind"` // one of InitializeRequest.SupportedDialogKinds
	// Payload has a shape of the kind's own.
	Payload   json.RawMessage `json:"payload,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"` // the tool call that wants the dialog; "": none
}

// ModelPolicyRequest is Qoder's question which model to use for one call. It
// is a gate: without an answer the call does not happen. The answer is a
// [ModelPolicyReply].
type ModelPolicyRequest struct {
	// Purpose is main, subagent, web_fetch, image_gen, compact, ….
	Purpose              string      `json:"purpose"`
	SessionID            string      `json:"sessionId,omitempty"`            // the agent's session
	TurnIndex            int         `json:"turnIndex,omitempty"`            // of the conversation, from 0
	AgentID              string      `json:"agentId,omitempty"`              // the subagent that calls; "" for the main agent
	AgentType            string      `json:"agentType,omitempty"`            // the subagent's definition; "" for the main agent
	ResolvedModel        string      `json:"resolvedModel,omitempty"`        // what the agent would use without a policy
	ContextUsage         float64     `json:"contextUsage,omitempty"`         // 0 to 1
	EstimatedInputTokens int64       `json:"estimatedInputTokens,omitempty"` // of the prompt
	Models               []ModelInfo `json:"models,omitempty"`               // all models of the account at this moment
}

// FetchJobTokenRequest is Qoder's request for a job token. The answer is a
// [TokenReply].
type FetchJobTokenRequest struct {
	Reason    string `json:"reason,omitempty"`     // initial, unauthorized, …
	SessionID string `json:"session_id,omitempty"` // the agent's session
}

// FetchServiceAccountTokenRequest is Qoder's request for a service account's
// token. The answer is a [TokenReply].
type FetchServiceAccountTokenRequest struct {
	Reason         string   `json:"reason,omitempty"`          // initial, expiring, unauthorized
	RequiredScopes []string `json:"required_scopes,omitempty"` // observed: models.read, chat.completions (qodercli 1.1.52)
	SessionID      string   `json:"session_id,omitempty"`      // the agent's session
}

// MemoryShouldGenerateRequest is Qoder's question whether a turn is worth a
// memory. The answer is a [ShouldRunReply].
type MemoryShouldGenerateRequest struct {
	CallbackID string   `json:"callbackId"` // the id that the host gave its callback at initialize
	Input      TurnInfo `json:"input"`      // the turn in question
}

// SkillEvolutionShouldReviewRequest is Qoder's question whether a turn is
// worth a review of its skills. The answer is a [ShouldRunReply].
type SkillEvolutionShouldReviewRequest struct {
	CallbackID string   `json:"callbackId"` // the id that the host gave its callback at initialize
	Input      TurnInfo `json:"input"`      // the turn in question
}

// TurnInfo is a turn that has ended.
type TurnInfo struct {
	SessionID string `json:"sessionId,omitempty"` // the agent's session
	TurnIndex int    `json:"turnIndex,omitempty"` // from 1, counted by the feature that asks
	Cwd       string `json:"cwd,omitempty"`       // the session's working directory
	Prompt    string `json:"prompt,omitempty"`    // the text of the user
	Response  string `json:"response,omitempty"`  // the text of the model
}

// ResolveSessionArtifactsRequest is Qoder's question where a session's files
// are. The form of its answer has not been observed.
type ResolveSessionArtifactsRequest struct {
	LocalSessionID string `json:"local_session_id"` // the agent's session
	Cwd            string `json:"cwd,omitempty"`    // its working directory
}

// Subtype implements [Request].
func (r *UnknownAgentRequest) Subtype() string { return r.Name }

// Subtype implements [Request].
func (*CanUseToolRequest) Subtype() string { return "can_use_tool" }

// Subtype implements [Request].
func (*HookCallbackRequest) Subtype() string { return "hook_callback" }

// Subtype implements [Request].
func (*MCPMessageRequest) Subtype() string { return "mcp_message" }

// Subtype implements [Request].
func (*ElicitationRequest) Subtype() string { return "elicitation" }

// Subtype implements [Request].
func (*ElicitationPromptRequest) Subtype() string { return "elicitation_response" }

// Subtype implements [Request].
func (*UserDialogRequest) Subtype() string { return "request_user_dialog" }

// Subtype implements [Request].
func (*ModelPolicyRequest) Subtype() string { return "get_model_policy" }

// Subtype implements [Request].
func (*FetchJobTokenRequest) Subtype() string { return "fetch_job_token" }

// Subtype implements [Request].
func (*FetchServiceAccountTokenRequest) Subtype() string { return "fetch_service_account_token" }

// Subtype implements [Request].
func (*MemoryShouldGenerateRequest) Subtype() string { return "memory_should_generate" }

// Subtype implements [Request].
func (*SkillEvolutionShouldReviewRequest) Subtype() string { return "skill_evolution_should_review" }

// Subtype implements [Request].
func (*ResolveSessionArtifactsRequest) Subtype() string { return "resolve_session_artifacts" }

func (*UnknownAgentRequest) isAgentRequest()               {}
func (*CanUseToolRequest) isAgentRequest()                 {}
func (*HookCallbackRequest) isAgentRequest()               {}
func (*MCPMessageRequest) isAgentRequest()                 {}
func (*ElicitationRequest) isAgentRequest()                {}
func (*ElicitationPromptRequest) isAgentRequest()          {}
func (*UserDialogRequest) isAgentRequest()                 {}
func (*ModelPolicyRequest) isAgentRequest()                {}
func (*FetchJobTokenRequest) isAgentRequest()              {}
func (*FetchServiceAccountTokenRequest) isAgentRequest()   {}
func (*MemoryShouldGenerateRequest) isAgentRequest()       {}
func (*SkillEvolutionShouldReviewRequest) isAgentRequest() {}
func (*ResolveSessionArtifactsRequest) isAgentRequest()    {}
