package claude_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/session"
)

// project are files of a project as the agent loads them.
func project(settings, servers string) []dialect.SettingsFile {
	return []dialect.SettingsFile{
		{Source: "project", Path: "/w/.claude/settings.json", Content: []byte(settings)},
		{Source: "project", Servers: true, Path: "/w/.mcp.json", Content: []byte(servers)},
	}
}

// A program that a file of the project names is reported with its file, its key and its command; in an
// unattended session it is an error.
func TestProgramsOfTheProject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings, servers string
		set               func(*dialect.Input)
		want              []string // a part of each warning
	}{
		"a hook": {settings: "{\"hooks\":{\n \"UserPromptSubmit\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"touch /x\"}]}]}}",
			want: []string{`/w/.claude/settings.json:2:60: hooks.UserPromptSubmit[0].hooks[0] starts "touch /x" before anybody is asked`}},
		"a hook with arguments": {settings: `{"hooks":{"SessionStart":[{"matcher":"x","hooks":[]},{"hooks":[{"type":"command","command":"node","args":["a.js","b"]}]}]}}`,
			want: []string{`hooks.SessionStart[1].hooks[0] starts "node a.js b"`}},
		"a hook that asks a model": {settings: `{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"well?"}]}]}}`},
		"helpers": {settings: `{"apiKeyHelper":"a","awsAuthRefresh":"b","awsCredentialExport":"c","gcpAuthRefresh":"d","otelHeadersHelper":"e","proxyAuthHelper":"f"}`,
			want: []string{`apiKeyHelper starts "a"`, `awsAuthRefresh starts "b"`, `awsCredentialExport starts "c"`, `gcpAuthRefresh starts "d"`,
				`otelHeadersHelper starts "e"`, `proxyAuthHelper starts "f"`}},
		"variables": {settings: `{"env":{"BASH_ENV":"x.sh","GIT_PAGER":"x","LD_PRELOAD":"x.so","CI":"1"}}`,
			want: []string{"env.BASH_ENV decides which programs", "env.GIT_PAGER", "env.LD_PRELOAD"}},
		"only at a terminal": {settings: `{"statusLine":{"type":"command","command":"x"},"fileSuggestion":{"type":"command","command":"x"}}`},
		"rules":              {settings: `{"permissions":{"allow":["Bash"]},"model":"x"}`},
		"dropped":            {settings: "", servers: `{"mcpServers":{"x":{"command":"y"},}}`},
		"a server": {servers: `{"mcpServers":{"x":{"command":"npx","args":["-y","z"],"env":{"TOKEN":"secret"}}}}`,
			want: []string{`/w/.mcp.json:1:31: mcpServers.x starts "npx -y z" before anybody is asked`}},
		"only after trust": {servers: `{"mcpServers":{"x":{"type":"http","url":"https://h","headersHelper":"get"},"y":{"type":"http","url":"https://h"}}}`},
		"servers that are off": {settings: `{"disabledMcpjsonServers":["x"],"deniedMcpServers":[{"serverName":"y"},{"serverUrl":"u"}]}`,
			servers: `{"mcpServers":{"x":{"command":"a"},"y":{"command":"b"},"z":{"command":"c"}}}`, want: []string{`mcpServers.z`}},
		"strict": {servers: `{"mcpServers":{"x":{"command":"a"}}}`, set: func(x *dialect.Input) { x.StrictMCPConfig = true }},
		"replaced": {servers: `{"mcpServers":{"x":{"command":"a"}}}`,
			set: func(x *dialect.Input) { x.MCPServers = map[string]session.MCPServerConfig{"x": {Command: "mine"}} }},
		"nearer": {servers: `{"mcpServers":{"x":{"command":"a"}}}`, want: []string{`"a"`}, set: func(x *dialect.Input) {
			x.LoadedSettings = append(x.LoadedSettings, dialect.SettingsFile{Source: "project", Servers: true, Path: "/.mcp.json", Content: []byte(`{"mcpServers":{"x":{"command":"b"}}}`)})
		}},
		"the user's own": {set: func(x *dialect.Input) {
			x.LoadedSettings = []dialect.SettingsFile{{Source: "user", Path: "/h/.claude/settings.json", Content: []byte(`{"apiKeyHelper":"a"}`)}}
		}},
		"the local file": {want: []string{`/w/.claude/settings.local.json:1:17: apiKeyHelper starts "a"`}, set: func(x *dialect.Input) {
			x.LoadedSettings = []dialect.SettingsFile{{Source: "local", Path: "/w/.claude/settings.local.json", Content: []byte(`{"apiKeyHelper":"a"}`)}}
		}},
		"named": {settings: `{"apiKeyHelper":"a"}`, servers: `{"mcpServers":{"x":{"command":"a"}}}`,
			set: func(x *dialect.Input) { x.SettingSources = session.Only("user", "project") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := dialect.Input{Facts: dialect.Facts{LoadedSettings: project(c.settings, c.servers)}}
			if c.set != nil {
				c.set(&x)
			}
			warnings, err := claude.New().Validate(&x)
			require.NoError(t, err)
			var told []string
			for _, w := range warnings {
				told = append(told, w.String())
			}
			require.Len(t, told, len(c.want), told)
			for i, want := range c.want {
				assert.Contains(t, told[i], want)
				assert.Contains(t, told[i], "SettingSources")
				assert.NotContains(t, told[i], "secret")
			}
			x.Unattended = true
			_, err = claude.New().Validate(&x)
			assert.Len(t, session.ConfigErrors(err), len(c.want))
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

// A file with many programs, or a very long one, makes no long list.
func TestManyProgramsOfTheProject(t *testing.T) {
	t.Parallel()
	var servers strings.Builder
	for i := range 1000 {
		servers.WriteString(`,"` + strings.Repeat("x", i+1) + `":{"command":"` + strings.Repeat("é", 1000) + `"}`)
	}
	x := dialect.Input{Facts: dialect.Facts{LoadedSettings: project(`{}`, `{"mcpServers":{`+servers.String()[1:]+`}}`)}}
	warnings, err := claude.New().Validate(&x)
	require.NoError(t, err)
	assert.Len(t, warnings, 20)
	assert.Less(t, len(warnings[0].String()), 1000)
}
