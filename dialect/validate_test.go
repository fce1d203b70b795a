package dialect_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func named(err error) []string {
	var out []string
	for _, e := range session.ConfigErrors(err) {
		out = append(out, e.Option)
	}
	return out
}

// TestImpossibleOnAnyBackend has one case for each rule that holds for every backend.
func TestImpossibleOnAnyBackend(t *testing.T) {
	t.Parallel()
	type o = *dialect.Input
	agent := func(a session.AgentDefinition) func(o) {
		return func(x o) { x.Agents = map[string]session.AgentDefinition{"a": a} }
	}
	good := session.AgentDefinition{Description: "d", Prompt: "p"}
	server := func(s session.MCPServerConfig) func(o) {
		return func(x o) { x.MCPServers = map[string]session.MCPServerConfig{"s": s} }
	}
	host := func(s ...dialect.SDKMCPServer) func(o) { return func(x o) { x.Servers = s } }
	hook := func(h dialect.HookRegistration) func(o) {
		return func(x o) { x.Registrations = []dialect.HookRegistration{h} }
	}
	skill := func(name string) func(o) { return func(x o) { x.Skills = session.Only(name) } }
	cloud := func(c session.CloudAgent) func(o) { return func(x o) { x.ExperimentalCloudAgent = &c } }
	made := session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "e"}}
	create := func(c session.CloudAgentCreate) func(o) {
		c.Name, c.Model = "n", "auto"
		return cloud(session.CloudAgent{Agent: &session.CloudAgentReference{Create: &c}, Session: made})
	}
	allow := func(rules ...string) func(o) { return func(x o) { x.AllowedTools = rules } }
	for want, cases := range map[string][]func(o){
		"PermissionPromptToolName": {
			func(x o) { x.CanUseTool, x.PermissionPromptToolName = canUseTool, "mcp__a__b" },
			func(x o) { x.PermissionPromptToolName = "stdio" }},
		"PermissionMode": {
			func(x o) { x.PermissionMode = protocol.ModeBypassPermissions },
			func(x o) { x.PermissionMode = "bogus" },
			func(x o) { x.PermissionMode = protocol.ModeDelegate }},
		"AllowedTools": {allow(""), allow("Read,Bash"), allow("Read Bash"), allow("Bash(ls"), allow("Bash(a)b)"),
			allow("Bash(a),Bash(*)"), allow("Bash((a)"), allow(`Bash(a\)`), allow("(x)"), allow("a)b")},
		"DisallowedTools": {func(x o) { x.DisallowedTools = []string{"Read, Write"} }},
		"Tools":           {func(x o) { x.Tools = session.Only("Read,Bash") }, func(x o) { x.Tools = session.Only("") }},
		"Skills": {skill("pdf),Bash(*"), skill("*"), skill(""), skill(" pdf"), skill("a,b"), skill("a\nb"), skill("p:*"), skill("p *"),
			skill("/pdf"), skill(`a\\b`), skill(`a\`)},
		"ResumeSessionAt":            {func(x o) { x.ResumeSessionAt = "m" }},
		"ResumeDropsTurn":            {func(x o) { x.Resume, x.ResumeDropsTurn = "r", "m" }},
		"PersistSession":             {func(x o) { x.PersistSession, x.HasSessionStore = session.Some(false), true }},
		"InitializeTimeout":          {func(x o) { x.InitializeTimeout = -1 }},
		"SettingSources":             {func(x o) { x.SettingSources = session.Only("users") }},
		"AdditionalDirectories[1]":   {func(x o) { x.AdditionalDirectories = []string{"/a", ""} }},
		"Plugins[0].Path":            {func(x o) { x.Plugins = []session.Plugin{{}} }},
		"Plugins[0].Type":            {func(x o) { x.Plugins = []session.Plugin{{Type: "git", Path: "p"}} }},
		"Settings":                   {func(x o) { x.Settings = json.RawMessage(`[1]`) }, func(x o) { x.Settings = json.RawMessage(`{`) }},
		"SettingsPath":               {func(x o) { x.Settings, x.SettingsPath = json.RawMessage(`{}`), "/s" }},
		"SystemPrompt":               {func(x o) { x.SystemPrompt = session.SystemPrompt{Preset: true, Blocks: []string{"a"}} }},
		"SystemPrompt.Append":        {func(x o) { x.SystemPrompt = session.SystemPrompt{Append: "a"} }},
		`Agents["a"].Description`:    {agent(session.AgentDefinition{Prompt: "p"})},
		`Agents["a"].Prompt`:         {agent(session.AgentDefinition{Description: "d"})},
		`Agents["a"].PermissionMode`: {agent(session.AgentDefinition{Description: "d", Prompt: "p", PermissionMode: "x"})},
		`Agents["a"].MaxTurns`:       {agent(session.AgentDefinition{Description: "d", Prompt: "p", MaxTurns: session.Some(0)})},
		`Agents["a"].MCPServers[0]`: {agent(session.AgentDefinition{Description: "d", Prompt: "p",
			MCPServers: []session.AgentMCPServer{{}}})},
		`Agents["a"].MCPServers[0].Command`: {agent(session.AgentDefinition{Description: "d", Prompt: "p",
			MCPServers: []session.AgentMCPServer{{Name: "x", Config: &session.MCPServerConfig{}}}})},
		`Agents["a"].MCPServers[0].Tools`: {agent(session.AgentDefinition{Description: "d", Prompt: "p",
			MCPServers: []session.AgentMCPServer{{Name: "x", Config: &session.MCPServerConfig{Command: "c", Tools: []session.MCPToolPolicy{{Name: "t"}}}}}})},
		`Agents[""]`: {func(x o) { x.Agents = map[string]session.AgentDefinition{"": good} }},
		"Agents": {
			func(x o) { agent(good)(x); x.Tools = session.None() },
			func(x o) { agent(good)(x); x.Tools = session.Only("Read") },
			func(x o) { agent(good)(x); x.DisallowedTools = []string{"Task"} }},
		`MCPServers["s"].Command`: {server(session.MCPServerConfig{}), server(session.MCPServerConfig{Type: "http", URL: "https://h", Command: "c"})},
		`MCPServers["s"].URL`: {server(session.MCPServerConfig{Command: "c", URL: "https://h"}), server(session.MCPServerConfig{Type: "sse"}),
			server(session.MCPServerConfig{Type: "http", URL: "ftp://h"}), server(session.MCPServerConfig{Type: "http", URL: "https://%zz"})},
		"MCPConfigPath":                 {func(x o) { server(session.MCPServerConfig{Command: "c"})(x); x.MCPConfigPath = "/mcp.json" }},
		`MCPServers["s"].Type`:          {server(session.MCPServerConfig{Type: "sdk"}), server(session.MCPServerConfig{Type: "ws"})},
		`MCPServers["s"].Tools[0].Name`: {server(session.MCPServerConfig{Command: "c", Tools: []session.MCPToolPolicy{{}}})},
		`MCPServers["s"].Tools[0].PermissionPolicy`: {
			server(session.MCPServerConfig{Command: "c", Tools: []session.MCPToolPolicy{{Name: "t", PermissionPolicy: "never"}}})},
		`MCPServers[""]`:                    {func(x o) { x.MCPServers = map[string]session.MCPServerConfig{"": {Command: "c"}} }},
		"MCPServers":                        {server(session.MCPServerConfig{Command: "c", Extra: map[string]json.RawMessage{"x": json.RawMessage(`{`)}})},
		"SDKMCPServers[0].Name":             {host(dialect.SDKMCPServer{})},
		"SDKMCPServers[1].Name":             {host(dialect.SDKMCPServer{Name: "a"}, dialect.SDKMCPServer{Name: "a"})},
		"SDKMCPServers[0].Timeout":          {host(dialect.SDKMCPServer{Name: "a", Timeout: -1})},
		"SDKMCPServers[0].InitializeResult": {host(dialect.SDKMCPServer{Name: "a", InitializeResult: json.RawMessage(`1`)})},
		"SDKMCPServers[0].ToolsListResult":  {host(dialect.SDKMCPServer{Name: "a", ToolsListResult: json.RawMessage(`[]`)})},
		"Hooks[0].Event":                    {hook(dialect.HookRegistration{CallbackIDs: []string{"h"}})},
		"Hooks[0].CallbackIDs":              {hook(dialect.HookRegistration{Event: "Stop"}), hook(dialect.HookRegistration{Event: "Stop", CallbackIDs: []string{"h", "h"}})},
		"Hooks[0].Timeout":                  {hook(dialect.HookRegistration{Event: "Stop", CallbackIDs: []string{"h"}, Timeout: -time.Second})},
		"ExperimentalCloudAgent": {func(x o) {
			x.ExperimentalCloudAgent = &session.CloudAgent{Session: session.CloudSession{ID: "s"}}
		}},
		"ExperimentalCloudAgent.Session": {cloud(session.CloudAgent{}),
			cloud(session.CloudAgent{Session: session.CloudSession{ID: "s", Create: made.Create}})},
		"ExperimentalCloudAgent.Agent": {
			cloud(session.CloudAgent{Session: made}),
			cloud(session.CloudAgent{Agent: &session.CloudAgentReference{ID: "a"}, Session: session.CloudSession{ID: "s"}}),
			cloud(session.CloudAgent{Agent: &session.CloudAgentReference{}, Session: made}),
			cloud(session.CloudAgent{Agent: &session.CloudAgentReference{ID: "a", Create: &session.CloudAgentCreate{Name: "n", Model: "auto"}}, Session: made})},
		"ExperimentalCloudAgent.Session.Create.EnvironmentID": {cloud(session.CloudAgent{
			Agent: &session.CloudAgentReference{ID: "a"}, Session: session.CloudSession{Create: &session.CloudSessionCreate{}}})},
		"ExperimentalCloudAgent.Agent.Create.Tools[0].EnabledTools": {create(session.CloudAgentCreate{Tools: []session.CloudToolset{{Type: "agent_toolset_20260401", EnabledTools: []string{"rm"}}}})},
		"ExperimentalCloudAgent.Agent.Create.Tools[0].Type":         {create(session.CloudAgentCreate{Tools: []session.CloudToolset{{}}})},
		"ExperimentalCloudAgent.Agent.Create.MCPServers[0].URL":     {create(session.CloudAgentCreate{MCPServers: []session.CloudMCPServer{{Type: "url", Name: "m", URL: "file:///x"}}})},
		"ExperimentalCloudAgent.Agent.Create.Skills[0].SkillID":     {create(session.CloudAgentCreate{Skills: []session.CloudSkill{{Type: "custom"}}})},
		"ExperimentalCloudAgent.Stream.DeltaFlushIntervalMs":        {cloud(session.CloudAgent{Session: session.CloudSession{ID: "s"}, Stream: &session.CloudStream{DeltaFlushIntervalMs: session.Some(-1)}})},
		"SystemPrompt.File": {func(x o) { x.SystemPrompt = session.SystemPrompt{File: "p"} },
			func(x o) { x.SystemPrompt = session.SystemPrompt{File: "p", Blocks: []string{"a"}} }},
		"UnsetEnv":   {func(x o) { x.Env, x.UnsetEnv = map[string]string{"A": "1"}, []string{"A"} }, func(x o) { x.UnsetEnv = []string{""} }},
		`Env["A=B"]`: {func(x o) { x.Env = map[string]string{"A=B": "1"} }},
		`Env["A"]`: {func(x o) { x.Env = map[string]string{"A": "\x00"} },
			func(x o) { x.Env = map[string]string{"A": strings.Repeat("a", 200_000)} }},
		`ExtraArgs["--model"]`: {func(x o) { x.ExtraArgs = map[string]session.Opt[string]{"--model": {}} }},
		`ExtraArgs["a b"]`:     {func(x o) { x.ExtraArgs = map[string]session.Opt[string]{"a b": {}} }},
		`ExtraArgs["model"]`:   {func(x o) { x.Model, x.ExtraArgs = "m", map[string]session.Opt[string]{"model": session.Some("n")} }},
		`ExtraArgs["permission-prompt-tool"]`: {func(x o) {
			x.CanUseTool, x.ExtraArgs = canUseTool, map[string]session.Opt[string]{"permission-prompt-tool": session.Some("x")}
		}},
		`ExtraArgs["output-format"]`: {func(x o) { x.ExtraArgs = map[string]session.Opt[string]{"output-format": session.Some("text")} }},
		`ExtraArgs["settings"]`:      {func(x o) { x.ExtraArgs = map[string]session.Opt[string]{"settings": session.Some("{}")} }},
	} {
		for name, d := range dialects() {
			for i, set := range cases {
				x := start(name)
				set(&x)
				_, err := d.Validate(&x)
				got := named(err)
				// A field that the backend lacks altogether is refused under its own name besides.
				assert.Contains(t, got, want, "%s, case %d: %v", name, i, err)
				assert.LessOrEqual(t, len(got), 2, "%s of %s, case %d: %v", want, name, i, err)
			}
		}
	}
}

func TestRulesThatAreFine(t *testing.T) {
	t.Parallel()
	o := dialect.Input{Options: session.Options{
		AllowedTools: []string{"Read", "Bash(git:*)", "Bash(a, b)", "Bash(echo (x))", `Bash(echo \))`, "mcp__s__*", "Bash()"},
		Tools:        session.Only("Read", "mcp__s__*"), Skills: session.Only("plugin:skill", "a skill"),
		Agents: map[string]session.AgentDefinition{"main": {Description: "d", Prompt: "p"}}, Agent: "main",
		PluginDelivery: session.DeliverInArgv, MCPServersDelivery: session.DeliverInArgv,
	}}
	o.Tools = session.Only("Read", "Skill") // no Agent tool: the only agent is the main session's
	for name, d := range dialects() {
		x := o
		x.Auth = start(name).Auth
		_, err := d.Validate(&x)
		assert.NoError(t, err, name)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	o := dialect.Input{Options: session.Options{
		CanUseTool: canUseTool, PermissionPromptToolName: "x", PermissionMode: protocol.ModeBypassPermissions,
		ResumeSessionAt: "m", MaxTurns: session.Some(-1), ResolveModel: resolveModel, Sandbox: &session.Sandbox{},
	}}
	for name, want := range map[string][]string{
		"claude": {"PermissionPromptToolName", "PermissionMode", "ResumeSessionAt", "ResolveModel"},
		"qoder":  {"PermissionPromptToolName", "PermissionMode", "ResumeSessionAt", "Sandbox", "MaxTurns", "Auth"},
	} {
		_, err := dialects()[name].Validate(&o)
		assert.Equal(t, want, named(err), name)
	}
}

func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	d := dialects()["claude"]
	for want, values := range map[string][]dialect.Input{
		"MaxBudgetUSD": {{Options: session.Options{MaxBudgetUSD: session.Some(0.0)}}, {Options: session.Options{MaxBudgetUSD: session.Some(-1.0)}},
			{Options: session.Options{MaxBudgetUSD: session.Some(math.NaN())}}, {Options: session.Options{MaxBudgetUSD: session.Some(math.Inf(1))}}},
		"TaskBudget":                          {{Options: session.Options{TaskBudget: session.Some(0)}}},
		"Thinking.Type":                       {{Options: session.Options{Thinking: &session.Thinking{Type: "deep"}}}},
		"OutputFormat.Type":                   {{Options: session.Options{OutputFormat: &session.OutputFormat{Schema: json.RawMessage(`{}`)}}}},
		"OutputFormat.Schema":                 {{Options: session.Options{OutputFormat: &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`[]`)}}}},
		"Betas":                               {{Options: session.Options{Betas: []string{"a,b"}}}},
		"PluginDelivery":                      {{Options: session.Options{PluginDelivery: "mail"}}},
		"MCPServersDelivery":                  {{Options: session.Options{MCPServersDelivery: "mail"}}},
		"ManagedSettings":                     {{Options: session.Options{ManagedSettings: json.RawMessage(`1`)}}},
		"SystemPrompt.ExcludeDynamicSections": {{Options: session.Options{SystemPrompt: session.SystemPrompt{ExcludeDynamicSections: true}}}},
		`MCPServers["s"].Timeout`:             {{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Timeout: -1}}}}},
		"Hooks[0].OnFailure":                  {{Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: "Stop", CallbackIDs: []string{"h"}, OnFailure: "shrug"}}}}},
	} {
		for _, o := range values {
			_, err := d.Validate(&o)
			assert.Contains(t, named(err), want, "%v", err)
		}
	}
}

func TestWhatHidesTheCallbackIsNamed(t *testing.T) {
	t.Parallel()
	hidden := func(o dialect.Input, name string) []string {
		warnings, err := dialects()[name].Validate(&o)
		require.NoError(t, err)
		var rules []string
		for _, w := range warnings {
			if w.Option == "CanUseTool" {
				rules = append(rules, w.Rule)
			}
		}
		return rules
	}
	o := dialect.Input{Options: session.Options{
		AllowedTools: []string{"Read", "Bash(git:*)"},
		Settings:     json.RawMessage(`{"permissions":{"allow":["WebFetch"]}}`),
		MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Tools: []session.MCPToolPolicy{
			{Name: "a", PermissionPolicy: session.AlwaysAllow}, {Name: "b", PermissionPolicy: session.AlwaysAsk}}}},
		PermissionMode: protocol.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
		ExtraArgs: map[string]session.Opt[string]{"dangerously-skip-permissions-x": {}},
	}}
	want := []string{"Read", "Bash(git:*)", "WebFetch", "mcp__s__a", "bypassPermissions"}
	for name := range dialects() {
		x := o
		x.Auth = start(name).Auth
		assert.Empty(t, hidden(x, name), "there is no callback to hide")
		x.CanUseTool = canUseTool
		assert.Equal(t, want, hidden(x, name), name)
		x.Policy = &policy.Rules{}
		assert.Empty(t, hidden(x, name), "the hook of the policy asks about these calls")
	}
	x := dialect.Input{Options: session.Options{CanUseTool: canUseTool, PermissionMode: protocol.ModeAcceptEdits, PermissionPrompts: "none",
		Sandbox:                         &session.Sandbox{Enabled: session.Some(true), AutoAllowBashIfSandboxed: session.Some(true)},
		SettingsPath:                    "/s",
		AllowDangerouslySkipPermissions: true,
		ExtraArgs:                       map[string]session.Opt[string]{"dangerously-skip-permissions": {}}}, Facts: dialect.Facts{SettingsContent: []byte(`{"permissions":{"allow":["Glob"]}}`)}}
	assert.Equal(t, []string{"Glob", "acceptEdits", "PermissionPrompts none", "Sandbox.AutoAllowBashIfSandboxed",
		`ExtraArgs["dangerously-skip-permissions"]`}, hidden(x, "claude"))
	x = dialect.Input{Options: session.Options{CanUseTool: canUseTool, PermissionMode: protocol.ModeDontAsk}}
	assert.Equal(t, []string{"dontAsk"}, hidden(x, "claude"))
	x.Policy, x.PermissionPrompts = &policy.Rules{}, "none"
	assert.Equal(t, []string{"dontAsk", "PermissionPrompts none"}, hidden(x, "claude"))
}

// Each option that may hide the callback has a warning, and each one that skips all
// permissions is an error without AllowDangerouslySkipPermissions.
func TestShadowsByTheirSource(t *testing.T) {
	t.Parallel()
	type o = *dialect.Input
	settings := map[string]func(o, string){
		"Settings":        func(x o, text string) { x.Settings = json.RawMessage(text) },
		"SettingsPath":    func(x o, text string) { x.SettingsPath, x.SettingsContent = "/s", []byte(text) },
		"ManagedSettings": func(x o, text string) { x.ManagedSettings = json.RawMessage(text) },
	}
	extra := func(key, value string) func(o) {
		return func(x o) {
			v := session.Some(value)
			if value == "" {
				v = session.Opt[string]{}
			}
			x.ExtraArgs = map[string]session.Opt[string]{key: v}
		}
	}
	agent := func(mode protocol.PermissionMode) func(o) {
		return func(x o) {
			x.Agents = map[string]session.AgentDefinition{"a": {Description: "d", Prompt: "p", PermissionMode: mode}}
		}
	}
	type row struct {
		set    func(o)
		warned string // the rule; empty: no warning
		error  string // the option that is wrong without AllowDangerouslySkipPermissions; empty: none
		denies bool   // a policy does not help
	}
	rows := map[string]row{
		"nothing":                 {func(o) {}, "", "", false},
		"extra skip":              {extra("dangerously-skip-permissions", ""), `ExtraArgs["dangerously-skip-permissions"]`, `ExtraArgs["dangerously-skip-permissions"]`, false},
		"extra bypass":            {extra("permission-mode", "bypassPermissions"), `ExtraArgs["permission-mode"] bypassPermissions`, `ExtraArgs["permission-mode"]`, false},
		"extra acceptEdits":       {extra("permission-mode", "acceptEdits"), `ExtraArgs["permission-mode"] acceptEdits`, "", false},
		"extra dontAsk":           {extra("permission-mode", "dontAsk"), `ExtraArgs["permission-mode"] dontAsk`, "", true},
		"extra plan":              {extra("permission-mode", "plan"), "", "", false},
		"extra allowedTools":      {extra("allowedTools", "Bash"), `ExtraArgs["allowedTools"] Bash`, "", false},
		"extra allowed-tools":     {extra("allowed-tools", "Bash"), `ExtraArgs["allowed-tools"] Bash`, "", false},
		"extra agents":            {extra("agents", `{"a":{"permissionMode":"bypassPermissions"}}`), `ExtraArgs["agents"] bypassPermissions`, `ExtraArgs["agents"]`, false},
		"agent bypassPermissions": {agent("bypassPermissions"), `Agents["a"].PermissionMode bypassPermissions`, `Agents["a"].PermissionMode`, false},
		"agent acceptEdits":       {agent("acceptEdits"), `Agents["a"].PermissionMode acceptEdits`, "", false},
		"agent default":           {agent("default"), "", "", false},
		"program's skip": {func(x o) { x.ExecutableArgs = []string{"--dangerously-skip-permissions"} },
			"ExecutableArgs --dangerously-skip-permissions", "ExecutableArgs", false},
		"program's mode": {func(x o) { x.ExecutableArgs = []string{"--permission-mode", "bypassPermissions"} },
			"ExecutableArgs bypassPermissions", "ExecutableArgs", false},
		"program's mode, joined": {func(x o) { x.ExecutableArgs = []string{"--permission-mode=acceptEdits"} }, "ExecutableArgs acceptEdits", "", false},
	}
	for option, set := range settings {
		for text, warned := range map[string]string{
			`{"permissions":{"defaultMode":"acceptEdits"}}`:                                                             option + ".permissions.defaultMode acceptEdits",
			`{"permissions":{"defaultMode":"default"}}`:                                                                 "",
			`{"general":{"defaultPermissionMode":"accept_edits"}}`:                                                      option + ".general.defaultPermissionMode acceptEdits",
			`{"Other":{"defaultMode":"acceptEdits"}}`:                                                                   "",
			`{"permissions":{"allow":["Bash"]}}`:                                                                        "Bash",
			`{"permissions":{"deny":["Bash"]}}`:                                                                         "",
			`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"c"}]}]}}`:                  option + ".hooks.PreToolUse",
			`{"hooks":{"PermissionRequest":[{"matcher":"Bash","hooks":[{"type":"command","command":"c"}]}]}}`:           option + ".hooks.PermissionRequest",
			`{"hooks":{"PreToolUse":[],"PostToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"c"}]}]}}`: "",
			`{"sandbox":{"enabled":true}}`:                                                                              option + ".sandbox.autoAllowBashIfSandboxed",
			`{"sandbox":{"autoAllowBashIfSandboxed":true}}`:                                                             option + ".sandbox.autoAllowBashIfSandboxed",
			`{"sandbox":{"enabled":true,"autoAllowBashIfSandboxed":false}}`:                                             "",
			`{"env":{"X":"1"}}`: "",
		} {
			rows[option+" "+text] = row{func(x o) { set(x, text) }, warned, "", false}
		}
		const mode = "bypassPermissions"
		at := option + ".permissions.defaultMode"
		rows[option+" "+mode] = row{func(x o) { set(x, `{"permissions":{"defaultMode":"`+mode+`","Mode":1}}`) }, at + " " + mode, at, false}
	}
	rows["Qoder's bypass_permissions"] = row{func(x o) { x.Settings = json.RawMessage(`{"general":{"defaultPermissionMode":"bypass_permissions"}}`) },
		"Settings.general.defaultPermissionMode bypassPermissions", "Settings.general.defaultPermissionMode", false}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := func(x dialect.Input) []string {
				_, err := dialects()["claude"].Validate(&x)
				var at []string
				for _, e := range session.ConfigErrors(err) {
					at = append(at, e.Option)
				}
				return at
			}
			warned := func(x dialect.Input) []string {
				warnings, err := dialects()["claude"].Validate(&x)
				require.NoError(t, err)
				var rules []string
				for _, w := range warnings {
					if w.Option == "CanUseTool" {
						rules = append(rules, w.Rule)
					}
				}
				return rules
			}
			var x dialect.Input
			r.set(&x)
			if r.error == "" {
				assert.Empty(t, refused(x))
			} else {
				assert.Equal(t, []string{r.error}, refused(x))
			}
			x.AllowDangerouslySkipPermissions = true
			assert.Empty(t, refused(x))
			assert.Empty(t, warned(x), "there is no callback to hide")
			var want []string
			if r.warned != "" {
				want = []string{r.warned}
			}
			x.CanUseTool = canUseTool
			assert.Equal(t, want, warned(x))
			x.Policy = &policy.Rules{}
			if !r.denies {
				want = nil
			}
			assert.Equal(t, want, warned(x), "the hook of the policy asks about calls that the agent allows")
		})
	}
}

