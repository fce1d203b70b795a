package claude_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// recording is one line of testdata/options-map.ndjson: what the vendor's SDK did with an option.
type recording struct {
	Case         string            `json:"case"`
	Argv         []string          `json:"argv_after_fixed"`
	Initialize   json.RawMessage   `json:"initialize"`
	EnvExtra     map[string]string `json:"env_extra"`
	UserMsgExtra map[string]any    `json:"user_msg_extra"`
	Error        *string           `json:"error"`
}

// deviation is where we put something else on the wire than the vendor's SDK, and why.
type deviation struct {
	reason     string
	argv       []string
	initialize string
	files      []string
}

const (
	uuidA = "aaaaaaaa-1111-4111-8111-111111111111"
	uuidB = "bbbbbbbb-1111-4111-8111-111111111111"
	uuidC = "cccccccc-1111-4111-8111-111111111111"
	uuidD = "dddddddd-1111-4111-8111-111111111111"
)

func deviations() map[string]deviation {
	return map[string]deviation{
		"contResume": {
			reason: "with both of them the CLI continues, and Resume names another session (observed on Claude Code 2.1.329)",
			argv:   []string{"--resume=" + uuidA},
		},
		"extraArgs": {
			reason: "a Go map has no order, so the keys are sorted",
			argv:   []string{"--foo", "bar", "--replay-user-messages"},
		},
		"mcpStdio": {
			reason: "a server's environment and arguments can hold a credential, so they go by file",
			argv:   []string{"--mcp-config", "{{file:mcp.json}}"},
			files:  []string{"mcp.json"},
		},
		"hooks": {
			reason: "a gate's invalid answer must deny, where the agent's default is to go on",
			initialize: `{"subtype":"initialize","systemPrompt":[""],"hooks":{
				"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0","hook_1"],"timeout":30,"onFailure":"block"},
				              {"hookCallbackIds":["hook_2"],"onFailure":"block"}],
				"Stop":[{"hookCallbackIds":["hook_3"]}]}}`,
		},
	}
}

