package session

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// Options is everything that can be said about a session. The zero value is
// valid (on Qoder, Auth is required) and sends what the vendor's own SDK sends
// when nothing is given; a nil *Options means the zero value everywhere.
//
// Names are the vendors' in Go casing. The comment of a field ends with its
// default and with what becomes of it on each backend: an argument, a variable,
// a key of the initialize request or of the settings. Giving a field to a
// backend that is not named there is a *[ConfigError], or a [Warning] where the
// vendor's own SDK takes the option and does nothing with it. All errors are
// found before anything starts, and are reported together; sdk.PreviewLaunch shows what a
// session with the options would start.
//
// A session takes a shallow copy when it is made: you may reassign fields afterwards,
// but must not modify the maps, slices or values that they point to.
type Options struct {
	// The agent.

	// Backend is the agent to talk to: Claude, Qoder, InMemory, or any
	// agent.Program such as the scripted one. nil: the one CLI that is
	// installed; none or both is a ConfigError that names them.
	Backend Backend `json:"-"`
	// Runtime runs the session: a *runtime.Runtime. nil: one that all such sessions
	// share; it has no goroutine while no session is open.
	Runtime Runtime `json:"-"`
	// Spawner starts the agent elsewhere: in a container, over SSH. nil: on
	// this machine. Needs Backend. It owns the whole process tree it starts.
	Spawner Spawner `json:"-"`

	// Callbacks. Each may be called many times at once, on goroutines of its
	// own; its context ends when the agent no longer wants the answer. A
	// callback that fails, panics or is late never opens a gate.

	// CanUseTool decides on the tool calls that no rule decides. nil: without
	// a Policy the agent decides by its permission mode, with one they are denied.
	CanUseTool CanUseTool `json:"-"`
	// Policy decides about every tool call by rules: a PreToolUse hook enforces
	// it, also for calls that the agent would not ask about. A call that no rule
	// names goes to CanUseTool, and is denied without one; Policy.Default changes
	// that. An allow rule does not answer for a person where the agent has a reason
	// to ask one. AllowedTools does not widen a policy. Default: nil, no policy.
	// Both: initialize.hooks.
	Policy *policy.Rules `json:"policy,omitempty"`
	// PermissionTimeout denies a call that CanUseTool has not decided. Default: 0, no limit; a person may
	// be asleep. Host only.
	PermissionTimeout time.Duration `json:"permissionTimeout,omitempty"`
	// Hooks are run at moments of the agent's work. See sdk.OnPreToolUse and the other
	// functions that begin with On.
	Hooks []Hook `json:"-"`
	// SDKMCPServers are the MCP servers that run in this process. Names are
	// unique, also among MCPServers.
	SDKMCPServers []*MCPServer `json:"-"`
	// ResolveModel chooses the model of each call. Qoder.
	ResolveModel ResolveModel `json:"-"`
	// ResolveModelTimeout (resolveModelTimeoutMs) fails the call when ResolveModel has not chosen; negative: never.
	// Default: 0, which is 500 ms. Host only; for Qoder.
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
	// ResolveSessionArtifacts says where the files of a session are: initialize. Qoder.
	ResolveSessionArtifacts ResolveSessionArtifacts `json:"-"`
	// OnEvent is told what happens to the session: changes of its state,
	// callbacks that failed, restarts, warnings. One event at a time and in
	// order; when it falls behind by more than 1,024 the oldest are lost.
	OnEvent func(EventRecord) `json:"-"`
	// OnMessage gets each message of the agent that sdk.Run and sdk.RunAs read, in
	// order, on the goroutine that called them; the next one is read when it has
	// returned. sdk.Query and sdk.Client yield their messages and do not call it.
	OnMessage func(protocol.Message) `json:"-"`
	// Stderr is told the lines of the agent's stderr. It must be quick: while it
	// runs the agent's stderr is not read.
	Stderr func(line string) `json:"-"`

	// Bounds.

	// Limits bound what a session holds and how long it waits for the agent.
	// Zero fields: initialize 120 s, control requests 60 s, 4096 messages and
	// 4 MiB unread.
	Limits Limits `json:"-"`
	// CloseTimeout bounds the end of a session: of Run and Query when their work or their context ends, of a Connect
	// that failed, and of Client.Close. What is left by then is killed; negative: no bound. Default: 0, which is 30 s.
	// Host only.
	CloseTimeout time.Duration `json:"closeTimeout,omitempty"`
	// Graces are the waits on the way down: for what Qoder writes out before the
	// end of stdin (10 s), after the end of stdin, after SIGTERM, for the rest of the output, for the sweep. Zero fields: the
	// backend's own.
	Graces Graces `json:"-"`
	// InterruptGrace is how long a running turn may take to stop before a close goes on without it. Default: 0, the
	// backend's own (Claude 2 s, Qoder 5 s). Host only.
	InterruptGrace time.Duration `json:"interruptGrace,omitempty"`
	// MaxRestarts is how often in a session's life an agent that died by itself, after it was ready, is started again.
	// The next process resumes the agent's session. What was written to the one that died ends with its
	// *[ExitError], since the agent may have begun with it; messages and calls that were not written yet go to the next.
	// It starts at once, without a delay. An expired login, a process that could not be stopped, and a death before the
	// agent is ready again end the session, and so does each death after a call that may have changed what the options
	// say, such as SetPermissionMode, SetModel or Claim: the next process would not know of it.
	// Default: 0, each death ends it. Host only.
	MaxRestarts int `json:"maxRestarts,omitempty"`
	// MaxLine is the ceiling for one line of the agent, in bytes; a longer one is skipped and reported as an event.
	// Default: 0, which is 64 MiB. Host only.
	MaxLine int `json:"maxLine,omitempty"`
	// Discard drops messages as they come, for those who want results only: Query then yields nothing, Turn.Result and
	// Run work. Default: false. Host only.
	Discard bool `json:"discard,omitempty"`

	// Process.

	// Cwd is the agent's working directory. Default: the caller's. Both: no argument, the process is started there.
	Cwd string `json:"cwd,omitempty"`
	// Env is added to the parent's environment, replacing what is there. (The vendors' SDKs replace the whole
	// environment, and so lose PATH.) A CLAUDE_CODE_ENTRYPOINT or CLAUDE_AGENT_SDK_CLIENT_APP given here replaces
	// Troupe's (see SECURITY.md). Treated as secret. Default: nothing. Both: the environment.
	Env map[string]string `json:"env,omitempty"`
	// UnsetEnv names variables of the parent that the agent must not see. Default: those that the vendors' SDKs take
	// away, which always go unless Env has them (Claude: CLAUDECODE, NODE_OPTIONS, DEBUG, and three that are an outer agent's; Qoder:
	// NODE_OPTIONS). Both: the environment.
	UnsetEnv []string `json:"unsetEnv,omitempty"`
	// CleanEnv starts from an empty environment; then Env should hold PATH and HOME. Default: false. Both: the
	// environment.
	CleanEnv bool `json:"cleanEnv,omitempty"`
	// PathToExecutable (pathToClaudeCodeExecutable, pathToQoderCLIExecutable, cli_path) is the agent's program. A .js,
	// .mjs, .cjs, .ts, .tsx or .jsx file is run by Executable. Default: $CLAUDE_CODE_EXECUTABLE or $QODERCLI_PATH, then
	// claude or qodercli on the agent's PATH. Both: the program.
	PathToExecutable string `json:"pathToExecutable,omitempty"`
	// Executable is the JavaScript runtime for a script: node, bun, deno or a path. Default: node. Both: the program,
	// before the script; no effect, and a Warning, where the agent's program is none.
	Executable string `json:"executable,omitempty"`
	// ExecutableArgs are the runtime's own arguments, placed before the script. Default: none. Both: as they are.
	// Where the agent's program is no script, with a Warning: Claude: before its own arguments. No effect on Qoder.
	ExecutableArgs []string `json:"executableArgs,omitempty"`
	// ExtraArgs are further flags of the agent by name, without dashes; an absent value makes a switch. What another
	// option or the protocol sets is refused. Default: none. Both: --key value or --key, by the order of keys, after
	// the other flags (Claude: before --settings; --key=-value where the value begins with a dash).
	ExtraArgs map[string]Opt[string] `json:"extraArgs,omitempty"`
	// Debug turns on the agent's debug output. Default: false. Both: --debug, which on Claude DebugFile replaces.
	Debug bool `json:"debug,omitempty"`
	// DebugFile is where the agent writes its debug log. Default: none. Claude: --debug-file. No effect on Qoder.
	DebugFile string `json:"debugFile,omitempty"`

	// Login.

	// Auth is how qodercli logs in; required there. Default: nil, an error. Qoder: a 0600 file named by
	// QODER_SDK_AUTH_PAYLOAD_FILE; a service account's key and its variable are taken out of the environment.
	Auth *Auth `json:"auth,omitempty"`
	// Proxy is the URL of the proxy to reach the model through. Default: none. Qoder: --proxy, or, where the URL could
	// hold a secret, HTTPS_PROXY and a set_proxy request.
	Proxy string `json:"proxy,omitempty"`
	// VPCEndpoint is the private endpoint to use. Default: none. Qoder: QODER_VPC_ENDPOINT, without space around it.
	VPCEndpoint string `json:"vpcEndpoint,omitempty"`

	// Model.

	// Model is a model's name or alias. Default: the agent's. Both: --model.
	Model string `json:"model,omitempty"`
	// FallbackModel is used when Model, which must be another, is overloaded; several are separated by commas. Default:
	// none. Claude: --fallback-model.
	FallbackModel string `json:"fallbackModel,omitempty"`
	// Thinking sets extended thinking. Default: nil, the agent's. Claude: --thinking, or --max-thinking-tokens for
	// enabled with a budget; --thinking-display unless disabled.
	Thinking *Thinking `json:"thinking,omitempty"`
	// MaxThinkingTokens is the older form of Thinking, which wins, with a Warning. Default: absent, the agent's. Claude:
	// --max-thinking-tokens; 0: --thinking=disabled.
	MaxThinkingTokens Opt[int] `json:"maxThinkingTokens,omitzero"`
	// Effort is low, medium, high, xhigh or max. Default: the agent's. Claude: --effort.
	Effort string `json:"effort,omitempty"`
	// Betas are beta headers for the model's API. Default: none. Claude: --betas, joined by commas.
	Betas []string `json:"betas,omitempty"`
	// OutputFormat asks for structured output. Default: nil, text. Claude: --json-schema, unless it is too long, and
	// initialize.jsonSchema.
	OutputFormat *OutputFormat `json:"outputFormat,omitempty"`
	// OutputRepairs is how often sdk.RunAs asks the model again, each time for a turn's price, when its answer is missing
	// or does not fit; negative: never. Default: 0, which is once. Host only.
	OutputRepairs int `json:"outputRepairs,omitempty"`
	// ModelRequestPatches is an object of changes to requests of models. Default: none. Qoder:
	// initialize.modelRequestPatches, as it is.
	ModelRequestPatches json.RawMessage `json:"modelRequestPatches,omitempty"`

	// Limits.

	// MaxTurns limits the model calls of a turn. Default: absent, no limit. Both: --max-turns; 0 is sent as 0 on Qoder,
	// and is no limit on Claude, as with the vendors' SDKs.
	MaxTurns Opt[int] `json:"maxTurns,omitzero"`
	// MaxBudgetUSD ends the turn when the session has cost more; above zero. Default: absent, no limit. Claude:
	// --max-budget-usd.
	MaxBudgetUSD Opt[float64] `json:"maxBudgetUsd,omitzero"`
	// TaskBudget (taskBudget.total) is the total of tokens the model is told to work within; above zero. Default:
	// absent, none. Claude: --task-budget.
	TaskBudget Opt[int] `json:"taskBudget,omitzero"`
	// GoalMaxTurns limits the turns spent on a goal. Default: absent, the agent's. Qoder: a set_goal_max_turns request
	// after initialize.
	GoalMaxTurns Opt[int] `json:"goalMaxTurns,omitzero"`
	// InitializeTimeout (initializeTimeoutMs) bounds the start of the agent, unless Limits.Initialize does. Default: 0,
	// which is 120 s. Qoder: initialize.initializeTimeoutMs. Claude: host only.
	InitializeTimeout time.Duration `json:"initializeTimeout,omitempty"`

	// Prompt.

	// SystemPrompt replaces or extends the agent's system prompt. Default: zero, with which Claude gets an empty one
	// (the vendor's wire for "not given"; PresetPrompt("") is Claude Code's own) and Qoder its own. Both:
	// initialize.systemPrompt (a list on Claude, one text on Qoder) or appendSystemPrompt. Claude:
	// excludeDynamicSections and systemPromptSnapshot, too.
	SystemPrompt SystemPrompt `json:"systemPrompt,omitzero"`
	// PlanModeInstructions replaces the workflow of plan mode. Default: the agent's. Claude:
	// initialize.planModeInstructions.
	PlanModeInstructions string `json:"planModeInstructions,omitempty"`
	// Title is the session's title. Default: the agent makes one. Claude: initialize.title.
	Title string `json:"title,omitempty"`
	// VerbatimPrompts keeps user messages as they are. Default: false. Claude: client_composed on each user line.
	VerbatimPrompts bool `json:"verbatimPrompts,omitempty"`
	// CustomContext is an object for every user message that has none of its own. Default: none. Qoder: custom_context
	// on each user line.
	CustomContext json.RawMessage `json:"customContext,omitempty"`
	// Memory turns on the agent's memory. Default: nil, or empty: off. Qoder: initialize.memory.
	Memory *Memory `json:"memory,omitempty"`
	// Evolution turns on skill evolution. Default: nil, or empty: off. Qoder: initialize.evolution.
	Evolution *Evolution `json:"evolution,omitempty"`

	// Tools and permissions.

	// Tools are the built-in tools the model sees. Default: zero, Claude's default set, and the list of Qoder's SDK,
	// which QODER_FEATURE_TASKS changes. Both: --tools with names joined by commas, empty for None, default for All.
	Tools Set `json:"tools,omitzero"`
	// AllowedTools are permission rules that allow without asking, such as Read or Bash(git:*). They hide CanUseTool
	// for the calls they match, which is a Warning. Default: none. Claude: --allowedTools, joined by commas. Qoder:
	// --allowed-tools for each. Both: permissions.allow of the settings when they are too long for that.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// DisallowedTools are permission rules that deny, or remove a tool. They win over AllowedTools. Default: none.
	// Claude: --disallowedTools, joined by commas. Qoder: --disallowed-tools for each. Both: permissions.deny of the
	// settings when they are too long for that.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// ToolAliases maps a tool name the model calls to the tool that runs instead. Default: none. Claude:
	// initialize.toolAliases.
	ToolAliases map[string]string `json:"toolAliases,omitempty"`
	// ToolConfig tunes built-in tools. Default: nil, the agent's. Claude: CLAUDE_CODE_QUESTION_PREVIEW_FORMAT. No
	// effect on Qoder.
	ToolConfig *ToolConfig `json:"toolConfig,omitempty"`
	// PermissionMode is how calls without a rule are decided: default, acceptEdits, plan, dontAsk, auto,
	// bypassPermissions, on Qoder also yolo. Default: the agent's. Both: --permission-mode. Qoder: --yolo for yolo.
	PermissionMode protocol.PermissionMode `json:"permissionMode,omitempty"`
	// AllowDangerouslySkipPermissions is required by the modes bypassPermissions and yolo. Default: false. Claude:
	// --allow-dangerously-skip-permissions. Qoder: --dangerously-skip-permissions, but for yolo.
	AllowDangerouslySkipPermissions bool `json:"allowDangerouslySkipPermissions,omitempty"`
	// PermissionPromptToolName is an MCP tool that decides instead. Not together with CanUseTool. Default: none. Both:
	// --permission-prompt-tool (stdio when there is a CanUseTool).
	PermissionPromptToolName string `json:"permissionPromptToolName,omitempty"`
	// PermissionPrompts says who answers prompts: host, or none, which denies them. Default: the agent's (host).
	// Claude: --permission-prompts.
	PermissionPrompts string `json:"permissionPrompts,omitempty"`
	// PlanMode switches plan mode on or off. Default: absent, as it is. Qoder: a set_plan_mode request after
	// initialize.
	PlanMode Opt[bool] `json:"planMode,omitzero"`
	// Sandbox confines shell commands. Default: nil, what the settings say. Claude: merged into the sandbox of
	// --settings. An error on Qoder, whose SDK takes it and does nothing.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// SecurityScan chooses the scans of generated code; all three levels are sent. Default: nil, what the settings say.
	// Qoder: merged into --settings.
	SecurityScan *SecurityScan `json:"securityScan,omitempty"`

	// Session.

	// Continue takes up the most recent session of Cwd. Default: false. Both: --continue, left out beside Resume.
	Continue bool `json:"continue,omitempty"`
	// Resume takes up a session by id; it wins over Continue. Default: a new session. Both: --resume.
	Resume string `json:"resume,omitempty"`
	// ForkSession gives the resumed session a new id. Needs Resume or Continue. Default: false. Both: --fork-session.
	ForkSession bool `json:"forkSession,omitempty"`
	// ResumeSessionAt cuts the resumed history after the message with this uuid. Needs Resume. Default: all of it.
	// Both: --resume-session-at.
	ResumeSessionAt string `json:"resumeSessionAt,omitempty"`
	// ResumeDropsTurn names the prompt whose turn the cut is meant to drop. Needs ResumeSessionAt. Default: none. Both:
	// --resume-drops-turn.
	ResumeDropsTurn string `json:"resumeDropsTurn,omitempty"`
	// SessionID is the id of the new session; on Claude a UUID, and beside a resume only with ForkSession. Default: the
	// agent chooses. Both: --session-id.
	SessionID string `json:"sessionId,omitempty"`
	// PersistSession false keeps the session off the disk. Default: absent, true. Both: --no-session-persistence.
	PersistSession Opt[bool] `json:"persistSession,omitzero"`
	// EnableFileCheckpointing keeps copies of changed files for rewind_files. Default: absent, false. Claude:
	// CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true. Qoder: initialize.enableFileCheckpointing, and
	// general.fileCheckpointing of --settings.
	EnableFileCheckpointing Opt[bool] `json:"enableFileCheckpointing,omitzero"`

	// Settings and surroundings.

	// SettingSources are the settings files to load: user, project, local. Default: zero, the agent loads all of them.
	// Files of the project start programs before any gate is asked: command hooks, the servers of .mcp.json, and
	// apiKeyHelper (observed on Claude Code 2.1.329). For a project that is not trusted give None: none of these runs.
	// Both: --setting-sources, joined by commas, empty for None.
	SettingSources Set `json:"settingSources,omitzero"`
	// Settings is an inline settings object, into which other options are merged. Not together with SettingsPath.
	// Default: none. Both: --settings, by 0600 file when it could hold a credential or is too long.
	Settings json.RawMessage `json:"settings,omitempty"`
	// SettingsPath is a settings file, relative to Cwd. It is read here, too, unless Spawner is set, because other
	// options may have to be merged into it. Default: none. Both: --settings with the path, or with a 0600 file when
	// something is merged.
	SettingsPath string `json:"settingsPath,omitempty"`
	// ManagedSettings is an object of policy settings. Default: none. Claude: --managed-settings, or
	// initialize.managedSettings when it could hold a credential or is too long.
	ManagedSettings json.RawMessage `json:"managedSettings,omitempty"`
	// AdditionalDirectories may be worked in besides Cwd. Default: none. Both: --add-dir for each. Qoder:
	// permissions.additionalDirectories of --settings, too.
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	// ProjectConfigRoot is the checkout whose project settings apply. Default: Cwd's. Claude: --project-config-root.
	ProjectConfigRoot string `json:"projectConfigRoot,omitempty"`
	// Plugins are loaded from directories. Default: none. Both: --plugin-dir for each. Claude: --plugin-dir-no-mcp with
	// SkipMCPDiscovery.
	Plugins []Plugin `json:"plugins,omitempty"`
	// PluginDelivery says how Plugins reach the agent. Default: DeliverByLaunch. Claude: DeliverInInitialize makes it
	// --await-initialize and initialize.plugins.
	PluginDelivery Delivery `json:"pluginDelivery,omitempty"`
	// Skills are the skills the session may use. Any but the zero value and None allows the Skill tool for them, which
	// the agent must have. Default: zero, the agent's. Both: an allowed tool Skill for All, Skill(name) for each
	// otherwise, and initialize.skills.
	Skills Set `json:"skills,omitzero"`
	// Extensions are loaded by name. Default: none. Qoder: --extensions for each.
	Extensions []string `json:"extensions,omitempty"`

	// Agents.

	// Agents are the subagents by name. The main session needs the Agent tool to call them (on Qoder allowed as well),
	// they have none themselves, and an InitialPrompt is for the one that Agent names. Default: none. Both:
	// initialize.agents.
	Agents map[string]AgentDefinition `json:"agents,omitempty"`
	// Agent is the agent that the main session runs as: one of Agents, or one that the agent knows. Default: none.
	// Both: --agent.
	Agent string `json:"agent,omitempty"`

	// MCP.

	// MCPServers are external servers by name. Policies of their tools become permission rules in the settings.
	// Default: none. Both: --mcp-config, by 0600 file when it could hold a credential or is too long.
	MCPServers map[string]MCPServerConfig `json:"mcpServers,omitempty"`
	// MCPConfigPath (mcpServers as a path) is a file of external servers. Not together with MCPServers. Default: none.
	// Both: --mcp-config.
	MCPConfigPath string `json:"mcpConfigPath,omitempty"`
	// SDKMCPServerConfigs are limits and tool policies of SDKMCPServers, by name. Default: none. Both: permission rules in
	// the settings. Claude: initialize.sdkMcpServerConfigs. Qoder: initialize.sdkMcpToolOverrides.
	SDKMCPServerConfigs map[string]SDKMCPServerConfig `json:"sdkMcpServerConfigs,omitempty"`
	// MCPServersDelivery says how MCPServers reach the agent. Default: DeliverByLaunch. Claude: DeliverInInitialize
	// makes it --await-initialize and initialize.mcpServers.
	MCPServersDelivery Delivery `json:"mcpServersDelivery,omitempty"`
	// StrictMCPConfig ignores servers from settings files. Default: false. Both: --strict-mcp-config.
	StrictMCPConfig bool `json:"strictMcpConfig,omitempty"`
	// AllowedMCPServerNames limits the servers, whatever their source. Default: no limit. Qoder:
	// --allowed-mcp-server-names for each.
	AllowedMCPServerNames []string `json:"allowedMcpServerNames,omitempty"`

	// Dialogs.

	// SupportedDialogKinds are the dialogs that OnUserDialog can show. Default: none. Claude:
	// initialize.supportedDialogKinds.
	SupportedDialogKinds []string `json:"supportedDialogKinds,omitempty"`

	// Stream.

	// IncludePartialMessages streams the model's output as it comes. Default: false. Both: --include-partial-messages.
	IncludePartialMessages bool `json:"includePartialMessages,omitempty"`
	// IncludeHookEvents reports the life of command hooks. Default: false. Claude: --include-hook-events. No effect on
	// Qoder.
	IncludeHookEvents bool `json:"includeHookEvents,omitempty"`
	// ForwardSubagentText reports the text of subagents. Default: false. Claude: initialize.forwardSubagentText.
	ForwardSubagentText bool `json:"forwardSubagentText,omitempty"`
	// PromptSuggestions asks for prompt_suggestion messages. Default: false. Both: initialize.promptSuggestions.
	PromptSuggestions bool `json:"promptSuggestions,omitempty"`
	// AgentProgressSummaries asks for summaries of running subagents. Default: false. Claude:
	// initialize.agentProgressSummaries.
	AgentProgressSummaries bool `json:"agentProgressSummaries,omitempty"`
	// PerTaskStopAffordance says that the user can stop tasks one by one, so that an interrupt spares them. Default:
	// false. Claude: initialize.perTaskStopAffordance.
	PerTaskStopAffordance bool `json:"perTaskStopAffordance,omitempty"`

	// ExperimentalCloudAgent runs the session in Qoder's cloud. It is checked, and then refused: not in this release.
	// Default: nil. Qoder: no wire.
	ExperimentalCloudAgent *CloudAgent `json:"experimentalCloudAgent,omitempty"`
}

// HasPolicy reports whether the policy decides about every call, so that no rule or
// mode of the agent allows a call that the policy does not.
func (o *Options) HasPolicy() bool { return o.Policy != nil && o.Policy.Default != policy.Agent }
