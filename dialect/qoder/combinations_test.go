package qoder_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestOptionsThatMeet is what options make together, where that is more than each makes alone.
func TestOptionsThatMeet(t *testing.T) {
	t.Parallel()
	type o = dialect.Input
	read := session.Only("Read")
	for name, c := range map[string]struct {
		o    o
		argv []string
	}{
		"a skill that is allowed anyway": {o{Options: session.Options{Tools: read, AllowedTools: []string{"Skill(a)", "Read"}, Skills: session.Only("a", "b")}},
			[]string{"--allowed-tools", "Skill(a)", "--allowed-tools", "Read", "--allowed-tools", "Skill(b)", "--tools", "Read", "--disable-builtin-skills"}},
		"yolo hides the flag": {o{Options: session.Options{Tools: read, PermissionMode: protocol.ModeYolo, AllowDangerouslySkipPermissions: true, IncludePartialMessages: true}},
			[]string{"--yolo", "--include-partial-messages", "--tools", "Read", "--disable-builtin-skills"}},
		"everything about the session": {o{Options: session.Options{Tools: read, Resume: uuid1, SessionID: uuid2, ResumeSessionAt: uuid3, ResumeDropsTurn: uuid4, ForkSession: true}, Facts: dialect.Facts{HasSessionStore: true}},
			[]string{"--session-mirror", "--resume", uuid1, "--resume-session-at=" + uuid3, "--resume-drops-turn=" + uuid4, "--session-id", uuid2, "--tools", "Read", "--disable-builtin-skills", "--fork-session"}},
		"the order of the rest": {o{Options: session.Options{Tools: read, Model: "m", Proxy: "http://p:1", Agent: "a", Debug: true, Continue: true,
			PermissionMode: protocol.ModePlan, AllowDangerouslySkipPermissions: true, DisallowedTools: []string{"Bash(a, b)"}, CanUseTool: canUseTool,
			Extensions: []string{"e"}, MCPConfigPath: "/m.json", AllowedMCPServerNames: []string{"x", "y"}, StrictMCPConfig: true,
			SettingsPath: "/s.json", SettingSources: session.Only("user"), MaxTurns: session.Some(3), Plugins: []session.Plugin{{Path: "/p"}},
			PersistSession: session.Some(false), ExtraArgs: map[string]session.Opt[string]{"n": session.Some("-5")}}},
			[]string{"--no-session-persistence", "--model", "m", "--proxy", "http://p:1", "--agent", "a", "--debug", "--continue",
				"--permission-mode", "plan", "--dangerously-skip-permissions", "--disallowed-tools", "Bash(a, b)", "--tools", "Read",
				"--permission-prompt-tool", "stdio", "--extensions", "e", "--mcp-config", "/m.json",
				"--allowed-mcp-server-names", "x", "--allowed-mcp-server-names", "y", "--strict-mcp-config",
				"--settings", "/s.json", "--setting-sources", "user", "--disable-builtin-skills", "--max-turns", "3", "--plugin-dir", "/p", "--n=-5"}},
		"values with a dash": {o{Options: session.Options{Tools: read, Resume: "--yolo", Model: "-m", Agent: "--debug"}},
			[]string{"--model=-m", "--agent=--debug", "--resume=--yolo", "--tools", "Read", "--disable-builtin-skills"}},
		"everything that is merged": {o{Options: session.Options{Tools: read, AdditionalDirectories: []string{"/a", "/b"}, EnableFileCheckpointing: session.Some(true),
			SecurityScan: &session.SecurityScan{L2LightweightScan: true},
			Settings:     json.RawMessage(`{"permissions":{"allow":["Read"],"additionalDirectories":["/b"],"defaultMode":"dontAsk"}}`),
			MCPServers:   map[string]session.MCPServerConfig{"s": {Type: "http", URL: "https://h", Tools: []session.MCPToolPolicy{{Name: "t", PermissionPolicy: session.AlwaysAllow}}}}}},
			[]string{"--tools", "Read", "--mcp-config", `{"mcpServers":{"s":{"type":"http","url":"https://h"}}}`,
				"--settings", `{"general":{"defaultPermissionMode":"dont_ask","fileCheckpointing":{"enabled":true}},"permissions":{"additionalDirectories":["/b","/a"],"allow":["Read","mcp__s__t"],"ask":[],"defaultMode":"dontAsk","deny":[]},"securityScan":{"l1StaticCheck":false,"l2LightweightScan":true,"l3DeepScan":false}}`,
				"--disable-builtin-skills", "--add-dir", "/a", "--add-dir", "/b"}},
	} {
		l := launch(t, c.o)
		assert.Equal(t, canonical(c.argv), canonical(l.Args[5:]), name)
	}
}

