package dialect_test

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// secret stands in every field that can hold a credential.
const secret = "s3cr3t"

func dialects() map[string]dialect.Dialect {
	return map[string]dialect.Dialect{"claude": claude.New(), "qoder": qoder.New()}
}

// start is the least a backend needs.
func start(name string) dialect.Input {
	o := dialect.Input{}
	if name == "qoder" {
		o.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: secret}
	}
	return o
}

// samples has a value for each field of Options, with what that value needs to be valid.
func samples() map[string]func(*dialect.Input) {
	type o = *dialect.Input
	raw := json.RawMessage(`{"env":{"K":"` + secret + `"},"b":1,"a":2}`)
	return map[string]func(*dialect.Input){
		"Cwd":               func(x o) { x.Cwd = "/w" },
		"Env":               func(x o) { x.Env = map[string]string{"B": secret, "A": secret, "C": secret} },
		"UnsetEnv":          func(x o) { x.UnsetEnv = []string{"Z", "Y"} },
		"CleanEnv":          func(x o) { x.CleanEnv = true },
		"PathToExecutable":  func(x o) { x.PathToExecutable = "/opt/agent.mjs" },
		"Executable":        func(x o) { x.PathToExecutable, x.Executable = "/opt/agent.mjs", "bun" },
		"ExecutableArgs":    func(x o) { x.PathToExecutable, x.ExecutableArgs = "/opt/agent.mjs", []string{"--smol"} },
		"ExtraArgs":         func(x o) { x.ExtraArgs = map[string]session.Opt[string]{"z": {}, "y": session.Some("1"), "x": {}} },
		"Debug":             func(x o) { x.Debug = true },
		"DebugFile":         func(x o) { x.DebugFile = "/tmp/log" },
		"Auth":              func(x o) { x.Auth = &session.Auth{Type: session.AuthServiceAccount, ServiceAccountKey: secret} },
		"Proxy":             func(x o) { x.Proxy = "http://u:" + secret + "@p:1" },
		"VPCEndpoint":       func(x o) { x.VPCEndpoint = "acme" },
		"Model":             func(x o) { x.Model = "m" },
		"FallbackModel":     func(x o) { x.FallbackModel = "f" },
		"Thinking":          func(x o) { x.Thinking = &session.Thinking{Type: "adaptive"} },
		"MaxThinkingTokens": func(x o) { x.MaxThinkingTokens = session.Some(9) },
		"Effort":            func(x o) { x.Effort = "low" },
		"Betas":             func(x o) { x.Betas = []string{"b"} },
		"OutputFormat": func(x o) {
			x.OutputFormat = &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`{"type":"object"}`)}
		},
		"ModelRequestPatches":  func(x o) { x.ModelRequestPatches = raw },
		"MaxTurns":             func(x o) { x.MaxTurns = session.Some(0) },
		"MaxBudgetUSD":         func(x o) { x.MaxBudgetUSD = session.Some(0.5) },
		"TaskBudget":           func(x o) { x.TaskBudget = session.Some(5) },
		"GoalMaxTurns":         func(x o) { x.GoalMaxTurns = session.Some(5) },
		"InitializeTimeout":    func(x o) { x.InitializeTimeout = time.Second },
		"SystemPrompt":         func(x o) { x.SystemPrompt = session.SystemPrompt{Blocks: []string{"be brief"}} },
		"PlanModeInstructions": func(x o) { x.PlanModeInstructions = "p" },
		"Title":                func(x o) { x.Title = "t" },
		"VerbatimPrompts":      func(x o) { x.VerbatimPrompts = true },
		"CustomContext":        func(x o) { x.CustomContext = raw },
		"Memory":               func(x o) { x.Memory = &session.Memory{Mode: "custom"} },
		"Evolution":            func(x o) { x.Evolution = &session.Evolution{Skill: &session.SkillEvolution{}} },
		"ShouldGenerateMemory": func(x o) { x.ShouldGenerateMemory = turnGate },
		"ShouldReviewSkills":   func(x o) { x.ShouldReviewSkills = turnGate },
		"Tools":                func(x o) { x.Tools = session.Only("Read", "Agent", "Skill") },
		"AllowedTools":         func(x o) { x.AllowedTools = []string{"Read", "Bash(git:*)"} },
		"DisallowedTools":      func(x o) { x.DisallowedTools = []string{"Write"} },
		"ToolAliases":          func(x o) { x.ToolAliases = map[string]string{"B": "b", "A": "a", "C": "c"} },
		"ToolConfig": func(x o) {
			x.ToolConfig = &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}
		},
		"PermissionMode":                  func(x o) { x.PermissionMode = protocol.ModePlan },
		"AllowDangerouslySkipPermissions": func(x o) { x.AllowDangerouslySkipPermissions = true },
		"CanUseTool":                      func(x o) { x.CanUseTool, x.PermissionPromptToolName = canUseTool, "" },
		"Policy":                          func(x o) { x.Policy = &policy.Rules{} },
		"PermissionPromptToolName":        func(x o) { x.PermissionPromptToolName, x.CanUseTool = "mcp__a__b", nil },
		"PermissionPrompts":               func(x o) { x.PermissionPrompts = "host" },
		"PlanMode":                        func(x o) { x.PlanMode = session.Some(true) },
		"Sandbox": func(x o) {
			x.Sandbox = &session.Sandbox{Enabled: session.Some(true), Extra: map[string]json.RawMessage{"newer": raw}}
		},
		"SecurityScan":    func(x o) { x.SecurityScan = &session.SecurityScan{L3DeepScan: true} },
		"Continue":        func(x o) { x.Continue = true },
		"Resume":          func(x o) { x.Resume = "r" },
		"ForkSession":     func(x o) { x.Resume, x.ForkSession = "r", true },
		"ResumeSessionAt": func(x o) { x.Resume, x.ResumeSessionAt = "r", "m" },
		"ResumeDropsTurn": func(x o) { x.Resume, x.ResumeSessionAt, x.ResumeDropsTurn = "r", "m", "d" },
		"SessionID": func(x o) {
			x.SessionID, x.Resume, x.Continue = "dddddddd-1111-4111-8111-111111111111", "r", false
			x.ForkSession = true
		},
		"PersistSession":          func(x o) { x.PersistSession, x.HasSessionStore = session.Some(false), false },
		"HasSessionStore":         func(x o) { x.HasSessionStore, x.PersistSession = true, session.Some(true) },
		"EnableFileCheckpointing": func(x o) { x.EnableFileCheckpointing = session.Some(true) },
		"SettingSources":          func(x o) { x.SettingSources = session.Only("user") },
		"Settings":                func(x o) { x.Settings, x.SettingsPath, x.SettingsContent = raw, "", nil },
		"SettingsPath":            func(x o) { x.SettingsPath, x.SettingsContent, x.Settings = "/s.json", raw, nil },
		"LoadedSettings":          func(x o) { x.LoadedSettings = []dialect.SettingsFile{{Source: "user", Path: "/u", Content: raw}} },
		"SettingsContent": func(x o) {
			x.SettingsPath, x.SettingsContent, x.Settings = "/s.json", raw, nil
			x.MCPServers = policies()
		},
		"ManagedSettings":       func(x o) { x.ManagedSettings = raw },
		"AdditionalDirectories": func(x o) { x.AdditionalDirectories = []string{"/b", "/a"} },
		"ProjectConfigRoot":     func(x o) { x.ProjectConfigRoot = "/p" },
		"Plugins":               func(x o) { x.Plugins = []session.Plugin{{Path: "/p"}} },
		"PluginDelivery":        func(x o) { x.Plugins, x.PluginDelivery = []session.Plugin{{Path: "/p"}}, "initialize" },
		"Skills":                func(x o) { x.Skills = session.Only("pdf") },
		"Extensions":            func(x o) { x.Extensions = []string{"e"} },
		"Agents": func(x o) {
			x.Agents = map[string]session.AgentDefinition{}
			for _, name := range []string{"c", "b", "a"} {
				x.Agents[name] = session.AgentDefinition{Description: "d", Prompt: "p",
					MCPServers: []session.AgentMCPServer{{Name: "own", Config: &session.MCPServerConfig{Command: "c", Env: map[string]string{"K": secret}}}}}
			}
		},
		"Agent":                 func(x o) { x.Agent = "a" },
		"MCPServers":            func(x o) { x.MCPServers = servers() },
		"MCPConfigPath":         func(x o) { x.MCPConfigPath, x.MCPServers = "/mcp.json", nil },
		"Servers":               func(x o) { x.Servers = []dialect.SDKMCPServer{{Name: "host"}} },
		"MCPServersDelivery":    func(x o) { x.MCPServers, x.MCPServersDelivery = servers(), "initialize" },
		"StrictMCPConfig":       func(x o) { x.StrictMCPConfig = true },
		"AllowedMCPServerNames": func(x o) { x.AllowedMCPServerNames = []string{"a"} },
		"Registrations": func(x o) {
			x.Registrations = []dialect.HookRegistration{{Event: protocol.HookStop, CallbackIDs: []string{"h"}}}
		},
		"ResolveModel":            func(x o) { x.ResolveModel = resolveModel },
		"ResolveSessionArtifacts": func(x o) { x.ResolveSessionArtifacts = artifacts },
		"OnElicitation":           func(x o) { x.OnElicitation = onElicitation },
		"OnUserDialog":            func(x o) { x.OnUserDialog = onUserDialog },
		"SupportedDialogKinds":    func(x o) { x.OnUserDialog, x.SupportedDialogKinds = onUserDialog, []string{"k"} },
		"IncludePartialMessages":  func(x o) { x.IncludePartialMessages = true },
		"IncludeHookEvents":       func(x o) { x.IncludeHookEvents = true },
		"ForwardSubagentText":     func(x o) { x.ForwardSubagentText = true },
		"PromptSuggestions":       func(x o) { x.PromptSuggestions = true },
		"AgentProgressSummaries":  func(x o) { x.AgentProgressSummaries = true },
		"PerTaskStopAffordance":   func(x o) { x.PerTaskStopAffordance = true },
		"ParentEnv":               func(x o) { x.ParentEnv = []string{"QODERCLI_PATH=/opt/q", "CLAUDE_CODE_EXECUTABLE=/opt/c"} },
		"ExperimentalCloudAgent": func(x o) {
			x.ExperimentalCloudAgent = &session.CloudAgent{Session: session.CloudSession{ID: "s"}}
		},
	}
}

