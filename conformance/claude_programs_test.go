//go:build conformance

package conformance_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestProgramsOfTheProject: with the default sources Troupe warns of a program of the project if and only if the agent
// starts it.
func TestProgramsOfTheProject(t *testing.T) {
	t.Parallel()
	const (
		settings = "work/.claude/settings.json"
		servers  = "work/.mcp.json"
		server   = `{"mcpServers":{"x":{"command":"touch","args":["RAN"]}}}`
		hook     = `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch RAN"}]}]}}`
	)
	for name, c := range map[string]struct {
		files map[string]string
		set   func(*sdk.Options)
		runs  bool
	}{
		"hook":                     {runs: true, files: map[string]string{settings: hook}},
		"local hook":               {runs: true, files: map[string]string{"work/.claude/settings.local.json": hook}},
		"apiKeyHelper":             {runs: true, files: map[string]string{settings: `{"apiKeyHelper":"touch RAN; echo x"}`}},
		"provider chosen":          {runs: true, files: map[string]string{settings: `{"awsAuthRefresh":"touch RAN","env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}`}},
		"env":                      {runs: true, files: map[string]string{"work/x.sh": "touch RAN", settings: `{"env":{"BASH_ENV":"DIR/x.sh"}}`}},
		"server":                   {runs: true, files: map[string]string{servers: server}},
		"server above":             {runs: true, files: map[string]string{"work/.git/HEAD": "ref: refs/heads/x", ".mcp.json": server}},
		"server not enabled":       {runs: true, files: map[string]string{servers: server, settings: `{"enabledMcpjsonServers":["y"],"enableAllProjectMcpServers":false}`}},
		"server disabled":          {files: map[string]string{servers: server, settings: `{"disabledMcpjsonServers":["x"]}`}},
		"server disabled by user":  {files: map[string]string{servers: server, "home/.claude/settings.json": `{"disabledMcpjsonServers":["x"]}`}},
		"server denied":            {files: map[string]string{servers: server, settings: `{"deniedMcpServers":[{"serverName":"x"}]}`}},
		"server replaced":          {files: map[string]string{servers: server}, set: func(o *sdk.Options) { o.MCPServers = map[string]sdk.MCPServerConfig{"x": {Command: "true"}} }},
		"server of another source": {files: map[string]string{servers: server}, set: func(o *sdk.Options) { o.SettingSources = sdk.Only("user", "local") }},
		"strict":                   {files: map[string]string{servers: server}, set: func(o *sdk.Options) { o.StrictMCPConfig = true }},
		"headersHelper":            {files: map[string]string{servers: `{"mcpServers":{"x":{"type":"http","url":"http://127.0.0.1:9","headersHelper":"touch RAN"}}}`}},
		"statusLine":               {files: map[string]string{settings: `{"statusLine":{"type":"command","command":"touch RAN"},"fileSuggestion":{"type":"command","command":"touch RAN"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			dir, err := filepath.EvalSymlinks(r.dir)
			require.NoError(t, err)
			for file, text := range c.files {
				file = filepath.Join(r.root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("RAN", filepath.Join(dir, "RAN"), "DIR", dir).Replace(text)), 0o600))
			}
			o := r.options()
			o.SettingSources, o.CanUseTool, o.Spawner = session.Set{}, allow, nil // files are read only without a spawner
			if c.set != nil {
				c.set(o)
			}
			client := r.connect(o)
			r.model.Script("shell", modelapi.Say(shell("true")), modelapi.Say(modelapi.Text("Done.")))
			r.ask(client, "go [[scn:shell]]")
			warned := slices.ContainsFunc(client.Warnings(), func(w session.Warning) bool { return w.Option == "SettingSources" })
			ran := func() bool {
				_, err := os.Stat(filepath.Join(dir, "RAN"))
				return err == nil
			}
			if c.runs { // a server is not waited for
				assert.Eventually(t, ran, turnLimit, 10*time.Millisecond, "started")
			}
			r.close(client)
			assert.Equal(t, c.runs, ran(), "started")
			assert.Equal(t, c.runs, warned, "warned")
		})
	}
}
