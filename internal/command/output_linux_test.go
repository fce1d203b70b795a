package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testOutputLost runs each command that prints without a stdout, on a full device, and
// with a reader that has gone.
func (b binaries) testOutputLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tasks := filepath.Join(dir, "tasks.jsonl")
	require.NoError(t, os.WriteFile(tasks, []byte(`{"id": "one", "prompt": "go"}`+"\n"), 0o600))
	done := filepath.Join(dir, "done")
	out, err := exec.CommandContext(t.Context(), b.troupe, "batch", "-a", "scripted", "--out", done, tasks).CombinedOutput()
	require.NoError(t, err, "%s", out)
	commands := map[string][]string{
		"run":                {"run", "-a", "scripted", "hi"},
		"run -o json":        {"run", "-a", "scripted", "-o", "json", "hi"},
		"run -o stream-json": {"run", "-a", "scripted", "-o", "stream-json", "hi"},
		"chat":               {"chat", "-a", "scripted"},
		"batch":              {"batch", "-a", "scripted", tasks},
		"batch --dry-run":    {"batch", "-a", "scripted", "--dry-run", tasks},
		"ctl":                {"ctl", done},
		"ctl --json":         {"ctl", done, "--json"},
		"ctl tail":           {"ctl", done, "tail", "one"},
		"approvals":          {"approvals", done},
		"options":            {"options", "-a", "scripted"},
		"sessions list":      {"sessions", "list", "--json"},
		"ps":                 {"ps", "--json"},
		"top":                {"top", "--help"},
		"mcp":                {"mcp", "--help"},
		"acp":                {"acp", "-a", "scripted"},
		"guard":              {"help", "guard"},
		"version":            {"version"},
		"help":               {"help"},
	}
	reader, gone, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, reader.Close())
	t.Cleanup(func() { _ = gone.Close() })
	stdins := map[string]string{"chat": "hi\n", "acp": `{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}` + "\n"}
	for sink, want := range map[string]int{">&-": exitOutput, ">/dev/full": exitOutput, "": exitPipe, ">/dev/null": exitOK, ">&- 2>&-": exitOK} {
		for name, args := range commands {
			want := want
			if name == "acp" && want == exitPipe {
				want = exitOK // the editor has left
			}
			t.Run(name+" "+sink, func(t *testing.T) {
				t.Parallel()
				home := t.TempDir()
				cmd := exec.CommandContext(t.Context(), "sh", slices.Concat([]string{"-c", `exec "$@" ` + sink, "sh", b.troupe}, args)...)
				if name == "batch" {
					cmd.Args = append(cmd.Args, "--out", filepath.Join(home, "out"))
				}
				cmd.Env = append(os.Environ(), "HOME="+home, "CLAUDE_CONFIG_DIR="+home)
				said := &screen{}
				cmd.Stdin, cmd.Stderr = strings.NewReader(stdins[name]), said
				if sink == "" {
					cmd.Stdout = gone
				}
				require.NoError(t, cmd.Start())
				assert.Equal(t, want, exitCode(t, cmd), said)
				switch want {
				case exitOutput:
					assert.Contains(t, said.String(), "troupe: ")
				case exitPipe:
					assert.NotContains(t, said.String(), "broken pipe")
				}
			})
		}
	}
}
