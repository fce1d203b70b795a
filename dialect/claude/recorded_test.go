package claude_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
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
func cases() map[string]dialect.Input {
	type o = dialect.Input
	thinking := func(typ string) dialect.Input {
		return o{Options: session.Options{Thinking: &session.Thinking{Type: typ}}}
	}
	return map[string]dialect.Input{
		"base":                 {},
		"model":                {Options: session.Options{Model: "M1"}},
		"fallbackModel":        {Options: session.Options{FallbackModel: "F1,F2"}},
		"maxTurns":             {Options: session.Options{MaxTurns: session.Some(3)}},
		"maxBudgetUsd":         {Options: session.Options{MaxBudgetUSD: session.Some(1.5)}},
		"thinkingAdaptive":     thinking("adaptive"),
		"thinkingAdaptiveDisp": {Options: session.Options{Thinking: &session.Thinking{Type: "adaptive", Display: "summarized"}}},
		"thinkingEnabled":      {Options: session.Options{Thinking: &session.Thinking{Type: "enabled", BudgetTokens: session.Some(4096)}}},
		"thinkingEnabledNoB":   thinking("enabled"),
		"thinkingDisabled":     thinking("disabled"),
		"agent":                {Options: session.Options{Agent: "rev"}},
		"betas":                {Options: session.Options{Betas: []string{"context-1m-2025-08-07", "b2"}}},
		"permDefault":          {Options: session.Options{PermissionMode: protocol.ModeDefault}},
		"permBypass":           {Options: session.Options{PermissionMode: protocol.ModeBypassPermissions, AllowDangerouslySkipPermissions: true}},
		"allowDanger":          {Options: session.Options{AllowDangerouslySkipPermissions: true}},
		"canUseTool":           {Options: session.Options{CanUseTool: canUseTool}},
		"permissionPromptsHost": {Options: session.Options{
			PermissionPrompts: "host",
		}},
		"permissionPromptsNone": {Options: session.Options{PermissionPrompts: "none"}},
		"cont":                  {Options: session.Options{Continue: true}},
		"resumeAt":              {Options: session.Options{Resume: uuidA, ResumeSessionAt: uuidB, ResumeDropsTurn: uuidC}},
		"fork":                  {Options: session.Options{Resume: uuidA, ForkSession: true}},
		"sessionId":             {Options: session.Options{SessionID: uuidD}},
		"contResume":            {Options: session.Options{Continue: true, Resume: uuidA}},
		"persistFalse":          {Options: session.Options{PersistSession: session.Some(false)}},
		"allowedTools":          {Options: session.Options{AllowedTools: []string{"Bash(git:*)", "Read"}}},
		"allowedEmpty":          {Options: session.Options{AllowedTools: []string{}}},
		"disallowedTools":       {Options: session.Options{DisallowedTools: []string{"Bash", "Write"}}},
		"toolsEmpty":            {Options: session.Options{Tools: session.None()}},
		"toolAliases":           {Options: session.Options{ToolAliases: map[string]string{"Bash": "mcp__w__b"}}},
		"mcpStdio": {Options: session.Options{MCPServers: map[string]session.MCPServerConfig{
			"s1": {Command: "node", Args: []string{"x.js"}, Env: map[string]string{"K": "v"}}}}},
		"mcpSdk":   {Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{inproc()}}},
		"mcpMixed": {Options: session.Options{MCPServers: node()}, Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{inproc()}}},
		"mcpInitDelivery": {Options: session.Options{MCPServers: node(),
			MCPServersDelivery: session.DeliverInInitialize}, Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{inproc()}}},
		"mcpSdkTimeout": {Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{func() dialect.SDKMCPServer {
			s := inproc()
			s.Timeout = 12345 * time.Millisecond
			return s
		}()}}},
		"strictMcp":           {Options: session.Options{StrictMCPConfig: true}},
		"settingSourcesEmpty": {Options: session.Options{SettingSources: session.None()}},
		"settingsObj":         {Options: session.Options{Settings: json.RawMessage(`{"model":"x","permissions":{"allow":["Bash(*)"]}}`)}},
		"managedSettings":     {Options: session.Options{ManagedSettings: json.RawMessage(`{"permissions":{"deny":["Bash"]}}`)}},
		"sandbox":             {Options: session.Options{Sandbox: &session.Sandbox{Enabled: session.Some(true)}}},
		"partial":             {Options: session.Options{IncludePartialMessages: true}},
		"hookEvents":          {Options: session.Options{IncludeHookEvents: true}},
		"forwardSub":          {Options: session.Options{ForwardSubagentText: true}},
		"verbatim":            {Options: session.Options{VerbatimPrompts: true}},
		"addDirs":             {Options: session.Options{AdditionalDirectories: []string{"/a", "/b"}}},
		"projectConfigRoot":   {Options: session.Options{ProjectConfigRoot: "/pcr"}},
		"plugins":             {Options: session.Options{Plugins: []session.Plugin{{Path: "/pl1"}, {Path: "/pl2", SkipMCPDiscovery: true}}}},
		"pluginsInit":         {Options: session.Options{Plugins: []session.Plugin{{Path: "/pl1"}}, PluginDelivery: session.DeliverInInitialize}},
		"checkpoint":          {Options: session.Options{EnableFileCheckpointing: session.Some(true)}},
		"toolConfig": {Options: session.Options{ToolConfig: &session.ToolConfig{
			AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}}}},
		"promptSuggestions": {Options: session.Options{PromptSuggestions: true}},
		"agentProgress":     {Options: session.Options{AgentProgressSummaries: true}},
		"planInstr":         {Options: session.Options{PlanModeInstructions: "PI"}},
		"title":             {Options: session.Options{Title: "TT"}},
		"sysString":         {Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"SP"}}}},
		"sysPreset":         {Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Append: ""}}},
		"sysPresetExcl": {Options: session.Options{SystemPrompt: session.SystemPrompt{
			Preset: true, ExcludeDynamicSections: true, Snapshot: session.Some(true)}}},
		"skillsAll":         {Options: session.Options{Skills: session.All()}},
		"skillsList":        {Options: session.Options{Skills: session.Only("pdf", "docx")}},
		"skillsListAllowed": {Options: session.Options{AllowedTools: []string{"Read"}, Skills: session.Only("pdf")}},
		"debug":             {Options: session.Options{Debug: true}},
		"extraArgs": {Options: session.Options{ExtraArgs: map[string]session.Opt[string]{
			"replay-user-messages": {}, "foo": session.Some("bar")}}},
		"executableNode": {Options: session.Options{PathToExecutable: "/opt/cli.mjs", Executable: "node"}},
		"hooks": {Facts: dialect.Facts{Registrations: []dialect.HookRegistration{
			{Event: protocol.HookPreToolUse, Matcher: "Bash", CallbackIDs: []string{"hook_0", "hook_1"}, Timeout: 30 * time.Second},
			{Event: protocol.HookPreToolUse, CallbackIDs: []string{"hook_2"}},
			{Event: protocol.HookStop, CallbackIDs: []string{"hook_3"}}}}},
		"onElicitation": {Options: session.Options{OnElicitation: onElicitation}},
		"onUserDialog":  {Options: session.Options{OnUserDialog: onUserDialog, SupportedDialogKinds: []string{"refusal_fallback_prompt"}}},
		"dialogNoCb":    {Options: session.Options{SupportedDialogKinds: []string{"refusal_fallback_prompt"}}},
		"kitchen": {Options: session.Options{
			MaxThinkingTokens: session.Some(1), Effort: "low", MaxTurns: session.Some(2), MaxBudgetUSD: session.Some(1.0),
			TaskBudget: session.Some(5), Model: "M", Agent: "x", Betas: []string{"context-1m-2025-08-07"},
			OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`{"type":"object"}`)}, DebugFile: "<PATH>",
			CanUseTool: canUseTool, Resume: uuidA, AllowedTools: []string{"Read"}, DisallowedTools: []string{"Write"},
			Tools: session.Only("Bash"), MCPServers: node(), SettingSources: session.None(), StrictMCPConfig: true,
			PermissionMode: protocol.ModeDefault, FallbackModel: "F", IncludeHookEvents: true,
			IncludePartialMessages: true, AdditionalDirectories: []string{"/a"}, Plugins: []session.Plugin{{Path: "/p"}},
			ForkSession: true, ResumeSessionAt: uuidB, SessionID: uuidD, EnableFileCheckpointing: session.Some(true),
			ExtraArgs: map[string]session.Opt[string]{"zzz": {}},
			Settings:  json.RawMessage(`{"model":"q"}`),
		}},
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

