package protocol

// NotificationInput is sent when the agent notifies a person.
type NotificationInput struct {
	HookBase
	Message          string `json:"message"`                     // the text for the person
	Title            string `json:"title,omitempty"`             // "": none
	NotificationType string `json:"notification_type,omitempty"` // which notification; an open set
}

// UserPromptSubmitInput is sent before a prompt is taken up, also for prompts
// that the agent writes about its tasks.
type UserPromptSubmitInput struct {
	HookBase
	Prompt       string `json:"prompt"`                  // the text
	Source       string `json:"source,omitempty"`        // user, sdk, system, loop_wakeup, …
	SessionTitle string `json:"session_title,omitempty"` // "": none yet
}

// UserPromptExpansionInput is sent before a slash command or an MCP prompt is
// expanded.
type UserPromptExpansionInput struct {
	HookBase
	ExpansionType string `json:"expansion_type"`           // slash_command, mcp_prompt
	CommandName   string `json:"command_name"`             // without the slash
	CommandArgs   string `json:"command_args"`             // the text after the command
	CommandSource string `json:"command_source,omitempty"` // where the command is defined; "": not sent
	Prompt        string `json:"prompt"`                   // the text as typed
}

// SessionStartInput is sent when a session starts, is resumed, forked, cleared or compacted.
type SessionStartInput struct {
	HookBase
	Source                   string  `json:"source"`                                // startup, resume, clear, compact, fork
	Model                    string  `json:"model,omitempty"`                       // the session's model; "": not sent
	SessionTitle             string  `json:"session_title,omitempty"`               // "": none yet
	SecondsSinceLastResponse float64 `json:"seconds_since_last_response,omitempty"` // age of the resumed history; 0 for a new session
	ContextTokens            int64   `json:"context_tokens,omitempty"`              // size of the resumed history; 0 for a new session
	// PromptCacheLikelyExpired says that the first call writes ContextTokens to
	// the cache again.
	PromptCacheLikelyExpired bool    `json:"prompt_cache_likely_expired,omitempty"`
	EstimatedCacheWriteUSD   float64 `json:"estimated_cache_write_usd,omitempty"` // what that costs, in US dollars, without the answer
}

// SessionEndInput is sent when a session ends.
type SessionEndInput struct {
	HookBase
	Reason string `json:"reason"` // clear, resume, logout, prompt_input_exit, other, …
}

// StopInput is sent when the agent is about to end its turn.
type StopInput struct {
	HookBase
	// StopHookActive is true if a Stop hook has already sent the agent back
	// to work in this turn.
	StopHookActive       bool                    `json:"stop_hook_active"`
	LastAssistantMessage string                  `json:"last_assistant_message,omitempty"` // the text of the model's last message
	BackgroundTasks      []BackgroundTaskSummary `json:"background_tasks,omitempty"`       // those that still run
	SessionCrons         []SessionCronSummary    `json:"session_crons,omitempty"`          // prompts that will start turns later
}

// BackgroundTaskSummary is a task that still runs.
type BackgroundTaskSummary struct {
	ID          string `json:"id"`                   // as TaskStartedMessage.TaskID
	Type        string `json:"type"`                 // shell, subagent, monitor, workflow, …
	Status      string `json:"status"`               // running or pending
	Description string `json:"description"`          // at most 1,000 characters
	Command     string `json:"command,omitempty"`    // of a shell; at most 1,000 characters
	AgentType   string `json:"agent_type,omitempty"` // of a subagent
	Server      string `json:"server,omitempty"`     // MCP server of a monitor or an MCP task
	Tool        string `json:"tool,omitempty"`       // MCP tool of a monitor or an MCP task
	Name        string `json:"name,omitempty"`       // of a workflow
}

// SessionCronSummary is a prompt that the session has scheduled.
type SessionCronSummary struct {
	ID        string `json:"id"`        // the id that the agent gave it
	Schedule  string `json:"schedule"`  // five cron fields: 0 9 * * 1-5
	Recurring bool   `json:"recurring"` // false: it fires once
	Prompt    string `json:"prompt"`    // at most 1,000 characters
}

// StopFailureInput is sent when a turn ends in an error of the model's API.
type StopFailureInput struct {
	HookBase
	Error                string `json:"error"`                            // as AssistantMessage.Error
	ErrorDetails         string `json:"error_details,omitempty"`          // the API's text; "": none
	LastAssistantMessage string `json:"last_assistant_message,omitempty"` // the text of the model's last message
}

// SubagentStartInput is sent when a subagent starts. AgentID and AgentType of
// the base say which.
type SubagentStartInput struct{ HookBase }

// SubagentStopInput is sent when a subagent is about to stop.
type SubagentStopInput struct {
	HookBase
	// StopHookActive is true if a hook has already sent the subagent back to
	// work.
	StopHookActive       bool                    `json:"stop_hook_active"`
	AgentTranscriptPath  string                  `json:"agent_transcript_path,omitempty"`  // the subagent's transcript, JSON lines
	LastAssistantMessage string                  `json:"last_assistant_message,omitempty"` // the text of the subagent's last message
	BackgroundTasks      []BackgroundTaskSummary `json:"background_tasks,omitempty"`       // those of the session that still run
	SessionCrons         []SessionCronSummary    `json:"session_crons,omitempty"`          // prompts that will start turns later
}