func inproc() dialect.SDKMCPServer {
	return dialect.SDKMCPServer{
		Name: "inproc",
		InitializeResult: json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},
			"serverInfo":{"name":"inproc","version":"9.9"}}`),
		ToolsListResult: json.RawMessage(`{"tools":[{"name":"echo","description":"d","inputSchema":{
			"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
			"properties":{"x":{"type":"string"}},"required":["x"]},"execution":{"taskSupport":"forbidden"}}]}`),
	}
}

func node() map[string]session.MCPServerConfig {
	return map[string]session.MCPServerConfig{"s1": {Command: "node"}}
}

// cases says with which options each recorded case was made.
func cases() map[string]dialect.Options {
	type o = dialect.Options
	thinking := func(typ string) dialect.Options { return o{Thinking: &session.Thinking{Type: typ}} }
	return map[string]dialect.Options{
		"base":                 {},
		"model":                {Model: "M1"},
		"fallbackModel":        {FallbackModel: "F1,F2"},
		"maxTurns":             {MaxTurns: session.Some(3)},
		"maxBudgetUsd":         {MaxBudgetUSD: session.Some(1.5)},
		"thinkingAdaptive":     thinking("adaptive"),
		"thinkingAdaptiveDisp": {Thinking: &session.Thinking{Type: "adaptive", Display: "summarized"}},
		"thinkingEnabled":      {Thinking: &session.Thinking{Type: "enabled", BudgetTokens: session.Some(4096)}},
		"thinkingEnabledNoB":   thinking("enabled"),
		"thinkingDisabled":     thinking("disabled"),
		"agent":                {Agent: "rev"},
		"betas":                {Betas: []string{"context-1m-2025-08-07", "b2"}},
		"permDefault":          {PermissionMode: protocol.ModeDefault},
		"permBypass":           {PermissionMode: protocol.ModeBypassPermissions, AllowDangerouslySkipPermissions: true},
		"allowDanger":          {AllowDangerouslySkipPermissions: true},
		"canUseTool":           {HasCanUseTool: true},
		"permissionPromptsHost": {
			PermissionPrompts: "host"},
		"permissionPromptsNone": {PermissionPrompts: "none"},
		"cont":                  {Continue: true},
		"resumeAt":              {Resume: uuidA, ResumeSessionAt: uuidB, ResumeDropsTurn: uuidC},
		"fork":                  {Resume: uuidA, ForkSession: true},
		"sessionId":             {SessionID: uuidD},
		"contResume":            {Continue: true, Resume: uuidA},
		"persistFalse":          {PersistSession: session.Some(false)},
		"allowedTools":          {AllowedTools: []string{"Bash(git:*)", "Read"}},
		"allowedEmpty":          {AllowedTools: []string{}},
		"disallowedTools":       {DisallowedTools: []string{"Bash", "Write"}},
		"toolsEmpty":            {Tools: session.None()},
		"toolAliases":           {ToolAliases: map[string]string{"Bash": "mcp__w__b"}},
		"mcpStdio": {MCPServers: map[string]session.MCPServerConfig{
			"s1": {Command: "node", Args: []string{"x.js"}, Env: map[string]string{"K": "v"}}}},
		"mcpSdk":   {SDKMCPServers: []dialect.SDKMCPServer{inproc()}},
		"mcpMixed": {MCPServers: node(), SDKMCPServers: []dialect.SDKMCPServer{inproc()}},
		"mcpInitDelivery": {MCPServers: node(), SDKMCPServers: []dialect.SDKMCPServer{inproc()},
			MCPServersDelivery: session.DeliverInInitialize},
		"mcpSdkTimeout": {SDKMCPServers: []dialect.SDKMCPServer{func() dialect.SDKMCPServer {
			s := inproc()
			s.Timeout = 12345 * time.Millisecond
			return s
		}()}},
		"strictMcp":           {StrictMCPConfig: true},
		"settingSourcesEmpty": {SettingSources: session.None()},
		"settingsObj":         {Settings: json.RawMessage(`{"model":"x","permissions":{"allow":["Bash(*)"]}}`)},
		"managedSettings":     {ManagedSettings: json.RawMessage(`{"permissions":{"deny":["Bash"]}}`)},
		"sandbox":             {Sandbox: &session.Sandbox{Enabled: session.Some(true)}},
		"partial":             {IncludePartialMessages: true},
		"hookEvents":          {IncludeHookEvents: true},
		"forwardSub":          {ForwardSubagentText: true},
		"verbatim":            {VerbatimPrompts: true},
		"addDirs":             {AdditionalDirectories: []string{"/a", "/b"}},
		"projectConfigRoot":   {ProjectConfigRoot: "/pcr"},
		"plugins":             {Plugins: []session.Plugin{{Path: "/pl1"}, {Path: "/pl2", SkipMCPDiscovery: true}}},
		"pluginsInit":         {Plugins: []session.Plugin{{Path: "/pl1"}}, PluginDelivery: session.DeliverInInitialize},
		"checkpoint":          {EnableFileCheckpointing: session.Some(true)},
		"toolConfig": {ToolConfig: &session.ToolConfig{
			AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}},
		"promptSuggestions": {PromptSuggestions: true},
		"agentProgress":     {AgentProgressSummaries: true},
		"planInstr":         {PlanModeInstructions: "PI"},
		"title":             {Title: "TT"},
		"sysString":         {SystemPrompt: session.PromptText("SP")},
		"sysPreset":         {SystemPrompt: session.PresetPrompt("")},
		"sysPresetExcl": {SystemPrompt: session.SystemPrompt{
			Preset: true, ExcludeDynamicSections: true, Snapshot: session.Some(true)}},
		"skillsAll":         {Skills: session.All()},
		"skillsList":        {Skills: session.Only("pdf", "docx")},
		"skillsListAllowed": {AllowedTools: []string{"Read"}, Skills: session.Only("pdf")},
		"debug":             {Debug: true},
		"extraArgs": {ExtraArgs: map[string]session.Opt[string]{
			"replay-user-messages": session.Absent[string](), "foo": session.Some("bar")}},
		"executableNode": {PathToExecutable: "/opt/cli.mjs", Executable: "node"},
		"hooks": {Hooks: []dialect.HookRegistration{
			{Event: protocol.HookPreToolUse, Matcher: "Bash", CallbackIDs: []string{"hook_0", "hook_1"}, Timeout: 30 * time.Second},
			{Event: protocol.HookPreToolUse, CallbackIDs: []string{"hook_2"}},
			{Event: protocol.HookStop, CallbackIDs: []string{"hook_3"}}}},
		"onElicitation": {HasElicitation: true},
		"onUserDialog":  {HasUserDialog: true, SupportedDialogKinds: []string{"refusal_fallback_prompt"}},
		"dialogNoCb":    {SupportedDialogKinds: []string{"refusal_fallback_prompt"}},
		"kitchen": {
			MaxThinkingTokens: session.Some(1), Effort: "low", MaxTurns: session.Some(2), MaxBudgetUSD: session.Some(1.0),
			TaskBudget: session.Some(5), Model: "M", Agent: "x", Betas: []string{"context-1m-2025-08-07"},
			OutputFormat: session.JSONSchema(json.RawMessage(`{"type":"object"}`)), DebugFile: "<PATH>",
			HasCanUseTool: true, Resume: uuidA, AllowedTools: []string{"Read"}, DisallowedTools: []string{"Write"},
			Tools: session.Only("Bash"), MCPServers: node(), SettingSources: session.None(), StrictMCPConfig: true,
			PermissionMode: protocol.ModeDefault, FallbackModel: "F", IncludeHookEvents: true,
			IncludePartialMessages: true, AdditionalDirectories: []string{"/a"}, Plugins: []session.Plugin{{Path: "/p"}},
			ForkSession: true, ResumeSessionAt: uuidB, SessionID: uuidD, EnableFileCheckpointing: session.Some(true),
			ExtraArgs: map[string]session.Opt[string]{"zzz": session.Absent[string]()},
			Settings:  json.RawMessage(`{"model":"q"}`),
		},
	}
}

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	f, err := os.Open("testdata/options-map.ndjson")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	out := map[string]recording{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recording
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		out[r.Case] = r
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

func TestSameWireAsTheVendor(t *testing.T) {
	t.Parallel()
	recorded, given := recordings(t), cases()
	for name := range given {
		require.Contains(t, recorded, name, "a case that was not recorded")
	}
	for name := range deviations() {
		require.Contains(t, recorded, name, "a deviation from nothing")
	}
	d := claude.New()
	for name, r := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, ok := given[name]
			require.True(t, ok, "a recorded case without options")
			if r.Argv == nil {
				_, err := d.Validate(&o)
				require.Error(t, err, "the vendor's SDK refuses: %s", *r.Error)
				return
			}
			dev := deviations()[name]
			checkLaunch(t, &o, r, dev)
			checkInitialize(t, &o, r, dev)
			checkUserLine(t, &o, r)
		})
	}
}

func checkLaunch(t *testing.T, o *dialect.Options, r recording, dev deviation) {
	t.Helper()
	l, err := claude.New().Launch(o)
	require.NoError(t, err)
	fixed := []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}
	require.Equal(t, fixed, l.Args[:len(fixed)])
	want := r.Argv
	if dev.argv != nil {
		want = dev.argv
	}
	assert.Equal(t, compactArgs(want), compactArgs(l.Args[len(fixed):]))
	var files []string
	for _, f := range l.Files {
		files = append(files, f.Name)
		assert.NotEmpty(t, f.Reason)
	}
	assert.Equal(t, dev.files, files)

	env := map[string]string{}
	for _, v := range l.Env {
		env[v.Name] = v.Value
	}
	for name, value := range map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-ts",
		"CLAUDE_AGENT_SDK_VERSION": "0.3.329", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"} {
		assert.Equal(t, value, env[name])
		delete(env, name)
	}
	assert.Equal(t, r.EnvExtra, env)
	// The recorder started the SDK with none of these in its environment.
	assert.Equal(t, outer(), l.Unset)
	assert.False(t, l.CleanEnv)
	if o.PathToExecutable != "" {
		assert.Equal(t, []string{o.Executable}, l.Interpreter)
		assert.Equal(t, o.PathToExecutable, l.Path)
	}
}

func checkInitialize(t *testing.T, o *dialect.Options, r recording, dev deviation) {
	t.Helper()
	got, err := claude.New().Initialize(o)
	require.NoError(t, err)
	want := string(r.Initialize)
	if dev.initialize != "" {
		want = dev.initialize
	}
	assert.JSONEq(t, want, string(got))
	// The recorder's answer has none of the fields that say what was applied.
	applied := claude.New().CheckInitialize(o, json.RawMessage(`{"commands":[]}`))
	if r.Error != nil {
		assert.Error(t, applied, "the vendor's SDK ends the session: %s", *r.Error)
	}
}

func checkUserLine(t *testing.T, o *dialect.Options, r recording) {
	t.Helper()
	line, err := claude.New().UserLine(o.UserDefaults(), &protocol.UserMessage{
		Message: protocol.UserContent{Content: protocol.TextContent("hi")}})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(line, []byte("\n")))
	var got map[string]any
	require.NoError(t, json.Unmarshal(line, &got))
	want := map[string]any{"type": "user", "session_id": "", "parent_tool_use_id": nil, "message": map[string]any{
		"role": "user", "content": []any{map[string]any{"type": "text", "text": "hi"}}}}
	for k, v := range r.UserMsgExtra {
		want[k] = v
	}
	assert.Equal(t, want, got)
}

// compactArgs puts JSON arguments into one form, since the order of keys means nothing.
func compactArgs(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		flag, doc, found := strings.Cut(a, "={")
		if found {
			flag, doc = flag+"=", "{"+doc
		} else {
			flag, doc = "", a
		}
		var v any
		if strings.HasPrefix(doc, "{") && json.Unmarshal([]byte(doc), &v) == nil {
			canonical, _ := json.Marshal(v)
			doc = string(canonical)
		}
		out[i] = flag + doc
	}
	return out
}