func checkLaunch(t *testing.T, o *dialect.Input, r recording, dev deviation) {
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
	for name, value := range map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-ts", "CLAUDE_AGENT_SDK_CLIENT_APP": "troupe",
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

func checkInitialize(t *testing.T, o *dialect.Input, r recording, dev deviation) {
	t.Helper()
	got, err := claude.New().Initialize(o)
	require.NoError(t, err)
	want := string(r.Initialize)
	if dev.initialize != "" {
		want = dev.initialize
	}
	assert.JSONEq(t, want, string(got))
	// The recorder's answer lacks the fields that say what was applied.
	applied := claude.New().CheckInitialize(o, json.RawMessage(`{"commands":[]}`))
	if r.Error != nil {
		assert.Error(t, applied, "the vendor's SDK ends the session: %s", *r.Error)
	}
}

func checkUserLine(t *testing.T, o *dialect.Input, r recording) {
	t.Helper()
	line, err := claude.New().UserLine(o.UserDefaults(), &protocol.UserMessage{
		Message: protocol.UserContent{Content: protocol.TextContent("hi")}})
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(line, []byte("\n")))
	var got map[string]any
	require.NoError(t, json.Unmarshal(line, &got))
	want := map[string]any{"type": "user", "session_id": "", "parent_tool_use_id": nil, "message": map[string]any{
		"role": "user", "content": []any{map[string]any{"type": "text", "text": "hi"}}}}
	maps.Copy(want, r.UserMsgExtra)
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