// PreCompactInput is sent before a compaction.
type PreCompactInput struct {
	HookBase
	Trigger            string `json:"trigger"`                       // manual, auto
	CustomInstructions string `json:"custom_instructions,omitempty"` // the text after /compact; "": none
}

// PostCompactInput is sent after a compaction.
type PostCompactInput struct {
	HookBase
	Trigger        string `json:"trigger"`         // manual, auto
	CompactSummary string `json:"compact_summary"` // what replaces the history
}

// ModelSwitch describes a change of the model.
type ModelSwitch struct {
	FromModel      string `json:"from_model"`                // full id
	ToModel        string `json:"to_model"`                  // full id
	RequestedModel string `json:"requested_model,omitempty"` // as it was asked for, such as opus; "": the default
	Source         string `json:"source"`                    // command, picker, sdk, auto, resume
	// ContextTokens are the tokens that the next call sends again; 0 before the
	// first answer.
	ContextTokens          int64   `json:"context_tokens"`
	PromptCacheWarm        bool    `json:"prompt_cache_warm"`         // the switch gives up a cache that is still valid
	CacheTTL               string  `json:"cache_ttl"`                 // 5m, 1h
	EstimatedCacheWriteUSD float64 `json:"estimated_cache_write_usd"` // cost of caching ContextTokens for ToModel, in US dollars
	Pricing                string  `json:"pricing"`                   // configured, catalog, default
}

// PreModelSwitchInput is sent before the model is changed. It is a gate.
type PreModelSwitchInput struct {
	HookBase
	ModelSwitch
}

// PostModelSwitchInput is sent after the model was changed.
type PostModelSwitchInput struct {
	HookBase
	ModelSwitch
}

// SetupInput is sent on initialization and maintenance runs.
type SetupInput struct {
	HookBase
	Trigger string `json:"trigger"` // init, maintenance
}

// TeammateIdleInput is sent when a teammate has nothing to do.
type TeammateIdleInput struct {
	HookBase
	TeammateName string `json:"teammate_name"` // as its team calls it
	TeamName     string `json:"team_name"`     // deprecated by Claude Code: derived from the session
}

// TeamTask is a task of the model's list. The names are those of the team's
// member that works on it; none outside a team.
type TeamTask struct {
	TaskID          string `json:"task_id"`                    // the id on the model's list
	TaskSubject     string `json:"task_subject"`               // one line
	TaskDescription string `json:"task_description,omitempty"` // "": none
	TeammateName    string `json:"teammate_name,omitempty"`    // who works on it; "" outside a team
	TeamName        string `json:"team_name,omitempty"`        // deprecated by Claude Code: derived from the session
}

// TaskCreatedInput is sent when the model has put a task on its list, of a team
// or its own.
type TaskCreatedInput struct {
	HookBase
	TeamTask
}

// TaskCompletedInput is sent before a task of the model's list is marked as done.
type TaskCompletedInput struct {
	HookBase
	TeamTask
}

// ConfigChangeInput is sent when a settings file changed.
type ConfigChangeInput struct {
	HookBase
	Source   string `json:"source"`              // user_settings, project_settings, …, skills
	FilePath string `json:"file_path,omitempty"` // absolute; "": not a single file
}

// WorktreeCreateInput is sent when the agent needs a git worktree.
type WorktreeCreateInput struct {
	HookBase
	Name string `json:"name"` // of the new worktree
}

// WorktreeRemoveInput is sent when a git worktree is to be removed.
type WorktreeRemoveInput struct {
	HookBase
	WorktreePath string `json:"worktree_path"` // absolute
}

// InstructionsLoadedInput is sent when an instruction file was loaded.
type InstructionsLoadedInput struct {
	HookBase
	LoadReason      string   `json:"load_reason"`                 // session_start, nested_traversal, path_glob_match, include, compact
	FilePath        string   `json:"file_path,omitempty"`         // the file; "": not sent
	MemoryType      string   `json:"memory_type,omitempty"`       // User, Project, Local, Managed
	Globs           []string `json:"globs,omitempty"`             // the patterns that matched, with path_glob_match
	TriggerFilePath string   `json:"trigger_file_path,omitempty"` // the file whose reading caused it; "": none
	ParentFilePath  string   `json:"parent_file_path,omitempty"`  // the file that includes it, with include
}

// CwdChangedInput is sent when the working directory changed.
type CwdChangedInput struct {
	HookBase
	OldCwd string `json:"old_cwd"` // absolute
	NewCwd string `json:"new_cwd"` // absolute
}

// FileChangedInput is sent when a watched file changed.
type FileChangedInput struct {
	HookBase
	FilePath string `json:"file_path"` // absolute
	// Change is change, add or unlink.
	Change string `json:"event"`
}

// DirectoryAddedInput is sent when a directory was added to the workspace.
type DirectoryAddedInput struct {
	HookBase
	Directory string `json:"directory"` // absolute
	Source    string `json:"source"`    // slash_command, register_repo_root
}

// MessageDisplayInput is sent before text of the main agent is shown.
type MessageDisplayInput struct {
	HookBase
	TurnID    string `json:"turn_id"`    // a uuid, of the turn
	MessageID string `json:"message_id"` // a uuid, the same for all parts of a message; not the API's id
	Index     int    `json:"index"`      // of this part, from 0
	Final     bool   `json:"final"`      // the last part of the message
	Delta     string `json:"delta"`      // whole lines since the part before; "" is possible in the last part
}
