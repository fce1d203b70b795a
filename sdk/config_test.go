package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// vars is an environment of a test.
func vars(pairs ...string) sdk.LoadOption {
	return sdk.ExpandWith(func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	})
}

func everything() *sdk.Options {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	own := sdk.MCPServerConfig{Command: "c"}
	more := sdk.MCPServerConfig{Type: "http", URL: "https://h"}
	return &sdk.Options{
		Policy: &sdk.Policy{Allow: []string{"Read"}, Ask: []string{"Bash(git *)"}, Deny: []string{"Write"}},
		Limits: session.Limits{Control: 45 * time.Second}, Graces: session.Graces{EOF: 1500 * time.Millisecond},
		PermissionTimeout: time.Minute, Unattended: true, ResolveModelTimeout: 250 * time.Millisecond, CloseTimeout: 5 * time.Second,
		InterruptGrace: 1500 * time.Millisecond, MaxLine: 1024, MaxRestarts: 3, EqualDeaths: 5, RestartWindow: 10 * time.Minute, PassivateAfter: 15 * time.Minute, Isolation: session.IsolationPrivate, Recovery: session.RecoverReport, Discard: true, Cwd: "/src",
		Env: map[string]string{"FOO": "bar", "TOKEN": "Bearer t0"}, UnsetEnv: []string{"OTHER", "GONE"}, CleanEnv: true,
		PathToExecutable: "/opt/cli.mjs", Executable: "bun", ExecutableArgs: []string{"--smol"},
		ExtraArgs: map[string]sdk.Opt[string]{"flag": {}, "key": sdk.Some("value"), "empty": sdk.Some("")},
		Debug:     true, DebugFile: "/tmp/debug.log", Auth: sdk.AccessTokenFromEnv("MY_PAT"), Proxy: "http://proxy:8080", VPCEndpoint: "acme",
		Model: "opus", FallbackModel: "sonnet,haiku",
		Thinking:          &session.Thinking{Type: session.ThinkingEnabled, BudgetTokens: sdk.Some(4096), Display: "summarized"},
		MaxThinkingTokens: sdk.Some(0), Effort: "xhigh", Betas: []string{"context-1m-2025-08-07"},
		OutputFormat:        sdk.JSONSchema(raw(`{"type":"object","required":["a"]}`)),
		OutputRepairs:       2,
		ModelRequestPatches: raw(`{"gpt":{"systemPrompt":"x"}}`),
		MaxTurns:            sdk.Some(0), MaxBudgetUSD: sdk.Some(1.5), TaskBudget: sdk.Some(5000), GoalMaxTurns: sdk.Some(7),
		InitializeTimeout: 20 * time.Second,
		SystemPrompt: session.SystemPrompt{Preset: true, Append: "Be brief.\n", ExcludeDynamicSections: true,
			Snapshot: sdk.Some(false)},
		PlanModeInstructions: "plan", Title: "A title", VerbatimPrompts: true, CustomContext: raw(`{"k":[1,2.50,true,null,"<&>"]}`),
		Memory: &session.Memory{Mode: "native", ProjectScope: sdk.Some(false),
			Generation:  &session.MemoryGeneration{Enabled: sdk.Some(true), TurnComplete: &session.TurnComplete{Timeout: 100 * time.Millisecond}},
			Consumption: &session.MemoryConsumption{Files: []session.MemoryFile{{ID: "f", Path: "/m.md"}}},
			Extra:       map[string]json.RawMessage{"new": raw("1")}},
		Evolution: &session.Evolution{Skill: &session.SkillEvolution{Mode: "custom"}},
		Tools:     sdk.Only("Read", "Agent"), AllowedTools: []string{"Read", "Bash(git:*)"}, DisallowedTools: []string{"Write"},
		ToolAliases: map[string]string{"Bash": "mcp__w__b"}, ToolConfig: &session.ToolConfig{AskUserQuestion: session.AskUserQuestionConfig{PreviewFormat: "html"}},
		PermissionMode: sdk.ModePlan, AllowDangerouslySkipPermissions: true, PermissionPromptToolName: "mcp__a__b",
		PermissionPrompts: "host", PlanMode: sdk.Some(true),
		Sandbox: &session.Sandbox{Enabled: sdk.Some(true), ExcludedCommands: []string{"docker"},
			Network:          &session.SandboxNetwork{AllowedDomains: []string{}, AllowLocalBinding: sdk.Some(false), HTTPProxyPort: sdk.Some(8080)},
			Filesystem:       &session.SandboxFilesystem{DenyRead: []string{"/etc"}},
			IgnoreViolations: map[string][]string{"file": {"/tmp"}}, Ripgrep: &session.SandboxRipgrep{Command: "rg"}, Extra: map[string]json.RawMessage{"newer": raw(`{"a":1}`)}},
		SecurityScan: &session.SecurityScan{L1StaticCheck: true},
		Continue:     true, Resume: "r", ForkSession: true, ResumeSessionAt: "m", ResumeDropsTurn: "d",
		SessionID: "dddddddd-1111-4111-8111-111111111111", PersistSession: sdk.Some(false), SessionStoreOptions: session.StoreOptions{Flush: session.StoreEager, Load: 10 * time.Second, Append: 5 * time.Second, Attempts: 2, Entries: 100, Bytes: 65536, Waiting: 1048576, Lease: 30 * time.Second}, EnableFileCheckpointing: sdk.Some(true),
		SettingSources: sdk.None(), Settings: raw(`{"model":"x","big":12345678901234567890}`),
		ManagedSettings: raw(`{"permissions":{"deny":["Bash"]}}`), AdditionalDirectories: []string{"/a"}, ProjectConfigRoot: "/p",
		Plugins:        []session.Plugin{{Type: "local", Path: "/pl", SkipMCPDiscovery: true}},
		PluginDelivery: session.DeliverInInitialize, Skills: sdk.All(), Extensions: []string{"e"},
		Agents: map[string]session.AgentDefinition{"reviewer": {Description: "Reviews.", Prompt: "Review.", Tools: sdk.Only("Read"),
			MCPServers: []session.AgentMCPServer{{Name: "db"}, {Name: "own", Config: &own}, {Name: "more", Config: &more}},
			MaxTurns:   sdk.Some(3), Background: sdk.Some(false), Effort: "3", OmitClaudeMD: sdk.Some(false), AutoCompactWindow: sdk.Some(9000),
			Observer: "o", ObserverMessage: "om", CriticalSystemReminder: "csr", Extra: map[string]json.RawMessage{"newer": raw(`"n"`)}}},
		Agent: "reviewer",
		MCPServers: map[string]sdk.MCPServerConfig{
			"db": {Command: "db-mcp", Args: []string{"--ro"}, Env: map[string]string{"PASSWORD": "none"}, Timeout: 1500 * time.Millisecond,
				AlwaysLoad: sdk.Some(false), Shared: true, Tools: []session.MCPToolPolicy{{Name: "drop", PermissionPolicy: session.AlwaysDeny, OrgMaxPermission: "ask"}}},
			"web": {Type: "http", URL: "https://h/mcp", Headers: map[string]string{"A": "b"}, OAuth: raw(`{"clientId":"c"}`),
				Extra: map[string]json.RawMessage{"displayName": raw(`"W"`)}},
		},
		SDKMCPServerConfigs: map[string]session.SDKMCPServerConfig{"host": {Timeout: 1500 * time.Millisecond,
			Tools: []session.MCPToolPolicy{{Name: "t", PermissionPolicy: session.AlwaysAsk}}}},
		MCPServersDelivery: session.DeliverInInitialize, StrictMCPConfig: true, AllowedMCPServerNames: []string{"db"},
		SupportedDialogKinds: []string{"refusal_fallback_prompt"}, IncludePartialMessages: true, IncludeHookEvents: true,
		ForwardSubagentText: true, PromptSuggestions: true, AgentProgressSummaries: true, PerTaskStopAffordance: true,
		ExperimentalCloudAgent: &session.CloudAgent{Agent: &session.CloudAgentReference{ID: "a"},
			Session: session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "e"}},
			Stream:  &session.CloudStream{DeltaFlushIntervalMs: sdk.Some(0)}},
	}
}

