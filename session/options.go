package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// Options are the options of a session. The zero value is valid, except that Qoder requires Auth. It sends what the
// vendor's own SDK sends when no option is given. A nil *Options means the zero value everywhere.
//
// Names are the vendors' names in Go casing. The comment of a field ends with its default and with its effect on each
// backend: an argument, an environment variable, a key of the initialize request, or a key of the settings. "Claude: --x"
// means that only Claude has the option, "Both: --x" that Claude and Qoder have it. "Host only" means that Troupe itself
// applies the option and sends nothing to the agent.
//
// A field that is set for a backend which does not have the option is a *[ConfigError]. Where the vendor's own SDK
// accepts the option and ignores it, the session starts with a [Warning] instead. All errors are found before anything
// starts, and are reported together. sdk.PreviewLaunch shows what a session with the options would start.
//
// A session takes a shallow copy when it is made: you may reassign fields afterwards,
// but must not modify the maps, slices or values that they point to.
type Options struct {
	// The agent.

	// Backend is the agent to talk to: Claude, Qoder, InMemory, or any agent.Program, such as the scripted agent.
	// nil: the one CLI that is installed. If no CLI or both CLIs are installed, the *[ConfigError] names them.
	Backend Backend `json:"-"`
	// Runtime runs the session. It must be a *runtime.Runtime. nil: a runtime that all such sessions of the program
	// share; it has no goroutine while no session is open.
	Runtime Runtime `json:"-"`
	// Spawner starts the agent somewhere else, such as in a container or over SSH, and is responsible for the whole
	// process tree that it starts. Backend must be set, too. nil: the agent starts on this machine.
	Spawner Spawner `json:"-"`

	// Callbacks. Each may be called many times concurrently, on its own goroutines. Its context ends when the agent no
	// longer needs the answer. A callback that fails, panics or is late never allows what it guards.

	// CanUseTool decides about the tool calls that no rule decides. nil: without a Policy the agent decides by its
	// permission mode; with a Policy these calls are denied.
	CanUseTool CanUseTool `json:"-"`
	// Policy decides about every tool call by rules. A PreToolUse hook enforces it, also for calls that the agent would
	// not ask about. A call that matches no rule goes to CanUseTool, and is denied without one; Policy.Default changes
	// that. Where the agent has a reason to ask a person, it asks in spite of an allow rule. AllowedTools does not widen
	// a policy. Default: nil, no policy. Both: initialize.hooks.
	Policy *policy.Rules `json:"policy,omitempty"`
	// PermissionTimeout limits how long CanUseTool may take for one call; a call that is not decided by then is denied.
	// A negative value is a *[ConfigError]. Default: 0, no limit; with Unattended, one minute. Host only.
	PermissionTimeout time.Duration `json:"permissionTimeout,omitempty"`
	// Hooks are called at defined points of the agent's work, such as before a tool call. Make them with
	// sdk.OnPreToolUse and the other functions whose names begin with On. nil: no hooks.
	Hooks []Hook `json:"-"`
	// SDKMCPServers are the MCP servers that run in this process. Their names must be unique, also among MCPServers.
	// nil: no servers.
	SDKMCPServers []*MCPServer `json:"-"`
	// ResolveModel chooses the model of each call. nil: the agent chooses. Qoder.
	ResolveModel ResolveModel `json:"-"`
	// ResolveModelTimeout (resolveModelTimeoutMs) limits how long ResolveModel may take; a call without a model by then
	// fails. Negative: no limit. Default: 0, which is 500 ms. Host only; for Qoder.
	ResolveModelTimeout time.Duration `json:"resolveModelTimeout,omitempty"`
	// OnElicitation answers the questions that MCP servers ask the person. nil: every question is declined.
	OnElicitation ElicitationHandler `json:"-"`
	// OnUserDialog shows the dialogs of SupportedDialogKinds; it has no effect without them. Claude.
	OnUserDialog UserDialogHandler `json:"-"`
	// FetchJobToken returns the job tokens that an Auth of type jobToken promises. Qoder.
	FetchJobToken FetchJobToken `json:"-"`
	// FetchServiceAccountToken returns the tokens that an Auth of type serviceAccount without a key promises. Qoder.
	FetchServiceAccountToken FetchServiceAccountToken `json:"-"`
	// OnAuthExpired is called at most once per session, when the agent's login is missing or has expired. nil: only the
	// [AuthExpired] event reports it.
	OnAuthExpired func(reason string) `json:"-"`
	// ShouldGenerateMemory decides whether the agent makes memories of a turn. It turns Memory on: initialize. Qoder.
	ShouldGenerateMemory TurnGate `json:"-"`
	// ShouldReviewSkills decides whether the agent reviews its skills after a turn. It turns Evolution on: initialize.
	// Qoder.
	ShouldReviewSkills TurnGate `json:"-"`
	// ResolveSessionArtifacts returns where the files of a session are: initialize. Qoder.
	ResolveSessionArtifacts ResolveSessionArtifacts `json:"-"`
	// OnEvent receives the events of the session: changes of its state, callbacks that failed,
	// restarts, warnings. It is called with one event at a time, in order. If it falls behind by more
	// than 1,024 events, the oldest are dropped. nil: no callback.
	OnEvent func(EventRecord) `json:"-"`
	// OnMessage receives each message of the agent that sdk.Run and sdk.RunAs read. It is called in order, on the
	// goroutine of the caller of sdk.Run or sdk.RunAs; the next message is read after it has returned. sdk.Query and
	// sdk.Client yield their messages and do not call it.
	OnMessage func(protocol.Message) `json:"-"`
	// Stderr receives the lines of the agent's stderr. It must return quickly: no further stderr is read while it
	// runs. nil: only [StderrLine] events report them.
	Stderr func(line string) `json:"-"`
	// Tracer follows the session for telemetry; its Trace can add to the environment of the agent. The
	// module contrib/otel has one for OpenTelemetry. nil: no tracer. Host only.
	Tracer Tracer `json:"-"`

	// Bounds.

	// Limits bound what a session buffers and how long it waits for the agent. Zero fields take their defaults, among
	// them: initialize 120 s, control requests 60 s, 4,096 messages and 4 MiB unread.
	Limits Limits `json:"-"`
	// CloseTimeout limits how long the end of a session may take: in Run and Query after their work or their context has
	// ended, after a Connect that failed, and in Client.Close. The processes that are left then are killed. Negative: no
	// limit. Default: 0, which is 30 s. Host only.
	CloseTimeout time.Duration `json:"closeTimeout,omitempty"`
	// Graces are how long each step of closing a session waits: for Qoder to flush its state before stdin is closed
	// (10 s), after stdin is closed, after SIGTERM, for the rest of the output, and for the sweep of processes. Zero
	// fields take their defaults; negative ones are a *[ConfigError].
	Graces Graces `json:"-"`
	// InterruptGrace is how long a close waits for a running turn to stop after the interrupt. A negative value is a
	// *[ConfigError]. Default: 0, the backend's value (Claude 2 s, Qoder 5 s). Host only.
	InterruptGrace time.Duration `json:"interruptGrace,omitempty"`
	// MaxRestarts is how many times within RestartWindow Troupe starts the agent again when its process has died
	// unexpectedly after it was ready. The next process resumes the agent's session, after RestartBackoff and as soon as
	// there is something for it to do. Recovery says what becomes of the messages that were under way; [Recovering] and
	// [Recovered] events report it. Calls that were written and only read are made again, other ones end with the
	// *[ExitError]; what was not yet written goes to the next process.
	//
	// These still end the session: an expired login, an agent that cannot be started or stopped, EqualDeaths, a next process
	// that is in another session, and each death after a call that may have changed what the options say, such as
	// SetPermissionMode, SetModel or Claim, because the next process would start with the options alone. The error is then
	// a *[RecoveryError]. A negative value is a *[ConfigError], and so is MaxRestarts with PersistSession false, because
	// no process could resume the session.
	// Default: 0, each death ends the session. Host only.
	MaxRestarts int `json:"maxRestarts,omitempty"`
	// RestartWindow is the time within which MaxRestarts counts. A negative value is a *[ConfigError]. Default: 0, the
	// life of the session. Host only.
	RestartWindow time.Duration `json:"restartWindow,omitempty"`
	// EqualDeaths is how many deaths in a row, equal in exit status, phase and last error and with no result between
	// them, end the session although MaxRestarts allows another process: the next one would most likely die alike. It needs
	// MaxRestarts. Default: 0, [DefaultEqualDeaths]; negative: no number of them. Host only.
	EqualDeaths int `json:"equalDeaths,omitempty"`
	// RestartBackoff is how long a session waits before it starts the agent again. Default: none before the first
	// restart, then up to 200 ms, doubled up to 30 s, at random. Invalid values are a *[ConfigError].
	RestartBackoff Backoff `json:"-"`
	// Recovery is what becomes of the messages that were under way when the agent died: continue, rerun, report or fail.
	// It needs MaxRestarts. Default: continue. Host only.
	Recovery Recovery `json:"recovery,omitempty"`
	// DecideRecovery decides in place of Recovery, for each death. It runs on its own goroutine; nothing is started before
	// it returns. Its context ends when the session closes. If it panics or returns no policy, the session fails with a
	// *[RecoveryError]. Together with Recovery it is a *[ConfigError]. nil: Recovery decides.
	DecideRecovery func(context.Context, Death) Recovery `json:"-"`
	// PassivateAfter is how long a session may be idle until its agent's process is ended. The next
	// message or control request starts a process that resumes the session. Idle means: the agent
	// writes nothing, and no turn, control request, request of the agent or background task is open.
	// Later actions of the agent itself, such as a wake-up that the model has scheduled, do not happen
	// without a process. See Client.Passivate for what keeps the process. A negative value is a
	// *[ConfigError], and so is one with PersistSession false, because no process could resume the
	// session. Default: 0, the process lives as long as the session. Host only.
	PassivateAfter time.Duration `json:"passivateAfter,omitempty"`
	// Supervisors replaces what the supervisors of the session do when one of its actors has crashed: strategy,
	// intensity and backoff. Invalid values are a *[ConfigError]. Default: each actor restarts alone, at most 3 times in
	// 30 s, after 10 ms to 1 s.
	Supervisors Supervisors `json:"-"`
	// Children are actors of your own in the session's supervision tree; make them with [NewChild]. Each receives the
	// session's events and the messages that are sent to it, can use the session, and is restarted, or ends the session,
	// as its specification and Supervisors.Session say. Invalid ones, and one that is in another session, are a
	// *[ConfigError]. nil: none.
	Children []*Child `json:"-"`
	// MaxLine is the largest length of a line that is read from the agent, in bytes. A longer line is skipped and
	// reported as an [OversizeLine] event. A negative value is a *[ConfigError]. Default: 0, which is 64 MiB. Host only.
	MaxLine int `json:"maxLine,omitempty"`

	// Process.

	// Cwd is the agent's working directory. Default: the working directory of this process. Both: no argument, the
	// process is started there.
	Cwd string `json:"cwd,omitempty"`
	// Isolation private gives the session its own configuration directory (mode 0700), so that sessions
	// do not write to each other's transcripts and state. Later processes of the session use the same
	// directory. If SettingSources has user, as by default, it gets copies of the user's settings.json
	// (Claude: without plugins), and on Claude of CLAUDE.md, agents, commands, output-styles, rules and
	// skills, on Qoder of AGENTS.md, agents, commands and skills; nothing else: no login, no history,
	// no plugins, no MCP servers of the user. One [Isolated] event lists them.
	//
	// The directory stays shared, and the event says why, without an API key or token, because two directories cannot keep
	// one OAuth login alive; and with Continue, or a Resume of a session that is not in a private directory of this
	// runtime. Resume of one that is uses its directory, also with ForkSession. Private directories are removed by
	// Runtime.Shutdown, unless runtime.Config.StateDir is set, and with the session if PersistSession is false. Those of
	// the default runtime, which is never shut down, are removed by the next program with the same TempDir.
	//
	// Private with a Spawner, or for an agent without such a directory, is a *[ConfigError]. Auto is private where that is
	// possible and Env names no directory, and shared otherwise; one event for all sessions of the runtime says why.
	// Default: shared, the directory that CLAUDE_CONFIG_DIR or QODER_CONFIG_DIR names in the agent's environment, else
	// .claude or .qoder in HOME; for the tasks of package fleet auto. Both: that variable.
	Isolation Isolation `json:"isolation,omitempty"`
	// Env is added to the environment of this process, and replaces variables of the same name. (The vendors' SDKs
	// replace the whole environment, and so lose PATH.) A CLAUDE_CODE_ENTRYPOINT or CLAUDE_AGENT_SDK_CLIENT_APP given here
	// replaces Troupe's (see SECURITY.md). Treated as secret. Default: no additions. Both: the environment.
	Env map[string]string `json:"env,omitempty"`
	// UnsetEnv names variables of this process that the agent does not get. Default: no further ones. Those that the
	// vendors' SDKs remove are always removed, unless Env has them: on Claude CLAUDECODE, NODE_OPTIONS, DEBUG, and three
	// that an outer agent sets for itself; on Qoder NODE_OPTIONS. Both: the environment.
	UnsetEnv []string `json:"unsetEnv,omitempty"`
	// CleanEnv starts with an empty environment instead of that of this process; Env should then have PATH and HOME.
	// Default: false. Both: the environment.
	CleanEnv bool `json:"cleanEnv,omitempty"`
	// Debug turns on the agent's debug output. Default: false. Both: --debug (Claude: not together with DebugFile, which
	// turns it on as well).
	Debug bool `json:"debug,omitempty"`
	// DebugFile is the file to which the agent writes its debug log. Default: no file. Claude: --debug-file. Qoder:
	// ignored with a Warning.
	DebugFile string `json:"debugFile,omitempty"`
	// PathToExecutable (pathToClaudeCodeExecutable, pathToQoderCLIExecutable, cli_path) is the path of the agent's
	// program. A .js, .mjs, .cjs, .ts, .tsx or .jsx file is run by Executable. Default: $CLAUDE_CODE_EXECUTABLE or
	// $QODERCLI_PATH, then claude or qodercli on the agent's PATH. Both: the program.
	PathToExecutable string `json:"pathToExecutable,omitempty"`
	// Executable is the JavaScript runtime for a script: node, bun, deno or a path. If the agent's program is not a
	// script, it is ignored with a Warning. Default: node. Both: the program, before the script.
	Executable string `json:"executable,omitempty"`
	// ExecutableArgs are arguments of the JavaScript runtime, placed before the script. If the agent's program is not a
	// script, there is a Warning: on Claude they are then placed before the agent's own arguments, on Qoder they are
	// ignored. Default: no arguments. Both: unchanged.
	ExecutableArgs []string `json:"executableArgs,omitempty"`
	// ExtraArgs are further flags of the agent. A key is the flag's name without dashes; an absent value makes it a
	// switch. A flag that another option or the protocol sets is a *[ConfigError]. Default: no flags. Both: --key value or
	// --key, sorted by key, after the other flags (Claude: before --settings; --key=-value if the value begins with a
	// dash).
	ExtraArgs map[string]Opt[string] `json:"extraArgs,omitempty"`

	// Login.

	// Auth is how qodercli logs in; Qoder requires it. Default: nil, which is a *[ConfigError] there. Qoder: a file of
	// mode 0600 whose path is in QODER_SDK_AUTH_PAYLOAD_FILE; the key of a service account and its variable are removed
	// from the environment.
	Auth *Auth `json:"auth,omitempty"`
	// Proxy is the URL of the proxy through which the agent reaches the model. Default: no proxy. Qoder: --proxy, or
	// HTTPS_PROXY and a set_proxy request if the URL could hold a secret.
	Proxy string `json:"proxy,omitempty"`
	// VPCEndpoint is the private endpoint of the model's API. Default: the public one. Qoder: QODER_VPC_ENDPOINT, without
	// leading and trailing space.
	VPCEndpoint string `json:"vpcEndpoint,omitempty"`

	// Model.

	// Model is the name or alias of the model. Default: the agent's. Both: --model.
	Model string `json:"model,omitempty"`
	// FallbackModel is the model that the agent uses when Model is overloaded; separate several names by commas. It must
	// not be Model itself. Default: no fallback. Claude: --fallback-model.
	FallbackModel string `json:"fallbackModel,omitempty"`
	// Thinking sets extended thinking. Default: nil, the agent's. Claude: --thinking, or --max-thinking-tokens for type
	// enabled with a budget; --thinking-display unless the type is disabled.
	Thinking *Thinking `json:"thinking,omitempty"`
	// MaxThinkingTokens is the older form of Thinking, in tokens; 0 turns thinking off. With Thinking it is ignored with
	// a Warning. Default: absent, the agent's. Claude: --max-thinking-tokens; 0: --thinking=disabled.
	MaxThinkingTokens Opt[int] `json:"maxThinkingTokens,omitzero"`
	// Effort is how much work the model puts into an answer: low, medium, high, xhigh or max. The agent ignores any other
	// word; Troupe then warns. Default: the agent's. Claude: --effort.
	Effort string `json:"effort,omitempty"`
	// Betas are the names of beta features for the header of the model's API. Default: no betas. Claude: --betas, joined
	// by commas.
	Betas []string `json:"betas,omitempty"`
	// OutputFormat asks for structured output. Default: nil, text. Claude: initialize.jsonSchema, and --json-schema if it
	// is short enough for an argument.
	OutputFormat *OutputFormat `json:"outputFormat,omitempty"`
	// OutputRepairs is how many times sdk.RunAs asks the model again when its answer is missing or does not fit. Each
	// time costs a turn. Negative: never. Default: 0, which is once. Host only.
	OutputRepairs int `json:"outputRepairs,omitempty"`
	// ModelRequestPatches is a JSON object of changes to the requests that go to models. Default: no changes. Qoder:
	// initialize.modelRequestPatches, unchanged.
	ModelRequestPatches json.RawMessage `json:"modelRequestPatches,omitempty"`

	// Limits.

	// MaxTurns limits the model calls of one turn. Default: absent, no limit. Both: --max-turns. Some(0) is sent on
	// Qoder; on Claude it means no limit, as in the vendor's SDK, with a Warning. A negative value is a Warning on Claude
	// and a *[ConfigError] on Qoder.
	MaxTurns Opt[int] `json:"maxTurns,omitzero"`
	// MaxBudgetUSD ends the turn when the session has cost more than this many US dollars. It must be above zero.
	// Default: absent, no limit. Claude: --max-budget-usd.
	MaxBudgetUSD Opt[float64] `json:"maxBudgetUsd,omitzero"`
	// TaskBudget (taskBudget.total) is the number of tokens in total within which the model is asked to work. It must be
	// above zero. Default: absent, no budget. Claude: --task-budget.
	TaskBudget Opt[int] `json:"taskBudget,omitzero"`
	// GoalMaxTurns limits the turns spent on a goal. Default: absent, the agent's. Qoder: a set_goal_max_turns request
	// after initialize.
	GoalMaxTurns Opt[int] `json:"goalMaxTurns,omitzero"`
	// InitializeTimeout (initializeTimeoutMs) limits how long the agent may take to start. Limits.Initialize, if set,
	// takes precedence. Default: 0, which is 120 s. Qoder: initialize.initializeTimeoutMs. Claude: host only.
	InitializeTimeout time.Duration `json:"initializeTimeout,omitempty"`

	// Prompt.

	// SystemPrompt replaces or extends the agent's system prompt. Default: not given; Claude then gets an empty prompt, as
	// from the vendor's SDK, and Qoder uses its own. The preset without a text is Claude Code's own prompt. Both:
	// initialize.systemPrompt (a list on Claude, one text on Qoder) or appendSystemPrompt. Claude:
	// excludeDynamicSections and systemPromptSnapshot, too.
	SystemPrompt SystemPrompt `json:"systemPrompt,omitzero"`
	// PlanModeInstructions replaces the instructions of plan mode. Default: the agent's. Claude:
	// initialize.planModeInstructions.
	PlanModeInstructions string `json:"planModeInstructions,omitempty"`
	// Title is the session's title. Default: the agent makes one. Claude: initialize.title.
	Title string `json:"title,omitempty"`
	// VerbatimPrompts tells the agent to send user messages to the model unchanged. Default: false. Claude:
	// client_composed on each user line.
	VerbatimPrompts bool `json:"verbatimPrompts,omitempty"`
	// CustomContext is a JSON object for each user message that has no CustomContext itself. Default: no object. Qoder:
	// custom_context on each user line.
	CustomContext json.RawMessage `json:"customContext,omitempty"`
	// Memory turns on the agent's memory. Default: nil. nil and an empty Memory leave it off, unless ShouldGenerateMemory
	// is set. Qoder: initialize.memory.
	Memory *Memory `json:"memory,omitempty"`
	// Evolution turns on the evolution of skills. Default: nil. nil and an empty Evolution leave it off, unless
	// ShouldReviewSkills is set. Qoder: initialize.evolution.
	Evolution *Evolution `json:"evolution,omitempty"`

	// Tools and permissions.

	// Tools are the built-in tools that the model has. Default: the zero Set: on Claude the agent's default tools, on
	// Qoder the list of the vendor's SDK, which QODER_FEATURE_TASKS changes. Both: --tools with names joined by commas,
	// empty for None, default for All.
	Tools Set `json:"tools,omitzero"`
	// AllowedTools are permission rules for calls that are allowed without asking, such as Read or Bash(git:*).
	// CanUseTool is not called for them, which is a Warning if it is set. Default: no rules. Claude: --allowedTools,
	// joined by commas. Qoder: --allowed-tools for each. Both: permissions.allow of the settings if they are too long for
	// an argument.
	AllowedTools []string `json:"allowedTools,omitempty"`
	// DisallowedTools are permission rules for calls that are denied; a rule that names a whole tool removes it. They take
	// precedence over AllowedTools. Default: no rules. Claude: --disallowedTools, joined by commas. Qoder:
	// --disallowed-tools for each. Both: permissions.deny of the settings if they are too long for an argument.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// ToolAliases maps the name of a tool that the model calls to the tool that runs instead. Default: no aliases.
	// Claude: initialize.toolAliases.
	ToolAliases map[string]string `json:"toolAliases,omitempty"`
	// ToolConfig configures built-in tools. Default: nil, the agent's. Claude: CLAUDE_CODE_QUESTION_PREVIEW_FORMAT.
	// Qoder: ignored with a Warning.
	ToolConfig *ToolConfig `json:"toolConfig,omitempty"`
	// PermissionMode is how the agent decides about calls that match no rule: default, acceptEdits, plan, dontAsk, auto,
	// bypassPermissions, on Qoder also yolo. Default: the agent's. Both: --permission-mode. Qoder: --yolo for yolo.
	PermissionMode protocol.PermissionMode `json:"permissionMode,omitempty"`
	// AllowDangerouslySkipPermissions confirms the modes bypassPermissions and yolo, which are a *[ConfigError] without
	// it. Default: false. Claude: --allow-dangerously-skip-permissions. Qoder: --dangerously-skip-permissions, except in
	// mode yolo.
	AllowDangerouslySkipPermissions bool `json:"allowDangerouslySkipPermissions,omitempty"`
	// Unattended says that no person is there: nothing in the session may wait for one. The start fails with a
	// *[ConfigError] that lists what could, unless each call that the agent may ask about has an answer: CanUseTool, or
	// a Policy with the default deny and without ask rules. A callback for a person's answer (CanUseTool, OnElicitation,
	// OnUserDialog) that takes longer than PermissionTimeout counts as a no; the default of PermissionTimeout is one
	// minute then. ResultMessage.PermissionDenials counts the calls that were denied. Default: false. Host only.
	Unattended bool `json:"unattended,omitempty"`
	// PlanMode turns plan mode on or off. Default: absent, which changes nothing. Qoder: a set_plan_mode request after
	// initialize.
	PlanMode Opt[bool] `json:"planMode,omitzero"`
	// PermissionPromptToolName is the MCP tool that decides instead of CanUseTool. Both together are a *[ConfigError].
	// Default: no tool. Both: --permission-prompt-tool (stdio if CanUseTool is set).
	PermissionPromptToolName string `json:"permissionPromptToolName,omitempty"`
	// PermissionPrompts says who answers permission prompts: host, or none, which denies them. Default: the agent's
	// (host). Claude: --permission-prompts.
	PermissionPrompts string `json:"permissionPrompts,omitempty"`
	// Sandbox confines shell commands. Default: nil, the sandbox of the settings. Claude: merged into the sandbox of
	// --settings. The embedded agent has a part of it: docs/embedded.md. On Qoder it is a *[ConfigError], because the
	// vendor's SDK accepts it and does not confine anything.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// SecurityScan chooses the scans of generated code; all three levels are sent. Default: nil, the scans of the
	// settings. Qoder: merged into --settings.
	SecurityScan *SecurityScan `json:"securityScan,omitempty"`

	// Session.

	// Continue resumes the most recent session of Cwd. With Resume it is ignored with a Warning. Default: false. Both:
	// --continue.
	Continue bool `json:"continue,omitempty"`
	// ForkSession gives the resumed session a new id. Without Resume or Continue it is a Warning on Claude and a
	// *[ConfigError] on Qoder. Default: false. Both: --fork-session.
	ForkSession bool `json:"forkSession,omitempty"`
	// PersistSession says whether the agent writes the session to disk. Default: absent, which means true. Both:
	// --no-session-persistence for Some(false).
	PersistSession Opt[bool] `json:"persistSession,omitzero"`
	// EnableFileCheckpointing keeps copies of changed files, which a rewind_files request restores. Default: absent,
	// false. Claude: CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true. Qoder: initialize.enableFileCheckpointing, and
	// general.fileCheckpointing of --settings.
	EnableFileCheckpointing Opt[bool] `json:"enableFileCheckpointing,omitzero"`
	// Resume is the id of the session to resume; on Claude a session's whole title works, too (observed on Claude Code
	// 2.1.329). It takes precedence over Continue. Default: a new session. Both: --resume.
	Resume string `json:"resume,omitempty"`
	// ResumeSessionAt is the uuid of the last message of the history to resume; later messages are cut off. It needs
	// Resume. Default: the whole history. Both: --resume-session-at.
	ResumeSessionAt string `json:"resumeSessionAt,omitempty"`
	// ResumeDropsTurn is the uuid of the prompt whose turn ResumeSessionAt is meant to cut off. It needs ResumeSessionAt.
	// If that would cut off anything else, the agent rejects the resume (observed on Claude Code 2.1.329). Default: not
	// given. Both: --resume-drops-turn.
	ResumeDropsTurn string `json:"resumeDropsTurn,omitempty"`
	// SessionID is the id of the new session. On Claude it must be a UUID, and with Resume or Continue it also needs
	// ForkSession. Default: the agent chooses. Both: --session-id.
	SessionID string `json:"sessionId,omitempty"`
	// SessionStore gets a copy of what the agent stores of the session, while it runs, and Resume and
	// Continue find the session there, on any machine: it is loaded before the agent starts, into a
	// private configuration directory that is removed with the session. A session that is not in the
	// store is resumed from the agent's own files. If it implements [LeaseStore] or [Leases], no two hosts
	// run one session. Default: nil. Both: --session-mirror.
	SessionStore Store `json:"-"`
	// SessionStoreOptions has the limits of the work with SessionStore. Default: the vendors'. Host only.
	SessionStoreOptions StoreOptions `json:"sessionStoreOptions,omitzero"`

	// Settings and surroundings.

	// SettingSources are the settings files that the agent loads: user, project, local. Files of the project start
	// programs before any callback, hook or policy is asked: command hooks, the servers of .mcp.json, and apiKeyHelper
	// (observed on Claude Code 2.1.329). Use None for a project that you do not trust; then none of these programs runs.
	// Default: the zero Set; the agent loads all of them, and each such program is a warning for Claude Code, with
	// Unattended a *[ConfigError]. Both: --setting-sources, joined by commas, empty for None.
	SettingSources Set `json:"settingSources,omitzero"`
	// Settings is a settings object in JSON. Other options are merged into it. Together with SettingsPath it is a
	// *[ConfigError]. Default: no object. Both: --settings, as a file of mode 0600 if it could hold a credential or is too
	// long for an argument.
	Settings json.RawMessage `json:"settings,omitempty"`
	// SettingsPath is the path of a settings file, relative to Cwd. Troupe reads it, too, to merge other options into it,
	// unless Spawner is set. Default: no file. Both: --settings with the path, or with a file of mode 0600 if something
	// is merged.
	SettingsPath string `json:"settingsPath,omitempty"`
	// ManagedSettings is a JSON object of policy settings. Default: no object. Claude: --managed-settings, or
	// initialize.managedSettings if it could hold a credential or is too long for an argument.
	ManagedSettings json.RawMessage `json:"managedSettings,omitempty"`
	// AdditionalDirectories are directories that the agent may work in, in addition to Cwd. Default: no directories. Both:
	// --add-dir for each. Qoder: permissions.additionalDirectories of --settings, too.
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	// ProjectConfigRoot is the checkout whose project settings apply. Default: the checkout of Cwd. Claude:
	// --project-config-root.
	ProjectConfigRoot string `json:"projectConfigRoot,omitempty"`
	// Plugins are the plugins to load, each from a directory. Default: no plugins. Both: --plugin-dir for each. Claude:
	// --plugin-dir-no-mcp with SkipMCPDiscovery.
	Plugins []Plugin `json:"plugins,omitempty"`
	// PluginDelivery is how Plugins reach the agent. Default: DeliverByLaunch. Claude: with DeliverInInitialize,
	// --await-initialize and initialize.plugins.
	PluginDelivery Delivery `json:"pluginDelivery,omitempty"`
	// Skills are the skills that the session may use. All and Only also add an allow rule for the Skill tool, which must
	// be among Tools. Default: the zero Set, the agent's. Both: an allowed tool Skill for All, or Skill(name) for each
	// name; initialize.skills for Only and None.
	Skills Set `json:"skills,omitzero"`
	// Extensions are the names of extensions to load. Default: no extensions. Qoder: --extensions for each.
	Extensions []string `json:"extensions,omitempty"`

	// Agents.

	// Agents are the subagents by name. The main session needs the Agent tool to call them; on Qoder the tool must also
	// be allowed. Subagents have no Agent tool themselves. An InitialPrompt is used only for the agent that the option
	// Agent names. Default: no subagents. Both: initialize.agents.
	Agents map[string]AgentDefinition `json:"agents,omitempty"`
	// Agent is the name of the agent that the main session runs as: one of Agents, or one that the agent's program knows.
	// Default: no such agent. Both: --agent.
	Agent string `json:"agent,omitempty"`

	// MCP.

	// MCPServers are the external MCP servers by name. Policies of their tools become permission rules in the settings.
	// Default: no servers. Both: --mcp-config, as a file of mode 0600 if it could hold a credential or is too long for an
	// argument.
	MCPServers map[string]MCPServerConfig `json:"mcpServers,omitempty"`
	// MCPConfigPath (mcpServers as a path) is a file with external MCP servers. Together with MCPServers it is a
	// *[ConfigError]. Default: no file. Both: --mcp-config.
	MCPConfigPath string `json:"mcpConfigPath,omitempty"`
	// SDKMCPServerConfigs are time limits and tool policies of SDKMCPServers, by name. Default: no configuration. Both:
	// permission rules in the settings. Claude: initialize.sdkMcpServerConfigs. Qoder: initialize.sdkMcpToolOverrides.
	SDKMCPServerConfigs map[string]SDKMCPServerConfig `json:"sdkMcpServerConfigs,omitempty"`
	// MCPServersDelivery is how MCPServers reach the agent. Default: DeliverByLaunch. Claude: with DeliverInInitialize,
	// --await-initialize and initialize.mcpServers.
	MCPServersDelivery Delivery `json:"mcpServersDelivery,omitempty"`
	// StrictMCPConfig makes the agent ignore MCP servers of settings files. Default: false. Both: --strict-mcp-config.
	StrictMCPConfig bool `json:"strictMcpConfig,omitempty"`
	// AllowedMCPServerNames are the only MCP servers that the agent uses, wherever they are configured. Default: no
	// restriction. Qoder: --allowed-mcp-server-names for each.
	AllowedMCPServerNames []string `json:"allowedMcpServerNames,omitempty"`

	// Dialogs.

	// SupportedDialogKinds are the kinds of dialogs that OnUserDialog can show. Without that callback they are a
	// *[ConfigError]. Default: no kinds. Claude: initialize.supportedDialogKinds.
	SupportedDialogKinds []string `json:"supportedDialogKinds,omitempty"`

	// Stream.

	// IncludePartialMessages streams the model's output while it is generated. Default: false. Both:
	// --include-partial-messages.
	IncludePartialMessages bool `json:"includePartialMessages,omitempty"`
	// IncludeHookEvents adds messages about the start, the progress and the end of command hooks. Default: false. Claude:
	// --include-hook-events. Qoder: ignored with a Warning.
	IncludeHookEvents bool `json:"includeHookEvents,omitempty"`
	// ForwardSubagentText adds the text of subagents to the messages. Default: false. Claude:
	// initialize.forwardSubagentText.
	ForwardSubagentText bool `json:"forwardSubagentText,omitempty"`
	// PromptSuggestions asks for prompt_suggestion messages. Default: false. Both: initialize.promptSuggestions.
	PromptSuggestions bool `json:"promptSuggestions,omitempty"`
	// AgentProgressSummaries asks for summaries of running subagents. Default: false. Claude:
	// initialize.agentProgressSummaries.
	AgentProgressSummaries bool `json:"agentProgressSummaries,omitempty"`
	// PerTaskStopAffordance tells the agent that the user can stop background tasks one by one. An interrupt then does
	// not stop them. Default: false. Claude: initialize.perTaskStopAffordance.
	PerTaskStopAffordance bool `json:"perTaskStopAffordance,omitempty"`
	// Discard drops messages when they arrive, for programs that need only results. Turn.Result and Run work, Query
	// yields no messages. Default: false. Host only.
	Discard bool `json:"discard,omitempty"`

	// ExperimentalCloudAgent runs the session in Qoder's cloud, over HTTP, instead of a process of qodercli. Backend must
	// be that of agent/cloud, and Auth an access token. Options that the cloud agent does not
	// have are each a *[ConfigError]: only Auth, Env, IncludePartialMessages, Debug, DebugFile and the options of the host
	// that concern neither tools nor permissions can be used with it. Default: nil. Qoder: requests to the cloud.
	ExperimentalCloudAgent *CloudAgent `json:"experimentalCloudAgent,omitempty"`
}
