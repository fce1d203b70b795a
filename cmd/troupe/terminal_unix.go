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
