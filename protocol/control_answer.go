package protocol

import "encoding/json"

// MCPMessageReply answers an [MCPMessageRequest].
type MCPMessageReply struct {
	// MCPResponse is a JSON-RPC response. For a notification Claude's SDK
	// sends {"jsonrpc":"2.0","result":{},"id":0} and Qoder's
	// {"jsonrpc":"2.0"} (observed on 0.3.329 and 1.0.39).
	MCPResponse json.RawMessage `json:"mcp_response"`
}

// The actions of an [ElicitationResult].
const (
	ElicitAccept  = "accept"
	ElicitDecline = "decline"
	ElicitCancel  = "cancel"
)

// ElicitationResult answers an [ElicitationRequest]: with [ElicitAccept] and an
// object of the requested schema, with [ElicitDecline] or with [ElicitCancel].
type ElicitationResult struct {
	Action string `json:"action"` // accept, decline or cancel
	// Content is an object of the requested schema; only with accept.
	Content json.RawMessage `json:"content,omitempty"`
}

// The behaviors of a [UserDialogResult].
const (
	DialogCompleted = "completed"
	DialogCancelled = "cancelled"
)

// UserDialogResult answers a [UserDialogRequest].
type UserDialogResult struct {
	Behavior string `json:"behavior"` // completed or cancelled
	// Result has a shape of the dialog kind's own; only with completed.
	Result json.RawMessage `json:"result,omitempty"`
}

// ModelPolicyReply answers a [ModelPolicyRequest].
type ModelPolicyReply struct {
	// Type is get_model_policy.
	Type string `json:"type"`
	// Model is the model to use; nil keeps the agent's own choice. "" is
	// passed on as it is.
	Model *string `json:"model,omitempty"`
	// CustomModel are the credentials of a model that the user brings.
	CustomModel *CustomModel `json:"custom_model,omitempty"`
	TaskID      string       `json:"task_id,omitempty"`  // a routing label, forwarded with the model request
	SubTask     string       `json:"sub_task,omitempty"` // a billing label, forwarded with the model request
	// Parameters are passed to the model as they are.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// CustomModel has the address and the credentials of a model that the user brings.
// Printing and logging it hides the key. Marshaling it does not: a JSON log shows the
// key of a CustomModel in a slice, a map or a struct.
type CustomModel struct {
	Provider string `json:"provider"`        // a [BYOKProvider] key, such as openai or deepseek
	APIKey   string `json:"api_key"`         // a secret
	Style    string `json:"style,omitempty"` // wire format of the provider: openai (the default of "") or anthropic
	URL      string `json:"url,omitempty"`   // overrides the provider's base URL; "": its own
	IsVL     bool   `json:"isVl,omitempty"`  // the model reads images
}

// TokenReply answers a [FetchJobTokenRequest] or a
// [FetchServiceAccountTokenRequest].
type TokenReply struct {
	Token string `json:"token"` // a secret
	// ExpiresAt is milliseconds since the Unix epoch; 0 for unknown.
	ExpiresAt int64 `json:"expires_at,omitempty"`
}

// ShouldRunReply answers a [MemoryShouldGenerateRequest] or a
// [SkillEvolutionShouldReviewRequest].
type ShouldRunReply struct {
	Run    bool   `json:"run"`              // true starts it; false skips it
	Reason string `json:"reason,omitempty"` // for people, in the result message; may be ""
}
