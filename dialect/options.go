package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Options is everything that can be said about a session, for every backend: plain data, no functions. The zero
// value is valid apart from Qoder's Auth, and sends what the vendor's own SDK sends when nothing is given.
//
// Names are the vendors' in Go casing. A comment ends with the backends that know the field, unless all do. Giving a
// field to a backend that lacks it is a *session.ConfigError, or a session.Warning where the vendor's own SDK takes the option and
// does nothing with it. An Options is not changed by this package and may be shared for reading.
type Options struct {
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
	ExtraArgs map[string]session.Opt[string] `json:"extraArgs,omitempty"`
	// Debug turns on the agent's debug output: --debug.
	Debug bool `json:"debug,omitempty"`
	// DebugFile is where the agent writes its debug log: --debug-file. Claude; no effect on Qoder.
	DebugFile string `json:"debugFile,omitempty"`

	// Login.

	// Auth is how qodercli logs in; required there. Goes to a 0600 file. Qoder.
	Auth *session.Auth `json:"auth,omitempty"`
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
	Thinking *session.Thinking `json:"thinking,omitempty"`
	// MaxThinkingTokens is the older form of Thinking: 0 disables. Thinking wins. Claude.
	MaxThinkingTokens session.Opt[int] `json:"maxThinkingTokens,omitzero"`
	// Effort is low, medium, high, xhigh or max: --effort. Claude.
	Effort string `json:"effort,omitempty"`
	// Betas are beta headers for the model's API: --betas. Claude.
	Betas []string `json:"betas,omitempty"`
	// OutputFormat asks for structured output: --json-schema and initialize. Claude.
	OutputFormat *session.OutputFormat `json:"outputFormat,omitempty"`
	// ModelRequestPatches goes to initialize as it is. Qoder.
	ModelRequestPatches json.RawMessage `json:"modelRequestPatches,omitempty"`

	// Limits.

	// MaxTurns limits the model calls of a turn: --max-turns; absent: no limit, 0 is sent as 0.
	MaxTurns session.Opt[int] `json:"maxTurns,omitzero"`
	// MaxBudgetUSD ends the turn when the session has cost more: --max-budget-usd. Claude.
	MaxBudgetUSD session.Opt[float64] `json:"maxBudgetUsd,omitzero"`
	// TaskBudget is the total of tokens the model is told to work within: --task-budget. Claude.
	TaskBudget session.Opt[int] `json:"taskBudget,omitzero"`
	// GoalMaxTurns limits the turns spent on a goal: a set_goal_max_turns request after initialize. Qoder.
	GoalMaxTurns session.Opt[int] `json:"goalMaxTurns,omitzero"`
	// InitializeTimeout is told to qodercli in initialize; 0: 120 s. Qoder; elsewhere a matter of the host alone.
	InitializeTimeout time.Duration `json:"initializeTimeout,omitempty"`

	// Prompt.

	// SystemPrompt replaces or extends the agent's system prompt. Zero: Claude gets an empty one (the vendor's
	// wire for "not given"), Qoder its own; use PresetPrompt() for Claude Code's.
	SystemPrompt session.SystemPrompt `json:"systemPrompt,omitzero"`
	// PlanModeInstructions replaces the workflow of plan mode. Claude.
	PlanModeInstructions string `json:"planModeInstructions,omitempty"`
	// Title is the session's title; empty: the agent makes one. Claude.
	Title string `json:"title,omitempty"`
	// VerbatimPrompts keeps user messages as they are (client_composed on each line). Claude.
	VerbatimPrompts bool `json:"verbatimPrompts,omitempty"`
	// CustomContext is an object added to every user message that has none of its own. Qoder.
	CustomContext json.RawMessage `json:"customContext,omitempty"`
	// Memory turns on the agent's memory: initialize. Qoder.
	Memory *session.Memory `json:"memory,omitempty"`
	// Evolution turns on skill evolution: initialize. Qoder.
	Evolution *session.Evolution `json:"evolution,omitempty"`

	// Tools and permissions.

	// Tools are the built-in tools the model sees: --tools. Zero: Claude's default set, Qoder's SDK list.
	Tools session.Set `json:"tools,omitzero"`
	// AllowedTools are permission rules that allow without asking, such as Read or Bash(git:*). They hide
	// CanUseTool for the calls they match.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// DisallowedTools are permission rules that deny, or remove a tool. They win over AllowedTools.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// ToolAliases maps a tool name the model calls to the tool that runs instead: initialize. Claude.
	ToolAliases map[string]string `json:"toolAliases,omitempty"`
	// ToolConfig tunes built-in tools. Claude; no effect on Qoder.
	ToolConfig *session.ToolConfig `json:"toolConfig,omitempty"`
	// PermissionMode is how calls without a rule are decided: --permission-mode; empty: the agent's default.
	PermissionMode protocol.PermissionMode `json:"permissionMode,omitempty"`
	// AllowDangerouslySkipPermissions is required by the modes bypassPermissions and yolo.
	AllowDangerouslySkipPermissions bool `json:"allowDangerouslySkipPermissions,omitempty"`
	// HasCanUseTool: the host answers can_use_tool requests: --permission-prompt-tool stdio.
	HasCanUseTool bool `json:"-"`
	// HasPolicy: a PreToolUse hook of the host's policy decides about every call, so that no rule or mode of the agent
	// allows a call that the policy does not. It is for warnings alone.
	HasPolicy bool `json:"-"`
	// PermissionPromptToolName is an MCP tool that decides instead. Not together with a CanUseTool callback.
	PermissionPromptToolName string `json:"permissionPromptToolName,omitempty"`
	// PermissionPrompts is host or none: --permission-prompts. Claude.
	PermissionPrompts string `json:"permissionPrompts,omitempty"`
	// PlanMode sends a set_plan_mode request after initialize. Qoder.
	PlanMode session.Opt[bool] `json:"planMode,omitzero"`
	// Sandbox confines shell commands; merged into the settings. Claude.
	Sandbox *session.Sandbox `json:"sandbox,omitempty"`
	// SecurityScan chooses the scans of generated code; merged into the settings. Qoder.
	SecurityScan *session.SecurityScan `json:"securityScan,omitempty"`

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
	PersistSession session.Opt[bool] `json:"persistSession,omitzero"`
	// HasSessionStore: the host mirrors the transcript: --session-mirror. Not with PersistSession false.
	HasSessionStore bool `json:"-"`
	// EnableFileCheckpointing keeps copies of changed files for rewind_files.
	EnableFileCheckpointing session.Opt[bool] `json:"enableFileCheckpointing,omitzero"`

	// Settings and surroundings.

	// SettingSources are the settings files to load: user, project, local. Zero: the agent loads all of them.
	SettingSources session.Set `json:"settingSources,omitzero"`
	// Settings is an inline settings object. Not together with SettingsPath.
	Settings json.RawMessage `json:"settings,omitempty"`
	// SettingsPath is a settings file.
	SettingsPath string `json:"settingsPath,omitempty"`
	// SettingsContent is the content of SettingsPath as read by the caller. Needed only when other options have
	// to be merged into it; otherwise the path is passed on and this is not looked at.
	SettingsContent []byte `json:"-"`
	// ManagedSettings is an object of policy settings: --managed-settings, or initialize. Claude.
	ManagedSettings json.RawMessage `json:"managedSettings,omitempty"`
	// AdditionalDirectories may be worked in besides Cwd: --add-dir.
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	// ProjectConfigRoot is the checkout whose project settings apply: --project-config-root. Claude.
	ProjectConfigRoot string `json:"projectConfigRoot,omitempty"`
	// Plugins are loaded from directories: --plugin-dir.
	Plugins []session.Plugin `json:"plugins,omitempty"`
	// PluginDelivery DeliverInInitialize sends Plugins in initialize. Claude.
	PluginDelivery session.Delivery `json:"pluginDelivery,omitempty"`
	// Skills are the skills the session may use. Any but the zero value allows the Skill tool for them.
	Skills session.Set `json:"skills,omitzero"`
	// Extensions are loaded by name: --extensions. Qoder.
	Extensions []string `json:"extensions,omitempty"`

	// Agents.

	// Agents are the subagents by name: initialize. The main session needs the Agent tool to call them.
	Agents map[string]session.AgentDefinition `json:"agents,omitempty"`
	// Agent is the agent that the main session runs as: --agent.
	Agent string `json:"agent,omitempty"`

	// MCP.

	// MCPServers are external servers by name. Goes to --mcp-config, by file if it could hold a credential.
	MCPServers map[string]session.MCPServerConfig `json:"mcpServers,omitempty"`
	// MCPConfigPath is a file of external servers, passed on as --mcp-config. Not together with MCPServers.
	MCPConfigPath string `json:"mcpConfigPath,omitempty"`
	// SDKMCPServers are the servers that run in the host: initialize. Names are unique, also among MCPServers.
	SDKMCPServers []SDKMCPServer `json:"-"`
	// MCPServersDelivery DeliverInInitialize sends MCPServers in initialize. Claude.
	MCPServersDelivery session.Delivery `json:"mcpServersDelivery,omitempty"`
	// StrictMCPConfig ignores servers from settings files: --strict-mcp-config.
	StrictMCPConfig bool `json:"strictMcpConfig,omitempty"`
	// AllowedMCPServerNames limits the servers, whatever their source: --allowed-mcp-server-names. Qoder.
	AllowedMCPServerNames []string `json:"allowedMcpServerNames,omitempty"`

	// Callbacks, as facts.

	// Hooks are the registered hook callbacks in order: initialize.
	Hooks []HookRegistration `json:"-"`
	// HasResolveModel: the host answers get_model_policy requests: initialize. Qoder.
	HasResolveModel bool `json:"-"`
	// HasSessionArtifacts: the host answers resolve_session_artifacts requests: initialize. Qoder.
	HasSessionArtifacts bool `json:"-"`
	// HasElicitation: the host answers elicitation requests. No wire effect.
	HasElicitation bool `json:"-"`
	// HasUserDialog: the host answers request_user_dialog requests. Claude.
	HasUserDialog bool `json:"-"`
	// SupportedDialogKinds are the dialogs the host can show: initialize. Needs HasUserDialog. Claude.
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

	// Surroundings, as facts.

	// ParentEnv is the environment that Env is merged over, as of os.Environ; nil: treated as empty.
	ParentEnv []string `json:"-"`
	// ExperimentalCloudAgent runs the session in Qoder's cloud. It is checked and refused: not in this release.
	ExperimentalCloudAgent *session.CloudAgent `json:"experimentalCloudAgent,omitempty"`
}