func TestOtherWarnings(t *testing.T) {
	t.Parallel()
	warned := func(o dialect.Input, name string) []string {
		warnings, err := dialects()[name].Validate(&o)
		require.NoError(t, err)
		var options []string
		for _, w := range warnings {
			options = append(options, w.Option)
		}
		return options
	}
	assert.Equal(t, []string{"Continue"}, warned(dialect.Input{Options: session.Options{Continue: true, Resume: "r"}}, "claude"))
	assert.Equal(t, []string{"Skills"}, warned(dialect.Input{Options: session.Options{Skills: session.All(), Tools: session.Only("Read")}}, "claude"))
	assert.Equal(t, []string{"Skills"}, warned(dialect.Input{Options: session.Options{Skills: session.Only("pdf"), Tools: session.None()}}, "claude"))
	assert.Equal(t, []string{"OnUserDialog"}, warned(dialect.Input{Options: session.Options{OnUserDialog: onUserDialog}}, "claude"))
	rules := []string{"mcp__*__drop", "mcp__s__d*p*", "mcp__*"} // all of them work
	assert.Empty(t, warned(dialect.Input{Options: session.Options{DisallowedTools: rules}}, "claude"))
	warnings, err := dialects()["claude"].Validate(&dialect.Input{Options: session.Options{DisallowedTools: []string{"mcp__a.b__*.c*"}}})
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Equal(t, "write mcp__a_b__*_c*", warnings[0].Fix)
	assert.Equal(t, []string{`MCPServers["a.b"]`, "SDKMCPServers[1].Name"}, warned(dialect.Input{Options: session.Options{
		MCPServers: map[string]session.MCPServerConfig{"a b": {Command: "c"}, "a.b": {Command: "c"}, "a": {Command: "c"}},
	}, Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{{Name: "b"}, {Name: "a/b"}}}}, "claude"))
	q := start("qoder")
	q.DebugFile, q.IncludeHookEvents, q.ToolConfig = "/l", true, &session.ToolConfig{}
	q.Servers = []dialect.SDKMCPServer{{Name: "a", Timeout: time.Second}}
	got := warned(q, "qoder")
	slices.Sort(got)
	assert.Equal(t, []string{"DebugFile", "IncludeHookEvents", "SDKMCPServers[0].Timeout", "ToolConfig"}, got)
}

