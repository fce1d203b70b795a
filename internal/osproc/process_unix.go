//go:build unix

package osproc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// files are the child's standard descriptors, made blocking: the child shares
// the open file and expects it so.
func (n *launch) files() []uintptr {
	fds := make([]uintptr, len(n.child))
	for i, f := range n.child {
		fds[i] = f.Fd()
	}
	return fds
}

// hungUp reports whether the other end of the pipe f has no holder any more, or f is
// closed. Earlier output may still be unread.
func hungUp(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	var hup bool
	err = conn.Control(func(fd uintptr) {
		ask := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(ask, 0)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
		hup = ask[0].Revents&unix.POLLHUP != 0
	})
	return hup || err != nil
}

func killGroup(pgid int, sig Signal) error {
	if pgid <= 1 { // kill(-1) and kill(0) mean everybody, and ourselves
		return fmt.Errorf("osproc: no process group %d", pgid)
	}
	err := unix.Kill(-pgid, sig)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("osproc: signal %v to group %d: %w", sig, pgid, err)
	}
	return nil
}

// wait4 collects an exited child and never blocks.
func wait4(pid int) (ExitStatus, error) {
	var ws unix.WaitStatus
	for {
		got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return ExitStatus{Code: -1}, ErrLost
		case err != nil:
			return ExitStatus{Code: -1}, fmt.Errorf("osproc: wait for %d: %w", pid, err)
		case got == 0:
			return ExitStatus{Code: -1}, ErrRunning
		}
		break
	}
	if ws.Signaled() {
		return ExitStatus{Code: -1, Signal: ws.Signal(), CoreDumped: ws.CoreDump()}, nil
	}
	return ExitStatus{Code: ws.ExitStatus()}, nil
}

// canExecute asks whether this process may execute the file, or enter the
// directory.
func canExecute(path string) error {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// extensions are what a program's name may lack.
func extensions([]string) []string { return []string{""} }

func sameVariable(a, b string) bool { return a == b }
