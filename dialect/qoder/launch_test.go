package qoder_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func launch(t *testing.T, o dialect.Input) dialect.Launch {
	t.Helper()
	if o.Auth == nil {
		o.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "PAT"}
	}
	l, err := qoder.New().Launch(&o)
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
	require.Failf(t, "no such file", "%s", name)
	return ""
}

func after(args []string, flag string) string {
	for i, a := range args[:len(args)-1] {
		if a == flag {
			return args[i+1]
		}
	}
	return ""
}

func initialize(t *testing.T, o dialect.Input) map[string]json.RawMessage {
	t.Helper()
	raw, err := qoder.New().Initialize(&o)
	require.NoError(t, err)
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &keys))
	return keys
}

func TestProgram(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/option/pathToQoderCLIExecutable", "qoder/env/QODERCLI_PATH")
	l := launch(t, dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"QODERCLI_PATH=/opt/qodercli"}}})
	assert.Equal(t, "/opt/qodercli", l.Path)
	assert.Equal(t, []string{"qodercli"}, l.Names)
	l = launch(t, dialect.Input{Options: session.Options{PathToExecutable: "/opt/new"}, Facts: dialect.Facts{ParentEnv: []string{"QODERCLI_PATH=/opt/old"}}})
	assert.Equal(t, "/opt/new", l.Path)
}

func TestLogins(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/env/QODER_SERVICE_ACCOUNT_KEY", "qoder/env/QODER_SDK_AUTH_PAYLOAD_FILE", "qoder/error/AuthNotConfiguredError", "qoder/error/AuthAccessTokenEnvVarError",
		"qoder/env/QODER_PERSONAL_ACCESS_TOKEN")
	for name, c := range map[string]struct {
		options dialect.Input
		payload string
		unset   []string
	}{
		"token from Env before the parent's": {dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthAccessToken, EnvVar: "T"},
			Env: map[string]string{"T": "mine"}}, Facts: dialect.Facts{ParentEnv: []string{"T=parent"}}},
			`{"type":"accessToken","accessToken":"mine"}`, nil},
		"token of the parent in a clean environment": {dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthAccessToken, EnvVar: session.DefaultTokenEnv}, CleanEnv: true}, Facts: dialect.Facts{ParentEnv: []string{"QODER_PERSONAL_ACCESS_TOKEN=parent"}}}, `{"type":"accessToken","accessToken":"parent"}`, nil},
		"job tokens": {dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthJobToken}}}, `{"type":"jobToken","jobTokenProvider":"host"}`, nil},
		"named key": {dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount, EnvVar: "SA"}}, Facts: dialect.Facts{ParentEnv: []string{"SA=key"}}},
			`{"type":"serviceAccount","serviceAccountKey":"key"}`, []string{"QODER_SERVICE_ACCOUNT_KEY", "SA"}},
		"key": {dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthServiceAccount, ServiceAccountKey: "key"}, Env: map[string]string{"QODER_SERVICE_ACCOUNT_KEY": "x"}}},
			`{"type":"serviceAccount","serviceAccountKey":"key"}`, []string{"QODER_SERVICE_ACCOUNT_KEY"}},
	} {
		l := launch(t, c.options)
		assert.JSONEq(t, c.payload, file(t, l, "payload.json"), name)
		for _, v := range c.unset {
			assert.Contains(t, l.Unset, v, name)
			for _, e := range l.Env {
				assert.NotEqual(t, v, e.Name, name)
			}
		}
	}
	for name, a := range map[string]*session.Auth{
		"none": nil, "empty": {Type: session.AuthAccessToken, AccessToken: ""}, "unset": {Type: session.AuthAccessToken, EnvVar: "NOT_SET"},
		"unset key": {Type: session.AuthServiceAccount, EnvVar: "NOT_SET"}, "unknown": {Type: "oauth"},
	} {
		_, err := qoder.New().Launch(&dialect.Input{Options: session.Options{Auth: a}})
		require.Len(t, session.ConfigErrors(err), 1, name)
		assert.Equal(t, "Auth", session.ConfigErrors(err)[0].Option, name)
	}
}

