package protocol

import (
	"bytes"
	"encoding/json"
)

// InterruptResponse answers an [InterruptRequest]. Both lists hold the uuids of
// user lines that were queued; those still queued run later.
type InterruptResponse struct {
	StillQueued []string `json:"still_queued"`        // uuids; they still run, unless they are cancelled
	Cancelled   []string `json:"cancelled,omitempty"` // uuids dropped by CancelQueued; nil if it was not set
	// Unread are the parts of the answer that are not lists of strings, as JSON. The
	// interrupt worked nevertheless.
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
	Mode PermissionMode `json:"mode,omitempty"` // the mode from now on; "" from qodercli
}

// SetModelResponse answers a [SetModelRequest] of Claude Code, which takes
// unknown models, too (observed on 2.1.329).
type SetModelResponse struct {
	Model string `json:"model,omitempty"` // as it was requested; not checked against the models there are
}

// ApplyFlagSettingsResponse answers an [ApplyFlagSettingsRequest] of Qoder.
type ApplyFlagSettingsResponse struct {
	Applied AppliedSettings `json:"applied"` // the values in effect, not those requested
}

// AppliedSettings are the settings that took effect, as Claude Code 2.1.329
// declares them; qodercli 1.1.52 sends Effort and Ultracode (observed).
type AppliedSettings struct {
	Model  string `json:"model,omitempty"`  // the model's id
	Effort Effort `json:"effort,omitempty"` // "": the model has no effort levels
	// Advisor is the model that advises; "" if none does.
	Advisor string `json:"advisor,omitempty"`
	// Ultracode is in effect; Requested whether or not it can be; Available
	// if it can be.
	Ultracode           bool `json:"ultracode,omitempty"`
	UltracodeRequested  bool `json:"ultracodeRequested,omitempty"`  // set by the settings
	UltracodeAvailable  bool `json:"ultracodeAvailable,omitempty"`  // allowed for this model and account
	UltrathinkAvailable bool `json:"ultrathinkAvailable,omitempty"` // the word ultrathink raises a turn's effort

	// How files outside of the session's directories are closed to the tools.
	OutsideReadsBlocked  bool `json:"outsideFileToolReadsBlocked,omitempty"`  // the tools may not read there
	OutsideWritesBlocked bool `json:"outsideFileToolWritesBlocked,omitempty"` // the tools may not write there
	// OutsideBlocksCountLaunchFoldersOnly says that only directories given at
	// launch count as the session's.
	OutsideBlocksCountLaunchFoldersOnly bool `json:"outsideBlocksCountLaunchFoldersOnly,omitempty"`
	// ConfigRootsWithheld are the additional directories whose settings do not
	// count; nil: none.
	ConfigRootsWithheld []WithheldConfigRoot `json:"additionalDirectoryConfigRootsWithheld,omitempty"`
	// LaunchEnvLeftOwnFilesInPlace is false if the environment moves the
	// agent's own files, as CLAUDE_CONFIG_DIR does. The blocks let those files
	// through.
	LaunchEnvLeftOwnFilesInPlace bool `json:"launchEnvLeftOwnFilesInPlace,omitempty"`
}

// WithheldConfigRoot is an additional directory whose settings do not count.
type WithheldConfigRoot struct {
	Dir             string `json:"dir"`                       // the additional directory
	Root            string `json:"root,omitempty"`            // where its settings were found; "": not sent
	Reads           string `json:"reads"`                     // root_less_entries, nothing
	Reason          string `json:"reason"`                    // why; the set of values is not documented
	EntriesWithheld int    `json:"entriesWithheld,omitempty"` // how many settings do not count
}

