//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

const ttyName = "/dev/tty"

// isTerminal reports whether f is a terminal: only those have a window size.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// wasClosed reports whether f, one of the standard files, was closed when the program was
// started. Go then opens /dev/null in its place, for reading and writing (runtime/fds_unix.go).
// Shells, and programs that discard the output of a child, open it for writing alone.
func wasClosed(f *os.File) bool {
	var is, null unix.Stat_t
	if unix.Fstat(int(f.Fd()), &is) != nil || unix.Stat(os.DevNull, &null) != nil || is.Mode&unix.S_IFMT != unix.S_IFCHR || is.Rdev != null.Rdev {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
