package protocol

// NotificationInput comes when the agent would notify a person.
type NotificationInput struct {
	HookBase
	Message          string `json:"message"`
	Title            string `json:"title,omitempty"`
	NotificationType string `json:"notification_type,omitempty"`
}

// UserPromptSubmitInput comes before a prompt is taken up, also for prompts
// that the agent writes about its tasks.
type UserPromptSubmitInput struct {
	HookBase
	Prompt       string `json:"prompt"`
	Source       string `json:"source,omitempty"` // user, sdk, system, loop_wakeup, …
	SessionTitle string `json:"session_title,omitempty"`
}

// UserPromptExpansionInput comes before a slash command or an MCP prompt is
// expanded.
type UserPromptExpansionInput struct {
	HookBase
	ExpansionType string `json:"expansion_type"` // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`
	CommandArgs   string `json:"command_args"`
	CommandSource string `json:"command_source,omitempty"`
	Prompt        string `json:"prompt"`
}

// SessionStartInput comes when a session begins, or begins anew.
type SessionStartInput struct {
	HookBase
	Source                   string  `json:"source"` // startup, resume, clear, compact, fork
	Model                    string  `json:"model,omitempty"`
	SessionTitle             string  `json:"session_title,omitempty"`
	SecondsSinceLastResponse float64 `json:"seconds_since_last_response,omitempty"`
	ContextTokens            int64   `json:"context_tokens,omitempty"`
	PromptCacheLikelyExpired bool    `json:"prompt_cache_likely_expired,omitempty"`
	EstimatedCacheWriteUSD   float64 `json:"estimated_cache_write_usd,omitempty"`
}

// SessionEndInput comes when a session ends.
type SessionEndInput struct {
	HookBase
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other, …
}

// StopInput comes when the agent is about to end its turn.
type StopInput struct {
	HookBase
	// StopHookActive is true if a Stop hook has already sent the agent back
	// to work in this turn.
	StopHookActive       bool                    `json:"stop_hook_active"`
	LastAssistantMessage string                  `json:"last_assistant_message,omitempty"`
	BackgroundTasks      []BackgroundTaskSummary `json:"background_tasks,omitempty"`
	SessionCrons         []SessionCronSummary    `json:"session_crons,omitempty"`
}

// BackgroundTaskSummary is a task that still runs.
type BackgroundTaskSummary struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	AgentType   string `json:"agent_type,omitempty"`
	Server      string `json:"server,omitempty"`
	Tool        string `json:"tool,omitempty"`
	Name        string `json:"name,omitempty"`
}

// SessionCronSummary is a prompt that the session has scheduled.
type SessionCronSummary struct {
	ID        string `json:"id"`
	Schedule  string `json:"schedule"`
	Recurring bool   `json:"recurring"`
	Prompt    string `json:"prompt"`
}

// StopFailureInput comes when a turn ends in an error of the model's API.
type StopFailureInput struct {
	HookBase
	Error                string `json:"error"`
	ErrorDetails         string `json:"error_details,omitempty"`
	LastAssistantMessage string `json:"last_assistant_message,omitempty"`
}

// SubagentStartInput comes when a subagent starts. AgentID and AgentType of
// the base say which.
type SubagentStartInput struct{ HookBase }

// SubagentStopInput comes when a subagent is about to stop.
type SubagentStopInput struct {
	HookBase
	StopHookActive       bool                    `json:"stop_hook_active"`
	AgentTranscriptPath  string                  `json:"agent_transcript_path,omitempty"`
	LastAssistantMessage string                  `json:"last_assistant_message,omitempty"`
	BackgroundTasks      []BackgroundTaskSummary `json:"background_tasks,omitempty"`
	SessionCrons         []SessionCronSummary    `json:"session_crons,omitempty"`
}

// PreCompactInput comes before a compaction.
type PreCompactInput struct {
	HookBase
	Trigger            string `json:"trigger"` // manual, auto
	CustomInstructions string `json:"custom_instructions,omitempty"`
}

// PostCompactInput comes after a compaction.
type PostCompactInput struct {
	HookBase
	Trigger        string `json:"trigger"` // manual, auto
	CompactSummary string `json:"compact_summary"`
}

