//go:build unix

package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/session"
)

const (
	// probeLimit limits how long it takes to see whether a program listens on a socket.
	probeLimit = time.Second
	// maxPath is the longest path of a socket: 103 bytes on macOS, 107 on Linux.
	maxPath = 103
)

// openSocket listens on the socket at path; "" means the default one.
func openSocket(path string) (net.Listener, error) {
	if path == "" {
		var err error
		if path, err = defaultSocket(); err != nil {
			return nil, err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if len(path) > maxPath {
		return nil, refuseSocket(fmt.Sprintf("%s is longer than a socket's path may be (%d bytes)", path, maxPath), "use a shorter path")
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeDead(path); err != nil {
		return nil, err
	}
	if home, err := DefaultDir(); err == nil && home == dir {
		sweep(dir)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("inspect: %w", err), l.Close())
	}
	return l, nil
}

func refuseSocket(problem, fix string) error {
	return fmt.Errorf("inspect: %w", &session.ConfigError{Option: "Socket", Problem: problem, Fix: fix})
}

// checkDir makes sure that no other user can put a socket into the directory, or reach
// one.
func checkDir(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	owner, _ := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return refuseSocket(dir+" is not a directory", "use another path")
	case owner == nil || int(owner.Uid) != os.Geteuid():
		return refuseSocket(dir+" belongs to another user", "use a directory of your own")
	case st.Mode().Perm()&0o077 != 0:
		return refuseSocket(fmt.Sprintf("other users can enter the directory %s (mode %04o)", dir, st.Mode().Perm()), "chmod 700 it, or use another")
	}
	return nil
}

// lock keeps other hosts from looking at the sockets of a directory while one is replaced
// or made: a socket that is bound and not yet listened on looks like that of a dead host.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("inspect: lock %s: %w", dir, err), d.Close())
	}
	return func() { _ = d.Close() }, nil // which unlocks
}

// removeDead removes the socket at path if no program listens on it.
func removeDead(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("inspect: %w", err)
	case st.Mode().Type() != fs.ModeSocket:
		return refuseSocket(path+" exists and is not a socket", "use another path")
	}
	c, err := net.DialTimeout("unix", path, probeLimit)
	if err == nil {
		_ = c.Close()
	}
	if !isDead(err) {
		return &InUseError{path} // a host that is too busy to answer, too
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("inspect: remove the socket of a dead host: %w", err)
	}
	return nil
}

// isDead reports whether the error of a dial says that no program listens.
func isDead(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// sweep removes the sockets of all dead hosts. One that cannot be removed does no harm.
func sweep(dir string) {
	all, _ := Sockets(dir)
	for _, path := range all {
		_ = removeDead(path)
	}
}
