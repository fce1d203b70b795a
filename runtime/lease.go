package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	rt "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// LocalLeases are the leases of one user's sessions on one machine, as locked files. The
// operating system gives up the locks of a program that dies, so no lease outlives its
// holder. Other users, other machines and programs with another Dir do not see them. The
// files hold no secrets. They are removed when a lease is given back; those of a program
// that died stay, and do no harm.
//
// The zero value works.
type LocalLeases struct {
	// Dir is the directory of the files. It is made if it is missing. Default: troupe/leases
	// in os.UserCacheDir or, where that cannot be written, troupe-leases-<user id> in
	// os.TempDir.
	Dir string
	// Now returns the time for [session.LeaseHolder].Since, such as time.Now. Default:
	// nil, Since is empty.
	Now func() time.Time
}

// Acquire implements [session.Leases].
func (l LocalLeases) Acquire(_ context.Context, sessionID string) (release func(), err error) {
	failed := func(err error) error { return &session.LeaseError{SessionID: sessionID, Err: err} }
	dir, err := l.dir()
	if err != nil {
		return nil, failed(err)
	}
	// An id may come from an agent, and may not be a valid file name.
	sum := sha256.Sum256([]byte(strings.ToLower(sessionID)))
	path := filepath.Join(dir, hex.EncodeToString(sum[:16])+".lock")
	signed := path
	if rt.GOOS == "windows" { // where other processes cannot read a locked file
		signed += ".json"
	}
	lock, err := lockAt(path)
	switch {
	case err != nil:
		return nil, failed(err)
	case lock == nil:
		return nil, &session.LeaseError{SessionID: sessionID, Holder: holderIn(signed)}
	}
	l.sign(signed)
	return func() {
		if signed != path {
			_ = os.Remove(signed) // the lock counts
		}
		_ = os.Remove(path) // while it is held; Windows leaves it
		_ = lock.Close()
	}, nil
}

// lockAt locks a file, or returns nil if another process has the lock. The holder
// removes the file before it gives the lock up, so a lock on a removed file does not
// count.
func lockAt(path string) (*flock.Flock, error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o600))
		got, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, lock.Close()))
		}
		if !got {
			return nil, lock.Close()
		}
		locks, err := locksAt(lock, path)
		if locks {
			return lock, nil
		}
		if closed := lock.Close(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, closed))
		}
	}
}

// locksAt reports whether a lock that was got is on the file that has the path now.
func locksAt(lock *flock.Flock, path string) (bool, error) {
	locked, err := lock.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(locked, there), err
}

// dir makes the directory.
func (l LocalLeases) dir() (string, error) {
	if l.Dir != "" {
		return l.Dir, os.MkdirAll(l.Dir, 0o700)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if dir := filepath.Join(cache, "troupe", "leases"); os.MkdirAll(dir, 0o700) == nil && writable(dir) {
			return dir, nil
		}
	}
	// The directory for temporary files is everybody's.
	dir := filepath.Join(os.TempDir(), "troupe-leases-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !own(info) {
		return "", fmt.Errorf("%s is not a directory of this user alone; remove it, or set LocalLeases.Dir", dir)
	}
	return dir, nil
}

// sign says who has the lease, as far as that can be written: the lock counts.
func (l LocalLeases) sign(path string) {
	h := session.LeaseHolder{PID: os.Getpid()}
	h.Host, _ = os.Hostname() // "" says that it is not known
	if l.Now != nil {
		h.Since = l.Now()
	}
	if b, err := json.Marshal(h); err == nil {
		_ = os.WriteFile(path, b, 0o600)
	}
}

// holderIn reads who has the lease; the zero value if it is unknown.
func holderIn(path string) (h session.LeaseHolder) {
	if b, err := os.ReadFile(path); err != nil || protocol.Unmarshal(b, &h) != nil {
		return session.LeaseHolder{}
	}
	return h
}

// defaultLeases are leases that the program did not configure: where no lease can be got,
// such as on a read-only disk, the agent runs without one, and a warning says so.
type defaultLeases struct {
	LocalLeases
	warn func(problem string)
}

// Acquire implements [session.Leases].
func (d defaultLeases) Acquire(ctx context.Context, sessionID string) (release func(), err error) {
	release, err = d.LocalLeases.Acquire(ctx, sessionID)
	e, ok := errors.AsType[*session.LeaseError](err)
	if !ok || e.Err == nil { // the lease was got, or another process has it
		return release, err
	}
	d.warn(e.Error() + "; nothing keeps another program from running the session")
	return func() {}, nil
}

// leases are l as the sessions of the spec use them.
func (spec *Spec) leases(l session.Leases) session.Leases {
	if l == nil || spec.Translate == nil {
		return l
	}
	return translatedLeases{l, spec.Dialect.Name() + ":"}
}

// translatedLeases are those of sessions whose process speaks another protocol. Their ids are
// the process's own, and it may need the lease of such an id itself: troupe acp does.
type translatedLeases struct {
	session.Leases
	prefix string
}

// Acquire implements [session.Leases].
func (l translatedLeases) Acquire(ctx context.Context, sessionID string) (release func(), err error) {
	release, err = l.Leases.Acquire(ctx, l.prefix+sessionID)
	if taken, ok := errors.AsType[*session.LeaseError](err); ok && taken.SessionID == l.prefix+sessionID {
		own := *taken
		own.SessionID = sessionID
		err = &own
	}
	return release, err
}
