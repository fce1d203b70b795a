package troupesqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// Options are the options of [Open]. The zero value works.
type Options struct {
	// Busy is how long a call waits while another program writes. Default: 10 s. Negative
	// values are an error.
	Busy time.Duration
	// Now returns the time of an append. nil: the time of the machine. Sessions shows
	// strictly rising times in any case.
	Now func() time.Time
}

// Store keeps sessions in an SQLite file. It is safe for concurrent use, and several
// programs on one machine may use one file; SQLite does not work over most network file
// systems. An append is one transaction: after a crash it is there as a whole or not at
// all. It keeps summaries, so a list of sessions loads none of them.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

var (
	_ session.Store          = (*Store)(nil)
	_ session.StoreSummaries = (*Store)(nil)
	_ session.LeaseStore     = (*Store)(nil)
)

// version is the version of the tables.
const version = 1

const tables = `
CREATE TABLE IF NOT EXISTS entries (
	seq     INTEGER PRIMARY KEY AUTOINCREMENT,
	project TEXT NOT NULL,
	session TEXT NOT NULL,
	subpath TEXT NOT NULL,
	name    BLOB, -- of store.EntryName; NULL: the entry has no uuid
	entry   BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_of ON entries (project, session, subpath, seq);
CREATE UNIQUE INDEX IF NOT EXISTS entries_once ON entries (project, session, subpath, name) WHERE name IS NOT NULL;
CREATE TABLE IF NOT EXISTS sessions (
	project  TEXT NOT NULL,
	session  TEXT NOT NULL,
	modified INTEGER NOT NULL, -- milliseconds since 1970
	summary  BLOB NOT NULL,    -- of transcript.FoldSummary
	PRIMARY KEY (project, session)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_modified ON sessions (modified);
CREATE TABLE IF NOT EXISTS leases (
	session TEXT PRIMARY KEY,
	state   BLOB NOT NULL -- of store.Grant
) WITHOUT ROWID;
`

// Open opens the file, which is created with mode 0600 if necessary. The caller closes
// the store.
func Open(ctx context.Context, file string, o Options) (_ *Store, err error) {
	fail := func(err error) error { return fmt.Errorf("session store: %s cannot be opened: %w", file, err) }
	if o.Busy < 0 {
		return nil, fail(errors.New("Options.Busy is negative; use 0 for the default"))
	}
	if o.Busy == 0 {
		o.Busy = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, fail(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fail(err)
	}
	if err := f.Close(); err != nil {
		return nil, fail(err)
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", o.Busy.Milliseconds()), "journal_mode(WAL)", "synchronous(FULL)",
	}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(file)}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, fail(err)
	}
	s := &Store{db: db, now: o.Now}
	if err := s.write(ctx, makeTables); err != nil {
		return nil, errors.Join(fail(err), db.Close())
	}
	return s, nil
}

func makeTables(ctx context.Context, tx *sql.Tx) error {
	var is int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is); err != nil {
		return err
	}
	if is > version {
		return fmt.Errorf("its tables have version %d, and this program knows version %d; use a newer program", is, version)
	}
	_, err := tx.ExecContext(ctx, tables+fmt.Sprintf("PRAGMA user_version = %d;", version))
	return err
}

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// write runs f in a transaction that no other program writes beside.
func (s *Store) write(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return wrap(ctx, err)
	}
	if err := f(ctx, tx); err != nil {
		return wrap(ctx, errors.Join(err, tx.Rollback()))
	}
	return wrap(ctx, tx.Commit())
}

// wrap says that the error is the store's. SQLite's errors do not say that ctx has ended.
func wrap(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("session store: %w", context.Cause(ctx))
	}
	if over, ok := errors.AsType[*session.LeaseError](err); ok {
		return over
	}
	return fmt.Errorf("session store: %w", err)
}

func check(ctx context.Context, key session.StoreKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return key.Valid()
}

// Append implements [session.Store].
func (s *Store) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	names := make([]any, len(entries)) // nil: NULL
	for i, e := range entries {
		name, ok := store.EntryName(e)
		if !ok {
			return fmt.Errorf("session store: entry %d is no JSON object", i)
		}
		if name != "" {
			names[i] = []byte(name)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error { return s.append(ctx, tx, key, entries, names) })
}

