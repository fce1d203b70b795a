package command

import "golang.org/x/sys/unix"

// unreadable keeps other processes of the same user out of the memory of this one, and so of
// the environment that it was started with (/proc/PID/environ). It does not keep out root.
func unreadable() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