// SettingsResponse answers a [GetSettingsRequest]. The values are in the
// agent's own format.
type SettingsResponse struct {
	Sources   SettingsSources  `json:"sources,omitempty"`   // each file's settings; lowest precedence first on Claude Code
	Effective json.RawMessage  `json:"effective,omitempty"` // all sources merged, an object
	Applied   *AppliedSettings `json:"applied,omitempty"`   // nil: not sent, as by qodercli
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
	Contents      string `json:"contents"`                 // text, or base64 with Encoding base64
	AbsPath       string `json:"absPath"`                  // the file that was read
	RequestedPath string `json:"requested_path,omitempty"` // as it was sent, to match answers to requests
	Truncated     bool   `json:"truncated,omitempty"`      // the file is longer than MaxBytes
	Encoding      string `json:"encoding,omitempty"`       // base64; "" is text
	// Lossy is true if the text could not be shown as it is in the file.
	Lossy bool `json:"lossy,omitempty"`
}

// RewindFilesResponse answers a [RewindFilesRequest]. It can be a success and
// yet say that nothing was done.
type RewindFilesResponse struct {
	CanRewind    bool     `json:"canRewind"`              // false: nothing was changed; Error says why
	Error        string   `json:"error,omitempty"`        // "" with CanRewind
	FilesChanged []string `json:"filesChanged,omitempty"` // paths of the files put back, or to be put back
	Insertions   int64    `json:"insertions,omitempty"`   // lines
	Deletions    int64    `json:"deletions,omitempty"`    // lines
	SkippedLinks int64    `json:"skippedLinks,omitempty"` // files left alone for a link or another irregular file; 0 in a dry run
	// SkippedFiles says of each file that was left alone why, by absolute path. Of the embedded agent.
	SkippedFiles map[string]string `json:"skippedFiles,omitempty"`
	// KeptFiles says where the content is of a file that others had changed since the agent did, by
	// absolute path. Of the embedded agent.
	KeptFiles map[string]string `json:"keptFiles,omitempty"`
}

// BackgroundTasksResponse answers a [BackgroundTasksRequest].
type BackgroundTasksResponse struct {
	// Backgrounded nil means true.
	Backgrounded *bool `json:"backgrounded,omitempty"`
}

// TaskOutputResponse answers a [TaskOutputRequest].
type TaskOutputResponse struct {
	Output     string `json:"output"`      // the last 8 KiB at most; UTF-8, invalid bytes replaced
	TotalBytes int64  `json:"total_bytes"` // length of the whole output
	Truncated  bool   `json:"truncated"`   // Output is shorter than TotalBytes
}

// CancelAsyncMessageResponse answers a [CancelAsyncMessageRequest].
type CancelAsyncMessageResponse struct {
	Cancelled bool `json:"cancelled"` // false: the line was not queued any more, or never
}

// SessionTitleResponse answers a [GenerateSessionTitleRequest]; nil means that
// none was found.
type SessionTitleResponse struct {
	Title *string `json:"title"` // null from qodercli if the model failed (observed on 1.1.52)
}

// SideQuestionResponse answers a [SideQuestionRequest].
type SideQuestionResponse struct {
	Response string `json:"response"` // the answer, Markdown
	// Synthetic is true if no model wrote the response.
	Synthetic       bool             `json:"synthetic,omitempty"`
	RefusalFallback *RefusalFallback `json:"refusal_fallback,omitempty"` // nil: the session's model answered
}

// RefusalFallback says that another model answered.
type RefusalFallback struct {
	OriginalModel string `json:"original_model"` // the model that refused
	FallbackModel string `json:"fallback_model"` // the model that answered
	Content       string `json:"content"`        // a notice for people
}

// SetCwdResponse answers a [SetCwdRequest].
type SetCwdResponse struct {
	Status              string `json:"status"`                         // ok, needs_trust, rejected
	Cwd                 string `json:"cwd,omitempty"`                  // the directory from now on; only with status ok
	Changed             bool   `json:"changed,omitempty"`              // false: it was the directory already
	TranscriptRelocated bool   `json:"transcript_relocated,omitempty"` // the transcript is where a resume from Cwd looks for it
	// Directory is the directory that must be trusted; only with needs_trust.
	Directory string `json:"directory,omitempty"`
	// Reason and Message say why it was rejected: not_found, … (observed on
	// Claude Code 2.1.329).
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"` // for people
}

