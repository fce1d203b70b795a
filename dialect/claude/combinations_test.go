package claude_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/session"
)

// TestOptionsThatMeet is what options make together, where that is more than each makes alone.
func TestOptionsThatMeet(t *testing.T) {
	t.Parallel()
	type o = dialect.Input
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	some := session.Some[bool]
	disabled := session.Thinking{Type: session.ThinkingDisabled, Display: "omitted"}
	remote := map[string]session.MCPServerConfig{"r": {Type: "http", URL: "https://h", Tools: []session.MCPToolPolicy{{Name: "t", PermissionPolicy: session.AlwaysDeny}}}}
	for name, c := range map[string]struct {
		o    o
		argv []string
	}{
		"no limit":                      {o{Options: session.Options{MaxTurns: session.Some(0)}}, nil},
		"disabled thinking has no form": {o{Options: session.Options{Thinking: &disabled}}, []string{"--thinking=disabled"}},
		"the newer form wins":           {o{Options: session.Options{MaxThinkingTokens: session.Some(0), Thinking: &session.Thinking{Type: "adaptive"}}}, []string{"--thinking=adaptive"}},
		"a fraction":                    {o{Options: session.Options{MaxBudgetUSD: session.Some(1e-7)}}, []string{"--max-budget-usd=1e-7"}},
		"a whole millisecond":           {o{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Timeout: 1500 * time.Microsecond}}}}, []string{"--mcp-config", `{"mcpServers":{"s":{"command":"c","timeout":2}}}`}},
		"budget and display": {o{Options: session.Options{Thinking: &session.Thinking{Type: "enabled", BudgetTokens: session.Some(7), Display: "omitted"}, Effort: "max"}},
			[]string{"--max-thinking-tokens=7", "--thinking-display=omitted", "--effort=max"}},
		"a skill that is allowed anyway": {o{Options: session.Options{AllowedTools: []string{"Skill(a)", "Read"}, Skills: session.Only("a", "b c")}},
			[]string{"--allowedTools=Skill(a),Read,Skill(b c)"}},
		"skills that are allowed anyway":   {o{Options: session.Options{AllowedTools: []string{"Skill"}, Skills: session.All()}}, []string{"--allowedTools=Skill"}},
		"no skills, no tools, no sources":  {o{Options: session.Options{Skills: session.None(), Tools: session.None(), SettingSources: session.None()}}, []string{"--tools=", "--setting-sources="}},
		"skills with a narrow set":         {o{Options: session.Options{Skills: session.Only("a"), Tools: session.Only("Skill", "Read")}}, []string{"--allowedTools=Skill(a)", "--tools=Skill,Read"}},
		"everything":                       {o{Options: session.Options{Tools: session.All(), SettingSources: session.All()}}, []string{"--tools=default", "--setting-sources=user,project,local"}},
		"a file says where to debug":       {o{Options: session.Options{Debug: true, DebugFile: "/d"}}, []string{"--debug-file=/d"}},
		"where the work is":                {o{Options: session.Options{ProjectConfigRoot: "/p", AdditionalDirectories: []string{"/a"}, IncludePartialMessages: true}}, []string{"--include-partial-messages", "--project-config-root=/p", "--add-dir=/a"}},
		"a session store":                  {o{Options: session.Options{IncludePartialMessages: true, AdditionalDirectories: []string{"/a"}}, Facts: dialect.Facts{HasSessionStore: true}}, []string{"--include-partial-messages", "--session-mirror", "--add-dir=/a"}},
		"a plugin in initialize, dirs":     {o{Options: session.Options{Plugins: []session.Plugin{{Path: "/p"}}, PluginDelivery: session.DeliverInInitialize, AdditionalDirectories: []string{"/a"}, ForkSession: true, Continue: true}}, []string{"--continue", "--add-dir=/a", "--await-initialize", "--fork-session"}},
		"values with a dash":               {o{Options: session.Options{ExtraArgs: map[string]session.Opt[string]{"n": session.Some("-5"), "d": session.Some("-"), "e": session.Some("")}}}, []string{"--d", "-", "--e", "", "--n=-5"}},
		"rules, then modes":                {o{Options: session.Options{PermissionMode: "bypassPermissions", AllowDangerouslySkipPermissions: true, FallbackModel: "f", StrictMCPConfig: true}}, []string{"--strict-mcp-config", "--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions", "--fallback-model=f"}},
		"fork under an id":                 {o{Options: session.Options{Resume: uuidA, ForkSession: true, SessionID: uuidB, ResumeSessionAt: uuidC, ResumeDropsTurn: uuidD}}, []string{"--resume=" + uuidA, "--fork-session", "--resume-session-at=" + uuidC, "--resume-drops-turn=" + uuidD, "--session-id=" + uuidB}},
		"a path and a path":                {o{Options: session.Options{MCPConfigPath: "/m.json", SettingsPath: "/s.json", ManagedSettings: raw(`{"model":"x"}`)}}, []string{"--mcp-config", "/m.json", "--managed-settings", `{"model":"x"}`, "--settings", "/s.json"}},
		"a remote server with a policy":    {o{Options: session.Options{MCPServers: remote}}, []string{"--mcp-config", `{"mcpServers":{"r":{"tools":[{"name":"t","permission_policy":"always_deny"}],"type":"http","url":"https://h"}}}`, "--settings", `{"permissions":{"allow":[],"ask":[],"deny":["mcp__r__t"]}}`}},
		"a sandbox":                        {o{Options: session.Options{Sandbox: &session.Sandbox{Enabled: some(true)}}}, []string{"--settings", `{"sandbox":{"enabled":true,"failIfUnavailable":true}}`}},
		"a sandbox that may be missing":    {o{Options: session.Options{Sandbox: &session.Sandbox{Enabled: some(true), FailIfUnavailable: some(false)}}}, []string{"--settings", `{"sandbox":{"enabled":true,"failIfUnavailable":false}}`}},
		"a sandbox that is off":            {o{Options: session.Options{Sandbox: &session.Sandbox{Enabled: some(false)}}}, []string{"--settings", `{"sandbox":{"enabled":false}}`}},
		"a sandbox that says nothing much": {o{Options: session.Options{Sandbox: &session.Sandbox{Network: &session.SandboxNetwork{AllowLocalBinding: some(false)}}}}, []string{"--settings", `{"sandbox":{"network":{"allowLocalBinding":false}}}`}},
	} {
		l := launch(t, c.o)
		assert.Equal(t, compactArgs(c.argv), compactArgs(l.Args[5:]), name)
	}
}

