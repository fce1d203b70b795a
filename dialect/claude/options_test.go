package claude_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// wire is what an option puts on the wire, beside what every launch has.
type wire struct {
	argv []string
	init map[string]string // fields of initialize, but for an empty systemPrompt
	env  map[string]string
	user string // of the user line
}

// TestEveryOption is the vendor's table of options, one by one: by row of the ledger.
func TestEveryOption(t *testing.T) {
	t.Parallel()
	type o = dialect.Input
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	argv := func(a ...string) wire { return wire{argv: a} }
	field := func(name, value string) wire { return wire{init: map[string]string{name: value}} }
	env := func(name, value string) wire { return wire{env: map[string]string{name: value}} }
	defined := func(a session.AgentDefinition) o {
		a.Description, a.Prompt = "d", "p"
		return o{Options: session.Options{Agents: map[string]session.AgentDefinition{"a": a}}}
	}
	stdio := map[string]session.MCPServerConfig{"s": {Command: "c"}}
	servers := map[string]session.MCPServerConfig{
		"s": {Type: "stdio", Command: "c", Timeout: 1500 * time.Millisecond, AlwaysLoad: session.Some(false)},
		"w": {Type: "http", URL: "https://h/mcp", AlwaysLoad: session.Some(true)}, "e": {Type: "sse", URL: "https://e"},
	}
	for row, c := range map[string]struct {
		o    o
		want wire
	}{
		"option/model":                           {o{Options: session.Options{Model: "m"}}, argv("--model=m")},
		"option/fallbackModel":                   {o{Options: session.Options{FallbackModel: "f,g"}}, argv("--fallback-model=f,g")},
		"option/agent":                           {o{Options: session.Options{Agent: "a"}}, argv("--agent=a")},
		"option/agents":                          {o{Options: session.Options{Agents: map[string]session.AgentDefinition{"a": {Description: "d", Prompt: "p"}}}}, field("agents", `{"a":{"description":"d","prompt":"p"}}`)},
		"option/maxTurns":                        {o{Options: session.Options{MaxTurns: session.Some(3)}}, argv("--max-turns=3")},
		"option/maxBudgetUsd":                    {o{Options: session.Options{MaxBudgetUSD: session.Some(1.5)}}, argv("--max-budget-usd=1.5")},
		"option/taskBudget":                      {o{Options: session.Options{TaskBudget: session.Some(5)}}, argv("--task-budget=5")},
		"option/maxThinkingTokens":               {o{Options: session.Options{MaxThinkingTokens: session.Some(0)}}, argv("--thinking=disabled")},
		"option/thinking":                        {o{Options: session.Options{Thinking: &session.Thinking{Type: session.ThinkingEnabled, BudgetTokens: session.Some(9)}}}, argv("--max-thinking-tokens=9")},
		"option/thinking.display":                {o{Options: session.Options{Thinking: &session.Thinking{Type: session.ThinkingAdaptive, Display: "omitted"}}}, argv("--thinking=adaptive", "--thinking-display=omitted")},
		"option/effort":                          {o{Options: session.Options{Effort: "low"}}, argv("--effort=low")},
		"option/betas":                           {o{Options: session.Options{Betas: []string{"a", "b"}}}, argv("--betas=a,b")},
		"option/outputFormat":                    {o{Options: session.Options{OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: raw(`{"type":"object"}`)}}}, wire{argv: []string{`--json-schema={"type":"object"}`}, init: map[string]string{"jsonSchema": `{"type":"object"}`}}},
		"option/permissionMode":                  {o{Options: session.Options{PermissionMode: protocol.ModePlan}}, argv("--permission-mode=plan")},
		"option/allowDangerouslySkipPermissions": {o{Options: session.Options{AllowDangerouslySkipPermissions: true}}, argv("--allow-dangerously-skip-permissions")},
		"option/canUseTool":                      {o{Options: session.Options{CanUseTool: canUseTool}}, argv("--permission-prompt-tool=stdio")},
		"option/permissionPromptToolName":        {o{Options: session.Options{PermissionPromptToolName: "mcp__a__b"}}, argv("--permission-prompt-tool=mcp__a__b")},
		"option/permissionPrompts":               {o{Options: session.Options{PermissionPrompts: "none"}}, argv("--permission-prompts=none")},
		"option/continue":                        {o{Options: session.Options{Continue: true}}, argv("--continue")},
		"option/resume":                          {o{Options: session.Options{Resume: uuidA}}, argv("--resume=" + uuidA)},
		"option/forkSession":                     {o{Options: session.Options{Resume: uuidA, ForkSession: true}}, argv("--resume="+uuidA, "--fork-session")},
		"option/resumeSessionAt":                 {o{Options: session.Options{Resume: uuidA, ResumeSessionAt: uuidB}}, argv("--resume="+uuidA, "--resume-session-at="+uuidB)},
		"option/resumeDropsTurn":                 {o{Options: session.Options{Resume: uuidA, ResumeSessionAt: uuidB, ResumeDropsTurn: uuidC}}, argv("--resume="+uuidA, "--resume-session-at="+uuidB, "--resume-drops-turn="+uuidC)},
		"option/sessionId":                       {o{Options: session.Options{SessionID: uuidD}}, argv("--session-id=" + uuidD)},
		"option/persistSession":                  {o{Options: session.Options{PersistSession: session.Some(false)}}, argv("--no-session-persistence")},
		"option/allowedTools":                    {o{Options: session.Options{AllowedTools: []string{"Read", "Bash(git:*)"}}}, argv("--allowedTools=Read,Bash(git:*)")},
		"option/disallowedTools":                 {o{Options: session.Options{DisallowedTools: []string{"Bash", "Write"}}}, argv("--disallowedTools=Bash,Write")},
		"option/tools":                           {o{Options: session.Options{Tools: session.None()}}, argv("--tools=")},
		"option/toolAliases":                     {o{Options: session.Options{ToolAliases: map[string]string{"Bash": "b"}}}, field("toolAliases", `{"Bash":"b"}`)},
		"option/mcpServers":                      {o{Options: session.Options{MCPServers: servers}}, argv("--mcp-config", `{"mcpServers":{"e":{"type":"sse","url":"https://e"},"s":{"type":"stdio","command":"c","alwaysLoad":false,"timeout":1500},"w":{"type":"http","url":"https://h/mcp","alwaysLoad":true}}}`)},
		"option/mcpServers.alwaysLoad": {o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", AlwaysLoad: session.Some(false)}}}},
			argv("--mcp-config", `{"mcpServers":{"s":{"command":"c","alwaysLoad":false}}}`)},
		"option/mcpServers.timeout": {o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Timeout: 5 * time.Second}}}},
			argv("--mcp-config", `{"mcpServers":{"s":{"command":"c","timeout":5000}}}`)},
		"option/mcpServers.tools.org_max_permission": {o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Type: "http", URL: "https://h",
			Tools: []session.MCPToolPolicy{{Name: "t", OrgMaxPermission: "ask"}}}}}},
			argv("--mcp-config", `{"mcpServers":{"s":{"type":"http","url":"https://h","tools":[{"name":"t","org_max_permission":"ask"}]}}}`)},
		"option/agents.effort": {defined(session.AgentDefinition{Effort: "7"}), field("agents", `{"a":{"description":"d","prompt":"p","effort":7}}`)},
		"option/agents.omitClaudeMd": {defined(session.AgentDefinition{OmitClaudeMD: session.Some(false)}),
			field("agents", `{"a":{"description":"d","prompt":"p","omitClaudeMd":false}}`)},
		"option/agents.autoCompactWindow": {defined(session.AgentDefinition{AutoCompactWindow: session.Some(9000)}),
			field("agents", `{"a":{"description":"d","prompt":"p","autoCompactWindow":9000}}`)},
		"option/agents.observer": {defined(session.AgentDefinition{Observer: "x,y"}), field("agents", `{"a":{"description":"d","prompt":"p","observer":"x,y"}}`)},
		"option/agents.observerMessage": {defined(session.AgentDefinition{ObserverMessage: "m"}),
			field("agents", `{"a":{"description":"d","prompt":"p","observerMessage":"m"}}`)},
		"option/agents.criticalSystemReminder_EXPERIMENTAL": {defined(session.AgentDefinition{CriticalSystemReminder: "r"}),
			field("agents", `{"a":{"description":"d","prompt":"p","criticalSystemReminder_EXPERIMENTAL":"r"}}`)},
		"option/mcpServersDelivery":                     {o{Options: session.Options{MCPServers: stdio, MCPServersDelivery: session.DeliverInInitialize}}, wire{argv: []string{"--await-initialize"}, init: map[string]string{"mcpServers": `{"s":{"command":"c"}}`}}},
		"option/mcpServers.sdk":                         {o{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "h"}}}}, field("sdkMcpServers", `["h"]`)},
		"option/mcpServers.sdk.timeout":                 {o{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "h", Timeout: 1500 * time.Millisecond}}}}, wire{init: map[string]string{"sdkMcpServers": `["h"]`, "sdkMcpServerConfigs": `{"h":{"timeout":1500}}`}}},
		"option/strictMcpConfig":                        {o{Options: session.Options{StrictMCPConfig: true}}, argv("--strict-mcp-config")},
		"option/settingSources":                         {o{Options: session.Options{SettingSources: session.Only("user", "project")}}, argv("--setting-sources=user,project")},
		"option/settings":                               {o{Options: session.Options{Settings: raw(`{"model":"x"}`)}}, argv("--settings", `{"model":"x"}`)},
		"option/sandbox":                                {o{Options: session.Options{Sandbox: &session.Sandbox{Enabled: session.Some(true)}}}, argv("--settings", `{"sandbox":{"enabled":true,"failIfUnavailable":true}}`)},
		"option/managedSettings":                        {o{Options: session.Options{ManagedSettings: raw(`{"model":"x"}`)}}, argv("--managed-settings", `{"model":"x"}`)},
		"option/includePartialMessages":                 {o{Options: session.Options{IncludePartialMessages: true}}, argv("--include-partial-messages")},
		"option/includeHookEvents":                      {o{Options: session.Options{IncludeHookEvents: true}}, argv("--include-hook-events")},
		"option/forwardSubagentText":                    {o{Options: session.Options{ForwardSubagentText: true}}, field("forwardSubagentText", `true`)},
		"option/promptSuggestions":                      {o{Options: session.Options{PromptSuggestions: true}}, field("promptSuggestions", `true`)},
		"option/agentProgressSummaries":                 {o{Options: session.Options{AgentProgressSummaries: true}}, field("agentProgressSummaries", `true`)},
		"option/perTaskStopAffordance":                  {o{Options: session.Options{PerTaskStopAffordance: true}}, field("perTaskStopAffordance", `true`)},
		"option/planModeInstructions":                   {o{Options: session.Options{PlanModeInstructions: "p"}}, field("planModeInstructions", `"p"`)},
		"option/title":                                  {o{Options: session.Options{Title: "t"}}, field("title", `"t"`)},
		"option/supportedDialogKinds":                   {o{Options: session.Options{OnUserDialog: onUserDialog, SupportedDialogKinds: []string{"k"}}}, field("supportedDialogKinds", `["k"]`)},
		"option/hooks":                                  {o{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: protocol.HookStop, CallbackIDs: []string{"hook_0"}, Timeout: 1500 * time.Millisecond}}}}, field("hooks", `{"Stop":[{"hookCallbackIds":["hook_0"],"timeout":1.5}]}`)},
		"option/skills":                                 {o{Options: session.Options{Skills: session.Only("a", "b")}}, wire{argv: []string{"--allowedTools=Skill(a),Skill(b)"}, init: map[string]string{"skills": `["a","b"]`}}},
		"option/additionalDirectories":                  {o{Options: session.Options{AdditionalDirectories: []string{"/a", "/b"}}}, argv("--add-dir=/a", "--add-dir=/b")},
		"option/projectConfigRoot":                      {o{Options: session.Options{ProjectConfigRoot: "/p"}}, argv("--project-config-root=/p")},
		"option/plugins":                                {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p"}}}}, argv("--plugin-dir=/p")},
		"option/plugins.skipMcpDiscovery":               {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p", SkipMCPDiscovery: true}}}}, argv("--plugin-dir-no-mcp=/p")},
		"option/pluginDelivery":                         {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p"}}, PluginDelivery: session.DeliverInInitialize}}, wire{argv: []string{"--await-initialize"}, init: map[string]string{"plugins": `[{"type":"local","path":"/p"}]`}}},
		"option/debug":                                  {o{Options: session.Options{Debug: true}}, argv("--debug")},
		"option/debugFile":                              {o{Options: session.Options{DebugFile: "/d"}}, argv("--debug-file=/d")},
		"option/verbatimPrompts":                        {o{Options: session.Options{VerbatimPrompts: true}}, wire{user: `"client_composed":true`}},
		"option/enableFileCheckpointing":                {o{Options: session.Options{EnableFileCheckpointing: session.Some(true)}}, env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")},
		"option/toolConfig":                             {o{Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}}}, env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", "html")},
		"option/extraArgs":                              {o{Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"k": session.Some("v"), "l": {}}}}, argv("--k", "v", "--l")},
		"option/env":                                    {o{Options: session.Options{Env: map[string]string{"A": "b"}}}, env("A", "b")},
		"option/systemPrompt":                           {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"a", "b"}}}}, field("systemPrompt", `["a","b"]`)},
		"option/systemPrompt.preset":                    {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Append: "x"}}}, wire{init: map[string]string{"systemPrompt": "", "appendSystemPrompt": `"x"`}}},
		"option/systemPrompt.custom":                    {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"a"}, Snapshot: session.Some(true)}}}, wire{init: map[string]string{"systemPrompt": `["a"]`, "systemPromptSnapshot": `true`}}},
		"option/systemPrompt.excludeDynamicSections":    {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, ExcludeDynamicSections: true}}}, wire{init: map[string]string{"systemPrompt": "", "excludeDynamicSections": `true`}}},
		"option/systemPrompt.snapshot":                  {o{Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Snapshot: session.Some(true)}}}, wire{init: map[string]string{"systemPrompt": "", "systemPromptSnapshot": `true`}}},
		"feature/Plugins":                               {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p"}, {Path: "/q"}}}}, argv("--plugin-dir=/p", "--plugin-dir=/q")},
		"feature/Betas":                                 {o{Options: session.Options{Betas: []string{"context-1m-2025-08-07"}}}, argv("--betas=context-1m-2025-08-07")},
		"env/CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": {o{Options: session.Options{EnableFileCheckpointing: session.Some(true)}}, env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")},
		"env/CLAUDE_CODE_QUESTION_PREVIEW_FORMAT":       {o{Options: session.Options{ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "markdown"}}}}, env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", "markdown")},
		"env/CLAUDE_CODE_MAX_RETRIES":                   {o{Options: session.Options{Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "2"}}}, env("CLAUDE_CODE_MAX_RETRIES", "2")},
		"env/CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS":     {o{Options: session.Options{Env: map[string]string{"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}}}, env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1")},
		"env/CLAUDE":                                    {o{Options: session.Options{Env: map[string]string{"CLAUDE": "/home/of/settings"}}}, env("CLAUDE", "/home/of/settings")},
	} {
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/"+row)
			checkWire(t, &c.o, c.want)
		})
	}
}