// ModelSwitch describes a change of the model.
type ModelSwitch struct {
	FromModel              string  `json:"from_model"`
	ToModel                string  `json:"to_model"`
	RequestedModel         string  `json:"requested_model,omitempty"`
	Source                 string  `json:"source"` // command, picker, sdk, auto, resume
	ContextTokens          int64   `json:"context_tokens"`
	PromptCacheWarm        bool    `json:"prompt_cache_warm"`
	CacheTTL               string  `json:"cache_ttl"` // 5m, 1h
	EstimatedCacheWriteUSD float64 `json:"estimated_cache_write_usd"`
	Pricing                string  `json:"pricing"` // configured, catalog, default
}

// PreModelSwitchInput comes before the model is changed. It is a gate.
type PreModelSwitchInput struct {
	HookBase
	ModelSwitch
}

// PostModelSwitchInput comes after the model was changed.
type PostModelSwitchInput struct {
	HookBase
	ModelSwitch
}

// SetupInput comes on initialization and maintenance runs.
type SetupInput struct {
	HookBase
	Trigger string `json:"trigger"` // init, maintenance
}

// TeammateIdleInput comes when a teammate has nothing to do.
type TeammateIdleInput struct {
	HookBase
	TeammateName string `json:"teammate_name"`
	TeamName     string `json:"team_name"`
}

// TeamTask is a task of the model's list. The names are those of the team's
// member that works on it; none outside a team.
type TeamTask struct {
	TaskID          string `json:"task_id"`
	TaskSubject     string `json:"task_subject"`
	TaskDescription string `json:"task_description,omitempty"`
	TeammateName    string `json:"teammate_name,omitempty"`
	TeamName        string `json:"team_name,omitempty"`
}

// TaskCreatedInput comes when the model has put a task on its list, of a team
// or its own.
type TaskCreatedInput struct {
	HookBase
	TeamTask
}

// TaskCompletedInput comes when the model would mark a task as done.
type TaskCompletedInput struct {
	HookBase
	TeamTask
}

// ConfigChangeInput comes when a settings file changed.
type ConfigChangeInput struct {
	HookBase
	Source   string `json:"source"` // user_settings, project_settings, …, skills
	FilePath string `json:"file_path,omitempty"`
}

// WorktreeCreateInput comes when a git worktree is wanted.
type WorktreeCreateInput struct {
	HookBase
	Name string `json:"name"`
}

// WorktreeRemoveInput comes when a git worktree is to go.
type WorktreeRemoveInput struct {
	HookBase
	WorktreePath string `json:"worktree_path"`
}

// InstructionsLoadedInput comes when an instruction file was loaded.
type InstructionsLoadedInput struct {
	HookBase
	LoadReason      string   `json:"load_reason"` // session_start, nested_traversal, path_glob_match, include, compact
	FilePath        string   `json:"file_path,omitempty"`
	MemoryType      string   `json:"memory_type,omitempty"` // User, Project, Local, Managed
	Globs           []string `json:"globs,omitempty"`
	TriggerFilePath string   `json:"trigger_file_path,omitempty"`
	ParentFilePath  string   `json:"parent_file_path,omitempty"`
}

// CwdChangedInput comes when the working directory changed.
type CwdChangedInput struct {
	HookBase
	OldCwd string `json:"old_cwd"`
	NewCwd string `json:"new_cwd"`
}

// FileChangedInput comes when a watched file changed.
type FileChangedInput struct {
	HookBase
	FilePath string `json:"file_path"`
	// Change is change, add or unlink.
	Change string `json:"event"`
}

// DirectoryAddedInput comes when a directory was added to the workspace.
type DirectoryAddedInput struct {
	HookBase
	Directory string `json:"directory"`
	Source    string `json:"source"` // slash_command, register_repo_root
}

// MessageDisplayInput comes before text of the main agent is shown.
type MessageDisplayInput struct {
	HookBase
	TurnID    string `json:"turn_id"`
	MessageID string `json:"message_id"`
	Index     int    `json:"index"`
	Final     bool   `json:"final"`
	Delta     string `json:"delta"`
}
