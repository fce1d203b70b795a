package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Mistakes in the arguments have the exit code 2, with --dry-run too, which leaves nothing behind.
func TestBatchFindsMistakesFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tasks := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"one"}`)
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), link))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no secret":             {[]string{"--dry-run", "--approvals", "--webhook", "https://x/y"}, "--webhook needs the variable"},
		"events in no place":    {[]string{"--dry-run", "--events", filepath.Join(dir, "none", "events")}, "--events: "},
		"events in a directory": {[]string{"--dry-run", "--events", dir}, "is a directory"},
		"no place":              {[]string{"-O", filepath.Join(link, "out")}, "--out: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			assert.Equal(t, exitUsage, w.run(append([]string{"batch", tasks, "-a", "scripted", "-q"}, c.args...)...))
			assert.Contains(t, w.err.String(), c.want)
			assert.Empty(t, w.out.String())
		})
	}
	events := filepath.Join(dir, "events")
	w := newWorld()
	require.Equal(t, exitOK, w.run("batch", tasks, "-a", "scripted", "-q", "--dry-run", "--events", events), w.err)
	assert.NoFileExists(t, events)
}

// Other tasks than those of the journal are a mistake in the tasks.
func TestBatchResumeOfOtherTasks(t *testing.T) {
	t.Parallel()
	tasks := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"one"}`+"\n"+`{"id":"b","prompt":"two"}`+"\n")
	w := newWorld()
	require.Equal(t, exitOK, w.run("batch", tasks, "-a", "scripted", "-q"), w.err)
	require.NoError(t, os.WriteFile(tasks, []byte(`{"id":"a","prompt":"one"}`), 0o600))
	w = newWorld()
	assert.Equal(t, exitUsage, w.run("batch", tasks, "-a", "scripted", "-q", "--resume"))
	assert.Contains(t, w.err.String(), "the job in the journal has other tasks")
}

// The temporary directory of the demonstration is left where it has worked, and not behind plans and mistakes.
func TestWhatTheDemonstrationLeaves(t *testing.T) {
	t.Parallel()
	tasks := taskFile(t, "tasks.jsonl", `{"id":"a","prompt":"one"}`)
	for name, c := range map[string]struct {
		args       []string
		code, left int
	}{
		"a plan":           {[]string{"batch", tasks, "--dry-run"}, exitOK, 0},
		"a wrong batch":    {[]string{"batch", tasks, "--resume"}, exitUsage, 0},
		"a job":            {[]string{"batch", tasks}, exitOK, 0},
		"a wrong run":      {[]string{"run", ""}, exitUsage, 0},
		"a run that works": {[]string{"run", "Do something."}, exitOK, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			w := newUser(t, map[string]string{"TMPDIR": tmp})
			if c.args[0] == "batch" {
				c.args = append(c.args, "-O", filepath.Join(t.TempDir(), "out"))
			}
			assert.Equal(t, c.code, w.run(append(c.args, "-e", "HOME="+t.TempDir(), "-e", "XDG_STATE_HOME="+t.TempDir())...), w.err)
			left, err := filepath.Glob(filepath.Join(tmp, "troupe-demo-*"))
			require.NoError(t, err)
			assert.Len(t, left, c.left)
		})
	}
}

// The context that a signal ends says which one it was.
func TestSignalOfAContext(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.signal <- os.Interrupt
	ctx, stop := untilSignal(t.Context(), w.process)
	<-ctx.Done()
	assert.Equal(t, os.Interrupt, signalOf(ctx))
	stop()
	assert.Nil(t, signalOf(t.Context()))
	ctx, stop = untilSignal(t.Context(), w.process)
	stop()
	assert.Nil(t, signalOf(ctx))
}
