package sdk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Programs that files of the project name are reported before the start, in each place where the agent
// finds the files.
func TestProgramsThatTheProjectStarts(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(top, name) }
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		require.NoError(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	// The .mcp.json above the checkout counts, too; so do the local settings of the checkout, and no others of it.
	write(".mcp.json", `{"mcpServers":{"above":{"command":"a"}}}`)
	write("repo/.git", "")
	write("repo/.mcp.json", `{"mcpServers":{"root":{"command":"r"}}}`)
	write("repo/.claude/settings.json", `{"apiKeyHelper":"elsewhere"}`)
	write("repo/.claude/settings.local.json", `{"apiKeyHelper":"local"}`)
	write("repo/dir/.mcp.json", `{"mcpServers":{"here":{"command":"h"},"root":{"command":"h2"}}}`)
	write("repo/dir/.claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"hook"}]}]}}`)
	write("home/.claude/settings.json", `{"apiKeyHelper":"mine"}`)
	write("repo/fifo/.mcp.json/x", "a directory of that name")
	options := func(dir string, sources session.Set) *sdk.Options {
		return &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: "/bin/true"}), Cwd: at(dir), SettingSources: sources,
			SystemPrompt: sdk.PromptText("x"), Env: map[string]string{"HOME": at("home"), "CLAUDE_CONFIG_DIR": ""}}
	}
	preview := func(o *sdk.Options) (told []string, err error) {
		p, err := sdk.PreviewLaunch(o)
		if err != nil {
			return nil, err
		}
		for _, w := range p.Warnings {
			told = append(told, w.String())
		}
		return told, nil
	}
	told, err := preview(options("repo/dir", session.Set{}))
	require.NoError(t, err)
	want := []string{
		at("repo/dir/.claude/settings.json") + ":1:57: hooks.Stop[0].hooks[0] starts \"hook\"",
		at("repo/.claude/settings.local.json") + ":1:17: apiKeyHelper starts \"local\"",
		at("repo/dir/.mcp.json") + ":1:34: mcpServers.here starts \"h\"",
		at("repo/dir/.mcp.json") + ":1:57: mcpServers.root starts \"h2\"",
		at(".mcp.json") + ":1:35: mcpServers.above starts \"a\"",
	}
	require.Len(t, told, len(want), told)
	for i := range want {
		assert.Contains(t, told[i], want[i])
	}

	o := options("repo/dir", session.Set{})
	o.Unattended, o.Policy = true, &sdk.Policy{Default: policy.Deny}
	_, err = preview(o)
	for _, text := range want {
		assert.ErrorContains(t, err, text)
	}

	// Named sources are a decision; files elsewhere are not on this machine.
	for name, o := range map[string]*sdk.Options{
		"none": options("repo/dir", sdk.None()), "all": options("repo/dir", sdk.All()), "named": options("repo/dir", sdk.Only("project")),
	} {
		o.Unattended, o.Policy = true, &sdk.Policy{Default: policy.Deny}
		told, err = preview(o)
		require.NoError(t, err, name)
		assert.Empty(t, told, name)
	}
}