func TestLoadEveryOption(t *testing.T) {
	t.Parallel()
	want := everything()
	path := filepath.Join("testdata", "config", "all.yaml")
	got, err := sdk.LoadOptionsFile(path, vars("TOKEN", "t0"))
	require.NoError(t, err)
	assert.Equal(t, want, got)
	v := reflect.ValueOf(got).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if tag := v.Type().Field(i).Tag.Get("json"); tag == "-" || name == "SettingsPath" || name == "MCPConfigPath" {
			continue // no key, or the other form of a key
		}
		assert.False(t, v.Field(i).IsZero(), "%s is not in %s", name, path)
	}

	// JSON says the same, with tabs, which YAML does not take.
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	doc, err := yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	doc = []byte(strings.ReplaceAll(string(doc), "12345678901234567000", "12345678901234567890")) // the converter's rounding
	doc = []byte(strings.ReplaceAll(string(doc), "2.5,", "2.50,"))
	var pretty json.RawMessage = doc
	tabbed, err := json.MarshalIndent(pretty, "", "\t")
	require.NoError(t, err)
	tabbed = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(tabbed)))
	again, err := sdk.LoadOptions(strings.NewReader(string(tabbed)), vars("TOKEN", "t0"))
	require.NoError(t, err)
	assert.JSONEq(t, string(want.OutputFormat.Schema), string(again.OutputFormat.Schema))
	again.OutputFormat = want.OutputFormat // the converter sorts keys
	assert.JSONEq(t, string(want.Settings), string(again.Settings))
	again.Settings = want.Settings
	assert.ElementsMatch(t, want.Agents["reviewer"].MCPServers, again.Agents["reviewer"].MCPServers)
	again.Agents = want.Agents
	assert.Equal(t, want, again)
}

