package confine

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asUser runs fn without root's rights to files. The thread keeps that, and ends with fn.
func asUser(fn func()) {
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_, _ = unix.SetfsuidRetUid(65534) // the test sees whether it has
		}
		fn()
	})
	done.Wait()
}

// A command can open again what its user has closed, so hidden files there must be known. A
// directory of another user stays closed to it.
//
// It ends threads. A confined command dies with the thread that has started it, and that may have run
// any test before, so nothing else runs meanwhile.
func TestDirectoriesThatAreClosed(t *testing.T) {
	for name, c := range map[string]struct {
		dir     string // what is closed
		mode    fs.FileMode
		another bool // user has it
		fails   bool
		grants  bool
	}{
		"all of it":                       {"sub", 0, false, true, false},
		"what is behind its names":        {"sub", 0o604, false, true, false},
		"where a hidden link leads":       {"far", 0o600, false, true, false},
		"another's":                       {"sub", 0, true, false, true},
		"the names in another's":          {"sub", 0o711, true, false, false},
		"where a link leads to another's": {"far", 0o700, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.another && os.Geteuid() != 0 {
				t.Skip("not root")
			}
			root, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
			for _, dir := range []string{"sub", "far"} {
				require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
			}
			require.NoError(t, os.WriteFile(filepath.Join(root, "far/file"), nil, 0o600))
			require.NoError(t, os.Symlink(filepath.Join(root, "far/file"), filepath.Join(root, "sub/.env")))
			shut := filepath.Join(root, c.dir)
			if c.another {
				require.NoError(t, os.Chown(shut, 12345, -1))
			}
			require.NoError(t, os.Chmod(shut, c.mode))
			t.Cleanup(func() { _ = os.Chmod(shut, 0o700) }) // so that it can be removed
			sub := filepath.Join(root, "sub")
			hides := func(path string) (here, below bool) {
				return filepath.Base(path) == ".env", Within(path, sub) || Within(sub, path)
			}
			asUser(func() {
				_, err := os.Lstat(root)
				assert.NoError(t, err)
				tree, err := Readable(hides)
				if c.fails {
					assert.ErrorIs(t, err, fs.ErrPermission)
					return
				}
				assert.NoError(t, err)
				// A directory in which nothing is hidden is granted with the one above it.
				assert.Equal(t, c.grants, len(tree.Dirs) == 1 && tree.Dirs[0] == "/", "%v", tree.Dirs)
			})
		})
	}
}