func TestTooManyRulesGoToTheSettings(t *testing.T) {
	t.Parallel()
	var rules []string
	for i := range 20_000 {
		rules = append(rules, fmt.Sprintf("Bash(%d:*)", i))
	}
	l := launch(t, dialect.Input{Options: session.Options{AllowedTools: rules, DisallowedTools: []string{"Write"}, Skills: session.Only("pdf")}})
	assert.NotContains(t, l.Args, "--allowed-tools")
	assert.NotContains(t, l.Args, "--disallowed-tools")
	var doc struct {
		Permissions struct{ Allow, Deny []string }
	}
	require.NoError(t, json.Unmarshal([]byte(file(t, l, "settings.json")), &doc))
	assert.Equal(t, append(rules, "Skill(pdf)"), doc.Permissions.Allow)
	assert.Equal(t, []string{"Write"}, doc.Permissions.Deny)
}

func TestAgentsThatCannotBeCalled(t *testing.T) {
	t.Parallel()
	def := session.AgentDefinition{Description: "d", Prompt: "p"}
	starts := def
	starts.Tools = session.Only("Read", "Agent")
	o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}, Agents: map[string]session.AgentDefinition{"a": starts}}}
	_, err := qoder.New().Validate(&o)
	require.Len(t, session.ConfigErrors(err), 1)
	assert.Equal(t, `Agents["a"].Tools`, session.ConfigErrors(err)[0].Option)

	for name, c := range map[string]struct {
		set  func(*dialect.Input)
		want int
	}{
		"nobody allows it":   {func(*dialect.Input) {}, 1},
		"a rule":             {func(o *dialect.Input) { o.AllowedTools = []string{"Agent"} }, 0},
		"a rule for one":     {func(o *dialect.Input) { o.AllowedTools = []string{"Agent(a)"} }, 0},
		"a callback":         {func(o *dialect.Input) { o.CanUseTool = canUseTool }, 0},
		"a tool":             {func(o *dialect.Input) { o.PermissionPromptToolName = "mcp__a__b" }, 0},
		"the main session's": {func(o *dialect.Input) { o.Agent = "a" }, 0},
	} {
		o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}, Agents: map[string]session.AgentDefinition{"a": def}}}
		c.set(&o)
		warnings, err := qoder.New().Validate(&o)
		require.NoError(t, err, name)
		assert.Len(t, warnings, c.want, name)
	}
}

func TestQoderCLIHasNoCloudAgent(t *testing.T) {
	t.Parallel()
	o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}}}
	doc := `{"agent":{"create":{"model":"auto","name":"n","description":null,"tools":[{"type":"agent_toolset_20260401","enabled_tools":["bash"]}],
		"mcp_servers":[{"name":"m","type":"url","url":"https://h"}],"skills":[{"skill_id":"s","type":"custom"}],"metadata":{"k":"v"}}},
		"session":{"create":{"environment_id":"e","resources":[{"type":"file","file_id":"f"}],"title":"t","vault_ids":[],"memory_store_ids":["m"]}},
		"stream":{"afterId":"a","deltaFlushIntervalMs":0}}`
	require.NoError(t, json.Unmarshal([]byte(doc), &o.ExperimentalCloudAgent))
	_, err := qoder.New().Validate(&o)
	require.Len(t, session.ConfigErrors(err), 1, "%v", err)
	require.ErrorContains(t, err, "the agent is in the cloud")
	assert.Equal(t, "ExperimentalCloudAgent", session.ConfigErrors(err)[0].Option)
	assert.Equal(t, "qoder", session.ConfigErrors(err)[0].Backend)
}