func TestTaskToolsFollowTheAgentsEnvironment(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/env/QODER_FEATURE_TASKS")
	for name, c := range map[string]struct {
		options dialect.Input
		todo    bool
	}{
		"parent":          {dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"QODER_FEATURE_TASKS=false"}}}, true},
		"overridden":      {dialect.Input{Options: session.Options{Env: map[string]string{"QODER_FEATURE_TASKS": "1"}}, Facts: dialect.Facts{ParentEnv: []string{"QODER_FEATURE_TASKS=0"}}}, false},
		"clean":           {dialect.Input{Options: session.Options{CleanEnv: true}, Facts: dialect.Facts{ParentEnv: []string{"QODER_FEATURE_TASKS=0"}}}, false},
		"unset":           {dialect.Input{Options: session.Options{UnsetEnv: []string{"QODER_FEATURE_TASKS"}}, Facts: dialect.Facts{ParentEnv: []string{"QODER_FEATURE_TASKS=0"}}}, false},
		"last entry wins": {dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"QODER_FEATURE_TASKS=0", "junk", "QODER_FEATURE_TASKS=1"}}}, false},
	} {
		assert.Equal(t, c.todo, strings.Contains(after(launch(t, c.options).Args, "--tools"), "TodoWrite"), name)
	}
}

func TestProxies(t *testing.T) {
	t.Parallel()
	plain := dialect.Input{Options: session.Options{Proxy: "http://p:1"}}
	assert.Equal(t, "http://p:1", after(launch(t, plain).Args, "--proxy"))
	assert.Empty(t, qoder.New().AfterInitialize(&plain))

	secret := dialect.Input{Options: session.Options{Proxy: "http://u:pw@p:1"}}
	l := launch(t, secret)
	assert.NotContains(t, l.Args, "--proxy")
	assert.Contains(t, l.Env, dialect.EnvVar{Name: "HTTPS_PROXY", Value: "http://u:pw@p:1", Secret: true})
	assert.Equal(t, []protocol.HostRequest{protocol.SetProxyRequest{Proxy: &secret.Proxy}}, qoder.New().AfterInitialize(&secret))
}

