package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands do the same for the sessions of a store, once they were imported there.
func TestSessionsOfAStore(t *testing.T) {
	t.Parallel()
	w, folder := newHome(t)
	at := filepath.Join(t.TempDir(), "store")
	do := func(code int, args ...string) string {
		t.Helper()
		w.out, w.err = &screen{}, &screen{}
		w.stdout, w.stderr = w.out, w.err
		require.Equal(t, code, w.run(append([]string{"sessions"}, args...)...), w.err)
		return w.out.String()
	}
	stored := func(args ...string) string {
		t.Helper()
		return do(exitOK, append(args, "--store", at, "--cwd", "/w/proj")...)
	}
	do(exitUsage, "list", "--store", at)
	assert.Contains(t, w.err.String(), "is no directory")
	do(exitUsage, "import", restFirst)
	assert.Contains(t, w.err.String(), "--store DIR")
	do(exitResult, "import", "5e550000-0000-4000-8000-000000000009", "--store", at)

	do(exitOK, "import", restFirst, "--store", at)
	assert.Contains(t, w.err.String(), "1 line that cannot be read was left out")
	assert.Contains(t, w.err.String(), "4 entries were imported, as session "+restFirst+" of project -w-proj")
	do(exitOK, "import", restFirst, "--store", at)
	assert.Contains(t, w.err.String(), "0 entries were imported", "it may be repeated")
	assert.Contains(t, stored("list"), restFirst)
	assert.NotContains(t, stored("list"), restSecond)
	assert.Empty(t, do(exitOK, "list", "--store", at), "those of the working directory")
	assert.Equal(t, do(exitOK, "show", restFirst), stored("show", restFirst))
	assert.Contains(t, stored("export", restFirst, "--format", "html"), "done &lt;script&gt;")

	stored("rename", restFirst, "In", "the", "store")
	assert.Contains(t, stored("list"), "In the store")
	assert.NotContains(t, do(exitOK, "list"), "In the store")
	fork := strings.TrimSpace(stored("fork", restFirst))
	assert.Equal(t, stored("show", restFirst), stored("show", fork))
	stored("tag", fork, "blue")
	stored("delete", restFirst, "--yes")
	assert.NotContains(t, stored("list"), restFirst+" ")
	assert.Contains(t, stored("list"), "[blue]")
	do(exitResult, "delete", restFirst, "--yes", "--store", at, "--cwd", "/w/proj")
	assert.Contains(t, w.err.String(), "not found in the session store")
	do(exitUsage, "rewind", fork, restFirst, "--store", at)
	assert.FileExists(t, filepath.Join(folder, restFirst+".jsonl"), "the file stays")

	torn := filepath.Join(at, "-w-proj", fork+".jsonl")
	f, err := os.OpenFile(torn, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"us`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	stored("show", fork)
	assert.Contains(t, w.err.String(), "lines of the stored session cannot be read")
}
