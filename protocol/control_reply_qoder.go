package protocol

// The answers in this file are Qoder's alone.

// GoalResponse answers a [SetGoalRequest] or a [GetGoalRequest]; nil means
// that there is none.
type GoalResponse struct {
	Goal *Goal `json:"goal"`
}

// ClearGoalResponse answers a [ClearGoalRequest].
type ClearGoalResponse struct {
	Cleared bool `json:"cleared"`
}

// GoalMaxTurnsResponse answers a [SetGoalMaxTurnsRequest].
type GoalMaxTurnsResponse struct {
	GoalMaxTurns int `json:"goal_max_turns"`
}

// PlanModeResponse answers a [SetPlanModeRequest] or a [GetPlanModeRequest].
type PlanModeResponse struct {
	PlanMode PlanMode `json:"plan_mode"`
}

// RewindResponse answers a [RewindRequest]. It can be a success and yet say
// that nothing was done.
type RewindResponse struct {
	Status              string `json:"status,omitempty"` // rejected, …
	TargetUserMessageID string `json:"targetUserMessageId,omitempty"`
	Scope               string `json:"scope,omitempty"`
	Error               string `json:"error,omitempty"`
}

// SuccessResponse answers a [ValidateBYOKModelRequest] or a
// [CheckBYOKConfigRequest].
type SuccessResponse struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty"`
}

// BYOKProvidersResponse answers a [GetBYOKConfigRequest].
type BYOKProvidersResponse struct {
	Providers []BYOKProvider `json:"providers"`
}

// BYOKProvider is a provider of models of the user's own.
type BYOKProvider struct {
	Key         string          `json:"key"`
	DisplayName string          `json:"display_name"`
	APIKeyURL   string          `json:"api_key_url,omitempty"`
	URL         string          `json:"url,omitempty"`
	Fields      []BYOKField     `json:"fields,omitempty"`
	Types       []BYOKModelType `json:"types,omitempty"`
}

// BYOKField is a field that the user must fill in.
type BYOKField struct {
	Key         string `json:"key"`
	DisplayName string `json:"display_name"`
	Type        string `json:"type"` // free_input, …
	Mandatory   bool   `json:"mandatory,omitempty"`
}

// BYOKModelType is a group of models.
type BYOKModelType struct {
	Key         string          `json:"key,omitempty"`
	DisplayName string          `json:"display_name"`
	Models      []BYOKModelInfo `json:"models"`
}

// BYOKModelInfo is a model of a provider.
type BYOKModelInfo struct {
	Key            string `json:"key"`
	DisplayName    string `json:"display_name"`
	IsVL           bool   `json:"is_vl"` // reads images
	IsReasoning    bool   `json:"is_reasoning"`
	Format         string `json:"format"`
	MaxInputTokens int64  `json:"max_input_tokens"`
}

// BYOKConfigsResponse answers a [ListBYOKConfigsRequest].
type BYOKConfigsResponse struct {
	Configs []BYOKConfig `json:"configs"`
}

// BYOKConfigResponse answers a [CreateBYOKConfigRequest].
type BYOKConfigResponse struct {
	Config BYOKConfig `json:"config"`
}

// RemoteProjectionResponse answers an [EnableRemoteProjectionRequest] or a
// [DisableRemoteProjectionRequest].
type RemoteProjectionResponse struct {
	RemoteSessionID string `json:"remote_session_id,omitempty"`
	LastSequenceNum int64  `json:"last_sequence_num,omitempty"`
}
