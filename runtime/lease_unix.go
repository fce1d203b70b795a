//go:build unix

package runtime

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// own reports whether a directory is this user's and no other user can write to it: all
// users share the directory for temporary files.
func own(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o022 == 0
}

// writable reports whether this program may make files in a directory.
func writable(dir string) bool { return syscall.Access(dir, 2) == nil }

// alive reports whether there is a process with that id.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// bootID identifies this start of the system; "": not known.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // only Linux has it
	return strings.TrimSpace(string(id))
}