// ClaimSessionResponse answers a [ClaimSessionRequest]. A refusal is an error whose
// text begins with its reason: not_a_spare, already_claimed, busy, turn_started,
// cwd_not_found, env_key_not_claimable:<KEY>, …
type ClaimSessionResponse struct {
	Status string `json:"status"` // ok
	// Cwd is where the session runs; empty for a path that cannot be shown.
	Cwd       string `json:"cwd,omitempty"`
	SessionID string `json:"session_id"`          // the agent's session
	ParkedMS  Millis `json:"parked_ms,omitempty"` // how long the process waited to be claimed, in milliseconds
	// SDKMCPSettled says that the in-process servers were connected by then.
	SDKMCPSettled bool `json:"sdk_mcp_settled"`
	// Initialize is the initialize response for Cwd, if IncludeInitialize was set.
	Initialize json.RawMessage `json:"initialize,omitempty"`
	// WorkspaceTrustRecorded answers WorkspaceTrust.
	WorkspaceTrustRecorded *bool `json:"workspace_trust_recorded,omitempty"`
}

// TextResponse answers a [SessionCostRequest] or an
// [ExportConversationRequest].
type TextResponse struct {
	Text            string `json:"text"`                       // for people: a cost report, or the conversation
	DefaultFilename string `json:"default_filename,omitempty"` // a name to save a conversation under; "" for a cost report
}

// PlanResponse answers a [GetPlanRequest].
type PlanResponse struct {
	Exists  bool   `json:"exists"`            // false: no plan has been written
	Content string `json:"content,omitempty"` // Markdown
	Path    string `json:"path,omitempty"`    // the plan's file
}

// StatusResponse answers a [GetStatusRequest].
type StatusResponse struct {
	Sections []StatusSection `json:"sections"` // in the order of the page
}

// StatusSection is one part of the status page.
type StatusSection struct {
	Title string      `json:"title"` // heading
	Rows  []StatusRow `json:"rows"`  // in the order of the page
}

// StatusRow is one line of the status page.
type StatusRow struct {
	Label string `json:"label,omitempty"` // "": the row is Value alone
	Value string `json:"value"`           // text for people
}

// FileSuggestionsResponse answers a [FileSuggestionsRequest].
type FileSuggestionsResponse struct {
	Suggestions []FileSuggestion `json:"suggestions"`   // in the agent's order
	Cwd         string           `json:"cwd,omitempty"` // what relative paths are relative to
}

// FileSuggestion is a file whose name matches.
type FileSuggestion struct {
	Path  string  `json:"path"`            // relative to Cwd
	Score float64 `json:"score,omitempty"` // how well it matches; the scale is not documented
}

// BinaryVersionResponse answers a [BinaryVersionRequest].
type BinaryVersionResponse struct {
	Version          string `json:"version"`                    // such as 2.1.329
	BuildTime        string `json:"buildTime,omitempty"`        // when it was built; the format is not documented
	OldestDesktopSDK string `json:"oldestDesktopSdk,omitempty"` // the oldest SDK that a desktop app may use with it, x.y.z
}

// ModelsResponse answers a [GetModelsRequest] or a [ListModelsRequest].
type ModelsResponse struct {
	Models []ModelInfo `json:"models"` // empty if Qoder cannot fetch them
}

// ReloadPluginsResponse answers a [ReloadPluginsRequest].
type ReloadPluginsResponse struct {
	Commands   []SlashCommand    `json:"commands"`    // all commands now, not only the plugins'
	Agents     []AgentInfo       `json:"agents"`      // all subagents now, not only the plugins'
	Plugins    []Plugin          `json:"plugins"`     // those that are loaded
	MCPServers []MCPServerStatus `json:"mcpServers"`  // all servers now
	ErrorCount int               `json:"error_count"` // plugins that did not load
	// Held is true if nothing was loaded for the cache's sake.
	Held        bool         `json:"held,omitempty"`
	CacheImpact *CacheImpact `json:"cache_impact,omitempty"` // set with Held
}

