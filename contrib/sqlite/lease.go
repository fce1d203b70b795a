package troupesqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// AcquireLease implements [session.LeaseStore].
func (s *Store) AcquireLease(ctx context.Context, r session.LeaseRequest) (l session.Lease, err error) {
	err = s.grant(ctx, r.Session, func(g *store.Grant) error {
		l, err = g.Acquire(r, s.now())
		return err
	})
	return l, err
}

// RenewLease implements [session.LeaseStore].
func (s *Store) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	return s.grant(ctx, l.Session, func(g *store.Grant) error { return g.Renew(l, ttl, s.now()) })
}

// ReleaseLease implements [session.LeaseStore].
func (s *Store) ReleaseLease(ctx context.Context, l session.Lease) error {
	return s.grant(ctx, l.Session, func(g *store.Grant) error {
		g.Release(l)
		return nil
	})
}

// grant changes what is known of a session's lease.
func (s *Store) grant(ctx context.Context, id string, change func(*store.Grant) error) error {
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		g, err := grantOf(ctx, tx, id)
		if err == nil {
			err = change(&g)
		}
		if err != nil {
			return err
		}
		state, err := json.Marshal(&g)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO leases (session, state) VALUES (?, ?)
			ON CONFLICT (session) DO UPDATE SET state = excluded.state`, id, state)
		return err
	})
}

func grantOf(ctx context.Context, tx *sql.Tx, id string) (g store.Grant, err error) {
	var state []byte
	err = tx.QueryRowContext(ctx, "SELECT state FROM leases WHERE session = ?", id).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(state, &g)
	}
	return g, err
}

// checkLease returns an error if the context of an append to key has a lease that is over.
func checkLease(ctx context.Context, tx *sql.Tx, key session.StoreKey) error {
	l, ok := session.LeaseOf(ctx)
	if !ok {
		return nil
	}
	g, err := grantOf(ctx, tx, l.Session)
	if err != nil {
		return err
	}
	return g.Check(l, key)
}
