package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A session is resumed after the death of a host unless it is sure that the agent has not
// stored it.
func TestSessionsThatAreLost(t *testing.T) {
	t.Parallel()
	const id = "3f2b8c1e-0000-4000-8000-000000000001"
	said := "{\"type\":\"mode\"}\n{\"type\":\"user\"}\n"
	for name, c := range map[string]struct {
		file, text string
		id         string
		change     func(*sdk.Options)
		lost       bool
	}{
		"nothing":                  {id: id, lost: true},
		"the user's directory":     {file: "home/.claude/projects/-w/" + id + ".jsonl", text: said, id: id},
		"a private directory":      {file: "state/config/config-1/projects/-w/" + id + ".jsonl", text: said, id: id},
		"a place with brackets":    {file: "home/.claude/projects/[a/" + id + ".jsonl", text: said, id: id},
		"a file without a message": {file: "home/.claude/projects/-w/" + id + ".jsonl", text: "{\"type\":\"mode\"}\n", id: id, lost: true},
		"an empty file":            {file: "home/.claude/projects/-w/" + id + ".jsonl", id: id, lost: true},
		"another session":          {file: "home/.claude/projects/-w/3f2b8c1e-0000-4000-8000-000000000002.jsonl", text: said, id: id, lost: true},
		"another directory by a variable": {file: "other/projects/-w/" + id + ".jsonl", text: said, id: id, change: func(o *sdk.Options) {
			o.Env["CLAUDE_CONFIG_DIR"] = filepath.Join(filepath.Dir(o.Env["HOME"]), "other")
		}},
		"no id":              {id: "a title"},
		"an agent elsewhere": {id: id, change: func(o *sdk.Options) { o.Spawner = elsewhere{} }},
		"an agent in memory": {id: id, change: func(o *sdk.Options) { o.Backend = scripted.New() }},
		"another agent":      {id: id, change: func(o *sdk.Options) { o.Backend = acpclient.Backend("x") }},
		"no home":            {id: id, change: func(o *sdk.Options) { o.Env["HOME"] = "" }},
		"Qoder":              {file: "home/.qoder/projects/-w/" + id + ".jsonl", text: said, id: id, change: func(o *sdk.Options) { o.Backend = sdk.Qoder(sdk.QoderConfig{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.file != "" {
				file := filepath.Join(dir, filepath.FromSlash(c.file))
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			}
			o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{}), Env: map[string]string{"HOME": filepath.Join(dir, "home"), "CLAUDE_CONFIG_DIR": "", "QODER_CONFIG_DIR": ""}}
			if c.change != nil {
				c.change(o)
			}
			assert.Equal(t, c.lost, lost(o, filepath.Join(dir, "state"), c.id))
		})
	}
}

type elsewhere struct{ session.Spawner }