func checkWire(t *testing.T, o *dialect.Input, want wire) {
	t.Helper()
	l, err := claude.New().Launch(o)
	require.NoError(t, err)
	assert.Equal(t, compactArgs(want.argv), compactArgs(l.Args[5:]))
	assert.Empty(t, l.Files)

	env := map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-ts", "CLAUDE_AGENT_SDK_VERSION": "0.3.329", "CLAUDE_AGENT_SDK_CLIENT_APP": "troupe", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
	maps.Copy(env, want.env)
	got := map[string]string{}
	for _, v := range l.Env {
		got[v.Name] = v.Value
	}
	assert.Equal(t, env, got)

	fields := map[string]string{"systemPrompt": `[""]`, "subtype": `"initialize"`}
	for name, value := range want.init {
		fields[name] = value
		if value == "" {
			delete(fields, name)
		}
	}
	keys := initialize(t, *o)
	for name, value := range fields {
		assert.JSONEq(t, value, string(keys[name]), name)
		delete(keys, name)
	}
	assert.Empty(t, keys)

	line, err := claude.New().UserLine(o.UserDefaults(), &protocol.UserMessage{Message: protocol.UserContent{Content: protocol.TextContent("hi")}})
	require.NoError(t, err)
	assert.Contains(t, string(line), want.user)
	if want.user == "" {
		assert.JSONEq(t, `{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"text","text":"hi"}]},"parent_tool_use_id":null}`, string(line))
	}
}

