package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// PermissionMode is how an agent treats tool calls that no rule decides.
type PermissionMode string

// The permission modes. qodercli's flag wants some of them in snake case,
// which is its dialect's business.
const (
	ModeDefault           PermissionMode = "default"
	ModeAcceptEdits       PermissionMode = "acceptEdits"
	ModeBypassPermissions PermissionMode = "bypassPermissions"
	ModePlan              PermissionMode = "plan"
	ModeDontAsk           PermissionMode = "dontAsk"
	ModeAuto              PermissionMode = "auto"
	// ModeYolo is Qoder's alias of ModeBypassPermissions. Its CLI refuses it
	// on the wire (observed on 1.1.52).
	ModeYolo PermissionMode = "yolo"
	// ModeDelegate is gone from current versions of Claude Code.
	ModeDelegate PermissionMode = "delegate"
)

// PermissionBehavior is the verdict of a rule or of a callback.
type PermissionBehavior string

// The verdicts. Ask is for rules only.
const (
	BehaviorAllow PermissionBehavior = "allow"
	BehaviorDeny  PermissionBehavior = "deny"
	BehaviorAsk   PermissionBehavior = "ask"
)

// DecisionClassification says how lasting a person's decision is.
type DecisionClassification string

// The classifications.
const (
	UserTemporary DecisionClassification = "user_temporary"
	UserPermanent DecisionClassification = "user_permanent"
	UserReject    DecisionClassification = "user_reject"
)

// DefaultDenyMessage is what the model reads about a denial without a message.
const DefaultDenyMessage = "The host denied this tool call."

// PermissionResult is the answer to a [CanUseToolRequest]. The zero value
// denies, and so does every Behavior other than allow.
type PermissionResult struct {
	Behavior PermissionBehavior // [BehaviorAllow] or [BehaviorDeny]
	// UpdatedInput replaces the tool's input. nil: Claude Code takes the
	// original; Qoder's SDK always sends the original back, so its dialect
	// fills it in. Only with allow.
	UpdatedInput json.RawMessage
	// UpdatedPermissions are applied at once, and kept for the session where they
	// do not say how long. Only with allow.
	UpdatedPermissions []PermissionUpdate
	// Message tells the model why; "" is DefaultDenyMessage. Only with deny.
	Message string
	// Interrupt ends the turn, too. Only with deny.
	Interrupt bool
	// ToolUseID is the id of the call. An answer must have the ToolUseID of its request.
	ToolUseID              string
	DecisionClassification DecisionClassification // for the agent's telemetry; "": not sent
	// PermissionScope is Qoder's: how far an allow reaches, e.g. session.
	PermissionScope string
	// Extra are further keys, written last and sorted. A key that the result
	// has itself, in whatever case, a key that is not UTF-8, and a value that is
	// not one JSON value fail the encoding, and the call is denied.
	Extra map[string]json.RawMessage
}

// Allowed reports whether r lets the call run.
func (r PermissionResult) Allowed() bool { return r.Behavior == BehaviorAllow }

// permissionResultJSON has the keys of both forms in the vendors' order.
type permissionResultJSON struct {
	Behavior           PermissionBehavior     `json:"behavior"`
	Message            *string                `json:"message,omitempty"`
	Interrupt          bool                   `json:"interrupt,omitempty"`
	UpdatedInput       json.RawMessage        `json:"updatedInput,omitempty"`
	UpdatedPermissions []PermissionUpdate     `json:"updatedPermissions,omitempty"`
	ToolUseID          string                 `json:"toolUseID,omitempty"`
	Classification     DecisionClassification `json:"decisionClassification,omitempty"`
	Scope              string                 `json:"permissionScope,omitempty"`
}

// MarshalJSON encodes the decision. Every Behavior other than allow denies. It returns an
// error if UpdatedInput or Extra is invalid.
func (r PermissionResult) MarshalJSON() ([]byte, error) {
	out := permissionResultJSON{
		Behavior:       BehaviorDeny,
		ToolUseID:      r.ToolUseID,
		Classification: r.DecisionClassification,
		Scope:          r.PermissionScope,
	}
	if r.Allowed() {
		out.Behavior = BehaviorAllow
		out.UpdatedInput = r.UpdatedInput
		out.UpdatedPermissions = kept(r.UpdatedPermissions)
	} else {
		message := cmp.Or(r.Message, DefaultDenyMessage)
		out.Message, out.Interrupt = &message, r.Interrupt
	}
	b, err := Marshal(out)
	if err != nil || len(r.Extra) == 0 {
		return b, err
	}
	b = b[:len(b)-1]
	for _, key := range slices.Sorted(maps.Keys(r.Extra)) {
		if err := checkExtra(key, r.Extra[key]); err != nil {
			return nil, fmt.Errorf("protocol: encode permission result: %w", err)
		}
		b = append(b, ',')
		b = appendString(b, key)
		b = append(b, ':')
		b = append(b, r.Extra[key]...)
	}
	return append(b, '}'), nil
}