func policies() map[string]session.MCPServerConfig {
	return map[string]session.MCPServerConfig{"a": {Command: "c", Tools: []session.MCPToolPolicy{{Name: "t", PermissionPolicy: session.AlwaysDeny}}}}
}

func servers() map[string]session.MCPServerConfig {
	return map[string]session.MCPServerConfig{
		"stdio":   {Command: "c", Args: []string{"--token", secret}, Env: map[string]string{"B": secret, "A": secret}},
		"headers": {Type: "http", URL: "https://h/mcp", Headers: map[string]string{"X": secret, "Authorization": "Bearer " + secret}},
		"user":    {Type: "sse", URL: "https://u:" + secret + "@h/"},
		"query":   {Type: "http", URL: "https://h/?key=" + secret},
		"extra":   {Command: "c", Extra: map[string]json.RawMessage{"z": json.RawMessage(`"` + secret + `"`), "a": json.RawMessage(`1`)}},
	}
}

// accepted are the fields whose sample a backend takes.
func accepted(name string) []string {
	var fields []string
	for _, field := range slices.Sorted(maps.Keys(samples())) {
		o := start(name)
		samples()[field](&o)
		if _, err := dialects()[name].Validate(&o); err == nil {
			fields = append(fields, field)
		}
	}
	return fields
}

// anyOptions draws options that a backend mostly takes, and now and then any.
func anyOptions(name string) *rapid.Generator[dialect.Input] {
	all := samples()
	every, good := slices.Sorted(maps.Keys(all)), accepted(name)
	return rapid.Custom(func(t *rapid.T) dialect.Input {
		fields, most := good, 20
		if rapid.IntRange(0, 9).Draw(t, "wild") == 0 {
			fields, most = every, 8
		}
		o := start(name)
		for _, field := range rapid.SliceOfNDistinct(rapid.SampledFrom(fields), 0, most, rapid.ID).Draw(t, "fields") {
			all[field](&o)
		}
		// One server alone must not be saved by its neighbours.
		for _, server := range slices.Sorted(maps.Keys(o.MCPServers)) {
			if rapid.Bool().Draw(t, "drop "+server) {
				delete(o.MCPServers, server)
			}
		}
		return o
	})
}
