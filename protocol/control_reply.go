package protocol

import (
	"bytes"
	"encoding/json"
)

// InterruptResponse answers an [InterruptRequest]. Both lists hold the uuids of
// user lines that were queued; those still queued run later.
type InterruptResponse struct {
	StillQueued []string `json:"still_queued"`
	Cancelled   []string `json:"cancelled,omitempty"`
	// Unread is what is no list, or no string of a list, as JSON: the interrupt
	// worked all the same.
	Unread []string `json:"-"`
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads what can be read, and never
// fails.
func (r *InterruptResponse) UnmarshalJSON(data []byte) error {
	*r = InterruptResponse{}
	var lists struct {
		StillQueued json.RawMessage `json:"still_queued"`
		Cancelled   json.RawMessage `json:"cancelled"`
	}
	if err := Unmarshal(data, &lists); err != nil {
		r.Unread = []string{string(data)}
		return nil //nolint:nilerr // the interrupt worked, whatever its receipt says
	}
	r.StillQueued = r.readable(lists.StillQueued)
	r.Cancelled = r.readable(lists.Cancelled)
	return nil
}

// readable returns the strings of a list, and notes the rest.
func (r *InterruptResponse) readable(list json.RawMessage) []string {
	var all []json.RawMessage
	if isNull(list) {
		return nil
	}
	if Unmarshal(list, &all) != nil {
		r.Unread = append(r.Unread, string(list))
		return nil
	}
	ids := make([]string, 0, len(all))
	for _, one := range all {
		var id *string
		if Unmarshal(one, &id) != nil || id == nil {
			r.Unread = append(r.Unread, string(one))
			continue
		}
		ids = append(ids, *id)
	}
	return ids
}

// SetPermissionModeResponse answers a [SetPermissionModeRequest].
type SetPermissionModeResponse struct {
	Mode PermissionMode `json:"mode,omitempty"`
}

// SetModelResponse answers a [SetModelRequest] of Claude Code, which takes
// unknown models, too (observed on 2.1.329).
type SetModelResponse struct {
	Model string `json:"model,omitempty"`
}

// ApplyFlagSettingsResponse answers an [ApplyFlagSettingsRequest] of Qoder.
type ApplyFlagSettingsResponse struct {
	Applied AppliedSettings `json:"applied"`
}

// AppliedSettings are the settings that took effect, as Claude Code 2.1.329
// declares them; qodercli 1.1.52 sends Effort and Ultracode (observed).
type AppliedSettings struct {
	Model  string `json:"model,omitempty"`
	Effort Effort `json:"effort,omitempty"`
	// Advisor is the model that advises; "" if none does.
	Advisor string `json:"advisor,omitempty"`
	// Ultracode is in effect; Requested whether or not it can be; Available
	// if it can be.
	Ultracode           bool `json:"ultracode,omitempty"`
	UltracodeRequested  bool `json:"ultracodeRequested,omitempty"`
	UltracodeAvailable  bool `json:"ultracodeAvailable,omitempty"`
	UltrathinkAvailable bool `json:"ultrathinkAvailable,omitempty"`

	// How files outside of the session's directories are closed to the tools.
	OutsideReadsBlocked                 bool                 `json:"outsideFileToolReadsBlocked,omitempty"`
	OutsideWritesBlocked                bool                 `json:"outsideFileToolWritesBlocked,omitempty"`
	OutsideBlocksCountLaunchFoldersOnly bool                 `json:"outsideBlocksCountLaunchFoldersOnly,omitempty"`
	ConfigRootsWithheld                 []WithheldConfigRoot `json:"additionalDirectoryConfigRootsWithheld,omitempty"`
	LaunchEnvLeftOwnFilesInPlace        bool                 `json:"launchEnvLeftOwnFilesInPlace,omitempty"`
}

// WithheldConfigRoot is an additional directory whose settings do not count.
type WithheldConfigRoot struct {
	Dir             string `json:"dir"`
	Root            string `json:"root,omitempty"`
	Reads           string `json:"reads"` // root_less_entries, nothing
	Reason          string `json:"reason"`
	EntriesWithheld int    `json:"entriesWithheld,omitempty"`
}

// SettingsResponse answers a [GetSettingsRequest]. The values are in the
// agent's own format.
type SettingsResponse struct {
	Sources   SettingsSources  `json:"sources,omitempty"`
	Effective json.RawMessage  `json:"effective,omitempty"`
	Applied   *AppliedSettings `json:"applied,omitempty"`
	// ServedSettingsState says whether an organization serves settings:
	// ineligible, … (observed on Claude Code 2.1.329).
	ServedSettingsState string `json:"served_settings_state,omitempty"`
}

// SettingsSources are the settings by source. On the wire they are a list of
// {source, settings} (observed on Claude Code 2.1.329) or an object (observed
// on qodercli 1.1.52); of a list the last entry of a source counts.
type SettingsSources map[string]json.RawMessage

// UnmarshalJSON implements [json.Unmarshaler].
func (s *SettingsSources) UnmarshalJSON(b []byte) error {
	if trimmed := bytes.TrimSpace(b); len(trimmed) == 0 || trimmed[0] != '[' {
		var object map[string]json.RawMessage
		if err := Unmarshal(b, &object); err != nil {
			return err
		}
		*s = object
		return nil
	}
	var list []struct {
		Source   string          `json:"source"`
		Settings json.RawMessage `json:"settings"`
	}
	if err := Unmarshal(b, &list); err != nil {
		return err
	}
	*s = make(SettingsSources, len(list))
	for _, e := range list {
		(*s)[e.Source] = e.Settings
	}
	return nil
}

// ReadFileResponse answers a [ReadFileRequest].
type ReadFileResponse struct {
	Contents      string `json:"contents"`
	AbsPath       string `json:"absPath"`
	RequestedPath string `json:"requested_path,omitempty"`
	Truncated     bool   `json:"truncated,omitempty"`
	Encoding      string `json:"encoding,omitempty"` // base64; "" is text
	// Lossy is true if the text could not be shown as it is in the file.
	Lossy bool `json:"lossy,omitempty"`
}

// RewindFilesResponse answers a [RewindFilesRequest]. It can be a success and
// yet say that nothing was done.
type RewindFilesResponse struct {
	CanRewind    bool     `json:"canRewind"`
	Error        string   `json:"error,omitempty"`
	FilesChanged []string `json:"filesChanged,omitempty"`
	Insertions   int64    `json:"insertions,omitempty"` // lines
	Deletions    int64    `json:"deletions,omitempty"`  // lines
	SkippedLinks int64    `json:"skippedLinks,omitempty"`
}

// BackgroundTasksResponse answers a [BackgroundTasksRequest].
type BackgroundTasksResponse struct {
	// Backgrounded nil means true.
	Backgrounded *bool `json:"backgrounded,omitempty"`
}

// TaskOutputResponse answers a [TaskOutputRequest].
type TaskOutputResponse struct {
	Output     string `json:"output"`
	TotalBytes int64  `json:"total_bytes"`
	Truncated  bool   `json:"truncated"`
}

// CancelAsyncMessageResponse answers a [CancelAsyncMessageRequest].
type CancelAsyncMessageResponse struct {
	Cancelled bool `json:"cancelled"`
}

// SessionTitleResponse answers a [GenerateSessionTitleRequest]; nil means that
// none was found.
type SessionTitleResponse struct {
	Title *string `json:"title"`
}

// SideQuestionResponse answers a [SideQuestionRequest].
type SideQuestionResponse struct {
	Response string `json:"response"`
	// Synthetic is true if no model wrote the response.
	Synthetic       bool             `json:"synthetic,omitempty"`
	RefusalFallback *RefusalFallback `json:"refusal_fallback,omitempty"`
}

// RefusalFallback says that another model answered.
type RefusalFallback struct {
	OriginalModel string `json:"original_model"`
	FallbackModel string `json:"fallback_model"`
	Content       string `json:"content"`
}

// SetCwdResponse answers a [SetCwdRequest].
type SetCwdResponse struct {
	Status              string `json:"status"` // ok, needs_trust, rejected
	Cwd                 string `json:"cwd,omitempty"`
	Changed             bool   `json:"changed,omitempty"`
	TranscriptRelocated bool   `json:"transcript_relocated,omitempty"`
	// Directory is what must be trusted, with needs_trust.
	Directory string `json:"directory,omitempty"`
	// Reason and Message say why it was rejected: not_found, … (observed on
	// Claude Code 2.1.329).
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ClaimSessionResponse answers a [ClaimSessionRequest]. A refusal is an error whose
// text begins with its reason: not_a_spare, already_claimed, busy, turn_started,
// cwd_not_found, env_key_not_claimable:<KEY>, …
type ClaimSessionResponse struct {
	Status string `json:"status"` // ok
	// Cwd is where the session runs; empty for a path that cannot be shown.
	Cwd       string `json:"cwd,omitempty"`
	SessionID string `json:"session_id"`
	ParkedMS  Millis `json:"parked_ms,omitempty"`
	// SDKMCPSettled says that the in-process servers were connected by then.
	SDKMCPSettled bool `json:"sdk_mcp_settled"`
	// Initialize is what initialize says in Cwd, if it was asked for.
	Initialize json.RawMessage `json:"initialize,omitempty"`
	// WorkspaceTrustRecorded answers WorkspaceTrust.
	WorkspaceTrustRecorded *bool `json:"workspace_trust_recorded,omitempty"`
}

// TextResponse answers a [SessionCostRequest] or an
// [ExportConversationRequest].
type TextResponse struct {
	Text            string `json:"text"`
	DefaultFilename string `json:"default_filename,omitempty"`
}

// PlanResponse answers a [GetPlanRequest].
type PlanResponse struct {
	Exists  bool   `json:"exists"`
	Content string `json:"content,omitempty"`
	Path    string `json:"path,omitempty"`
}

// StatusResponse answers a [GetStatusRequest].
type StatusResponse struct {
	Sections []StatusSection `json:"sections"`
}

// StatusSection is one part of the status page.
type StatusSection struct {
	Title string      `json:"title"`
	Rows  []StatusRow `json:"rows"`
}

// StatusRow is one line of the status page.
type StatusRow struct {
	Label string `json:"label,omitempty"`
	Value string `json:"value"`
}

// FileSuggestionsResponse answers a [FileSuggestionsRequest].
type FileSuggestionsResponse struct {
	Suggestions []FileSuggestion `json:"suggestions"`
	Cwd         string           `json:"cwd,omitempty"`
}

// FileSuggestion is a file whose name matches.
type FileSuggestion struct {
	Path  string  `json:"path"`
	Score float64 `json:"score,omitempty"`
}

// BinaryVersionResponse answers a [BinaryVersionRequest].
type BinaryVersionResponse struct {
	Version          string `json:"version"`
	BuildTime        string `json:"buildTime,omitempty"`
	OldestDesktopSDK string `json:"oldestDesktopSdk,omitempty"`
}

// ModelsResponse answers a [GetModelsRequest] or a [ListModelsRequest].
type ModelsResponse struct {
	Models []ModelInfo `json:"models"`
}

// ReloadPluginsResponse answers a [ReloadPluginsRequest].
type ReloadPluginsResponse struct {
	Commands   []SlashCommand    `json:"commands"`
	Agents     []AgentInfo       `json:"agents"`
	Plugins    []Plugin          `json:"plugins"`
	MCPServers []MCPServerStatus `json:"mcpServers"`
	ErrorCount int               `json:"error_count"`
	// Held is true if nothing was loaded for the cache's sake.
	Held        bool         `json:"held,omitempty"`
	CacheImpact *CacheImpact `json:"cache_impact,omitempty"`
}

// CacheImpact says what loading would change in the prompt.
type CacheImpact struct {
	MCPServersAdded   []string `json:"mcp_servers_added"`
	MCPServersRemoved []string `json:"mcp_servers_removed"`
	LSPToolChange     string   `json:"lsp_tool_change,omitempty"`
}

// ReloadSkillsResponse answers a [ReloadSkillsRequest].
type ReloadSkillsResponse struct {
	Skills []SlashCommand `json:"skills"`
}

// ReloadOutputStylesResponse answers a [ReloadOutputStylesRequest].
type ReloadOutputStylesResponse struct {
	AvailableOutputStyles []string `json:"available_output_styles"`
}

// PluginsResponse answers a [ListPluginsRequest].
type PluginsResponse struct {
	Plugins []Plugin `json:"plugins"`
}

// AccountInfoResponse answers an [AccountInfoRequest].
type AccountInfoResponse struct {
	Account AccountInfo `json:"account"`
}

// AddDirectoriesResponse answers an [AddDirectoriesRequest].
type AddDirectoriesResponse struct {
	Added       []string          `json:"added,omitempty"`
	Failed      []FailedDirectory `json:"failed,omitempty"`
	Directories []string          `json:"directories,omitempty"`
}

// RegisterRepoRootResponse answers a [RegisterRepoRootRequest].
type RegisterRepoRootResponse struct {
	Directory string `json:"directory"` // absolute, symbolic links resolved
}

// FailedDirectory is a directory that could not be added.
type FailedDirectory struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// ProxyResponse answers a [SetProxyRequest]; nil means none.
type ProxyResponse struct {
	Proxy *string `json:"proxy"`
}

// PermissionRulesResponse answers a [ListPermissionRulesRequest].
type PermissionRulesResponse struct {
	State PermissionRulesState `json:"state"`
}

// PermissionRulesState is the state of the permission rules.
type PermissionRulesState struct {
	Rules                []PermissionRuleEntry  `json:"rules"`
	WorkspaceDirectories []WorkspaceDirectory   `json:"workspaceDirectories"`
	OriginalCwd          string                 `json:"originalCwd"`
	ManagedOnly          bool                   `json:"managedOnly"`
	Errors               []SettingsParseProblem `json:"errors,omitempty"`
}

// PermissionRuleEntry is one rule.
type PermissionRuleEntry struct {
	Behavior    PermissionBehavior `json:"behavior"`
	Source      string             `json:"source"`
	Rule        string             `json:"rule"`
	Description *RuleDescription   `json:"description,omitempty"`
	Editability string             `json:"editability"` // persistent, session, readonly
	NotInEffect bool               `json:"notInEffect,omitempty"`
}

// RuleDescription is a rule put into words.
type RuleDescription struct {
	Prefix   string `json:"prefix"`
	Emphasis string `json:"emphasis,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
}

// WorkspaceDirectory is a directory of the workspace.
type WorkspaceDirectory struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// SettingsParseProblem is a settings file that could not be read.
type SettingsParseProblem struct {
	File    string `json:"file,omitempty"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

// HooksListingResponse answers a [HooksListingRequest].
type HooksListingResponse struct {
	Events       []HookEventInfo        `json:"events"`
	Hooks        []HookInfo             `json:"hooks"`
	EventCatalog []HookEventInfo        `json:"eventCatalog"`
	Policy       HookPolicy             `json:"policy"`
	SafeMode     json.RawMessage        `json:"safeMode,omitempty"`
	BareMode     json.RawMessage        `json:"bareMode,omitempty"`
	Errors       []SettingsParseProblem `json:"errors,omitempty"`
}

// HookEventInfo describes a hook event.
type HookEventInfo struct {
	Name            HookEvent `json:"name"`
	Summary         string    `json:"summary"`
	SupportsMatcher bool      `json:"supportsMatcher"`
	HookCount       int       `json:"hookCount,omitempty"`
}

// HookInfo describes a hook of the settings.
type HookInfo struct {
	Event            HookEvent       `json:"event"`
	Matcher          string          `json:"matcher"`
	Source           string          `json:"source"`
	SourceLabel      string          `json:"sourceLabel"`
	PluginName       string          `json:"pluginName,omitempty"`
	Type             string          `json:"type"`
	DisplayText      string          `json:"displayText"`
	CommandText      string          `json:"commandText"`
	ContentLabel     string          `json:"contentLabel"`
	Condition        string          `json:"condition,omitempty"`
	Timeout          float64         `json:"timeout,omitempty"` // seconds
	StatusMessage    string          `json:"statusMessage,omitempty"`
	RunsOnce         bool            `json:"runsOnce,omitempty"`
	RunsInBackground bool            `json:"runsInBackground,omitempty"`
	Disabled         bool            `json:"disabled,omitempty"`
	Editable         json.RawMessage `json:"editable,omitempty"`
}

// HookPolicy says which hooks an administrator allows.
type HookPolicy struct {
	DisabledByPolicy bool `json:"disabledByPolicy"`
	ManagedOnly      bool `json:"managedOnly"`
	PluginOnly       bool `json:"pluginOnly"`
	AllDisabled      bool `json:"allDisabled"`
	PolicyHookCount  int  `json:"policyHookCount"`
	PolicyUnreadable bool `json:"policyUnreadable,omitempty"`
}