// The modes of the vendor, those that its types have dropped included.
func TestEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModeBypassPermissions,
		protocol.ModePlan, protocol.ModeDelegate, protocol.ModeDontAsk, protocol.ModeAuto} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			parity.Covers(t, "claude/mode/"+string(mode))
			o := dialect.Input{Options: session.Options{PermissionMode: mode}}
			if mode == protocol.ModeDelegate {
				parity.Covers(t, "claude/feature/Delegate-Mode")
				_, err := claude.New().Validate(&o)
				require.Len(t, session.ConfigErrors(err), 1, "2.1.329 has it no more")
				assert.Equal(t, "PermissionMode", session.ConfigErrors(err)[0].Option)
				return
			}
			if mode == protocol.ModeBypassPermissions {
				_, err := claude.New().Validate(&o)
				require.Len(t, session.ConfigErrors(err), 1, "it wants the explicit flag")
				assert.Equal(t, "PermissionMode", session.ConfigErrors(err)[0].Option)
				o.AllowDangerouslySkipPermissions = true
			}
			assert.Contains(t, launch(t, o).Args, "--permission-mode="+string(mode))
			request, err := claude.New().Encode(protocol.SetPermissionModeRequest{Mode: mode})
			require.NoError(t, err)
			assert.JSONEq(t, `{"subtype":"set_permission_mode","mode":"`+string(mode)+`"}`, string(request))
		})
	}
}
