package claude_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/session"
)

func launch(t *testing.T, o dialect.Input) dialect.Launch {
	t.Helper()
	l, err := claude.New().Launch(&o)
	require.NoError(t, err)
	return l
}

func file(t *testing.T, l dialect.Launch, name string) string {
	t.Helper()
	for _, f := range l.Files {
		if f.Name == name {
			return string(f.Content)
		}
	}
	require.Failf(t, "no such file", "%s in %v", name, l.Files)
	return ""
}

func initialize(t *testing.T, o dialect.Input) map[string]json.RawMessage {
	t.Helper()
	raw, err := claude.New().Initialize(&o)
	require.NoError(t, err)
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &keys))
	return keys
}

func TestProgram(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/option/executable", "claude/option/executableArgs", "claude/option/pathToClaudeCodeExecutable",
		"claude/option/cwd", "claude/env/CLAUDE_CODE_EXECUTABLE")
	l := launch(t, dialect.Input{Options: session.Options{Cwd: "/w", CleanEnv: true}})
	assert.Empty(t, l.Path)
	assert.Equal(t, []string{"claude"}, l.Names)
	assert.Equal(t, "/w", l.Dir)
	assert.True(t, l.CleanEnv)
	assert.Empty(t, l.Interpreter)

	l = launch(t, dialect.Input{Options: session.Options{
		ExecutableArgs: []string{"--smol"},
	}, Facts: dialect.Facts{ParentEnv: []string{"CLAUDE_CODE_EXECUTABLE=/old", "CLAUDE_CODE_EXECUTABLE=/opt/cli.js"}}})
	assert.Equal(t, "/opt/cli.js", l.Path, "the last entry counts")
	assert.Equal(t, []string{"node", "--smol"}, l.Interpreter)

	o := dialect.Input{Options: session.Options{PathToExecutable: "/opt/claude", Executable: "bun", ExecutableArgs: []string{"--smol"}}}
	assert.Empty(t, launch(t, o).Interpreter)
	warnings, err := claude.New().Validate(&o)
	require.NoError(t, err)
	assert.Equal(t, []string{"Executable", "ExecutableArgs"}, []string{warnings[0].Option, warnings[1].Option})
}

func TestEnvironmentIsMerged(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/env/CLAUDE_CODE_ENTRYPOINT", "claude/env/CLAUDE_AGENT_SDK_VERSION", "claude/env/CLAUDE_CODE_SDK_READS_SESSION_STATE",
		"claude/env/CLAUDE_AGENT_SDK_CLIENT_APP")
	l := launch(t, dialect.Input{Options: session.Options{
		Env:      map[string]string{"FOO": "bar", "CLAUDE_CODE_ENTRYPOINT": "mine"},
		UnsetEnv: []string{"SECRET_OF_PARENT", "CLAUDE_AGENT_SDK_VERSION"},
	}})
	assert.Equal(t, []dialect.EnvVar{
		{Name: "CLAUDE_AGENT_SDK_CLIENT_APP", Value: "troupe"},
		{Name: "CLAUDE_CODE_ENTRYPOINT", Value: "mine", Secret: true},
		{Name: "CLAUDE_CODE_SDK_READS_SESSION_STATE", Value: "1"},
		{Name: "FOO", Value: "bar", Secret: true},
	}, l.Env)
	assert.Equal(t, slices.Sorted(slices.Values(append(outer(), "CLAUDE_AGENT_SDK_VERSION", "SECRET_OF_PARENT"))), l.Unset)
	env := map[string]string{}
	for _, name := range outer() {
		env[name] = "1"
	}
	assert.Empty(t, launch(t, dialect.Input{Options: session.Options{Env: env}}).Unset, "what the user gives stays")

	for _, own := range []dialect.Input{
		{Options: session.Options{UnsetEnv: []string{"CLAUDE_AGENT_SDK_CLIENT_APP"}}},
		{Facts: dialect.Facts{ParentEnv: []string{"CLAUDE_AGENT_SDK_CLIENT_APP=mine/1"}}},
	} {
		assert.NotContains(t, launch(t, own).Env, dialect.EnvVar{Name: "CLAUDE_AGENT_SDK_CLIENT_APP", Value: "troupe"}, "an application names itself")
	}

	over := launch(t, dialect.Input{Options: session.Options{EnableFileCheckpointing: session.Some(true), ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}},
		Env: map[string]string{"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "0", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT": "x", "CLAUDE_CODE_ENTRYPOINT": "",
			"CLAUDE_AGENT_SDK_VERSION": "", "DEBUG_CLAUDE_AGENT_SDK": "on", "DEBUG": "x"}}})
	assert.Equal(t, []dialect.EnvVar{
		{Name: "CLAUDE_AGENT_SDK_CLIENT_APP", Value: "troupe"},
		{Name: "CLAUDE_AGENT_SDK_VERSION", Value: "0.3.329"}, {Name: "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", Value: "true"},
		{Name: "CLAUDE_CODE_ENTRYPOINT", Value: "sdk-ts"}, {Name: "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", Value: "html"},
		{Name: "CLAUDE_CODE_SDK_READS_SESSION_STATE", Value: "1"}, {Name: "DEBUG", Value: "1"},
		{Name: "DEBUG_CLAUDE_AGENT_SDK", Value: "on", Secret: true}}, over.Env, "options win, and an empty name is none")
}

