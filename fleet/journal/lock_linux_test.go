package journal_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// A process that is being started has a copy of the lock's file for a moment. It does not
// keep the lock.
func TestALockThatAnotherProcessHasACopyOf(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := journal.Dir(path)
	lock, err := dir.Lock(journal.LockName, "first")
	require.NoError(t, err)
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	copied := -1
	for _, fd := range fds {
		if name, _ := os.Readlink(fd); name == filepath.Join(path, journal.LockName) {
			n, err := strconv.Atoi(filepath.Base(fd))
			require.NoError(t, err)
			copied, err = unix.Dup(n)
			require.NoError(t, err)
		}
	}
	require.GreaterOrEqual(t, copied, 0)
	defer func() { require.NoError(t, unix.Close(copied)) }()
	_, err = dir.Lock(journal.LockName, "second")
	require.ErrorIs(t, err, journal.ErrLocked)
	require.NoError(t, lock.Close())
	again, err := dir.Lock(journal.LockName, "third")
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
