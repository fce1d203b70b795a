package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is piped in next to a prompt belongs to it.
func TestPipedTextBesideAPrompt(t *testing.T) {
	t.Parallel()
	for stdin, want := range map[string]string{"LOGLINE 42\n": "You said: explain this\n\nLOGLINE 42\n", "": "You said: explain this\n", " \n": "You said: explain this\n", "\uFEFFx": "You said: explain this\n\nx\n"} {
		w := newWorld()
		w.stdin = strings.NewReader(stdin)
		assert.Equal(t, exitOK, w.run("run", "-a", script(t, answering), "explain", "this"), w.err)
		assert.Equal(t, want, w.out.String(), "%q", stdin)
	}
	w := newWorld()
	w.stdin = strings.NewReader("caf\xe9")
	assert.Equal(t, exitUsage, w.run("run", "-a", script(t, answering), "explain"))
	assert.Contains(t, w.err.String(), "is not UTF-8")
}

// MCP configurations that the agent takes are taken, and mistakes name the server.
func TestMCPConfigurations(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"mcpServers": {"docs": {"type": "streamable-http", "url": "http://127.0.0.1:8080/mcp"}}}`:    "",
		`{"mcpServers": {"docs": {"type": "http", "url": "${DOCS_BASE:-http://127.0.0.1:8080}/mcp"}}}`: "",
		"\uFEFF" + `{"mcpServers": {"a": {"command": "x"}}}`:                                           "",
		`{"mcpServers": {"docs": {"type": "streamableHttp", "url": "http://h/"}}}`:                     "write http",
		`{"mcpServers": {"docs": {"command": "d", "env": {"PORT": 8080}}}}`:                            "mcpServers.docs: env is a number, and has to be a text in quotes",
		`{"mcpServers": []}`: "mcpServers is a list, and has to be an object",
		`{"mcpServers": {"p": {"command": ["npx", "x"]}}}`:               "mcpServers.p: command is a list, and has to be a text in quotes",
		`{"mcpServers": {"p": {"command": "a"}, "p": {"command": "b"}}}`: `mcpServers has "p" twice`,
		`{"mcpServers": {"p": {"command": "a",}}}`:                       "is a comma before '}'",
		`{"servers": {}}`: `the key "mcpServers" is missing`,
	} {
		file := filepath.Join(t.TempDir(), "mcp.json")
		assert.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
		w := newWorld()
		code := w.run("options", "-a", "claude", "--mcp-config", file)
		if want == "" {
			assert.Equal(t, exitOK, code, "%s: %s", doc, w.err)
			continue
		}
		assert.Equal(t, exitUsage, code, doc)
		assert.Contains(t, w.err.String(), want, doc)
	}
}

func TestSettingsFilesOfFlags(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.json")
	assert.NoError(t, os.WriteFile(file, []byte("{\n\"permissions\": {\"deny\": [\"Bash(touch:*)\",]}}\n"), 0o600))
	options := taskFile(t, "o.yaml", "settings: "+file+"\n")
	tasks := taskFile(t, "t.jsonl", `{"prompt":"x","options":{"settings":{"permissions":{"deny":"Bash"}}}}`)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"s.json:2:41: is a comma before ']'", []string{"run", "-a", "claude", "--settings", file, "--yes", "x"}},
		{"s.json:2:41: is a comma before ']'", []string{"options", "-a", "claude", "--config", options}},
		{"is a comma before '}'", []string{"options", "-a", "claude", "--settings", `{"a":1,}`}},
		{"permissions.deny is a text, and has to be a list", []string{"batch", tasks, "-a", "claude", "--dry-run"}},
	} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run(c.args...), c.args)
		assert.Contains(t, w.err.String(), c.want, c.args)
	}
}

func TestDirectoriesAndVariablesOfFlags(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "scripted"} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run("run", "-a", agent, "-C", "/no/such/dir", "x"))
		assert.Contains(t, w.err.String(), `--cwd: "/no/such/dir" is not a directory`)
	}
	w := newWorld()
	assert.Equal(t, exitUsage, w.run("run", "-a", "scripted", "--env", "FOO", "x"))
	assert.Contains(t, w.err.String(), `--env: "FOO" is not NAME=VALUE`)
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("run", "-a", "scripted", "--env", "=hidden", "x"))
	assert.NotContains(t, w.err.String(), "hidden")
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("run", "-a", "scripted", "-t", "-5s", "x"))
	assert.Contains(t, w.err.String(), `"-5s" is not a time`)
}

// A policy of the options file denies what no rule names, as the command says.
func TestPolicyOfABatch(t *testing.T) {
	t.Parallel()
	tasks := taskFile(t, "t.jsonl", `{"prompt":"run go vet"}`)
	for text, want := range map[string]string{
		"policy:\n  allow: [\"Bash(go vet *)\"]\n":                "",
		"policy:\n  deny: [\"Bash(go vet *)\"]\n":                 "",
		"policy:\n  ask: [\"Bash(go vet *)\"]\n":                  "the ask rule Bash(go vet *)",
		"policy:\n  ask: [\"Bash(go vet *)\"]\n  default: deny\n": "the ask rule Bash(go vet *)",
		"policy:\n  default: deny\n":                              "",
	} {
		w, config, out := newWorld(), taskFile(t, "o.yaml", text), t.TempDir()
		code := w.run("batch", tasks, "-a", script(t, answering), "--config", config, "-O", out, "--dry-run")
		if want != "" {
			assert.Equal(t, exitUsage, code, text)
			assert.Contains(t, w.err.String(), want, text)
			continue
		}
		assert.Equal(t, exitOK, code, "%s: %s", text, w.err)
		assert.Contains(t, w.out.String(), "other calls are denied", text)
		assert.Equal(t, exitOK, w.run("batch", tasks, "-a", script(t, answering), "--config", config, "-O", out), "%s: %s", text, w.err)
	}
	w := newWorld()
	assert.Equal(t, exitUsage, w.run("batch", tasks, "-a", "scripted", "--dry-run", "-w", "worktree", "-C", t.TempDir()))
	assert.Contains(t, w.err.String(), "is in no git repository")
	w = newWorld()
	tasks = taskFile(t, "t.jsonl", `{"prompt":"x","workspace":{"kind":"copy","from":"/no/such"},"verify":{"command":"true"}}`)
	assert.Equal(t, exitUsage, w.run("batch", tasks, "-a", "scripted", "--dry-run"))
	assert.Contains(t, w.err.String(), "/no/such")
}

// A deferred job is one of the embedded agent, and has many sessions.
func TestADeferredBatch(t *testing.T) {
	t.Parallel()
	tasks := taskFile(t, "t.jsonl", `{"prompt":"x"}`)
	w := newWorld()
	assert.Equal(t, exitOK, w.run("batch", tasks, "--model", "http://127.0.0.1:1/v1#m", "--deferred", "--dry-run", "--out", filepath.Join(t.TempDir(), "out")), w.err)
	assert.Contains(t, w.out.String(), "1 task for embedded, 256 at a time")
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("batch", tasks, "-a", "scripted", "--deferred", "--dry-run"))
	assert.Contains(t, w.err.String(), "is for the embedded agent")
}