func (s *Store) append(ctx context.Context, tx *sql.Tx, key session.StoreKey, entries []json.RawMessage, names []any) error {
	if err := checkLease(ctx, tx, key); err != nil {
		return err
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO entries (project, session, subpath, name, entry) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // the transaction's end says whether it worked
	var added []json.RawMessage
	for i, e := range entries {
		done, err := insert.ExecContext(ctx, key.Project, key.Session, key.Subpath, names[i], []byte(e))
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		if n > 0 {
			added = append(added, e)
		}
	}
	if key.Subpath != "" {
		return nil
	}
	var summary []byte
	err = tx.QueryRowContext(ctx, "SELECT summary FROM sessions WHERE project = ? AND session = ?", key.Project, key.Session).Scan(&summary)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sessions (project, session, modified, summary)
		VALUES (?, ?, max(?, coalesce((SELECT max(modified) FROM sessions), 0) + 1), ?)
		ON CONFLICT (project, session) DO UPDATE SET modified = excluded.modified, summary = excluded.summary`,
		key.Project, key.Session, s.now().UnixMilli(), []byte(transcript.FoldSummary(summary, added)))
	return err
}

// Load implements [session.Store]. The entries are those that were there when the loop
// began.
func (s *Store) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if err := check(ctx, key); err != nil {
			yield(nil, err)
			return
		}
		rows, err := s.db.QueryContext(ctx, "SELECT entry FROM entries WHERE project = ? AND session = ? AND subpath = ? ORDER BY seq",
			key.Project, key.Session, key.Subpath)
		if err != nil {
			yield(nil, wrap(ctx, err))
			return
		}
		defer rows.Close() //nolint:errcheck // it was only read, and Err says the rest
		for rows.Next() {
			var e sql.RawBytes
			if err := rows.Scan(&e); err != nil {
				yield(nil, wrap(ctx, err))
				return
			}
			if !yield(bytes.Clone(e), nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, wrap(ctx, err))
		}
	}
}

// Sessions implements [session.Store].
func (s *Store) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	all, err := s.Summaries(ctx, project)
	if err != nil {
		return nil, err
	}
	out := make([]session.StoredSession, len(all))
	for i, row := range all {
		out[i] = session.StoredSession{ID: row.ID, Modified: row.Modified}
	}
	return out, nil
}

// Summaries implements [session.StoreSummaries].
func (s *Store) Summaries(ctx context.Context, project string) ([]session.StoredSummary, error) {
	return list(ctx, s.db, func(rows *sql.Rows) (row session.StoredSummary, err error) {
		var ms int64
		var data []byte
		err = rows.Scan(&row.ID, &ms, &data)
		row.Modified, row.Data = time.UnixMilli(ms), data
		return row, err
	}, "SELECT session, modified, summary FROM sessions WHERE project = ? ORDER BY modified DESC", project)
}

// Subpaths implements [session.Store].
func (s *Store) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	return list(ctx, s.db, func(rows *sql.Rows) (sub string, err error) { return sub, rows.Scan(&sub) },
		"SELECT DISTINCT subpath FROM entries WHERE project = ? AND session = ? AND subpath <> '' ORDER BY subpath", project, id)
}

// list reads all rows of a query.
func list[T any](ctx context.Context, db *sql.DB, scan func(*sql.Rows) (T, error), query string, args ...any) (out []T, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, wrap(ctx, err)
	}
	defer rows.Close() //nolint:errcheck // it was only read, and Err says the rest
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, wrap(ctx, err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, wrap(ctx, err)
	}
	return out, nil
}

// Delete implements [session.Store].
func (s *Store) Delete(ctx context.Context, key session.StoreKey) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if key.Subpath != "" {
			_, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE project = ? AND session = ? AND subpath = ?", key.Project, key.Session, key.Subpath)
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE project = ? AND session = ?", key.Project, key.Session)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM sessions WHERE project = ? AND session = ?", key.Project, key.Session)
		}
		return err
	})
}