// TestSandboxIsMergedIntoTheSettings is the merge of the vendor's SDK: objects by key, denials joined, the rest replaced.
func TestSandboxIsMergedIntoTheSettings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/feature/Sandbox-Config")
	some := session.Some[bool]
	box := &session.Sandbox{
		Enabled: some(true), ExcludedCommands: []string{"docker"},
		Network:          &session.SandboxNetwork{AllowedDomains: []string{"b"}, DeniedDomains: []string{"x", "z"}, SOCKSProxyPort: session.Some(2)},
		Filesystem:       &session.SandboxFilesystem{DenyRead: []string{"/b"}, AllowWrite: []string{"/w"}},
		IgnoreViolations: map[string][]string{"file": {"/tmp"}},
	}
	settings := `{"model":"m","sandbox":{"enabled":false,"failIfUnavailable":false,"excludedCommands":["make"],"other":1,
		"network":{"allowedDomains":["a"],"deniedDomains":["x","y"],"httpProxyPort":1,"socksProxyPort":1},
		"filesystem":{"disabled":true,"denyRead":["/a"],"denyWrite":["/c"],"allowWrite":["/v"]},"ignoreViolations":{"network":["h"]}}}`
	want := `{"model":"m","sandbox":{"enabled":true,"failIfUnavailable":false,"excludedCommands":["docker"],"other":1,
		"network":{"allowedDomains":["b"],"deniedDomains":["x","y","z"],"socksProxyPort":2},
		"filesystem":{"denyRead":["/a","/b"],"denyWrite":["/c"],"allowWrite":["/w"]},"ignoreViolations":{"network":["h"],"file":["/tmp"]}}}`
	inline := launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(settings), Sandbox: box}})
	assert.JSONEq(t, want, file(t, inline, "settings.json"), "settings with unknown keys can hold a credential")
	read := launch(t, dialect.Input{Options: session.Options{SettingsPath: "/s", Sandbox: box}, Facts: dialect.Facts{SettingsContent: []byte(settings)}})
	assert.JSONEq(t, want, file(t, read, "settings.json"))

	hidden := launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"z":1,"sandbox":{"filesystem":{"disabled":true},"credentials":{"files":[{"path":"/c","mode":"deny"}]}},"a":2}`),
		Sandbox: &session.Sandbox{Credentials: &session.SandboxCredentials{Files: []session.SandboxCredential{{Path: "/c", Mode: "deny"}}}}}})
	want = `{"z":1,"sandbox":{"filesystem":{},"credentials":{"files":[{"path":"/c","mode":"deny"},{"path":"/c","mode":"deny"}]}},"a":2}`
	assert.Equal(t, []byte(want), []byte(file(t, hidden, "settings.json")), "in the order given; a file that is hidden confines files")

	_, err := claude.New().Launch(&dialect.Input{Options: session.Options{Settings: json.RawMessage(`{"sandbox":true}`), Sandbox: &session.Sandbox{Enabled: some(false)}}})
	assert.ErrorContains(t, err, "sandbox is a boolean, and has to be an object")
}

func TestVariablesOfTheDocuments(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/env/DEBUG_CLAUDE_AGENT_SDK", "claude/env/CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS")
	value := func(l dialect.Launch, name string) string {
		for _, v := range l.Env {
			if v.Name == name {
				return v.Value
			}
		}
		return ""
	}
	for v, want := range map[string]string{"1": "1", "true": "1", "0": "", "": ""} {
		l := launch(t, dialect.Input{Facts: dialect.Facts{ParentEnv: []string{"DEBUG_CLAUDE_AGENT_SDK=" + v, "DEBUG=express:*"}}})
		assert.Equal(t, want, value(l, "DEBUG"), v)
		assert.Equal(t, want == "", slices.Contains(l.Unset, "DEBUG"), v)
	}
	host := dialect.Input{Facts: dialect.Facts{Servers: []dialect.SDKMCPServer{inproc()}}}
	assert.Contains(t, initialize(t, host), "sdkMcpServerManifests")
	host.ParentEnv = []string{"CLAUDE_AGENT_SDK_DISABLE_MCP_MANIFESTS=1"}
	assert.NotContains(t, initialize(t, host), "sdkMcpServerManifests", "the agent asks the server itself")
	assert.Contains(t, initialize(t, host), "sdkMcpServers")
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	def := session.AgentDefinition{Description: "d", Prompt: "p"}
	starts, asks, main := def, def, def
	starts.Tools, asks.InitialPrompt, main.InitialPrompt, main.Tools = session.Only("Agent(x)"), "go", "go", session.Only("Agent")
	asks.Effort = "huge"
	o := dialect.Input{Options: session.Options{Agent: "main", MaxTurns: session.Some(0), Effort: "hard",
		Agents: map[string]session.AgentDefinition{"starts": starts, "asks": asks, "main": main}}}
	warnings, err := claude.New().Validate(&o)
	require.NoError(t, err)
	var about []string
	for _, w := range warnings {
		about = append(about, w.Option)
	}
	assert.Equal(t, []string{`Agents["asks"].InitialPrompt`, "MaxTurns", `Agents["starts"].Tools`, `Agents["asks"].Effort`, "Effort"}, about)
}

// Claude Code 2.1.329 starts with each of these (observed).
func TestWhatTheAgentStartsWith(t *testing.T) {
	t.Parallel()
	thinking := func(kind string, budget int) session.Options {
		return session.Options{Thinking: &session.Thinking{Type: kind, BudgetTokens: session.Some(budget)}}
	}
	for _, c := range []struct {
		o            session.Options
		option, argv string
	}{
		{session.Options{ForkSession: true}, "ForkSession", "--fork-session"},
		{session.Options{MaxTurns: session.Some(-1)}, "MaxTurns", "--max-turns=-1"},
		{session.Options{MaxThinkingTokens: session.Some(-5)}, "MaxThinkingTokens", "--max-thinking-tokens=-5"},
		{thinking("enabled", 0), "Thinking.BudgetTokens", "--max-thinking-tokens=0"},
		{thinking("enabled", -1), "Thinking.BudgetTokens", "--max-thinking-tokens=-1"},
		{thinking("adaptive", 9), "Thinking.BudgetTokens", "--thinking=adaptive"},
		{session.Options{MaxBudgetUSD: session.Some(1e21)}, "", "--max-budget-usd=1e+21"},
		{thinking("enabled", 9), "", "--max-thinking-tokens=9"},
		{session.Options{MaxTurns: session.Some(1), ForkSession: true, Continue: true}, "", "--fork-session"},
	} {
		l, err := claude.New().Launch(&dialect.Input{Options: c.o})
		require.NoError(t, err, c.argv)
		assert.Contains(t, l.Args, c.argv)
		if c.option == "" {
			assert.Empty(t, l.Warnings)
		} else if assert.Len(t, l.Warnings, 1, c.argv) {
			assert.Equal(t, c.option, l.Warnings[0].Option)
		}
	}
}

func TestOptionsThatCannotMeet(t *testing.T) {
	t.Parallel()
	def := session.AgentDefinition{Description: "d", Prompt: "p"}
	main := def
	main.Tools = session.Only("Read")
	for option, o := range map[string]dialect.Input{
		"FallbackModel":            {Options: session.Options{Model: "m", FallbackModel: "m"}},
		"EnableFileCheckpointing":  {Options: session.Options{EnableFileCheckpointing: session.Some(true)}, Facts: dialect.Facts{HasSessionStore: true}},
		`Sandbox.Extra["ripgrep"]`: {Options: session.Options{Sandbox: &session.Sandbox{Extra: map[string]json.RawMessage{"ripgrep": json.RawMessage(`{}`), "new": json.RawMessage(`1`)}}}},
		"Thinking.Display":         {Options: session.Options{Thinking: &session.Thinking{Type: "adaptive", Display: "full"}}},
		"Agents":                   {Options: session.Options{Agent: "main", Agents: map[string]session.AgentDefinition{"main": main, "sub": def}}},
		"ExperimentalCloudAgent":   {Options: session.Options{ExperimentalCloudAgent: &session.CloudAgent{Session: session.CloudSession{ID: "s"}}}},
	} {
		_, err := claude.New().Validate(&o)
		require.Len(t, session.ConfigErrors(err), 1, "%s: %v", option, err)
		assert.Equal(t, option, session.ConfigErrors(err)[0].Option)
		assert.Equal(t, "claude", session.ConfigErrors(err)[0].Backend)
	}
}
