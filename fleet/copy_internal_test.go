package fleet

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that is removed while its directory is copied is not in the copy, and stops nothing: git, for one, removes
// its locks in the background.
func TestWhatIsRemovedWhileItIsCopied(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"lock", "kept"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("x"), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(from, "d", "e"), 0o700))
	source, err := os.OpenRoot(from)
	require.NoError(t, err)
	defer func() { require.NoError(t, source.Close()) }()
	target, err := os.OpenRoot(to)
	require.NoError(t, err)
	defer func() { require.NoError(t, target.Close()) }()
	c := &copier{from: source, to: target, apart: func(name string, _ fs.FileInfo) string {
		if name == "d" { // it was looked at, and is opened next
			assert.NoError(t, source.RemoveAll(name))
		}
		return ""
	}}
	st, err := source.Lstat("lock")
	require.NoError(t, err)
	require.NoError(t, source.Remove("lock"))
	require.NoError(t, c.file("lock", st))
	assert.NoFileExists(t, filepath.Join(to, "lock"))
	require.NoError(t, c.dir("."))
	assert.FileExists(t, filepath.Join(to, "kept"))
	require.ErrorContains(t, (&copier{from: source, to: target}).dir("/"), "escapes", "other errors stay")
}