// CacheImpact describes how a reload would change the prompt.
type CacheImpact struct {
	MCPServersAdded   []string `json:"mcp_servers_added"`         // server names, plugin:PLUGIN:SERVER
	MCPServersRemoved []string `json:"mcp_servers_removed"`       // server names, plugin:PLUGIN:SERVER
	LSPToolChange     string   `json:"lsp_tool_change,omitempty"` // adds, may-add, removes, may-remove; "": no change
}

// ReloadSkillsResponse answers a [ReloadSkillsRequest].
type ReloadSkillsResponse struct {
	Skills []SlashCommand `json:"skills"` // all skills now
}

// ReloadOutputStylesResponse answers a [ReloadOutputStylesRequest].
type ReloadOutputStylesResponse struct {
	AvailableOutputStyles []string `json:"available_output_styles"` // all names now
}

// PluginsResponse answers a [ListPluginsRequest].
type PluginsResponse struct {
	Plugins []Plugin `json:"plugins"` // those that are loaded
}

// AccountInfoResponse answers an [AccountInfoRequest].
type AccountInfoResponse struct {
	Account AccountInfo `json:"account"` // {} without a login (observed on qodercli 1.1.52)
}

// AddDirectoriesResponse answers an [AddDirectoriesRequest].
type AddDirectoriesResponse struct {
	Added       []string          `json:"added,omitempty"`       // the new ones, as the agent resolved them
	Failed      []FailedDirectory `json:"failed,omitempty"`      // those that could not be added
	Directories []string          `json:"directories,omitempty"` // all additional directories now
}

// RegisterRepoRootResponse answers a [RegisterRepoRootRequest].
type RegisterRepoRootResponse struct {
	Directory string `json:"directory"` // absolute, symbolic links resolved
}

// FailedDirectory is a directory that could not be added.
type FailedDirectory struct {
	Path  string `json:"path"`  // as it was requested
	Error string `json:"error"` // for people
}

// ProxyResponse answers a [SetProxyRequest]; nil means none.
type ProxyResponse struct {
	Proxy *string `json:"proxy"` // the proxy from now on; may hold a password
}

// PermissionRulesResponse answers a [ListPermissionRulesRequest].
type PermissionRulesResponse struct {
	State PermissionRulesState `json:"state"` // the rules of this moment
}

// PermissionRulesState is the state of the permission rules.
type PermissionRulesState struct {
	Rules                []PermissionRuleEntry  `json:"rules"`                // all rules of all sources
	WorkspaceDirectories []WorkspaceDirectory   `json:"workspaceDirectories"` // the directories that the session may work in
	OriginalCwd          string                 `json:"originalCwd"`          // where the session was started
	ManagedOnly          bool                   `json:"managedOnly"`          // only an administrator's rules are in effect
	Errors               []SettingsParseProblem `json:"errors,omitempty"`     // files whose rules are neither listed nor in effect
}

// PermissionRuleEntry is one rule.
type PermissionRuleEntry struct {
	Behavior PermissionBehavior `json:"behavior"` // [BehaviorAllow], [BehaviorDeny] or [BehaviorAsk]
	// Source is userSettings, projectSettings, localSettings, flagSettings,
	// policySettings, cliArg, command, session, ….
	Source      string           `json:"source"`
	Rule        string           `json:"rule"`                  // as stored, such as Bash(git *); may hold control characters
	Description *RuleDescription `json:"description,omitempty"` // the rule in words; nil: no description
	Editability string           `json:"editability"`           // persistent, session, readonly
	NotInEffect bool             `json:"notInEffect,omitempty"` // ManagedOnly turns the rule off
}

// RuleDescription is a rule put into words.
type RuleDescription struct {
	Prefix   string `json:"prefix"`             // the text before Emphasis
	Emphasis string `json:"emphasis,omitempty"` // the part to stress, such as the pattern; may be ""
	Suffix   string `json:"suffix,omitempty"`   // the text after Emphasis; may be ""
}

