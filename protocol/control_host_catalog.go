package protocol

// ListModelsRequest asks for the models. The answer is a [ModelsResponse].
type ListModelsRequest struct{}

// GetModelsRequest is Qoder's list_models. The answer is a [ModelsResponse].
type GetModelsRequest struct {
	FetchStrategy string `json:"fetchStrategy,omitempty"` // cache, …
	UID           string `json:"uid,omitempty"`           // an account id; optional in Qoder's SDK, meaning not documented
}

// ReloadPluginsRequest loads the plugins again. The answer is a
// [ReloadPluginsResponse].
type ReloadPluginsRequest struct {
	// HoldOnCacheImpact prevents a reload that would change the session's
	// tools, and so its prompt cache. The answer says whether it did.
	HoldOnCacheImpact bool           `json:"hold_on_cache_impact,omitempty"`
	AddPlugins        []PluginConfig `json:"add_plugins,omitempty"` // further plugins; those already loaded stay
	// RefuseIfBusy makes the request an error with code reload_plugins_busy
	// while a turn runs or waits.
	RefuseIfBusy bool `json:"refuse_if_busy,omitempty"`
}

// ReloadSkillsRequest loads the skills again. The answer is a
// [ReloadSkillsResponse].
type ReloadSkillsRequest struct{}

// ReloadOutputStylesRequest loads the output styles again. The answer is a
// [ReloadOutputStylesResponse].
type ReloadOutputStylesRequest struct{}

// ListPluginsRequest asks Qoder for the plugins. The answer is a
// [PluginsResponse].
type ListPluginsRequest struct{}

// FileSuggestionsRequest asks for files whose names match. The answer is a
// [FileSuggestionsResponse].
type FileSuggestionsRequest struct {
	Query string `json:"query"` // part of a path, as a person types it
}

// BinaryVersionRequest asks for the version of the program. The answer is a
// [BinaryVersionResponse].
type BinaryVersionRequest struct{}

// HooksListingRequest asks for the hooks of all settings. The answer is a
// [HooksListingResponse].
type HooksListingRequest struct{}

// ListPermissionRulesRequest asks for the permission rules. The answer is a
// [PermissionRulesResponse].
type ListPermissionRulesRequest struct{}

// RegisterRepoRootRequest adds a directory below the working directory, or
// below one that was added at launch, to the workspace. Answered with a
// [RegisterRepoRootResponse] (observed on Claude Code 2.1.329).
type RegisterRepoRootRequest struct {
	Directory      string `json:"directory"`                  // absolute
	ReloadClaudeMD bool   `json:"reload_claude_md,omitempty"` // also read the directory's CLAUDE.md
	ReloadPlugins  bool   `json:"reload_plugins,omitempty"`   // also load the directory's plugins
	ReloadSkills   bool   `json:"reload_skills,omitempty"`    // also load the directory's skills
}

// SetColorRequest sets the color of the session. No answer value is declared.
type SetColorRequest struct {
	Color string `json:"color"` // a color name of the agent's own; the set is not documented
}

// AccountInfoRequest asks Qoder for the account. The answer is an
// [AccountInfoResponse].
type AccountInfoRequest struct{}

// UsageInfoRequest asks Qoder for its usage. The answer is a [UsageInfo].
type UsageInfoRequest struct{}

// AddDirectoriesRequest adds directories to Qoder's workspace. The answer is
// an [AddDirectoriesResponse].
type AddDirectoriesRequest struct {
	Directories []string `json:"directories"` // a relative one is resolved by the agent
}

// SetProxyRequest sets Qoder's proxy; null takes it away. The answer is a
// [ProxyResponse].
type SetProxyRequest struct {
	Proxy *string `json:"proxy"` // may hold a password
}

// GetPlanRequest asks for the plan. The answer is a [PlanResponse].
type GetPlanRequest struct{}

// GetStatusRequest asks for the status page. The answer is a [StatusResponse].
type GetStatusRequest struct{}

// ExportConversationRequest asks for the conversation as text. The answer is a
// [TextResponse].
type ExportConversationRequest struct{}

// SubmitFeedbackRequest sends feedback to the vendor. The form of the answer
// has not been observed.
type SubmitFeedbackRequest struct {
	Description string `json:"description"`        // what the person wrote
	Surface     string `json:"surface,omitempty"`  // cli, ide, sdk, …
	DraftID     string `json:"draft_id,omitempty"` // a uuid
}

// SetHasSubscribersRequest says whether anybody watches; null means that the
// host does not know. No answer value; an older CLI refuses it.
type SetHasSubscribersRequest struct {
	HasSubscribers *bool `json:"has_subscribers"` // null counts as true
}

// RemoteControlRequest turns remote control on and off. Claude's SDK has the
// name only.
type RemoteControlRequest struct {
	Enabled bool `json:"enabled"` // false turns it off
}

// Subtype implements [Request].
func (ListModelsRequest) Subtype() string { return "list_models" }

// Subtype implements [Request].
func (GetModelsRequest) Subtype() string { return "get_models" }

// Subtype implements [Request].
func (ReloadPluginsRequest) Subtype() string { return "reload_plugins" }

// Subtype implements [Request].
func (ReloadSkillsRequest) Subtype() string { return "reload_skills" }

// Subtype implements [Request].
func (ReloadOutputStylesRequest) Subtype() string { return "reload_output_styles" }

// Subtype implements [Request].
func (ListPluginsRequest) Subtype() string { return "list_plugins" }

// Subtype implements [Request].
func (FileSuggestionsRequest) Subtype() string { return "file_suggestions" }

// Subtype implements [Request].
func (BinaryVersionRequest) Subtype() string { return "get_binary_version" }

// Subtype implements [Request].
func (HooksListingRequest) Subtype() string { return "get_hooks_listing" }

// Subtype implements [Request].
func (ListPermissionRulesRequest) Subtype() string { return "list_permission_rules" }

// Subtype implements [Request].
func (RegisterRepoRootRequest) Subtype() string { return "register_repo_root" }

// Subtype implements [Request].
func (SetColorRequest) Subtype() string { return "set_color" }

// Subtype implements [Request].
func (AccountInfoRequest) Subtype() string { return "account_info" }

// Subtype implements [Request].
func (UsageInfoRequest) Subtype() string { return "get_usage_info" }

// Subtype implements [Request].
func (AddDirectoriesRequest) Subtype() string { return "add_directories" }

// Subtype implements [Request].
func (SetProxyRequest) Subtype() string { return "set_proxy" }

// Subtype implements [Request].
func (GetPlanRequest) Subtype() string { return "get_plan" }

// Subtype implements [Request].
func (GetStatusRequest) Subtype() string { return "get_status" }

// Subtype implements [Request].
func (ExportConversationRequest) Subtype() string { return "export_conversation" }

// Subtype implements [Request].
func (SubmitFeedbackRequest) Subtype() string { return "submit_feedback" }

// Subtype implements [Request].
func (SetHasSubscribersRequest) Subtype() string { return "set_has_subscribers" }

// Subtype implements [Request].
func (RemoteControlRequest) Subtype() string { return "remote_control" }
