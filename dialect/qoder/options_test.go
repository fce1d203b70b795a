package qoder_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// wire is what an option puts on the wire, beside what every launch has.
type wire struct {
	argv    []string // besides the fixed arguments
	init    map[string]string
	env     map[string]string
	payload string // of the login
	user    string // of the user line
	after   string // a request after initialize
	refused string // the option of the ConfigError instead
	warned  string // the option of a warning: it goes nowhere
}

// TestEveryOption is the vendor's table of options, one by one: by row of the ledger.
func TestEveryOption(t *testing.T) {
	t.Parallel()
	type o = dialect.Input
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	argv := func(a ...string) wire { return wire{argv: a} }
	field := func(name, value string) wire { return wire{init: map[string]string{name: value}} }
	payload := func(json string) wire { return wire{payload: json} }
	refused := func(option string) wire { return wire{refused: option} }
	servers := func(s session.MCPServerConfig) o {
		return o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": s}}}
	}
	box := func(s session.Sandbox) o { return o{Options: session.Options{Sandbox: &s}} }
	agent := func(set func(*session.AgentDefinition)) o {
		d := session.AgentDefinition{Description: "d", Prompt: "p"}
		set(&d)
		return o{Options: session.Options{Agents: map[string]session.AgentDefinition{"a": d}}}
	}
	inside := func(more string) wire { return field("agents", `{"a":{"description":"d","prompt":"p"`+more+`}}`) }
	def := func(set func(*session.AgentDefinition), more string) struct {
		o    o
		want wire
	} {
		return struct {
			o    o
			want wire
		}{agent(set), inside(more)}
	}
	for row, c := range map[string]struct {
		o    o
		want wire
	}{
		"option/additionalDirectories":  {o{Options: session.Options{AdditionalDirectories: []string{"/a", "b"}}}, argv("--settings", `{"permissions":{"additionalDirectories":["/a","b"]}}`, "--add-dir", "/a", "--add-dir", "b")},
		"option/agent":                  {o{Options: session.Options{Agent: "a"}}, argv("--agent", "a")},
		"option/agents":                 def(func(*session.AgentDefinition) {}, ``),
		"option/agents.description":     def(func(d *session.AgentDefinition) { d.Description = "d" }, ``),
		"option/agents.prompt":          def(func(d *session.AgentDefinition) { d.Prompt = "p" }, ``),
		"option/agents.tools":           def(func(d *session.AgentDefinition) { d.Tools = session.Only("Read") }, `,"tools":["Read"]`),
		"option/agents.disallowedTools": def(func(d *session.AgentDefinition) { d.DisallowedTools = []string{"Bash"} }, `,"disallowedTools":["Bash"]`),
		"option/agents.model":           def(func(d *session.AgentDefinition) { d.Model = "inherit" }, `,"model":"inherit"`),
		"option/agents.mcpServers": def(func(d *session.AgentDefinition) {
			d.MCPServers = []session.AgentMCPServer{{Name: "x"}, {Name: "y", Config: &session.MCPServerConfig{Command: "c"}}}
		}, `,"mcpServers":["x",{"y":{"command":"c"}}]`),
		"option/agents.skills":                   def(func(d *session.AgentDefinition) { d.Skills = []string{"s"} }, `,"skills":["s"]`),
		"option/agents.initialPrompt":            def(func(d *session.AgentDefinition) { d.InitialPrompt = "i" }, `,"initialPrompt":"i"`),
		"option/agents.maxTurns":                 def(func(d *session.AgentDefinition) { d.MaxTurns = session.Some(6) }, `,"maxTurns":6`),
		"option/agents.effort":                   def(func(d *session.AgentDefinition) { d.Effort = "high" }, `,"effort":"high"`),
		"option/agents.permissionMode":           def(func(d *session.AgentDefinition) { d.PermissionMode = protocol.ModePlan }, `,"permissionMode":"plan"`),
		"option/allowedTools":                    {o{Options: session.Options{AllowedTools: []string{"Read", "Bash(a, b)"}}}, argv("--allowed-tools", "Read", "--allowed-tools", "Bash(a, b)")},
		"option/disallowedTools":                 {o{Options: session.Options{DisallowedTools: []string{"Bash"}}}, argv("--disallowed-tools", "Bash")},
		"option/tools":                           {o{Options: session.Options{Tools: session.Only("Read", "Bash")}}, argv("--tools", "Read,Bash")},
		"option/skills":                          {o{Options: session.Options{Skills: session.Only("a")}}, wire{argv: []string{"--allowed-tools", "Skill(a)"}, init: map[string]string{"skills": `["a"]`}}},
		"option/extensions":                      {o{Options: session.Options{Extensions: []string{"a", "b"}}}, argv("--extensions", "a", "--extensions", "b")},
		"option/model":                           {o{Options: session.Options{Model: "auto"}}, argv("--model", "auto")},
		"option/resolveModel":                    {o{Options: session.Options{ResolveModel: resolveModel}}, field("modelPolicyProvider", `true`)},
		"option/permissionMode":                  {o{Options: session.Options{PermissionMode: protocol.ModeAcceptEdits}}, argv("--permission-mode", "acceptEdits")},
		"option/allowDangerouslySkipPermissions": {o{Options: session.Options{AllowDangerouslySkipPermissions: true}}, argv("--dangerously-skip-permissions")},
		"option/canUseTool":                      {o{Options: session.Options{CanUseTool: canUseTool}}, argv("--permission-prompt-tool", "stdio")},
		"option/permissionPromptToolName":        {o{Options: session.Options{PermissionPromptToolName: "mcp__a__b"}}, argv("--permission-prompt-tool", "mcp__a__b")},
		"option/planMode":                        {o{Options: session.Options{PlanMode: session.Some(true)}}, wire{after: `{"subtype":"set_plan_mode","active":true}`}},
		"option/goalMaxTurns":                    {o{Options: session.Options{GoalMaxTurns: session.Some(7)}}, wire{after: `{"subtype":"set_goal_max_turns","max_turns":7}`}},
		"option/systemPrompt":                    {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"s"}}}}, field("systemPrompt", `"s"`)},
		"option/systemPrompt.preset":             {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Append: "x"}}}, field("appendSystemPrompt", `"x"`)},
		"option/modelRequestPatches":             {o{Options: session.Options{ModelRequestPatches: raw(`{"m":{"a":1}}`)}}, field("modelRequestPatches", `{"m":{"a":1}}`)},
		"option/hooks":                           {o{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: protocol.HookStop, Matcher: "x", CallbackIDs: []string{"hook_0"}, Timeout: 1500 * time.Millisecond}}}}, field("hooks", `{"Stop":[{"matcher":"x","hookCallbackIds":["hook_0"],"timeout":1.5}]}`)},
		"option/mcpServers": {o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c"}, "w": {Type: "http", URL: "https://h", Timeout: time.Second}}}},
			argv("--mcp-config", `{"mcpServers":{"s":{"command":"c"},"w":{"type":"http","url":"https://h","timeout":1000}}}`)},
		"option/mcpServers.timeout": {servers(session.MCPServerConfig{Command: "c", Timeout: time.Minute}), argv("--mcp-config", `{"mcpServers":{"s":{"command":"c","timeout":60000}}}`)},
		"option/mcpServers.stdio":   {servers(session.MCPServerConfig{Command: "c", Timeout: 1500 * time.Millisecond}), argv("--mcp-config", `{"mcpServers":{"s":{"command":"c","timeout":1500}}}`)},
		"option/mcpServers.sse":     {servers(session.MCPServerConfig{Type: "sse", URL: "https://h", Timeout: time.Minute}), argv("--mcp-config", `{"mcpServers":{"s":{"type":"sse","url":"https://h","timeout":60000}}}`)},
		"option/mcpServers.http":    {servers(session.MCPServerConfig{Type: "http", URL: "https://h"}), argv("--mcp-config", `{"mcpServers":{"s":{"type":"http","url":"https://h"}}}`)},
		"option/mcpServers.sdk":     {o{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "h"}}}}, field("sdkMcpServers", `["h"]`)},
		"option/mcpServers.tools": {servers(session.MCPServerConfig{Command: "c", Tools: []session.MCPToolPolicy{{Name: "t u", PermissionPolicy: session.AlwaysAsk}}}),
			argv("--mcp-config", `{"mcpServers":{"s":{"command":"c"}}}`, "--settings", `{"permissions":{"allow":[],"ask":["mcp__s__t_u"],"deny":[]}}`)},
		"option/allowedMcpServerNames":             {o{Options: session.Options{AllowedMCPServerNames: []string{"a", "b"}}}, argv("--allowed-mcp-server-names", "a", "--allowed-mcp-server-names", "b")},
		"option/strictMcpConfig":                   {o{Options: session.Options{StrictMCPConfig: true}}, argv("--strict-mcp-config")},
		"option/settings":                          {o{Options: session.Options{Settings: raw(`{"model":"m"}`)}}, argv("--settings", `{"model":"m"}`)},
		"option/settingSources":                    {o{Options: session.Options{SettingSources: session.Only("user", "local")}}, argv("--setting-sources", "user,local")},
		"option/securityScan":                      {o{Options: session.Options{SecurityScan: &session.SecurityScan{L3DeepScan: true}}}, argv("--settings", `{"securityScan":{"l1StaticCheck":false,"l2LightweightScan":false,"l3DeepScan":true}}`)},
		"option/enableFileCheckpointing":           {o{Options: session.Options{EnableFileCheckpointing: session.Some(true)}}, wire{argv: []string{"--settings", `{"general":{"fileCheckpointing":{"enabled":true}}}`}, init: map[string]string{"enableFileCheckpointing": `true`}}},
		"option/resume":                            {o{Options: session.Options{Resume: uuid1}}, argv("--resume", uuid1)},
		"option/continue":                          {o{Options: session.Options{Continue: true}}, argv("--continue")},
		"option/forkSession":                       {o{Options: session.Options{Resume: uuid1, ForkSession: true}}, argv("--resume", uuid1, "--fork-session")},
		"option/resumeSessionAt":                   {o{Options: session.Options{Resume: uuid1, ResumeSessionAt: uuid2}}, argv("--resume", uuid1, "--resume-session-at="+uuid2)},
		"option/resumeDropsTurn":                   {o{Options: session.Options{Resume: uuid1, ResumeSessionAt: uuid2, ResumeDropsTurn: uuid3}}, argv("--resume", uuid1, "--resume-session-at="+uuid2, "--resume-drops-turn="+uuid3)},
		"option/sessionId":                         {o{Options: session.Options{SessionID: uuid1}}, argv("--session-id", uuid1)},
		"option/sessionStore":                      {o{Facts: dialect.Facts{HasSessionStore: true}}, argv("--session-mirror")},
		"option/persistSession":                    {o{Options: session.Options{PersistSession: session.Some(false)}}, argv("--no-session-persistence")},
		"option/maxTurns":                          {o{Options: session.Options{MaxTurns: session.Some(0)}}, argv("--max-turns", "0")},
		"option/includePartialMessages":            {o{Options: session.Options{IncludePartialMessages: true}}, argv("--include-partial-messages")},
		"option/plugins":                           {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p"}}}}, argv("--plugin-dir", "/p")},
		"option/proxy":                             {o{Options: session.Options{Proxy: "http://p:1"}}, argv("--proxy", "http://p:1")},
		"option/vpcEndpoint":                       {o{Options: session.Options{VPCEndpoint: "v"}}, wire{env: map[string]string{"QODER_VPC_ENDPOINT": "v"}}},
		"option/promptSuggestions":                 {o{Options: session.Options{PromptSuggestions: true}}, field("promptSuggestions", `true`)},
		"option/memory":                            {o{Options: session.Options{Memory: &session.Memory{Mode: "native"}}}, field("memory", `{"requester":"sdk","mode":"native"}`)},
		"option/evolution":                         {o{Options: session.Options{Evolution: &session.Evolution{Skill: &session.SkillEvolution{Mode: "native"}}}}, field("evolution", `{"skill":{"requester":"sdk","mode":"native"}}`)},
		"option/customContext":                     {o{Options: session.Options{CustomContext: raw(`{"a":1}`)}}, wire{user: `"custom_context":{"a":1}`}},
		"option/extraArgs":                         {o{Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"k": session.Some("v"), "l": {}}}}, argv("--k", "v", "--l")},
		"option/debug":                             {o{Options: session.Options{Debug: true}}, argv("--debug")},
		"option/env":                               {o{Options: session.Options{Env: map[string]string{"A": "b"}}}, wire{env: map[string]string{"A": "b"}}},
		"option/initializeTimeoutMs":               {o{Options: session.Options{InitializeTimeout: 3 * time.Second}}, field("initializeTimeoutMs", `3000`)},
		"option/auth":                              {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount, EnvVar: "K"}, Env: map[string]string{"K": "k"}}}, payload(`{"type":"serviceAccount","serviceAccountKey":"k"}`)},
		"option/auth.accessToken":                  {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthAccessToken, AccessToken: "T"}}}, payload(`{"type":"accessToken","accessToken":"T"}`)},
		"option/auth.accessToken.envVar":           {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthAccessToken, EnvVar: "V"}}, Facts: dialect.Facts{ParentEnv: []string{"V=T"}}}, payload(`{"type":"accessToken","accessToken":"T"}`)},
		"option/auth.qodercli":                     {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}}}, payload(`{"type":"qodercli"}`)},
		"option/auth.serviceAccount.key":           {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount, ServiceAccountKey: "K"}}}, payload(`{"type":"serviceAccount","serviceAccountKey":"K"}`)},
		"option/auth.serviceAccount.fetch":         {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount}}}, payload(`{"type":"serviceAccount","serviceAccountTokenProvider":"host"}`)},
		"option/auth.jobToken":                     {o{Options: session.Options{Auth: &session.Auth{Type: session.AuthJobToken}}}, payload(`{"type":"jobToken","jobTokenProvider":"host"}`)},
		"option/debugFile":                         {o{Options: session.Options{DebugFile: "/d"}}, wire{warned: "DebugFile"}},
		"option/toolConfig":                        {o{Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}}}, wire{warned: "ToolConfig"}},
		"option/includeHookEvents":                 {o{Options: session.Options{IncludeHookEvents: true}}, wire{warned: "IncludeHookEvents"}},
		"option/fallbackModel":                     {o{Options: session.Options{FallbackModel: "f"}}, refused("FallbackModel")},
		"option/planModeInstructions":              {o{Options: session.Options{PlanModeInstructions: "p"}}, refused("PlanModeInstructions")},
		"option/outputFormat":                      {o{Options: session.Options{OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: raw(`{}`)}}}, refused("OutputFormat")},
		"option/thinking":                          {o{Options: session.Options{Thinking: &session.Thinking{Type: "adaptive"}}}, refused("Thinking")},
		"option/effort":                            {o{Options: session.Options{Effort: "low"}}, refused("Effort")},
		"option/maxThinkingTokens":                 {o{Options: session.Options{MaxThinkingTokens: session.Some(1)}}, refused("MaxThinkingTokens")},
		"option/maxBudgetUsd":                      {o{Options: session.Options{MaxBudgetUSD: session.Some(1.0)}}, refused("MaxBudgetUSD")},
		"option/betas":                             {o{Options: session.Options{Betas: []string{"b"}}}, refused("Betas")},
		"option/sandbox":                           {box(session.Sandbox{Enabled: session.Some(true)}), refused("Sandbox")},
		"option/sandbox.enabled":                   {box(session.Sandbox{Enabled: session.Some(false)}), refused("Sandbox")},
		"option/sandbox.autoAllowBashIfSandboxed":  {box(session.Sandbox{AutoAllowBashIfSandboxed: session.Some(true)}), refused("Sandbox")},
		"option/sandbox.excludedCommands":          {box(session.Sandbox{ExcludedCommands: []string{"docker"}}), refused("Sandbox")},
		"option/sandbox.allowUnsandboxedCommands":  {box(session.Sandbox{AllowUnsandboxedCommands: session.Some(true)}), refused("Sandbox")},
		"option/sandbox.network":                   {box(session.Sandbox{Network: &session.SandboxNetwork{}}), refused("Sandbox")},
		"option/sandbox.filesystem":                {box(session.Sandbox{Filesystem: &session.SandboxFilesystem{}}), refused("Sandbox")},
		"option/sandbox.ignoreViolations":          {box(session.Sandbox{IgnoreViolations: map[string][]string{"file": {"/a"}}}), refused("Sandbox")},
		"option/sandbox.enableWeakerNestedSandbox": {box(session.Sandbox{EnableWeakerNestedSandbox: session.Some(true)}), refused("Sandbox")},
		"env/QODER_VPC_ENDPOINT":                   {o{Options: session.Options{VPCEndpoint: "w"}}, wire{env: map[string]string{"QODER_VPC_ENDPOINT": "w"}}},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/"+row)
			if c.o.Auth == nil {
				c.o.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "PAT"}
				c.want.payload = `{"type":"accessToken","accessToken":"PAT"}`
			}
			checkWire(t, &c.o, c.want)
		})
	}
}

