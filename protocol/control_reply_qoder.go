package protocol

// The answers in this file are Qoder's alone.

// GoalResponse answers a [SetGoalRequest] or a [GetGoalRequest]; nil means that no goal
// is set.
type GoalResponse struct {
	Goal *Goal `json:"goal"` // nil: the session has no goal
}

// ClearGoalResponse answers a [ClearGoalRequest].
type ClearGoalResponse struct {
	Cleared bool `json:"cleared"` // false: there was no goal
}

// GoalMaxTurnsResponse answers a [SetGoalMaxTurnsRequest].
type GoalMaxTurnsResponse struct {
	GoalMaxTurns int `json:"goal_max_turns"` // the limit in effect; 100 by default (observed on 1.1.52)
}

// PlanModeResponse answers a [SetPlanModeRequest] or a [GetPlanModeRequest].
type PlanModeResponse struct {
	PlanMode PlanMode `json:"plan_mode"` // the state from now on
}

// RewindResponse answers a [RewindRequest]. It can be a success and yet say
// that nothing was done.
type RewindResponse struct {
	Status              string `json:"status,omitempty"`              // rejected, …
	TargetUserMessageID string `json:"targetUserMessageId,omitempty"` // the uuid of the request
	Scope               string `json:"scope,omitempty"`               // conversation, files or both
	Error               string `json:"error,omitempty"`               // for people; "": none
}

// SuccessResponse answers a [ValidateBYOKModelRequest] or a
// [CheckBYOKConfigRequest].
type SuccessResponse struct {
	Success bool   `json:"success"`         // false: the provider refused, or the request failed
	Error   string `json:"error,omitempty"` // for people; "": none
}

// BYOKProvidersResponse answers a [GetBYOKConfigRequest].
type BYOKProvidersResponse struct {
	Providers []BYOKProvider `json:"providers"` // empty without a login (observed on 1.1.52)
}

// BYOKProvider is a provider of models that the user brings.
type BYOKProvider struct {
	Key         string          `json:"key"`                   // what CustomModel.Provider takes, such as openai or deepseek
	DisplayName string          `json:"display_name"`          // for people
	APIKeyURL   string          `json:"api_key_url,omitempty"` // where a person gets a key
	URL         string          `json:"url,omitempty"`         // base URL of the provider's API
	Fields      []BYOKField     `json:"fields,omitempty"`      // what to ask the user for
	Types       []BYOKModelType `json:"types,omitempty"`       // the provider's models in groups
}

// BYOKField is a field that the user must fill in.
type BYOKField struct {
	Key         string `json:"key"`                 // the field's name in a configuration
	DisplayName string `json:"display_name"`        // for people
	Type        string `json:"type"`                // free_input, …
	Mandatory   bool   `json:"mandatory,omitempty"` // must not be empty
}

// BYOKModelType is a group of models.
type BYOKModelType struct {
	Key         string          `json:"key,omitempty"` // cp (coding plan), tp (token plan), pg (pay as you go), …
	DisplayName string          `json:"display_name"`  // for people
	Models      []BYOKModelInfo `json:"models"`        // the group's models
}

// BYOKModelInfo is a model of a provider.
type BYOKModelInfo struct {
	Key            string `json:"key"`              // the model's id, for ModelPolicyReply.Model
	DisplayName    string `json:"display_name"`     // for people
	IsVL           bool   `json:"is_vl"`            // reads images
	IsReasoning    bool   `json:"is_reasoning"`     // thinks before it answers
	Format         string `json:"format"`           // wire format, such as openai or dashscope
	MaxInputTokens int64  `json:"max_input_tokens"` // of a whole prompt
}

// BYOKConfigsResponse answers a [ListBYOKConfigsRequest].
type BYOKConfigsResponse struct {
	Configs []BYOKConfig `json:"configs"` // as the user has set them
}

// BYOKConfigResponse answers a [CreateBYOKConfigRequest].
type BYOKConfigResponse struct {
	Config BYOKConfig `json:"config"` // as stored
}

// RemoteProjectionResponse answers an [EnableRemoteProjectionRequest] or a
// [DisableRemoteProjectionRequest].
type RemoteProjectionResponse struct {
	RemoteSessionID string `json:"remote_session_id,omitempty"` // the session that shows this one
	LastSequenceNum int64  `json:"last_sequence_num,omitempty"` // the last event sent; pass it as FromSequenceNum to continue
}