// WorkspaceDirectory is a directory of the workspace.
type WorkspaceDirectory struct {
	Path   string `json:"path"`   // absolute
	Source string `json:"source"` // a settings source, cliArg (--add-dir) or session
}

// SettingsParseProblem is a settings file that could not be read.
type SettingsParseProblem struct {
	File    string `json:"file,omitempty"` // "": the problem is not a file's
	Path    string `json:"path"`           // the setting, such as permissions.allow; "": the whole file
	Message string `json:"message"`        // for people
}

// HooksListingResponse answers a [HooksListingRequest].
type HooksListingResponse struct {
	Events       []HookEventInfo        `json:"events"`             // those that have hooks, in the order of a session's life
	Hooks        []HookInfo             `json:"hooks"`              // sorted by event, then by the agent's priority
	EventCatalog []HookEventInfo        `json:"eventCatalog"`       // every event that the agent has
	Policy       HookPolicy             `json:"policy"`             // which hooks do not run
	SafeMode     json.RawMessage        `json:"safeMode,omitempty"` // an object; nil unless started with --safe-mode
	BareMode     json.RawMessage        `json:"bareMode,omitempty"` // an object; nil unless started with --bare
	Errors       []SettingsParseProblem `json:"errors,omitempty"`   // files whose hooks are neither listed nor run
}

// HookEventInfo describes a hook event.
type HookEventInfo struct {
	Name            HookEvent `json:"name"`                // one of the Hook constants, or an event of a later release
	Summary         string    `json:"summary"`             // one line for people
	SupportsMatcher bool      `json:"supportsMatcher"`     // false: HookInfo.Matcher is "" for this event
	HookCount       int       `json:"hookCount,omitempty"` // listed hooks; 0 in EventCatalog
}

// HookInfo describes a hook of the settings.
type HookInfo struct {
	Event            HookEvent `json:"event"`                      // when the hook runs
	Matcher          string    `json:"matcher"`                    // "": every tool, or none was set
	Source           string    `json:"source"`                     // where it is configured, such as userSettings
	SourceLabel      string    `json:"sourceLabel"`                // Source for people
	PluginName       string    `json:"pluginName,omitempty"`       // "": not a plugin's
	Type             string    `json:"type"`                       // command, prompt, agent, http, …
	DisplayText      string    `json:"displayText"`                // one line for people
	CommandText      string    `json:"commandText"`                // the command, prompt or URL, control characters made visible
	ContentLabel     string    `json:"contentLabel"`               // what CommandText is, for people: Command, Prompt, URL, …
	Condition        string    `json:"condition,omitempty"`        // a further condition; "": none
	Timeout          float64   `json:"timeout,omitempty"`          // seconds
	StatusMessage    string    `json:"statusMessage,omitempty"`    // shown while the hook runs; "": none
	RunsOnce         bool      `json:"runsOnce,omitempty"`         // removed after its first run
	RunsInBackground bool      `json:"runsInBackground,omitempty"` // the agent does not wait for it
	Disabled         bool      `json:"disabled,omitempty"`         // the policy or the mode keeps it from running
	// Editable is the entry as stored, for an editor; nil if it cannot be
	// changed.
	Editable json.RawMessage `json:"editable,omitempty"`
}

// HookPolicy says which hooks an administrator allows.
type HookPolicy struct {
	DisabledByPolicy bool `json:"disabledByPolicy"`           // an administrator has turned all hooks off
	ManagedOnly      bool `json:"managedOnly"`                // only an administrator's hooks run, and they are not listed
	PluginOnly       bool `json:"pluginOnly"`                 // only hooks of plugins run
	AllDisabled      bool `json:"allDisabled"`                // disableAllHooks is set, by whatever source
	PolicyHookCount  int  `json:"policyHookCount"`            // hooks of the administrator
	PolicyUnreadable bool `json:"policyUnreadable,omitempty"` // the administrator's settings could not be read
}
