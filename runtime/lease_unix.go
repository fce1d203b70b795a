//go:build unix

package runtime

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a directory is this user's, and nobody else can write to it: the
// directory for temporary files is everybody's.
func own(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}

// writable reports whether this program may make files in a directory.
func writable(dir string) bool { return syscall.Access(dir, 2) == nil }
