package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// --json is there for each command that prints a value.
func TestJSONOfCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tasks := filepath.Join(dir, "tasks.jsonl")
	require.NoError(t, os.WriteFile(tasks, []byte(`{"prompt": "a"}`+"\n"+`{"prompt": "b"}`+"\n"), 0o600))
	out := filepath.Join(dir, "out")

	w := newWorld()
	require.Equal(t, exitOK, w.run("batch", tasks, "-a", "scripted", "--json", "-q", "-O", out), w.err.String())
	var printed, kept fleet.Summary
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &printed))
	raw, err := os.ReadFile(filepath.Join(out, "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &kept))
	assert.Equal(t, kept, printed)
	assert.Equal(t, 2, printed.Accepted)

	for _, args := range [][]string{
		{"run", "--json", "hi", "-a", "scripted"}, {"options", "--json", "-a", "claude"}, {"options", "--json", "run", "-a", "claude"},
		{"ctl", "--json", out}, {"approvals", "--json", out}, {"ps", "--json", "--quiet"}, {"doctor", "--json"}, {"version", "--json"}, {"sessions", "list", "--json"},
	} {
		w := newWorld()
		w.getenv = func(name string) string { return map[string]string{"HOME": dir}[name] }
		require.Equal(t, exitOK, w.run(args...), "%s: %s", args, w.err.String())
		assert.True(t, json.Valid([]byte(w.out.String())), "%s: %s", args, w.out.String())
	}
	for _, flag := range []string{"--dry-run", "--estimate=1"} {
		w := newWorld()
		assert.Equal(t, exitUsage, w.run("batch", tasks, "-a", "scripted", "--json", flag, "-O", filepath.Join(dir, "other")))
		assert.Contains(t, w.err.String(), "--json is for the summary of a whole job")
	}
}

// --quiet takes remarks away, and no error.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		w := newWorld()
		args := []string{"ps"}
		if quiet {
			args = append(args, "--quiet")
		}
		require.Equal(t, exitResult, w.run(append(args, "--socket", filepath.Join(t.TempDir(), "none"))...))
		assert.NotEmpty(t, w.err.String(), "an error")

		c := newConsole(newWorld().process)
		said := &screen{}
		c.err, c.quiet = said, quiet
		c.remark("a remark")
		c.note("an error")
		assert.Equal(t, map[bool]string{false: "troupe: a remark\ntroupe: an error\n", true: "troupe: an error\n"}[quiet], said.String())
	}
	w := doctorWorld(t, "2.1.329", map[string]string{"ANTHROPIC_API_KEY": "k"})
	require.Equal(t, exitOK, w.run("doctor", "-q"))
	assert.NotContains(t, w.out.String(), "ok  ")
	assert.Contains(t, w.out.String(), "git is not on PATH")
}

// A person at a terminal reads what takes longer than a second.
func TestWorking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			tty, quiet, long bool
			want             string
		}{
			{true, false, true, "reading…\n"}, {true, false, false, ""}, {false, false, true, ""}, {true, true, true, ""},
		} {
			said := &screen{}
			console := &console{err: said, errTTY: c.tty, quiet: c.quiet}
			done := console.working("reading")
			if c.long {
				time.Sleep(patience + 1)
			} else {
				time.Sleep(patience - 1)
			}
			done()
			time.Sleep(patience)
			synctest.Wait()
			assert.Equal(t, c.want, said.String(), c)
		}
	})
}