// kept fills in where updates are kept.
func kept(updates []PermissionUpdate) []PermissionUpdate {
	updates = slices.Clone(updates)
	for i := range updates {
		updates[i].Destination = cmp.Or(updates[i].Destination, ToSession)
	}
	return updates
}

// permissionKeys are the keys that a result writes itself.
func permissionKeys() [8]string {
	return [...]string{
		"behavior", "message", "interrupt", "updatedInput", "updatedPermissions",
		"toolUseID", "decisionClassification", "permissionScope",
	}
}

func isPermissionKey(key string) bool {
	for _, own := range permissionKeys() {
		if key == own {
			return true
		}
	}
	return false
}

// checkExtra refuses a member that could make another verdict of a result: a
// reader may take the last of two keys, and may ignore case.
func checkExtra(key string, value json.RawMessage) error {
	if !utf8.ValidString(key) {
		return fmt.Errorf("the key %q of Extra is not UTF-8", key)
	}
	for _, own := range permissionKeys() {
		if strings.EqualFold(key, own) {
			return fmt.Errorf("the key %q of Extra is one of the result's own: set the field instead", key)
		}
	}
	if !json.Valid(value) {
		return fmt.Errorf("the value of the key %q of Extra is not one JSON value", key)
	}
	return nil
}

// UnmarshalJSON decodes a verdict as an agent reads it.
func (r *PermissionResult) UnmarshalJSON(b []byte) error {
	var in permissionResultJSON
	if err := Unmarshal(b, &in); err != nil {
		return err
	}
	*r = PermissionResult{
		Behavior:               in.Behavior,
		UpdatedInput:           in.UpdatedInput,
		UpdatedPermissions:     in.UpdatedPermissions,
		Interrupt:              in.Interrupt,
		ToolUseID:              in.ToolUseID,
		DecisionClassification: in.Classification,
		PermissionScope:        in.Scope,
	}
	if in.Message != nil {
		r.Message = *in.Message
	}
	c := jsonscan.Object(b, 0)
	for k, v := range c.Members() {
		key := string(jsonscan.Unescaped(k.Of(b)))
		if isPermissionKey(key) {
			continue
		}
		if r.Extra == nil {
			r.Extra = make(map[string]json.RawMessage)
		}
		r.Extra[key] = slices.Clone(v.Of(b))
	}
	return nil
}

// PermissionUpdateType is the kind of a [PermissionUpdate].
type PermissionUpdateType string

// Values of [PermissionUpdateType], with the fields that each uses in addition to
// Destination.
const (
	AddRules          PermissionUpdateType = "addRules"          // Rules, Behavior
	ReplaceRules      PermissionUpdateType = "replaceRules"      // Rules, Behavior
	RemoveRules       PermissionUpdateType = "removeRules"       // Rules, Behavior
	SetMode           PermissionUpdateType = "setMode"           // Mode
	AddDirectories    PermissionUpdateType = "addDirectories"    // Directories
	RemoveDirectories PermissionUpdateType = "removeDirectories" // Directories
)

// PermissionDestination is where a [PermissionUpdate] is kept.
type PermissionDestination string

// The destinations.
const (
	ToUserSettings    PermissionDestination = "userSettings"
	ToProjectSettings PermissionDestination = "projectSettings"
	ToLocalSettings   PermissionDestination = "localSettings"
	ToSession         PermissionDestination = "session"
	ToCLIArg          PermissionDestination = "cliArg"
)

// PermissionUpdate is a change of the permission rules. Without a Destination
// Claude Code does nothing with it (observed on 2.1.329), so the host fills in
// ToSession.
type PermissionUpdate struct {
	Type        PermissionUpdateType  `json:"type"`                  // selects which of the other fields count
	Rules       []PermissionRule      `json:"rules,omitempty"`       // with AddRules, ReplaceRules and RemoveRules
	Behavior    PermissionBehavior    `json:"behavior,omitempty"`    // which list the rules are on
	Mode        PermissionMode        `json:"mode,omitempty"`        // with SetMode
	Directories []string              `json:"directories,omitempty"` // absolute; with AddDirectories and RemoveDirectories
	Destination PermissionDestination `json:"destination,omitempty"` // how long it lasts, and in which file
}

// PermissionRule is a rule about one tool.
type PermissionRule struct {
	ToolName string `json:"toolName"` // a tool, or mcp__SERVER for all tools of a server
	// RuleContent narrows the rule, such as "git *" for Bash; "" means any
	// call of the tool.
	RuleContent string `json:"ruleContent,omitempty"`
}