// outer are the variables of an agent around this one.
func outer() []string {
	return []string{"CLAUDECODE", "CLAUDE_CODE_AGENT_PROGRESS_SUMMARIES", "CLAUDE_CODE_QUESTION_EXTENDED",
		"CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS", "DEBUG", "NODE_OPTIONS"}
}

func TestCredentialsGoByFile(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]session.MCPServerConfig{
		"arguments":      {Command: "c", Args: []string{"--token=k"}},
		"environment":    {Command: "c", Env: map[string]string{"K": "k"}},
		"headers":        {Type: "http", URL: "https://h", Headers: map[string]string{"A": "k"}},
		"headers helper": {Type: "http", URL: "https://h", HeadersHelper: "get k"},
		"oauth":          {Type: "http", URL: "https://h", OAuth: json.RawMessage(`{"clientId":"k"}`)},
		"user":           {Type: "sse", URL: "https://k@h"},
		"query":          {Type: "http", URL: "https://h?k"},
		"fragment":       {Type: "http", URL: "https://h#k"},
		"unknown key":    {Command: "c", Extra: map[string]json.RawMessage{"x": json.RawMessage(`1`)}},
	} {
		l := launch(t, dialect.Input{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": s}}})
		assert.Equal(t, []string{"--mcp-config", "{{file:mcp.json}}"}, l.Args[5:], name)
		want, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": s}})
		require.NoError(t, err)
		assert.JSONEq(t, string(want), file(t, l, "mcp.json"), name)
		assert.Equal(t, build.ReasonCredential, l.Files[0].Reason)
	}
	l := launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"env":{"K":"k"}}`)}})
	assert.Equal(t, []string{"--settings", "{{file:settings.json}}"}, l.Args[5:])
	l = launch(t, dialect.Input{Options: session.Options{Sandbox: &session.Sandbox{Extra: map[string]json.RawMessage{"newer": json.RawMessage(`{}`)}}}})
	assert.JSONEq(t, `{"sandbox":{"newer":{}}}`, file(t, l, "settings.json"))
}

func TestSettingsAreMerged(t *testing.T) {
	t.Parallel()
	sandbox := &session.Sandbox{Enabled: session.Some(true), FailIfUnavailable: session.Some(false)}
	l := launch(t, dialect.Input{Options: session.Options{SettingsPath: "/s.json", Sandbox: sandbox}, Facts: dialect.Facts{SettingsContent: []byte(`{"model":"m","n":12345678901234567890}`)}})
	assert.JSONEq(t, `{"model":"m","n":12345678901234567890,"sandbox":{"enabled":true,"failIfUnavailable":false}}`,
		file(t, l, "settings.json"))
	assert.Contains(t, file(t, l, "settings.json"), "12345678901234567890", "a number keeps its digits")

	l = launch(t, dialect.Input{Options: session.Options{SettingsPath: "/s.json"}})
	assert.Equal(t, []string{"--settings", "/s.json"}, l.Args[5:], "nothing to merge: the path is passed on")

	for name, o := range map[string]dialect.Input{
		"unread":        {Options: session.Options{SettingsPath: "/s.json", Sandbox: sandbox}},
		"no object":     {Options: session.Options{SettingsPath: "/s.json", Sandbox: sandbox}, Facts: dialect.Facts{SettingsContent: []byte(`[]`)}},
		"no list":       {Options: session.Options{Settings: json.RawMessage(`{"permissions":{"allow":3}}`), MCPServers: policies()}},
		"another shape": {Options: session.Options{Settings: json.RawMessage(`{"permissions":true}`), MCPServers: policies()}},
	} {
		_, err := claude.New().Launch(&o)
		assert.Len(t, session.ConfigErrors(err), 1, "%s: %v", name, err)
	}
}

func policies() map[string]session.MCPServerConfig {
	return map[string]session.MCPServerConfig{"a b": {Command: "c", Tools: []session.MCPToolPolicy{
		{Name: "t", PermissionPolicy: session.AlwaysAllow}, {Name: "u"}}}}
}

func TestToolPoliciesAreRules(t *testing.T) {
	t.Parallel()
	o := dialect.Input{Options: session.Options{
		Settings:   json.RawMessage(`{"permissions":{"allow":["Read","mcp__a_b__t"]}}`),
		MCPServers: policies(),
	}, Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "host", Tools: []session.MCPToolPolicy{
		{Name: "x", PermissionPolicy: session.AlwaysAsk}, {Name: "y.z", PermissionPolicy: session.AlwaysDeny}}}}}}
	l := launch(t, o)
	assert.Equal(t, []string{"--mcp-config", `{"mcpServers":{"a b":{"command":"c","tools":[{"name":"t","permission_policy":"always_allow"},{"name":"u"}]}}}`}, l.Args[5:7])
	assert.JSONEq(t, `{"permissions":{"allow":["Read","mcp__a_b__t"],"ask":["mcp__host__x"],"deny":["mcp__host__y_z"]}}`, l.Args[8])
	assert.JSONEq(t, `{"host":{"tools":[{"name":"x","permission_policy":"always_ask"},{"name":"y.z","permission_policy":"always_deny"}]}}`,
		string(initialize(t, o)["sdkMcpServerConfigs"]))

	odd := launch(t, dialect.Input{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"w.x/y": {Command: "c", Tools: []session.MCPToolPolicy{
		{Name: "a.b", PermissionPolicy: session.AlwaysDeny}, {Name: "é", PermissionPolicy: session.AlwaysDeny}, {Name: "*", PermissionPolicy: session.AlwaysAsk}}}}}})
	assert.JSONEq(t, `{"permissions":{"allow":[],"ask":["mcp__w_x_y__*"],"deny":["mcp__w_x_y__a_b","mcp__w_x_y___"]}}`, odd.Args[8],
		"as the agent spells the tools")
}

func TestWhatIsTooLongForAnArgument(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", build.MaxArg)

	schema := dialect.Input{Options: session.Options{OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`{"title":"` + long + `"}`)}}}
	assert.Len(t, launch(t, schema).Args, 5, "initialize carries the schema")
	assert.Contains(t, string(initialize(t, schema)["jsonSchema"]), long)

	settings := launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"model":"` + long + `"}`)}})
	assert.Contains(t, file(t, settings, "settings.json"), long)
	assert.Equal(t, build.ReasonSize, settings.Files[0].Reason)

	managed := dialect.Input{Options: session.Options{ManagedSettings: json.RawMessage(`{"model":"` + long + `"}`)}}
	l := launch(t, managed)
	assert.Equal(t, []string{"--await-initialize", "--managed-settings-in-initialize"}, l.Args[5:])
	assert.Contains(t, string(initialize(t, managed)["managedSettings"]), long)

	var rules []string
	for i := range 20_000 {
		rules = append(rules, fmt.Sprintf("Bash(%d:*)", i))
	}
	l = launch(t, dialect.Input{Options: session.Options{AllowedTools: rules, DisallowedTools: []string{"Write"}, Skills: session.Only("pdf")}})
	assert.Equal(t, []string{"--settings", "{{file:settings.json}}"}, l.Args[5:])
	var doc struct {
		Permissions struct{ Allow, Deny []string }
	}
	require.NoError(t, json.Unmarshal([]byte(file(t, l, "settings.json")), &doc))
	assert.Equal(t, append(rules, "Skill(pdf)"), doc.Permissions.Allow)
	assert.Equal(t, []string{"Write"}, doc.Permissions.Deny)

	for option, o := range map[string]dialect.Input{
		"Model":                 {Options: session.Options{Model: long + long}},
		"AdditionalDirectories": {Options: session.Options{AdditionalDirectories: []string{long}}},
		`ExtraArgs["k"]`:        {Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"k": session.Some(long + "x")}}},
		"Resume":                {Options: session.Options{Resume: "a\x00b"}},
	} {
		_, err := claude.New().Launch(&o)
		require.Len(t, session.ConfigErrors(err), 1, option)
		assert.Equal(t, option, session.ConfigErrors(err)[0].Option)
	}
	assert.Len(t, launch(t, dialect.Input{Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"k": session.Some(long)}}}).Args, 7)
}