func TestLoadForms(t *testing.T) {
	t.Parallel()
	type o = sdk.Options
	for doc, want := range map[string]o{
		"":                         {},
		"\ufeff{}":                 {},
		"# a remark\n":             {},
		"model: null\ntools: null": {},
		"settings: s.json":         {SettingsPath: "s.json"},
		`settings: '{"a":1}'`:      {Settings: json.RawMessage(`{"a":1}`)},
		"mcpServers: m.json":       {MCPConfigPath: "m.json"},
		"mcpServers: {}":           {MCPServers: map[string]sdk.MCPServerConfig{}},
		"tools: all":               {Tools: sdk.All()},
		"tools: []":                {Tools: sdk.None()},
		"tools: {type: preset, preset: qodercli}":                          {Tools: sdk.All()},
		"systemPrompt: hi":                                                 {SystemPrompt: sdk.PromptText("hi")},
		`systemPrompt: ""`:                                                 {SystemPrompt: sdk.PromptText("")},
		"systemPrompt: [a, b]":                                             {SystemPrompt: sdk.PromptText("a", "b")},
		"systemPrompt: {type: file, path: p.md}":                           {SystemPrompt: sdk.PromptFile("p.md")},
		"systemPrompt: {type: custom, prompt: a, snapshot: true}":          {SystemPrompt: session.SystemPrompt{Blocks: []string{"a"}, Snapshot: sdk.Some(true)}},
		"systemPrompt: {type: custom, prompt: [a, b]}":                     {SystemPrompt: sdk.PromptText("a", "b")},
		"taskBudget: 5":                                                    {TaskBudget: sdk.Some(5)},
		"maxTurns: 0x10":                                                   {MaxTurns: sdk.Some(16)},
		"maxTurns: 3.0":                                                    {MaxTurns: sdk.Some(3)},
		"maxTurns: 1e2\nmaxBudgetUsd: 1e2":                                 {MaxTurns: sdk.Some(100), MaxBudgetUSD: sdk.Some(100.0)},
		`{"maxTurns":1e2}`:                                                 {MaxTurns: sdk.Some(100)},
		"closeTimeoutMs: null\ncloseTimeout: 1s":                           {CloseTimeout: time.Second},
		`maxTurns: {$env: "${N}"}`:                                         {MaxTurns: sdk.Some(3)},
		`maxBudgetUsd: {$env: "${N}.5"}`:                                   {MaxBudgetUSD: sdk.Some(3.5)},
		`debug: {$env: "${ON}"}`:                                           {Debug: true},
		`model: {$env: "${GONE:-opus}-${N}"}`:                              {Model: "opus-3"},
		`title: "${N}"`:                                                    {Title: "${N}"},
		`settings: {env: {A: {$env: "${N}"}, B: "${N}"}}`:                  {Settings: json.RawMessage(`{"env":{"A":"3","B":"${N}"}}`)},
		"auth: {type: accessToken, accessToken: {}}":                       {Auth: sdk.AccessTokenFromEnv("")},
		"auth: {type: serviceAccount, serviceAccountKey: {}}":              {Auth: &session.Auth{Type: "serviceAccount", EnvVar: "QODER_SERVICE_ACCOUNT_KEY"}},
		"auth: {type: serviceAccount, serviceAccountKey: {envVar: K}}":     {Auth: &session.Auth{Type: "serviceAccount", EnvVar: "K"}},
		"auth: {type: qodercli}":                                           {Auth: sdk.QoderCLIAuth()},
		`auth: {type: serviceAccount, serviceAccountKey: {$env: "k${N}"}}`: {Auth: sdk.ServiceAccountKey("k3")},
		"pathToQoderCLIExecutable: /q":                                     {PathToExecutable: "/q"},
		"initializeTimeout: 90s":                                           {InitializeTimeout: 90 * time.Second},
		`{"title":"\ud83d\ude00 \u0000"}`:                                  {Title: "\U0001f600 \x00"},
		"cwd: C:\\dir # a remark":                                          {Cwd: `C:\dir`},
	} {
		got, err := sdk.LoadOptions(strings.NewReader(doc), vars("N", "3", "ON", "true", "GONE", ""))
		if assert.NoError(t, err, doc) {
			assert.Equal(t, want, *got, doc)
		}
	}
}

