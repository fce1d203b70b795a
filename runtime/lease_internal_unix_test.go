//go:build unix

package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// TestDefaultLeases: they are not configured, so an agent starts where no lease can be
// got, and one event says that nothing guards its session.
func TestDefaultLeases(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	var warned []string
	d := defaultLeases{LocalLeases{Dir: filepath.Join(file, "below")}, func(p string) { warned = append(warned, p) }}
	release, err := d.Acquire(t.Context(), "s")
	require.NoError(t, err)
	release()
	require.Len(t, warned, 1)
	assert.Contains(t, warned[0], "the lease of session s could not be got: ")

	d.Dir = t.TempDir()
	release, err = d.Acquire(t.Context(), "s")
	require.NoError(t, err)
	_, err = d.Acquire(t.Context(), "s")
	require.ErrorAs(t, err, new(*session.LeaseError), "one that somebody has is another matter")
	release()
	assert.Len(t, warned, 1)
}

// TestWhereLeasesAre: in the user's cache or, where that cannot be, in a directory for
// temporary files that no other user can write to.
func TestWhereLeasesAre(t *testing.T) { // alone: it changes the environment
	home, temp := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", temp)
	dir, err := LocalLeases{}.dir()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(dir, home), dir)

	file := filepath.Join(home, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("HOME", file) // in which nothing can be made
	dir, err = LocalLeases{}.dir()
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(dir, temp), dir)
	require.NoError(t, os.Chmod(dir, 0o777)) // another user could put files there
	_, err = LocalLeases{}.dir()
	require.ErrorContains(t, err, "is not a directory of this user alone")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Symlink(home, dir))
	_, err = LocalLeases{}.dir()
	require.ErrorContains(t, err, "is not a directory of this user alone")
}

// A lock on a file that was removed since it was opened does not count, also when there is
// another file with its name.
func TestALockOnAFileThatIsGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock := flock.New(path)
	t.Cleanup(func() { assert.NoError(t, lock.Close()) })
	got, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, got)
	locks, err := locksAt(lock, path)
	require.NoError(t, err)
	require.True(t, locks)
	require.NoError(t, os.Remove(path))
	locks, err = locksAt(lock, path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.False(t, locks)
	other, err := lockAt(path)
	require.NoError(t, err)
	require.NotNil(t, other, "whoever makes the file again has the lease")
	t.Cleanup(func() { assert.NoError(t, other.Close()) })
	locks, err = locksAt(lock, path)
	require.NoError(t, err)
	require.False(t, locks)
}