func TestDeliveriesByInitializeAreAwaited(t *testing.T) {
	t.Parallel()
	assert.NotContains(t, launch(t, dialect.Input{}).Args, "--await-initialize")
	assert.NotContains(t, launch(t, dialect.Input{Options: session.Options{MCPServersDelivery: session.DeliverInInitialize}}).Args, "--await-initialize")
	o := dialect.Input{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Env: map[string]string{"K": "k"}}},
		MCPServersDelivery: session.DeliverInInitialize}}
	l := launch(t, o)
	assert.Contains(t, l.Args, "--await-initialize")
	assert.Empty(t, l.Files)
	assert.JSONEq(t, `{"s":{"command":"c","env":{"K":"k"}}}`, string(initialize(t, o)["mcpServers"]))
}

func TestSystemPromptForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prompt session.SystemPrompt
		want   map[string]string
	}{
		"not given":  {session.SystemPrompt{}, map[string]string{"systemPrompt": `[""]`}},
		"no blocks":  {session.SystemPrompt{}, map[string]string{"systemPrompt": `[""]`}},
		"empty":      {session.SystemPrompt{Blocks: []string{""}}, map[string]string{"systemPrompt": `[""]`}},
		"two blocks": {session.SystemPrompt{Blocks: []string{"a", session.DynamicBoundary}}, map[string]string{"systemPrompt": `["a","__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"]`}},
		"preset":     {session.SystemPrompt{Preset: true, Append: "x"}, map[string]string{"appendSystemPrompt": `"x"`}},
		"custom, no snapshot": {session.SystemPrompt{Blocks: []string{"a"}, Snapshot: session.Some(false)},
			map[string]string{"systemPrompt": `["a"]`, "systemPromptSnapshot": `false`}},
	} {
		got := map[string]string{}
		for k, v := range initialize(t, dialect.Input{Options: session.Options{SystemPrompt: c.prompt}}) {
			if k != "subtype" {
				got[k] = string(v)
			}
		}
		assert.Equal(t, c.want, got, name)
	}
}

func TestHookFailurePolicyCanBeChosen(t *testing.T) {
	t.Parallel()
	o := dialect.Input{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{
		{Event: "PreToolUse", CallbackIDs: []string{"a"}, OnFailure: session.ContinueOnFailure},
		{Event: "Stop", CallbackIDs: []string{"b"}, OnFailure: session.BlockOnFailure}}}}
	assert.JSONEq(t, `{"PreToolUse":[{"hookCallbackIds":["a"],"onFailure":"continue"}],
		"Stop":[{"hookCallbackIds":["b"],"onFailure":"block"}]}`, string(initialize(t, o)["hooks"]))
}