func TestLoadErrorsAreNotWithoutEnd(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&doc, `"k%d":1,`, i)
	}
	_, err := sdk.LoadOptions(strings.NewReader("{" + doc.String() + `"model":3}`))
	all := sdk.LoadErrors(err)
	require.Len(t, all, 1001)
	assert.Equal(t, "k999", all[999].Key)
	assert.EqualError(t, all[1000], "options: 4001 more mistakes; fix those above first")
}

func TestLoadErrorsHaveAPlace(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string][]string{
		"model: m\ntols: [Read]":      {"2:1: tols is not known; did you mean tools?"},
		"allowed_tools: []":           {"1:1: allowed_tools is not known; did you mean allowedTools?"},
		"zzz: 1":                      {"1:1: zzz is not known; look for it in the documentation of sdk.Options"},
		"sandbox:\n  network: {x: 1}": {"2:13: sandbox.network.x is not known; look for it in the documentation of sdk.Options"},
		"canUseTool: x":               {"1:1: canUseTool is not data; set it in Go"},
		"maxTurns: many\nmodel: 3":    {"1:11: maxTurns is a text, and has to be a whole number", "2:8: model is a number, and has to be a text; put it in quotes"},
		"maxTurns: 1.5":               {"1:11: maxTurns is 1.5, and has to be a whole number"},
		"debug: yes please":           {"1:8: debug is a text, and has to be a boolean"},
		"allowedTools: Read":          {"1:15: allowedTools is a text, and has to be a list"},
		"allowedTools:\n- Read\n- 3":  {"3:3: allowedTools[1] is a number, and has to be a text; put it in quotes"},
		"tools: some":                 {`1:8: tools is a text, and has to be a list, "all", or an object of type preset`},
		"env: {A: 1}":                 {"1:10: env.A is a number, and has to be a text; put it in quotes"},
		"closeTimeout: 5":             {"1:15: closeTimeout is not a duration; write 90s, 1m30s or 500ms"},
		"resolveModelTimeoutMs: 5s":   {"1:24: resolveModelTimeoutMs is a text, and has to be a number of milliseconds"},
		"resolveModelTimeoutMs: 5\nresolveModelTimeout: 5s": {"2:1: resolveModelTimeout says the same as resolveModelTimeoutMs; leave one of them out"},
		"cliPath: a\npathToExecutable: b":                   {"2:1: pathToExecutable says the same as cliPath; leave one of them out"},
		"mcpServers: {a: {type: sdk, name: x}}":             {"1:24: mcpServers.a.type is a server that runs in the host; make it in Go, and give it in Options.SDKMCPServers"},
		"mcpServers: {a: {comand: x}}":                      {"1:18: mcpServers.a.comand is not known; did you mean command?"},
		"systemPrompt: {type: text}":                        {"1:22: systemPrompt.type is not known; use preset, custom or file"},
		"auth: {type: password}":                            {`1:14: auth.type is not known; use accessToken, qodercli, serviceAccount or jobToken`},
		"settings: [1]":                                     {"1:11: settings is a list, and has to be an object, or a text: the path of a file"},
		"settings: '{a'":                                    {"1:11: settings begins like JSON and is not JSON; give an object, or the path of a file"},
		"managedSettings: x":                                {"1:18: managedSettings is a text, and has to be an object"},
		`model: {$env: "${NONE}"}`:                          {"1:15: model needs the environment variable NONE, which is not set; set it, or give a default: ${NONE:-…}"},
		`model: {$env: NONE}`:                               {`1:15: model $env names no variable; write {"$env": "${NAME}"}`},
		"a: &x 1\nmodel: *x":                                {"1:4: is an anchor, which", "2:8: is an alias, which"},
		"model: [":                                          {"1:8: sequence end token ']' not found; write YAML or JSON"},
		"- model":                                           {"1:1: is a list, and has to be an object"},
		"model: a\n---\nmodel: b":                           {"3:1: begins a second document; give one document"},
		"{\"model\":\"a\",\n \"model\":\"b\"}":              {"2:2: model is a duplicate key; leave one of them out"},
		"model: a\nmodel: b":                                {"2:1: model is a duplicate key; leave one of them out"},
		"thinking:\n  type: adaptive\n  type: enabled\nagnet: x": {"3:3: thinking.type is a duplicate key; leave one of them out",
			"4:1: agnet is not known; did you mean agent?"},
		"thinking:\n\ttype: adaptive":                 {"2:1: found character '\t' that cannot start any token; indent with spaces, or write JSON"},
		"allowedTools: [Read, null]":                  {"1:22: allowedTools[1] is null; leave it out"},
		"toolAliases: {a: null}":                      {"1:18: toolAliases.a is null; leave it out"},
		"agents:\n  a: {description: d}":              {"2:6: agents.a.prompt is missing; give it"},
		"agents: {a: {description: null, prompt: p}}": {"1:13: agents.a.description is missing; give it"},
		"agents: {a: null}":                           {"1:13: agents.a is null; leave it out"},
		"plugins: [{type: local}]":                    {"1:11: plugins[0].path is missing; give it"},
		"systemPrompt: {type: custom}":                {"1:15: systemPrompt.prompt is missing; give it"},
		"mcpServers: {a: {type: tcp}}":                {"1:24: mcpServers.a.type is not known; use stdio, sse or http"},
		"mcpServers: {a: {command: c, tools: [{name: t, permission_policy: never}]}}": {
			"1:67: mcpServers.a.tools[0].permission_policy is not known; use always_allow, always_ask or always_deny"},
		"sandbox: {extra: {network: {}}}":        {"1:19: sandbox.extra.network is a key of its own; move it out of extra"},
		"maxTurns: 1e2\ntitle: 1e2":              {"2:8: title is a number, and has to be a text; put it in quotes"},
		"maxTurns: 99999999999999999999":         {"1:11: maxTurns is 99999999999999999999, and has to be a whole number"},
		"model: m\ntitle: \"\xff\"":              {"2:9: is not UTF-8; save the file as UTF-8"},
		"{\"model\":\"é\",\n\"title\":\"\xc3\"}": {"2:10: is not UTF-8; save the file as UTF-8"},
		"$schema: 3":                                {"1:10: $schema is a number, and has to be a text; put it in quotes"},
		strings.Repeat("[", 2000):                   {"has brackets or dashes more than 1000 deep; make it flatter"},
		"model: x\n" + strings.Repeat("- ", 20_000): {"has brackets or dashes more than 1000 deep; make it flatter"},
		strings.Repeat("? ", 20_000):                {"has brackets or dashes more than 1000 deep; make it flatter"},
	} {
		o, err := sdk.LoadOptions(strings.NewReader(doc), vars())
		assert.Nil(t, o, doc)
		var all []string
		for _, e := range sdk.LoadErrors(err) {
			all = append(all, strings.TrimPrefix(strings.TrimPrefix(e.Error(), "options:"), " "))
		}
		require.Len(t, all, max(len(all), len(want)), doc)
		for i, w := range want {
			assert.True(t, strings.HasPrefix(all[i], w), "%s\nwant %s\ngot  %s", doc, w, strings.Join(all, "\n"))
		}
	}
}

func TestLoadErrorNamesItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "o.yaml")
	require.NoError(t, os.WriteFile(path, []byte("\n  nope: 1\n"), 0o600))
	_, err := sdk.LoadOptionsFile(path)
	var at *sdk.LoadError
	require.ErrorAs(t, err, &at)
	assert.Equal(t, sdk.LoadError{File: path, Line: 2, Column: 3, Key: "nope", Problem: at.Problem, Fix: at.Fix}, *at)
	require.EqualError(t, err, path+":2:3: nope is not known; look for it in the documentation of sdk.Options")

	_, err = sdk.LoadOptionsFile(path + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Empty(t, sdk.LoadErrors(err))
	broken := errors.New("broken")
	_, err = sdk.LoadOptions(brokenReader{broken})
	require.ErrorIs(t, err, broken)
	_, err = sdk.LoadOptions(strings.NewReader(strings.Repeat("#", 5<<20)))
	require.ErrorContains(t, err, "longer than")
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func ExampleLoadOptions() {
	o, err := sdk.LoadOptions(strings.NewReader(`
model: sonnet
maxTurns: 5
allowedTools: [Read, "Bash(git:*)"]
mcpServers:
  issues:
    type: http
    url: https://issues.example.com/mcp
    headers:
      Authorization: {$env: "Bearer ${ISSUES_TOKEN}"}
`), sdk.ExpandWith(func(string) (string, bool) { return "s3cr3t", true }))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Model, o.MaxTurns, o.AllowedTools, o.MCPServers["issues"].Headers)

	_, err = sdk.LoadOptions(strings.NewReader("model: sonnet\nmax_turns: 5\nresume: 7\n"))
	for _, e := range sdk.LoadErrors(err) {
		fmt.Printf("line %d, column %d: %s %s\n", e.Line, e.Column, e.Key, e.Problem)
	}
	// Output:
	// sonnet 5 [Read Bash(git:*)] map[Authorization:Bearer s3cr3t]
	// line 2, column 1: max_turns is not known
	// line 3, column 9: resume is a number, and has to be a text
}

func FuzzLoadOptions(f *testing.F) {
	raw, err := os.ReadFile(filepath.Join("testdata", "config", "all.yaml"))
	require.NoError(f, err)
	for _, line := range strings.Split(string(raw), "\n") { // short ones, which are quick to minimize
		f.Add(line)
	}
	for _, seed := range []string{"", "{}", "a: [", "model: {$env: \"${A}\"}", "x: &a [*a]", "? k\n: v", "--- |\n a\n...", "{\"a\":\t1}", "tools: !!set {a}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		o, err := sdk.LoadOptions(strings.NewReader(doc), vars("A", "1"))
		if (o == nil) != (err != nil) {
			t.Fatalf("%v and %v", o, err)
		}
		if err != nil && len(sdk.LoadErrors(err)) == 0 {
			t.Fatalf("not a LoadError: %v", err)
		}
	})
}

// Only what a line begins with nests.
func TestLoadTakesDashesInATextAsText(t *testing.T) {
	t.Parallel()
	o, err := sdk.LoadOptions(strings.NewReader(`{"model": "` + strings.Repeat("- ", 5000) + `"}`))
	require.NoError(t, err)
	assert.Len(t, o.Model, 10_000)
}
