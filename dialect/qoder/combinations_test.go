package qoder_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
)

// TestOptionsThatMeet is what options make together, where that is more than each makes alone.
func TestOptionsThatMeet(t *testing.T) {
	t.Parallel()
	type o = dialect.Options
	read := dialect.Only("Read")
	for name, c := range map[string]struct {
		o    o
		argv []string
	}{
		"a skill that is allowed anyway": {o{Tools: read, AllowedTools: []string{"Skill(a)", "Read"}, Skills: dialect.Only("a", "b")},
			[]string{"--allowed-tools", "Skill(a)", "--allowed-tools", "Read", "--allowed-tools", "Skill(b)", "--tools", "Read", "--disable-builtin-skills"}},
		"yolo hides the flag": {o{Tools: read, PermissionMode: protocol.ModeYolo, AllowDangerouslySkipPermissions: true, IncludePartialMessages: true},
			[]string{"--yolo", "--include-partial-messages", "--tools", "Read", "--disable-builtin-skills"}},
		"everything about the session": {o{Tools: read, Resume: uuid1, SessionID: uuid2, ResumeSessionAt: uuid3, ResumeDropsTurn: uuid4, ForkSession: true, HasSessionStore: true},
			[]string{"--session-mirror", "--resume", uuid1, "--resume-session-at=" + uuid3, "--resume-drops-turn=" + uuid4, "--session-id", uuid2, "--tools", "Read", "--disable-builtin-skills", "--fork-session"}},
		"the order of the rest": {o{Tools: read, Model: "m", Proxy: "http://p:1", Agent: "a", Debug: true, Continue: true,
			PermissionMode: protocol.ModePlan, AllowDangerouslySkipPermissions: true, DisallowedTools: []string{"Bash(a, b)"}, HasCanUseTool: true,
			Extensions: []string{"e"}, MCPConfigPath: "/m.json", AllowedMCPServerNames: []string{"x", "y"}, StrictMCPConfig: true,
			SettingsPath: "/s.json", SettingSources: dialect.Only("user"), MaxTurns: dialect.Some(3), Plugins: []dialect.Plugin{{Path: "/p"}},
			PersistSession: dialect.Some(false), ExtraArgs: map[string]dialect.Opt[string]{"n": dialect.Some("-5")}},
			[]string{"--no-session-persistence", "--model", "m", "--proxy", "http://p:1", "--agent", "a", "--debug", "--continue",
				"--permission-mode", "plan", "--dangerously-skip-permissions", "--disallowed-tools", "Bash(a, b)", "--tools", "Read",
				"--permission-prompt-tool", "stdio", "--extensions", "e", "--mcp-config", "/m.json",
				"--allowed-mcp-server-names", "x", "--allowed-mcp-server-names", "y", "--strict-mcp-config",
				"--settings", "/s.json", "--setting-sources", "user", "--disable-builtin-skills", "--max-turns", "3", "--plugin-dir", "/p", "--n", "-5"}},
		"everything that is merged": {o{Tools: read, AdditionalDirectories: []string{"/a", "/b"}, EnableFileCheckpointing: dialect.Some(true),
			SecurityScan: &dialect.SecurityScan{L2LightweightScan: true},
			Settings:     json.RawMessage(`{"permissions":{"allow":["Read"],"additionalDirectories":["/b"],"defaultMode":"dontAsk"}}`),
			MCPServers:   map[string]dialect.MCPServer{"s": {Type: "http", URL: "https://h", Tools: []dialect.MCPTool{{Name: "t", PermissionPolicy: dialect.AlwaysAllow}}}}},
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
	l := launch(t, dialect.Options{AllowedTools: rules, DisallowedTools: []string{"Write"}, Skills: dialect.Only("pdf")})
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
	def := dialect.AgentDefinition{Description: "d", Prompt: "p"}
	starts := def
	starts.Tools = dialect.Only("Read", "Agent")
	o := dialect.Options{Auth: dialect.QoderCLIAuth(), Agents: map[string]dialect.AgentDefinition{"a": starts}}
	_, err := qoder.New().Validate(&o)
	require.Len(t, dialect.ConfigErrors(err), 1)
	assert.Equal(t, `Agents["a"].Tools`, dialect.ConfigErrors(err)[0].Option)

	for name, c := range map[string]struct {
		set  func(*dialect.Options)
		want int
	}{
		"nobody allows it":   {func(*dialect.Options) {}, 1},
		"a rule":             {func(o *dialect.Options) { o.AllowedTools = []string{"Agent"} }, 0},
		"a rule for one":     {func(o *dialect.Options) { o.AllowedTools = []string{"Agent(a)"} }, 0},
		"a callback":         {func(o *dialect.Options) { o.HasCanUseTool = true }, 0},
		"a tool":             {func(o *dialect.Options) { o.PermissionPromptToolName = "mcp__a__b" }, 0},
		"the main session's": {func(o *dialect.Options) { o.Agent = "a" }, 0},
	} {
		o := dialect.Options{Auth: dialect.QoderCLIAuth(), Agents: map[string]dialect.AgentDefinition{"a": def}}
		c.set(&o)
		warnings, err := qoder.New().Validate(&o)
		require.NoError(t, err, name)
		assert.Len(t, warnings, c.want, name)
	}
}

func TestCloudAgentIsNotInThisRelease(t *testing.T) {
	t.Parallel()
	o := dialect.Options{Auth: dialect.QoderCLIAuth()}
	doc := `{"agent":{"create":{"model":"auto","name":"n","description":null,"tools":[{"type":"agent_toolset_20260401","enabled_tools":["bash"]}],
		"mcp_servers":[{"name":"m","type":"url","url":"https://h"}],"skills":[{"skill_id":"s","type":"custom"}],"metadata":{"k":"v"}}},
		"session":{"create":{"environment_id":"e","resources":[{"type":"file","file_id":"f"}],"title":"t","vault_ids":[],"memory_store_ids":["m"]}},
		"stream":{"afterId":"a","deltaFlushIntervalMs":0}}`
	require.NoError(t, json.Unmarshal([]byte(doc), &o.ExperimentalCloudAgent))
	_, err := qoder.New().Validate(&o)
	require.Len(t, dialect.ConfigErrors(err), 1, "%v", err)
	require.ErrorContains(t, err, "not in this release")
	assert.Equal(t, "ExperimentalCloudAgent", dialect.ConfigErrors(err)[0].Option)
	assert.Equal(t, "qoder", dialect.ConfigErrors(err)[0].Backend)
}