func checkWire(t *testing.T, o *dialect.Input, want wire) {
	t.Helper()
	d := qoder.New()
	warnings, err := d.Validate(o)
	if want.refused != "" {
		require.Len(t, session.ConfigErrors(err), 1, "%v", err)
		assert.Equal(t, want.refused, session.ConfigErrors(err)[0].Option)
		assert.Equal(t, "qoder", session.ConfigErrors(err)[0].Backend)
		return
	}
	require.NoError(t, err)
	if want.warned != "" {
		require.Len(t, warnings, 1)
		assert.Equal(t, want.warned, warnings[0].Option)
	}
	l, err := d.Launch(o)
	require.NoError(t, err)
	assert.Equal(t, []string{"--print", "--output-format", "stream-json", "--input-format", "stream-json"}, l.Args[:5])
	rest := slices.Clone(l.Args[5:])
	for _, flag := range []string{"--disable-builtin-skills", "--tools"} {
		i := slices.Index(rest, flag)
		require.GreaterOrEqual(t, i, 0, flag)
		switch {
		case flag != "--tools":
			rest = slices.Delete(rest, i, i+1)
		case slices.Contains(want.argv, "--tools"):
		default:
			assert.True(t, strings.HasPrefix(rest[i+1], "Agent,AskUserQuestion,Bash,"), rest[i+1])
			rest = slices.Delete(rest, i, i+2)
		}
	}
	assert.Equal(t, canonical(want.argv), canonical(rest))

	env := map[string]string{}
	for _, v := range l.Env {
		env[v.Name] = v.Value
	}
	assert.Equal(t, "sdk-ts", env["QODER_AGENT_SDK_ENTRYPOINT"])
	for name, value := range want.env {
		assert.Equal(t, value, env[name], name)
	}
	assert.JSONEq(t, want.payload, file(t, l, "payload.json"))

	fields := map[string]string{"type": `"initialize"`, "subtype": `"initialize"`, "modelPolicyProvider": `false`, "supportsCatalogReadyInitialize": `true`,
		"supportsAvailableModelsUpdate": `true`, "supportsCommandsChanged": `true`, "initializeTimeoutMs": `120000`}
	maps.Copy(fields, want.init)
	keys := initialize(t, *o)
	for name, value := range fields {
		assert.JSONEq(t, value, string(keys[name]), name)
		delete(keys, name)
	}
	assert.Empty(t, keys)

	after := d.AfterInitialize(o)
	if want.after == "" {
		assert.Empty(t, after)
	} else if assert.Len(t, after, 1) {
		request, err := d.Encode(after[0])
		require.NoError(t, err)
		assert.JSONEq(t, want.after, string(request))
	}
	line, err := d.UserLine(o.UserDefaults(), &protocol.UserMessage{Message: protocol.UserContent{Content: protocol.TextContent("hi")}})
	require.NoError(t, err)
	assert.Contains(t, string(line), want.user)
	assert.Equal(t, want.user != "", strings.Contains(string(line), "custom_context"))
}

func TestEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeBypassPermissions,
		protocol.ModeYolo, protocol.ModePlan, protocol.ModeDontAsk, protocol.ModeAuto} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "qoder/mode/"+string(mode))
			o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}, PermissionMode: mode}}
			said := mode
			if mode == protocol.ModeYolo || mode == protocol.ModeBypassPermissions {
				_, err := qoder.New().Validate(&o)
				require.Len(t, session.ConfigErrors(err), 1, "it wants the explicit flag")
				assert.Equal(t, "PermissionMode", session.ConfigErrors(err)[0].Option)
				o.AllowDangerouslySkipPermissions = true
				said = protocol.ModeBypassPermissions
			}
			args := launch(t, o).Args
			if mode == protocol.ModeYolo {
				assert.Contains(t, args, "--yolo")
				assert.NotContains(t, args, "--permission-mode")
			} else {
				assert.Equal(t, string(mode), after(args, "--permission-mode"))
			}
			request, err := qoder.New().Encode(protocol.SetPermissionModeRequest{Mode: mode})
			require.NoError(t, err)
			assert.JSONEq(t, `{"type":"set_permission_mode","mode":"`+string(said)+`","subtype":"set_permission_mode"}`, string(request), "the agent has no yolo there")
		})
	}
}

// The surroundings of a started agent.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/cwd", "qoder/option/executable", "qoder/option/executableArgs",
		"qoder/env/QODER_AGENT_SDK_ENTRYPOINT", "qoder/env/QODER_AGENT_SDK_VERSION", "qoder/env/NODE_OPTIONS")
	l := launch(t, dialect.Input{Options: session.Options{Cwd: "/w", PathToExecutable: "/opt/cli.mjs", Executable: "bun", ExecutableArgs: []string{"--smol"}}})
	assert.Equal(t, "/w", l.Dir)
	assert.Equal(t, "/opt/cli.mjs", l.Path)
	assert.Equal(t, []string{"bun", "--smol"}, l.Interpreter)
	assert.Contains(t, l.Env, dialect.EnvVar{Name: "QODER_AGENT_SDK_ENTRYPOINT", Value: "sdk-ts"})
	assert.Contains(t, l.Env, dialect.EnvVar{Name: "QODER_AGENT_SDK_VERSION", Value: "1.0.39"})
	assert.Contains(t, l.Unset, "NODE_OPTIONS")
}