// TestSettingsInTheAgentsOwnWords is what the vendor's SDK (1.0.39) makes of settings that Claude Code would read.
func TestSettingsInTheAgentsOwnWords(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"permissions":{"defaultMode":"acceptEdits"}}`:                                              `{"permissions":{"defaultMode":"acceptEdits"},"general":{"defaultPermissionMode":"accept_edits"}}`,
		`{"permissions":{"defaultMode":"bypass_permissions"}}`:                                       `{"permissions":{"defaultMode":"bypass_permissions"},"general":{"defaultPermissionMode":"bypass_permissions"}}`,
		`{"permissions":{"defaultMode":"odd"}}`:                                                      `{"permissions":{"defaultMode":"odd"},"general":{}}`,
		`{"permissions":{"disableBypassPermissionsMode":"disable"}}`:                                 `{"permissions":{"disableBypassPermissionsMode":"disable"},"security":{"disableYoloMode":true}}`,
		`{"security":{"x":1},"permissions":{"disableBypassPermissionsMode":"disable"}}`:              `{"security":{"x":1,"disableYoloMode":true},"permissions":{"disableBypassPermissionsMode":"disable"}}`,
		`{"permissions":{"disableBypassPermissionsMode":"enable"}}`:                                  `{"permissions":{"disableBypassPermissionsMode":"enable"}}`,
		`{"permissions":{"defaultMode":"plan"},"general":{"defaultPermissionMode":"auto","x":[{}]}}`: `{"permissions":{"defaultMode":"plan"},"general":{"defaultPermissionMode":"auto","x":[{}]}}`,
	} {
		l := launch(t, dialect.Input{Options: session.Options{AllowDangerouslySkipPermissions: true, Settings: json.RawMessage(given)}})
		arg := after(l.Args, "--settings")
		if arg == dialect.FileRef("settings.json") {
			arg = file(t, l, "settings.json")
		}
		assert.Equal(t, want, arg)
	}
	assert.NotContains(t, launch(t, dialect.Input{Options: session.Options{Settings: json.RawMessage(`{}`)}}).Args, "--settings")
}

// TestRulesOfTools is how the vendor's SDK (1.0.39) spells a rule for a tool, and with other letters the agent itself.
func TestRulesOfTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, tool, rule string }{
		{"a b", "t", "mcp__a_b__t"}, {"w.x/y", "a.b", "mcp__w_x_y__a_b"}, {"s", "a__b", "mcp__s__a_b"}, {"s", "_x_", "mcp__s__x"},
		{"s", "*", "mcp__s__*"}, {"s", "mcp__q__r s", "mcp__q__r s"}, {"s-1", "ü-T", "mcp__s-1__-T_7a2f7cd2be46"},
		{"数据", "*", "mcp__u_5440f7424f28__*"},
	} {
		l := launch(t, dialect.Input{Options: session.Options{MCPServers: map[string]session.MCPServerConfig{c.server: {Command: "c",
			Tools: []session.MCPToolPolicy{{Name: c.tool, PermissionPolicy: session.AlwaysDeny}}}}}})
		assert.JSONEq(t, `{"permissions":{"allow":[],"ask":[],"deny":["`+c.rule+`"]}}`, after(l.Args, "--settings"))
	}
}

func TestMemoryThatCannotBe(t *testing.T) {
	t.Parallel()
	some, num := session.Some[bool], session.Some[int]
	memory := func(m session.Memory) dialect.Input { return dialect.Input{Options: session.Options{Memory: &m}} }
	generation := func(g session.MemoryGeneration) dialect.Input {
		return memory(session.Memory{Mode: "custom", Generation: &g})
	}
	consumption := func(c session.MemoryConsumption) dialect.Input {
		return memory(session.Memory{Mode: "custom", Consumption: &c})
	}
	skill := func(mode string, g session.SkillGeneration) dialect.Input {
		return dialect.Input{Options: session.Options{Evolution: &session.Evolution{Skill: &session.SkillEvolution{Mode: mode, Generation: &g}}}}
	}
	review := dialect.Input{Options: session.Options{Evolution: &session.Evolution{Skill: &session.SkillEvolution{Mode: "native"}}, ShouldReviewSkills: turnGate}}
	for want, all := range map[string][]dialect.Input{
		"Memory.Mode":                                    {memory(session.Memory{Mode: "odd"})},
		"Memory.Generation":                              {memory(session.Memory{Mode: "native", Generation: &session.MemoryGeneration{}})},
		"Memory.Consumption":                             {memory(session.Memory{Mode: "native", Consumption: &session.MemoryConsumption{}})},
		"ShouldGenerateMemory":                           {{Options: session.Options{Memory: &session.Memory{Mode: "native"}, ShouldGenerateMemory: turnGate}}},
		"Memory.UserScope":                               {memory(session.Memory{Mode: "native", ProjectScope: some(false), UserScope: some(false)})},
		"Memory.Generation.TurnComplete.Enabled":         {generation(session.MemoryGeneration{Enabled: some(false), TurnComplete: &session.TurnComplete{Enabled: some(true)}})},
		"Memory.Generation.TurnComplete.ReviewThreshold": {generation(session.MemoryGeneration{TurnComplete: &session.TurnComplete{ReviewThreshold: num(2)}})},
		"Memory.Generation.TurnComplete.Timeout":         {generation(session.MemoryGeneration{TurnComplete: &session.TurnComplete{Timeout: -1}})},
		"Memory.Generation.TurnComplete.OnGateError":     {generation(session.MemoryGeneration{TurnComplete: &session.TurnComplete{OnGateError: "odd"}})},
		"Memory.Generation.Roots[0].ID":                  {generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{Path: "/p"}}})},
		"Memory.Generation.Roots[0].Path":                {generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a"}}})},
		"Memory.Generation.Roots[1].ID":                  {generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a", Path: "/p"}, {ID: "a", Path: "/q"}}})},
		"Memory.Generation.Roots[0].Access":              {generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a", Path: "/p", Access: "write"}}})},
		"Memory.Generation.Roots[0].IndexFile": {generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a", Path: "/p", IndexFile: "/i"}}}),
			generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a", Path: "/p", IndexFile: `b\..\c`}}})},
		"Memory.Consumption.Files[0].ID":                          {consumption(session.MemoryConsumption{Files: []session.MemoryFile{{Path: "/p"}}})},
		"Memory.Consumption.MaxTokens":                            {consumption(session.MemoryConsumption{MaxTokens: num(0)})},
		"Memory.Consumption.Overflow":                             {consumption(session.MemoryConsumption{Overflow: "odd"})},
		"Memory.Consumption.FailureMode":                          {consumption(session.MemoryConsumption{FailureMode: "odd"})},
		"Evolution.Skill.Mode":                                    {skill("odd", session.SkillGeneration{})},
		"ShouldReviewSkills":                                      {review},
		"Evolution.Skill.Generation":                              {skill("native", session.SkillGeneration{Prompt: "p"}), skill("native", session.SkillGeneration{TurnComplete: &session.TurnComplete{Enabled: some(true)}})},
		"Evolution.Skill.Generation.MaxSuggestions":               {skill("custom", session.SkillGeneration{MaxSuggestions: num(11)})},
		"Evolution.Skill.Generation.TurnComplete.ReviewThreshold": {skill("native", session.SkillGeneration{TurnComplete: &session.TurnComplete{ReviewThreshold: num(0)}})},
		"Evolution.Skill.Generation.TurnComplete.Enabled":         {skill("custom", session.SkillGeneration{Enabled: some(false), TurnComplete: &session.TurnComplete{}})},
	} {
		for _, o := range all {
			o.Auth = &session.Auth{Type: session.AuthQoderCLI}
			_, err := qoder.New().Validate(&o)
			require.Len(t, session.ConfigErrors(err), 1, "%s: %v", want, err)
			assert.Equal(t, want, session.ConfigErrors(err)[0].Option)
		}
	}
	fine := generation(session.MemoryGeneration{Roots: []session.MemoryRoot{{ID: "a", Path: "/p", Access: "read-write", IndexFile: "sub/i.md"}}})
	fine.Auth = &session.Auth{Type: session.AuthQoderCLI}
	_, err := qoder.New().Validate(&fine)
	require.NoError(t, err)
}

func TestToolsThatCannotBeShown(t *testing.T) {
	t.Parallel()
	for want, tool := range map[string]session.MCPToolPolicy{
		"ExposedName":      {Name: "t", ExposedName: "x"},
		"ExposedName ":     {Name: "t", ExposedName: "x y", AlwaysLoad: true},
		"ExposedName  ":    {Name: "t", ExposedName: "mcp_call", AlwaysLoad: true},
		"PermissionPolicy": {Name: "...", PermissionPolicy: session.AlwaysAsk},
	} {
		o := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: session.AuthQoderCLI}, MCPServers: map[string]session.MCPServerConfig{"s": {Command: "c", Tools: []session.MCPToolPolicy{tool}}}}}
		_, err := qoder.New().Validate(&o)
		require.Len(t, session.ConfigErrors(err), 1, "%s: %v", want, err)
		assert.Equal(t, `MCPServers["s"].Tools[0].`+strings.TrimSpace(want), session.ConfigErrors(err)[0].Option)
	}
}