func TestDocumentsGoByFileWhenTheyMust(t *testing.T) {
	t.Parallel()
	l := launch(t, dialect.Input{Options: session.Options{
		MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Env: map[string]string{"K": "k"},
			Tools: []session.MCPToolPolicy{{Name: "t", AlwaysLoad: true}}}},
		Settings: json.RawMessage(`{"env":{"K":"k"}}`),
	}})
	assert.Equal(t, "{{file:mcp.json}}", after(l.Args, "--mcp-config"))
	assert.JSONEq(t, `{"mcpServers":{"s":{"command":"c","env":{"K":"k"},"toolOverrides":{"t":{"alwaysLoad":true}}}}}`, file(t, l, "mcp.json"))
	assert.Equal(t, "{{file:settings.json}}", after(l.Args, "--settings"))
	assert.JSONEq(t, `{"env":{"K":"k"}}`, file(t, l, "settings.json"))

	assert.Equal(t, "/m.json", after(launch(t, dialect.Input{Options: session.Options{MCPConfigPath: "/m.json"}}).Args, "--mcp-config"))
	long := launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"model":"` + strings.Repeat("x", build.MaxArg) + `"}`)}})
	assert.Equal(t, "{{file:settings.json}}", after(long.Args, "--settings"))
}

func TestSettingsAreMerged(t *testing.T) {
	t.Parallel()
	l := launch(t, dialect.Input{Options: session.Options{
		Settings: json.RawMessage(`{"permissions":{"additionalDirectories":["/a"],"defaultMode":"bypassPermissions"},
			"general":{"x":1}}`),
		AdditionalDirectories: []string{"/a", "/b"}, EnableFileCheckpointing: session.Some(true), AllowDangerouslySkipPermissions: true,
	}})
	assert.JSONEq(t, `{"permissions":{"additionalDirectories":["/a","/b"],"defaultMode":"bypassPermissions"},
		"general":{"x":1,"fileCheckpointing":{"enabled":true},"defaultPermissionMode":"bypass_permissions"}}`,
		file(t, l, "settings.json"))

	l = launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"permissions":{"defaultMode":"odd"}}`)}})
	assert.JSONEq(t, `{"permissions":{"defaultMode":"odd"},"general":{}}`, after(l.Args, "--settings"), "an unknown mode is passed on")
	l = launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"permissions":{"defaultMode":"plan"},"general":{"defaultPermissionMode":"auto"}}`)}})
	assert.Contains(t, file(t, l, "settings.json"), `"defaultPermissionMode":"auto"`, "the user's own word stands")
	assert.NotContains(t, launch(t, dialect.Input{Options: session.Options{EnableFileCheckpointing: session.Some(false)}}).Args, "--settings")

	for name, o := range map[string]dialect.Input{
		"list":   {Options: session.Options{Settings: json.RawMessage(`{"permissions":{"additionalDirectories":1}}`), AdditionalDirectories: []string{"/a"}}},
		"object": {Options: session.Options{Settings: json.RawMessage(`{"general":1}`), EnableFileCheckpointing: session.Some(true)}},
	} {
		o.Auth = &session.Auth{Type: session.AuthQoderCLI}
		_, err := qoder.New().Launch(&o)
		assert.Len(t, session.ConfigErrors(err), 1, name)
	}
}

func TestInitializeFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options dialect.Input
		key     string
		want    string
	}{
		"timeout":    {dialect.Input{Options: session.Options{InitializeTimeout: 1500 * time.Millisecond}}, "initializeTimeoutMs", `1500`},
		"no copies":  {dialect.Input{Options: session.Options{EnableFileCheckpointing: session.Some(false)}}, "enableFileCheckpointing", `false`},
		"append":     {dialect.Input{Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Append: "x"}}}, "appendSystemPrompt", `"x"`},
		"servers":    {dialect.Input{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "b"}, {Name: "a"}}}}, "sdkMcpServers", `["b","a"]`},
		"some skill": {dialect.Input{Options: session.Options{Skills: session.Only("pdf")}}, "skills", `["pdf"]`},
		"memory callback alone": {dialect.Input{Options: session.Options{Memory: &session.Memory{Extra: map[string]json.RawMessage{"z": json.RawMessage(`1`)}}, ShouldGenerateMemory: turnGate}},
			"memory", `{"requester":"sdk","mode":"custom","generation":{"enabled":true,"turnComplete":{"enabled":true,"shouldGenerateCallbackId":"memory_should_generate_0"}},"z":1}`},
		"memory, as the vendor's SDK sent it": {dialect.Input{Options: session.Options{Memory: &session.Memory{Mode: "custom",
			Generation: &session.MemoryGeneration{Enabled: session.Some(true), Prompt: "pp",
				TurnComplete: &session.TurnComplete{Enabled: session.Some(true), Timeout: 100 * time.Millisecond}},
			Consumption: &session.MemoryConsumption{Enabled: session.Some(true), MaxTokens: session.Some(10),
				Files: []session.MemoryFile{{ID: "f1", Path: "/srv/x.md", Required: session.Some(true)}}}}, ShouldGenerateMemory: turnGate}},
			"memory", `{"requester":"sdk","mode":"custom","generation":{"enabled":true,"prompt":"pp","turnComplete":{"enabled":true,` +
				`"shouldGenerateCallbackId":"memory_should_generate_0","timeoutMs":100}},"consumption":{"enabled":true,` +
				`"files":[{"id":"f1","path":"/srv/x.md","required":true}],"maxTokens":10}}`},
		"evolution, as the vendor's SDK sent it": {dialect.Input{Options: session.Options{Evolution: &session.Evolution{Skill: &session.SkillEvolution{Mode: "custom", Generation: &session.SkillGeneration{Enabled: session.Some(true),
			TurnComplete: &session.TurnComplete{Enabled: session.Some(true)}}}}, ShouldReviewSkills: turnGate}},
			"evolution", `{"skill":{"requester":"sdk","mode":"custom","generation":{"enabled":true,` +
				`"turnComplete":{"enabled":true,"shouldReviewCallbackId":"skill_evolution_should_review_0"}}}}`},
		"evolution without settings": {dialect.Input{Options: session.Options{Evolution: &session.Evolution{Skill: &session.SkillEvolution{}}}},
			"evolution", `{"skill":{"requester":"sdk","mode":"custom"}}`},
		"overrides": {dialect.Input{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "s", Tools: []session.MCPToolPolicy{{Name: "t", ExposedName: "x"}}}}}},
			"sdkMcpToolOverrides", `{"s":{"t":{"exposedName":"x"}}}`},
	} {
		assert.JSONEq(t, c.want, string(initialize(t, c.options)[c.key]), name)
	}
	assert.NotContains(t, initialize(t, dialect.Input{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{}}}), "hooks")
	_, err := qoder.New().Initialize(&dialect.Input{Options: session.Options{Memory: &session.Memory{Extra: map[string]json.RawMessage{"x": json.RawMessage(`{`)}}}})
	assert.Error(t, err)
}

func TestImpossibleOnQoder(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]dialect.Input{
		"SystemPrompt.Blocks":                 {Options: session.Options{SystemPrompt: session.SystemPrompt{Blocks: []string{"a", "b"}}}},
		"SystemPrompt.ExcludeDynamicSections": {Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, ExcludeDynamicSections: true}}},
		"SystemPrompt.Snapshot":               {Options: session.Options{SystemPrompt: session.SystemPrompt{Preset: true, Snapshot: session.Some(true)}}},
		"Plugins[0].SkipMCPDiscovery":         {Options: session.Options{Plugins: []session.Plugin{{Path: "p", SkipMCPDiscovery: true}}}},
		"Hooks[0].OnFailure":                  {Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: "Stop", CallbackIDs: []string{"h"}, OnFailure: "block"}}}},
		`MCPServers["s"].HeadersHelper`:       {Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Type: "http", URL: "http://h", HeadersHelper: "x"}}}},
		`MCPServers["s"].OAuth`:               {Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Type: "http", URL: "http://h", OAuth: json.RawMessage(`{}`)}}}},
		`MCPServers["s"].AlwaysLoad`:          {Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", AlwaysLoad: session.Some(false)}}}},
		`MCPServers["s"].Tools[0].OrgMaxPermission`: {Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c",
			Tools: []session.MCPToolPolicy{{Name: "t", OrgMaxPermission: "ask"}}}}}},
		"ForkSession":                         {Options: session.Options{ForkSession: true}}, // exit 42 of qodercli 1.1.52
		"MaxTurns":                            {Options: session.Options{MaxTurns: session.Some(-1)}},
		`ExtraArgs["proxy"]`:                  {Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"proxy": session.Some("http://p")}}},
		`ExtraArgs["disable-builtin-skills"]`: {Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"disable-builtin-skills": {}}}},
	} {
		o.Auth = &session.Auth{Type: session.AuthQoderCLI}
		_, err := qoder.New().Validate(&o)
		require.Len(t, session.ConfigErrors(err), 1, "%s: %v", want, err)
		assert.Equal(t, want, session.ConfigErrors(err)[0].Option)
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	traits := qoder.New().Traits()
	assert.GreaterOrEqual(t, traits.EOFGrace, 12*time.Second, "it needs 8.6 s after EOF")
	assert.GreaterOrEqual(t, traits.TermGrace, 9*time.Second, "it needs 8.6 s after SIGTERM")
	assert.Equal(t, "1", traits.ProtocolMajor)
	assert.Equal(t, 41, traits.AuthExpiredExit)
}