// A variable that the agent does not have stands in a server's texts as it is written, which is worth a warning.
func TestVariablesOfServersThatAreNotSet(t *testing.T) {
	t.Parallel()
	server := session.MCPServerConfig{Command: "${BIN}/srv", Args: []string{"--key", "${KEY}", "${KEY:-none}", "$KEY", "${EMPTY}"}, Env: map[string]string{"TOKEN": "Bearer ${TOKEN}"}}
	web := session.MCPServerConfig{Type: "http", URL: "https://${HOST}/mcp", Headers: map[string]string{"Authorization": "${AUTH}"}}
	x := dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"BIN=/bin", "TOKEN=t", "EMPTY="}}}
	x.MCPServers = map[string]session.MCPServerConfig{"s": server, "w": web}
	x.Agents = map[string]session.AgentDefinition{"a": {Description: "d", Prompt: "p", MCPServers: []session.AgentMCPServer{{Name: "o", Config: &session.MCPServerConfig{Command: "${OTHER}"}}}}}
	x.Env = map[string]string{"HOST": "h"}
	x.UnsetEnv = []string{"TOKEN"}
	unset := func(x *dialect.Input) (told []string) {
		for _, d := range dialects() {
			warnings, _ := d.Validate(x) // qodercli has no login here
			for _, w := range warnings {
				if strings.Contains(w.Problem, "is not set in the agent's environment") {
					told = append(told, d.Name()+" "+w.Option+" "+w.Rule)
				}
			}
		}
		return told
	}
	var want []string
	for _, d := range dialects() {
		for _, at := range []string{`MCPServers["s"].Args[1] ${KEY}`, `MCPServers["s"].Env["TOKEN"] ${TOKEN}`, `MCPServers["w"].Headers["Authorization"] ${AUTH}`, `Agents["a"].MCPServers[0].Command ${OTHER}`} {
			want = append(want, d.Name()+" "+at)
		}
	}
	assert.ElementsMatch(t, want, unset(&x))
	x.Spawner = elsewhere{}
	assert.Empty(t, unset(&x), "what an agent has elsewhere is not known")
}

// elsewhere is a spawner that starts nothing.
type elsewhere struct{}

func (elsewhere) Spawn(context.Context, session.Command) (session.Process, error) {
	return nil, errors.New("nothing is started")
}
