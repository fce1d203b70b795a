//go:build unix

package osproc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir locks a host directory of this user until the file is closed. Children do not
// inherit the lock: the descriptor is closed on exec. The error is errOwned if another
// process has it, fs.ErrNotExist if the directory was removed meanwhile, and
// errors.ErrUnsupported if the file system has no locks.
func lockDir(path string) (_ *os.File, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st, ok := opened.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return nil, &os.PathError{Op: "lock", Path: path, Err: fs.ErrPermission}
	}
	switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errOwned
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w: %w", path, err, errors.ErrUnsupported)
	}
	now, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(opened, now) {
		return nil, fs.ErrNotExist
	}
	return f, nil
}
