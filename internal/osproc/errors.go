package osproc

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

var (
	// ErrExited is returned by Signal and Kill once the leader was reaped:
	// nothing was signalled.
	ErrExited = errors.New("osproc: process was reaped, nothing left to signal")
	// ErrRunning is returned by Reap before Exited is closed.
	ErrRunning = errors.New("osproc: process still runs: kill it and wait for Exited before Reap")
	// ErrLost is returned by Reap when the exit status is not to be had,
	// because other code in this program collected the child.
	ErrLost = errors.New("osproc: exit status lost: other code in this program waits for any child, or ignores SIGCHLD")
	// ErrSurvivors is returned by Sweep along with the processes that it could
	// not kill.
	ErrSurvivors = errors.New("osproc: processes survived the sweep")
	// ErrEmptyPath is in a StartError when a bare name was to be looked up and
	// the child's environment has no usable PATH.
	ErrEmptyPath = errors.New("no absolute directory in the child's PATH")
)

// StartError says why a process did not start. Argv is masked (see
// [MaskArgs]); the environment never appears. Err can be matched with
// errors.Is: fs.ErrNotExist, fs.ErrPermission, ErrEmptyPath, syscall errors, or
// the context's.
type StartError struct {
	Op       string   // what failed: "chdir", "lookup", "argv", "guard", "files", "pipe", "spawn" or "start"
	Path     string   // the program: as asked for until it is found, absolute after
	Searched []string // directories of the child's PATH that were tried, in order
	Dir      string   // working directory; empty means the host's
	Argv     []string // masked
	Err      error
}

func (e *StartError) Error() string { return "osproc: " + e.Explained() }

// Explained is the text of the error without the name of this package. It names
// path, directories and what to do, so a session.StartError adds nothing to it.
func (e *StartError) Explained() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", e.Op, e.Path)
	if e.Op == "chdir" {
		fmt.Fprintf(&b, " in %q", e.Dir)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if len(e.Searched) > 0 {
		fmt.Fprintf(&b, " (searched %s)", strings.Join(e.Searched, ", "))
	}
	if h := e.hint(); h != "" {
		b.WriteString(": ")
		b.WriteString(h)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Retryable reports whether the same command may start later with nothing
// changed: a limit was reached, or the program file is being replaced.
func (e *StartError) Retryable() bool {
	for _, errno := range []error{
		syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ETXTBSY,
	} {
		if errors.Is(e.Err, errno) {
			return true
		}
	}
	return false
}

// OfSession reports whether the cause is what this command asked for, and not the
// program: its directory, its arguments or its files.
func (e *StartError) OfSession() bool {
	return e.Op == "chdir" || e.Op == "argv" || e.Op == "files" || errors.Is(e.Err, syscall.E2BIG)
}

func (e *StartError) hint() string {
	is := func(target error) bool { return errors.Is(e.Err, target) }
	switch {
	case is(ErrEmptyPath):
		return "set PATH in the child's environment, or give an absolute path"
	case is(syscall.EAGAIN):
		return "the limit of processes is reached (ulimit -u, or the pids cgroup)"
	case is(syscall.EMFILE), is(syscall.ENFILE):
		return "the limit of open files is reached (ulimit -n): raise it, or run fewer processes"
	case is(syscall.ETXTBSY):
		return "the program file is being written, by an update perhaps: try again"
	case is(syscall.E2BIG):
		return "pass long values by file"
	case is(syscall.ENOEXEC):
		return "not a program of this system: a script needs a #! line or an interpreter"
	}
	switch e.Op {
	case "chdir":
		return "the working directory must be an existing directory that can be entered"
	case "lookup":
		if is(fs.ErrPermission) {
			return "make it executable, or name an interpreter"
		}
		return "install it, or give its path"
	case "spawn":
		if is(fs.ErrNotExist) {
			return "the file is there, so the interpreter of its #! line, or its loader, is missing"
		}
	}
	return ""
}
