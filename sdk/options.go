package sdk

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// Options is everything that can be said about a session. The zero value is
// valid (on Qoder, Auth is required) and sends what the vendor's own SDK sends
// when nothing is given; a nil *Options means the zero value everywhere.
//
// Names are the vendors' in Go casing. The comment of a field ends with the
// backends that know it, unless all do. Giving a field to a backend that lacks
// it is a *[ConfigError], or a [Warning] where the vendor's own SDK takes the
// option and does nothing with it. All errors are found before anything
// starts, and are reported together.
//
// A session takes a shallow copy when it is made: fields may be changed
// afterwards, what maps, slices and pointers hold may not.
type Options struct {
	// The agent.

	// Backend is the agent to talk to: Claude, Qoder, InMemory, or any
	// agent.Program such as the scripted one. nil: the one CLI that is
	// installed; none or both is a ConfigError that names them.
	Backend Backend `json:"-"`
	// Runtime runs the session. nil: one that all such sessions share; it has
	// no goroutine while no session is open.
	Runtime *runtime.Runtime `json:"-"`
	// Spawner starts the agent elsewhere: in a container, over SSH. nil: on
	// this machine. Needs Backend. It owns the whole process tree it starts.
	Spawner Spawner `json:"-"`

	// Callbacks. Each may be called many times at once, on goroutines of its
	// own; its context ends when the agent no longer wants the answer. A
	// callback that fails, panics or is late never opens a gate.

	// CanUseTool decides on the tool calls that no rule decides. nil: the
	// agent decides by its permission mode.
	CanUseTool CanUseTool `json:"-"`
	// Policy decides by rules before CanUseTool, which is asked about what the
	// rules leave open; without a CanUseTool that is denied. Deny and ask rules
	// also hold for calls that the agent would not ask about: they are a
	// PreToolUse hook, too. An allow rule does not stand in for a person where
	// the agent asks for one.
	Policy *Policy `json:"policy,omitempty"`
	// PermissionTimeout denies a call that CanUseTool has not decided. 0: it may
	// take for ever; a person may be asleep.
	PermissionTimeout time.Duration `json:"permissionTimeout,omitempty"`
	// Hooks are run at moments of the agent's work. See [OnPreToolUse] and its kin.
	Hooks []Hook `json:"-"`
	// SDKMCPServers are the MCP servers that run in this process. Names are
	// unique, also among MCPServers.
	SDKMCPServers []*MCPServer `json:"-"`
	// ResolveModel chooses the model of each call. Qoder.
	ResolveModel ResolveModel `json:"-"`
	// ResolveModelTimeout fails the call when ResolveModel has not chosen. 0:
	// 500 ms; negative: none. Qoder.
	ResolveModelTimeout time.Duration `json:"resolveModelTimeout,omitempty"`
	// OnElicitation answers what MCP servers ask the person. nil: turned down.
	OnElicitation ElicitationHandler `json:"-"`
	// OnUserDialog shows the dialogs of SupportedDialogKinds, and needs them. Claude.
	OnUserDialog UserDialogHandler `json:"-"`
	// FetchJobToken gets the job tokens that Auth promises. Qoder.
	FetchJobToken FetchJobToken `json:"-"`
	// FetchServiceAccountToken gets the service account's tokens that Auth promises. Qoder.
	FetchServiceAccountToken FetchServiceAccountToken `json:"-"`
	// OnAuthExpired is told, once in a session, that the agent's login is missing or has expired.
	OnAuthExpired func(reason string) `json:"-"`
	// ShouldGenerateMemory decides whether a turn is worth a memory: initialize. Qoder.
	ShouldGenerateMemory TurnGate `json:"-"`
	// ShouldReviewSkills decides whether a turn is worth a review of the skills: initialize. Qoder.
	ShouldReviewSkills TurnGate `json:"-"`
	// ResolveSessionArtifacts says where the files of a session are. Qoder.
	ResolveSessionArtifacts ResolveSessionArtifacts `json:"-"`
	// OnEvent is told what happens to the session: changes of its state,
	// callbacks that failed, restarts, warnings. One event at a time and in
	// order; when it falls behind by more than 1,024 the oldest are lost.
	OnEvent func(EventRecord) `json:"-"`
	// Stderr is told the lines of the agent's stderr. It must be quick: while it
	// runs the agent's stderr is not read.
	Stderr func(line string) `json:"-"`

	// Bounds.

	// Limits bound what a session holds and how long it waits for the agent.
	// Zero fields: initialize 120 s, control requests 60 s, 4096 messages and
	// 4 MiB unread.
	Limits Limits `json:"-"`
	// CloseTimeout bounds the end of a session: of Query when its loop ends,
	// and of Client.Close. What is left by then is killed. 0: 30 s; negative: none.
	CloseTimeout time.Duration `json:"closeTimeout,omitempty"`
	// Graces are the waits on the way down: after the end of stdin, after
	// SIGTERM, for the rest of the output, for the sweep. Zero fields: the
	// backend's own.
	Graces Graces `json:"-"`
	// InterruptGrace is how long a running turn may take to stop before a close
	// goes on without it. 0: the backend's own.
	InterruptGrace time.Duration `json:"interruptGrace,omitempty"`
	// MaxLine is the ceiling for one line of the agent, in bytes; a longer one
	// is skipped and reported as an event. 0: 64 MiB.
	MaxLine int `json:"maxLine,omitempty"`
	// Discard drops messages as they come, for those who want results only:
	// Query then yields nothing, Turn.Result and Run work.
	Discard bool `json:"discard,omitempty"`

	// Process.

	// Cwd is the agent's working directory; empty: the caller's. Not an argument: the process is started there.
	Cwd string `json:"cwd,omitempty"`
	// Env is added to the parent's environment, replacing what is there. (The vendors' SDKs replace the whole
	// environment, and so lose PATH.) Treated as secret.
	Env map[string]string `json:"env,omitempty"`
	// UnsetEnv names variables of the parent that the agent must not see.
	UnsetEnv []string `json:"unsetEnv,omitempty"`
	// CleanEnv starts from an empty environment; then Env should hold PATH and HOME.
	CleanEnv bool `json:"cleanEnv,omitempty"`
	// PathToExecutable is the agent's program (pathToClaudeCodeExecutable, pathToQoderCLIExecutable, cli_path);
	// empty: Traits.ExecutableEnv, then Traits.ExecutableNames on PATH. A .js, .mjs, .cjs, .ts, .tsx or .jsx file
	// is run by Executable.
	PathToExecutable string `json:"pathToExecutable,omitempty"`
	// Executable is the JavaScript runtime for a script: node, bun, deno or a path; empty: node.
	Executable string `json:"executable,omitempty"`
	// ExecutableArgs are the runtime's own arguments, placed before the script.
	ExecutableArgs []string `json:"executableArgs,omitempty"`
	// ExtraArgs are passed on as --key value, or --key when the value is absent, in the order of their keys.
	ExtraArgs map[string]Opt[string] `json:"extraArgs,omitempty"`
	// Debug turns on the agent's debug output: --debug.
	Debug bool `json:"debug,omitempty"`
	// DebugFile is where the agent writes its debug log: --debug-file. Claude; no effect on Qoder.
	DebugFile string `json:"debugFile,omitempty"`

	// Login.

	// Auth is how qodercli logs in; required there. Goes to a 0600 file. Qoder.
	Auth *Auth `json:"auth,omitempty"`
	// Proxy is the URL of the proxy to reach the model through: --proxy, or, with a user name in it, HTTPS_PROXY
	// and a set_proxy request. Qoder.
	Proxy string `json:"proxy,omitempty"`
	// VPCEndpoint becomes QODER_VPC_ENDPOINT. Qoder.
	VPCEndpoint string `json:"vpcEndpoint,omitempty"`

	// Model.

	// Model is a model's name or alias: --model; empty: the agent's default.
	Model string `json:"model,omitempty"`
	// FallbackModel is used when Model is overloaded, several separated by commas: --fallback-model. Claude.
	FallbackModel string `json:"fallbackModel,omitempty"`
	// Thinking sets extended thinking: --thinking, --max-thinking-tokens, --thinking-display. Claude.
	Thinking *Thinking `json:"thinking,omitempty"`
	// MaxThinkingTokens is the older form of Thinking: 0 disables. Not together with Thinking. Claude.
	MaxThinkingTokens Opt[int] `json:"maxThinkingTokens,omitzero"`
	// Effort is low, medium, high, xhigh or max: --effort. Claude.
	Effort string `json:"effort,omitempty"`
	// Betas are beta headers for the model's API: --betas. Claude.
	Betas []string `json:"betas,omitempty"`
	// OutputFormat asks for structured output: --json-schema and initialize. Claude.
	OutputFormat *OutputFormat `json:"outputFormat,omitempty"`
	// OutputRepairs is how often [RunAs] asks the model again, each time for a turn's price, when its answer is missing
	// or does not fit. 0: once; negative: never. No wire effect.
	OutputRepairs int `json:"outputRepairs,omitempty"`
	// ModelRequestPatches goes to initialize as it is. Qoder.
	ModelRequestPatches json.RawMessage `json:"modelRequestPatches,omitempty"`

	// Limits.

	// MaxTurns limits the model calls of a turn: --max-turns; absent: no limit, 0 is sent as 0.
	MaxTurns Opt[int] `json:"maxTurns,omitzero"`
	// MaxBudgetUSD ends the turn when the session has cost more: --max-budget-usd. Claude.
	MaxBudgetUSD Opt[float64] `json:"maxBudgetUsd,omitzero"`
	// TaskBudget is the total of tokens the model is told to work within: --task-budget. Claude.
	TaskBudget Opt[int] `json:"taskBudget,omitzero"`
	// GoalMaxTurns limits the turns spent on a goal: a set_goal_max_turns request after initialize. Qoder.
	GoalMaxTurns Opt[int] `json:"goalMaxTurns,omitzero"`
	// InitializeTimeout bounds the start of the agent, unless Limits.Initialize does, and is told to qodercli in
	// initialize; 0: 120 s.
	InitializeTimeout time.Duration `json:"initializeTimeout,omitempty"`

	// Prompt.

	// SystemPrompt replaces or extends the agent's system prompt. Zero: Claude gets an empty one (the vendor's
	// wire for "not given"), Qoder its own; use PresetPrompt() for Claude Code's.
	SystemPrompt SystemPrompt `json:"systemPrompt,omitzero"`
	// PlanModeInstructions replaces the workflow of plan mode. Claude.
	PlanModeInstructions string `json:"planModeInstructions,omitempty"`
	// Title is the session's title; empty: the agent makes one. Claude.
	Title string `json:"title,omitempty"`
	// VerbatimPrompts keeps user messages as they are (client_composed on each line). Claude.
	VerbatimPrompts bool `json:"verbatimPrompts,omitempty"`
	// CustomContext is an object added to every user message that has none of its own. Qoder.
	CustomContext json.RawMessage `json:"customContext,omitempty"`
	// Memory turns on the agent's memory: initialize. Qoder.
	Memory *Memory `json:"memory,omitempty"`
	// Evolution turns on skill evolution: initialize. Qoder.
	Evolution *Evolution `json:"evolution,omitempty"`

	// Tools and permissions.

	// Tools are the built-in tools the model sees: --tools. Zero: Claude's default set, Qoder's SDK list.
	Tools Set `json:"tools,omitzero"`
	// AllowedTools are permission rules that allow without asking, such as Read or Bash(git:*). They hide
	// CanUseTool for the calls they match.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// DisallowedTools are permission rules that deny, or remove a tool. They win over AllowedTools.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// ToolAliases maps a tool name the model calls to the tool that runs instead: initialize. Claude.
	ToolAliases map[string]string `json:"toolAliases,omitempty"`
	// ToolConfig tunes built-in tools. Claude; no effect on Qoder.
	ToolConfig *ToolConfig `json:"toolConfig,omitempty"`
	// PermissionMode is how calls without a rule are decided: --permission-mode; empty: the agent's default.
	PermissionMode PermissionMode `json:"permissionMode,omitempty"`
	// AllowDangerouslySkipPermissions is required by the modes bypassPermissions and yolo.
	AllowDangerouslySkipPermissions bool `json:"allowDangerouslySkipPermissions,omitempty"`
	// PermissionPromptToolName is an MCP tool that decides instead. Not together with a CanUseTool callback.
	PermissionPromptToolName string `json:"permissionPromptToolName,omitempty"`
	// PermissionPrompts is host or none: --permission-prompts. Claude.
	PermissionPrompts string `json:"permissionPrompts,omitempty"`
	// PlanMode sends a set_plan_mode request after initialize. Qoder.
	PlanMode Opt[bool] `json:"planMode,omitzero"`
	// Sandbox confines shell commands; merged into the settings. Claude.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// SecurityScan chooses the scans of generated code; merged into the settings. Qoder.
	SecurityScan *SecurityScan `json:"securityScan,omitempty"`

	// Session.

	// Continue takes up the most recent session of Cwd: --continue.
	Continue bool `json:"continue,omitempty"`
	// Resume takes up a session by id: --resume. It wins over Continue.
	Resume string `json:"resume,omitempty"`
	// ForkSession gives the resumed session a new id: --fork-session.
	ForkSession bool `json:"forkSession,omitempty"`
	// ResumeSessionAt cuts the resumed history after the message with this uuid. Needs Resume.
	ResumeSessionAt string `json:"resumeSessionAt,omitempty"`
	// ResumeDropsTurn names the prompt whose turn the cut is meant to drop. Needs ResumeSessionAt.
	ResumeDropsTurn string `json:"resumeDropsTurn,omitempty"`
	// SessionID is the id of the new session: --session-id; empty: the agent chooses. A UUID on Claude.
	SessionID string `json:"sessionId,omitempty"`
	// PersistSession false keeps the session off the disk: --no-session-persistence; absent: true.
	PersistSession Opt[bool] `json:"persistSession,omitzero"`
	// EnableFileCheckpointing keeps copies of changed files for rewind_files.
	EnableFileCheckpointing Opt[bool] `json:"enableFileCheckpointing,omitzero"`

	// Settings and surroundings.

	// SettingSources are the settings files to load: user, project, local. Zero: the agent loads all of them.
	SettingSources Set `json:"settingSources,omitzero"`
	// Settings is an inline settings object. Not together with SettingsPath.
	Settings json.RawMessage `json:"settings,omitempty"`
	// SettingsPath is a settings file, relative to Cwd. It is read here, too, unless Spawner is set, because other
	// options may have to be merged into it.
	SettingsPath string `json:"settingsPath,omitempty"`
	// ManagedSettings is an object of policy settings: --managed-settings, or initialize. Claude.
	ManagedSettings json.RawMessage `json:"managedSettings,omitempty"`
	// AdditionalDirectories may be worked in besides Cwd: --add-dir.
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	// ProjectConfigRoot is the checkout whose project settings apply: --project-config-root. Claude.
	ProjectConfigRoot string `json:"projectConfigRoot,omitempty"`
	// Plugins are loaded from directories: --plugin-dir.
	Plugins []Plugin `json:"plugins,omitempty"`
	// PluginDelivery DeliverInInitialize sends Plugins in initialize. Claude.
	PluginDelivery Delivery `json:"pluginDelivery,omitempty"`
	// Skills are the skills the session may use. Any but the zero value allows the Skill tool for them.
	Skills Set `json:"skills,omitzero"`
	// Extensions are loaded by name: --extensions. Qoder.
	Extensions []string `json:"extensions,omitempty"`

	// Agents.

	// Agents are the subagents by name: initialize. The main session needs the Agent tool to call them.
	Agents map[string]AgentDefinition `json:"agents,omitempty"`
	// Agent is the agent that the main session runs as: --agent.
	Agent string `json:"agent,omitempty"`

	// MCP.

	// MCPServers are external servers by name. Goes to --mcp-config, by file if it could hold a credential.
	MCPServers map[string]MCPServerConfig `json:"mcpServers,omitempty"`
	// MCPConfigPath is a file of external servers, passed on as --mcp-config. Not together with MCPServers.
	MCPConfigPath string `json:"mcpConfigPath,omitempty"`
	// MCPServersDelivery DeliverInInitialize sends MCPServers in initialize. Claude.
	MCPServersDelivery Delivery `json:"mcpServersDelivery,omitempty"`
	// StrictMCPConfig ignores servers from settings files: --strict-mcp-config.
	StrictMCPConfig bool `json:"strictMcpConfig,omitempty"`
	// AllowedMCPServerNames limits the servers, whatever their source: --allowed-mcp-server-names. Qoder.
	AllowedMCPServerNames []string `json:"allowedMcpServerNames,omitempty"`

	// Dialogs.

	// SupportedDialogKinds are the dialogs that OnUserDialog can show: initialize. Claude.
	SupportedDialogKinds []string `json:"supportedDialogKinds,omitempty"`

	// Stream.

	// IncludePartialMessages streams the model's output as it comes: --include-partial-messages.
	IncludePartialMessages bool `json:"includePartialMessages,omitempty"`
	// IncludeHookEvents reports the life of command hooks: --include-hook-events. Claude; no effect on Qoder.
	IncludeHookEvents bool `json:"includeHookEvents,omitempty"`
	// ForwardSubagentText reports the text of subagents: initialize. Claude.
	ForwardSubagentText bool `json:"forwardSubagentText,omitempty"`
	// PromptSuggestions asks for prompt_suggestion messages: initialize.
	PromptSuggestions bool `json:"promptSuggestions,omitempty"`
	// AgentProgressSummaries asks for summaries of running subagents: initialize. Claude.
	AgentProgressSummaries bool `json:"agentProgressSummaries,omitempty"`
	// PerTaskStopAffordance: the user can stop tasks one by one, so an interrupt spares them: initialize. Claude.
	PerTaskStopAffordance bool `json:"perTaskStopAffordance,omitempty"`

	// ExperimentalCloudAgent runs the session in Qoder's cloud. It is checked and refused: not in this release.
	ExperimentalCloudAgent *CloudAgent `json:"experimentalCloudAgent,omitempty"`
}
