package claude_test

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/session"
)

// testdata/settings.jsonl has documents and what Claude Code 2.1.329 does with them: taken whole, or dropped, or a part of
// them dropped. TestSettingsThatTheAgentDrops in conformance compares it with the agent.
//
//go:embed testdata/settings.jsonl
var settingsDocuments []byte

func validateSettings(doc string) ([]session.Warning, error) {
	return claude.New().Validate(&dialect.Input{Options: session.Options{SettingsPath: "s.json"}, Facts: dialect.Facts{SettingsContent: []byte(doc)}})
}

func TestSettingsThatTheAgentWouldDrop(t *testing.T) {
	t.Parallel()
	// The agent reads these and does nothing with them; a name that is close to a real one is a mistake.
	ignored := []string{`"permission"`, `"Permissions"`, `"disableBypassPermissionsMode"`}
	// Nothing is lost of these: null counts as absent, manual is another name of default; and a mode
	// that root may not have.
	harmless := []string{`"PreToolUse":null`, `"manual"`, `"bypassPermissions"`}
	for lines := bufio.NewScanner(bytes.NewReader(settingsDocuments)); lines.Scan(); {
		var c struct {
			Agent, Doc string
			Base64     []byte
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		if c.Base64 != nil {
			c.Doc = string(c.Base64)
		}
		_, err := validateSettings(c.Doc)
		switch {
		case containsAny(c.Doc, harmless):
		case c.Agent == "dropped":
			assert.Error(t, err, "%s", lines.Text())
		case containsAny(c.Doc, ignored):
			assert.Error(t, err, "%s", lines.Text())
		default:
			assert.NoError(t, err, "%s", lines.Text())
		}
	}
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if bytes.Contains([]byte(text), []byte(p)) {
			return true
		}
	}
	return false
}

// A mistake names the file, the line and the key, and all of them are reported.
func TestMistakesInSettings(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string][]string{
		"{\n  \"permissions\": {\"deny\": [\"Bash(touch:*)\",]}}": {`s.json:2:43: is a comma before ']', which JSON does not allow`},
		"{\n  \"a\": 1 // c\n}":                                   {"s.json:2:10: is a comment, which JSON does not have"},
		`{"permissions": {"deny": "Bash(touch:*)"}, "env": []}`: {
			"s.json:1:26: permissions.deny is a text, and has to be a list", "s.json:1:51: env is a list, and has to be an object"},
		`{"hooks": {"PreToolUse": [{"matcher": "Bash", "command": "exit 2"}]}}`: {
			"hooks.PreToolUse[0].command is not known", "hooks.PreToolUse[0].hooks is missing"},
		`{"hooks":{"PreToolUse":[{"hooks":[{"command":"x"}]}]}}`:           {"hooks.PreToolUse[0].hooks[0].type is not known"},
		`{"hooks":{"PreToolUses":[]}}`:                                     {"hooks.PreToolUses is not known", "did you mean PreToolUse"},
		`{"PreToolUse":[]}`:                                                {"PreToolUse is not known", "move it into hooks"},
		`{"permission":{"deny":["Bash"]}}`:                                 {"permission is not known", "did you mean permissions?"},
		`{"sandbox":{"filesystem":{"denyRead":[{"path":"~/.ssh"}]}}}`:      {"sandbox.filesystem.denyRead[0] is an object, and has to be a text"},
		`{"permissions":{"deny":["Bash(rm"]}}`:                             {`permissions.deny[0] "Bash(rm" is not a rule`},
		`{"permissions":{"deny":["Bash"]},"permissions":{}}`:               {"permissions is a duplicate key"},
		`{"language":"` + "\xe9" + `"}`:                                    {"s.json:1:14: is not UTF-8"},
		`{"deniedModels":["opus"]}`:                                        {"counts in managed settings only"},
		`{"quietHours":{"start":"7"},"statusLine":"x","effortLevel":"no"}`: {"a time such as 22:00", "statusLine is a text", "effortLevel is not known"},
	} {
		_, err := validateSettings(doc)
		for _, text := range want {
			assert.ErrorContains(t, err, text, doc)
		}
		for _, e := range session.ConfigErrors(err) {
			assert.Equal(t, "SettingsPath", e.Option, doc)
		}
	}
	warnings, err := validateSettings("{\"newerKey\": 1}")
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0].String(), "newerKey is not known to this release of Troupe")
}

// Files that the agent loads by itself are warned of; in an unattended session they are errors.
func TestMistakesInLoadedSettings(t *testing.T) {
	t.Parallel()
	x := dialect.Input{Facts: dialect.Facts{LoadedSettings: []dialect.SettingsFile{
		{Source: "user", Path: "/home/u/.claude/settings.json", Content: []byte(`{"permissions":{"deny":["Bash",]}}`)}}}}
	warnings, err := claude.New().Validate(&x)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	const want = `/home/u/.claude/settings.json:1:31: is a comma before ']'`
	assert.Contains(t, warnings[0].String(), want)
	x.Unattended = true
	_, err = claude.New().Validate(&x)
	assert.ErrorContains(t, err, want)
	assert.ErrorContains(t, err, "leave user out of SettingSources")
}
