package protocol

// The requests in this file are Qoder's alone. Its dialect decides what a missing
// capability means.

// SetGoalRequest sets the goal. The answer is a [GoalResponse].
type SetGoalRequest struct {
	Objective     string            `json:"objective"`               // what to reach, in words
	Status        string            `json:"status,omitempty"`        // active, paused
	CreditsBudget Nullable[float64] `json:"credits_budget,omitzero"` // Qoder credits; null or absent: no limit
}

// GetGoalRequest asks for the goal. The answer is a [GoalResponse].
type GetGoalRequest struct{}

// ClearGoalRequest drops the goal. The answer is a [ClearGoalResponse].
type ClearGoalRequest struct{}

// SetGoalMaxTurnsRequest limits the turns of a goal; null is the default. The
// answer is a [GoalMaxTurnsResponse].
type SetGoalMaxTurnsRequest struct {
	MaxTurns *int `json:"max_turns"` // null: the agent's default, 100 on qodercli 1.1.52
}

// SetPlanModeRequest turns plan mode on and off. The answer is a
// [PlanModeResponse].
type SetPlanModeRequest struct {
	Active bool `json:"active"` // false leaves plan mode
}

// GetPlanModeRequest asks for plan mode. The answer is a [PlanModeResponse].
type GetPlanModeRequest struct{}

// RewindRequest goes back to before a user message. The answer is a
// [RewindResponse].
type RewindRequest struct {
	UserMessageID string `json:"user_message_id"`   // a uuid
	Scope         string `json:"scope"`             // both, conversation, …
	DryRun        bool   `json:"dry_run,omitempty"` // only say what would happen
}

// FlushMemoryRequest writes memories out. No answer value.
type FlushMemoryRequest struct{}

// RefreshMemoryRequest makes the agent read its memories again. No answer value.
type RefreshMemoryRequest struct{}

// FlushSkillEvolutionRequest writes skills out. No answer value.
type FlushSkillEvolutionRequest struct{}

// GetBYOKConfigRequest asks for the providers of models that the user brings. The
// answer is a [BYOKProvidersResponse].
type GetBYOKConfigRequest struct{}

// ValidateBYOKModelRequest tries a model that the user brings. The answer is a
// [SuccessResponse].
type ValidateBYOKModelRequest struct {
	Provider string `json:"provider"`        // a [BYOKProvider] key
	Model    string `json:"model"`           // the provider's id of the model
	APIKey   string `json:"api_key"`         // a secret
	URL      string `json:"url,omitempty"`   // overrides the provider's base URL; "": its own
	Style    string `json:"style,omitempty"` // openai, anthropic
}

// ListBYOKConfigsRequest asks for the configured providers. The answer is a
// [BYOKConfigsResponse].
type ListBYOKConfigsRequest struct{}

// CreateBYOKConfigRequest adds a provider. The answer is a
// [BYOKConfigResponse].
type CreateBYOKConfigRequest struct {
	Config BYOKConfig `json:"config"` // the new provider, with its key and models
}

// UpdateBYOKConfigRequest changes a provider. No answer value.
type UpdateBYOKConfigRequest struct {
	Config BYOKConfig `json:"config"` // ProviderID names the one to change
}

// DeleteBYOKConfigRequest removes a provider. No answer value.
type DeleteBYOKConfigRequest struct {
	Target BYOKTarget `json:"target"` // the provider to remove
}

// CheckBYOKConfigRequest tries a provider. The answer is a [SuccessResponse].
type CheckBYOKConfigRequest struct {
	Config BYOKConfig `json:"config"` // the provider to try, with its key
}

// EnableRemoteProjectionRequest mirrors the session to a remote one. The
// answer is a [RemoteProjectionResponse].
type EnableRemoteProjectionRequest struct {
	RemoteSessionID string `json:"remote_session_id"`           // the session that shows this one
	FromSequenceNum int64  `json:"from_sequence_num,omitempty"` // the number of the first event to send; 0: not sent
}

// DisableRemoteProjectionRequest stops mirroring the session; see
// [EnableRemoteProjectionRequest]. The answer is a [RemoteProjectionResponse].
type DisableRemoteProjectionRequest struct{}

// BYOKConfig configures a provider of models that the user brings. It hides and shows
// its key as a [CustomModel] does.
type BYOKConfig struct {
	ProviderID string      `json:"providerId"`         // chosen by the user
	BaseURL    string      `json:"baseUrl,omitempty"`  // of the provider's API
	APIKey     string      `json:"apiKey,omitempty"`   // a secret
	Protocol   string      `json:"protocol,omitempty"` // wire format, such as openai or anthropic
	AuthType   string      `json:"authType,omitempty"` // bearer or api-key
	Model      string      `json:"model,omitempty"`    // id of the model to use
	Models     []BYOKModel `json:"models,omitempty"`   // all models of the provider
}

// BYOKModel is a model of a [BYOKConfig].
type BYOKModel struct {
	Model string `json:"model"` // the provider's id of the model
}

// BYOKTarget names a provider.
type BYOKTarget struct {
	ProviderID string `json:"providerId"` // as in [BYOKConfig]
}

// Subtype implements [Request].
func (SetGoalRequest) Subtype() string { return "set_goal" }

// Subtype implements [Request].
func (GetGoalRequest) Subtype() string { return "get_goal" }

// Subtype implements [Request].
func (ClearGoalRequest) Subtype() string { return "clear_goal" }

// Subtype implements [Request].
func (SetGoalMaxTurnsRequest) Subtype() string { return "set_goal_max_turns" }

// Subtype implements [Request].
func (SetPlanModeRequest) Subtype() string { return "set_plan_mode" }

// Subtype implements [Request].
func (GetPlanModeRequest) Subtype() string { return "get_plan_mode" }

// Subtype implements [Request].
func (RewindRequest) Subtype() string { return "rewind" }

// Subtype implements [Request].
func (FlushMemoryRequest) Subtype() string { return "flush_memory" }

// Subtype implements [Request].
func (RefreshMemoryRequest) Subtype() string { return "refresh_memory" }

// Subtype implements [Request].
func (FlushSkillEvolutionRequest) Subtype() string { return "flush_skill_evolution" }

// Subtype implements [Request].
func (GetBYOKConfigRequest) Subtype() string { return "get_byok_config" }

// Subtype implements [Request].
func (ValidateBYOKModelRequest) Subtype() string { return "validate_byok_model" }

// Subtype implements [Request].
func (ListBYOKConfigsRequest) Subtype() string { return "list_byok_configs" }

// Subtype implements [Request].
func (CreateBYOKConfigRequest) Subtype() string { return "create_byok_config" }

// Subtype implements [Request].
func (UpdateBYOKConfigRequest) Subtype() string { return "update_byok_config" }

// Subtype implements [Request].
func (DeleteBYOKConfigRequest) Subtype() string { return "delete_byok_config" }

// Subtype implements [Request].
func (CheckBYOKConfigRequest) Subtype() string { return "check_byok_config" }

// Subtype implements [Request].
func (EnableRemoteProjectionRequest) Subtype() string { return "enable_remote_projection" }

// Subtype implements [Request].
func (DisableRemoteProjectionRequest) Subtype() string { return "disable_remote_projection" }
