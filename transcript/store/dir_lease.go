package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
)

var _ session.LeaseStore = (*Dir)(nil)

// leasesFolder has two files for each session that had a lease: what [Grant] says, and one
// that is locked while that is read, changed, or relied on. No project has that name: see
// transcript.FolderName.
const leasesFolder = ".leases"

// lockPoll is how often a lock that another process has is tried.
const lockPoll = 5 * time.Millisecond

// AcquireLease implements [session.LeaseStore]. It needs a file system with locks, such as NFS
// since version 4, and clocks that differ by less than the lease's time.
func (d *Dir) AcquireLease(ctx context.Context, r session.LeaseRequest) (l session.Lease, err error) {
	err = d.grant(ctx, r.Session, func(g *Grant) error {
		l, err = g.Acquire(r, now(d.Now))
		return err
	})
	return l, err
}

// RenewLease implements [session.LeaseStore].
func (d *Dir) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	return d.grant(ctx, l.Session, func(g *Grant) error { return g.Renew(l, ttl, now(d.Now)) })
}

// ReleaseLease implements [session.LeaseStore].
func (d *Dir) ReleaseLease(ctx context.Context, l session.Lease) error {
	return d.grant(ctx, l.Session, func(g *Grant) error {
		g.Release(l)
		return nil
	})
}

// grant runs change on the record of a session's lease, and stores the outcome, unless
// there is an error. It holds the lock of the session meanwhile.
func (d *Dir) grant(ctx context.Context, id string, change func(*Grant) error) error {
	return d.locked(ctx, id, func(name string, g *Grant) error {
		was := *g
		if err := change(g); err != nil || *g == was {
			return err
		}
		content, err := json.Marshal(g)
		if err != nil {
			return err
		}
		return durable.WriteFile(d.files(), name, durable.Bytes(content))
	})
}

// locked runs f with the name of the file of a session's lease and what it says. The lock
// is that of the operating system, which a program that dies gives up.
func (d *Dir) locked(ctx context.Context, id string, f func(name string, g *Grant) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	folder := filepath.Join(d.root, leasesFolder)
	if err := d.files().Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("session store: %w", err)
	}
	sum := sha256.Sum256([]byte(id)) // an id may come from an agent
	name := filepath.Join(folder, hex.EncodeToString(sum[:16]))
	lock := flock.New(name+".lock", flock.SetPermissions(0o600))
	defer lock.Close() //nolint:errcheck // the file is never written
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return fmt.Errorf("session store: lock %s: %w", name, err)
	}
	content, err := os.ReadFile(name + ".json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("session store: %w", err)
	}
	g, err := parseGrant(content)
	if err == nil {
		err = f(name+".json", &g)
	}
	if _, over := errors.AsType[*session.LeaseError](err); err == nil || over {
		return err
	}
	return fmt.Errorf("session store: session %s: %w", id, err)
}
