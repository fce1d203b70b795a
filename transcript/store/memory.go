package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// Memory is a store in memory, for tests. The zero value is empty and ready to use. It is
// safe for concurrent use.
type Memory struct {
	// Now returns the time of an append. nil: the time of the machine. Sessions shows
	// strictly rising times in any case.
	Now func() time.Time

	mu     sync.Mutex
	last   time.Time
	all    map[session.StoreKey]*stored
	grants map[string]*Grant // of sessions
}

var (
	_ session.Store          = (*Memory)(nil)
	_ session.StoreSummaries = (*Memory)(nil)
	_ session.LeaseStore     = (*Memory)(nil)
)

type stored struct {
	entries  []json.RawMessage
	seen     map[string]struct{} // the names of entries
	modified time.Time
	summary  json.RawMessage // nil: of a subagent
}

// Append implements [session.Store].
func (m *Memory) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	names, err := namesOf(entries)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if l, ok := session.LeaseOf(ctx); ok {
		if err := m.grant(l.Session).Check(l, key); err != nil {
			return err
		}
	}
	s := m.all[key]
	if s == nil {
		if s = (&stored{seen: make(map[string]struct{})}); m.all == nil {
			m.all = make(map[session.StoreKey]*stored)
		}
		m.all[key] = s
	}
	had := len(s.entries)
	for i, e := range entries {
		if _, twice := s.seen[names[i]]; twice {
			continue
		}
		if names[i] != "" {
			s.seen[names[i]] = struct{}{}
		}
		s.entries = append(s.entries, bytes.Clone(e))
	}
	if key.Subpath == "" {
		s.summary = transcript.FoldSummary(s.summary, s.entries[had:])
	}
	now := now(m.Now)
	if !now.After(m.last) {
		now = m.last.Add(time.Millisecond)
	}
	m.last, s.modified = now, now
	return nil
}

// Load implements [session.Store].
func (m *Memory) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if err := check(ctx, key); err != nil {
			yield(nil, err)
			return
		}
		m.mu.Lock()
		var entries []json.RawMessage
		if s := m.all[key]; s != nil {
			entries = s.entries // appends leave what is there
		}
		m.mu.Unlock()
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(bytes.Clone(e), nil) {
				return
			}
		}
	}
}

// Sessions implements [session.Store].
func (m *Memory) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []session.StoredSession
	for key, s := range m.all {
		if key.Project == project && key.Subpath == "" {
			out = append(out, session.StoredSession{ID: key.Session, Modified: s.modified})
		}
	}
	slices.SortFunc(out, func(a, b session.StoredSession) int { return b.Modified.Compare(a.Modified) })
	return out, nil
}

// Summaries implements [session.StoreSummaries].
func (m *Memory) Summaries(ctx context.Context, project string) ([]session.StoredSummary, error) {
	rows, err := m.Sessions(ctx, project)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []session.StoredSummary
	for _, row := range rows {
		if s := m.all[session.StoreKey{Project: project, Session: row.ID}]; s != nil { // not deleted meanwhile
			out = append(out, session.StoredSummary{ID: row.ID, Modified: s.modified, Data: bytes.Clone(s.summary)})
		}
	}
	return out, nil
}

// Subpaths implements [session.Store].
func (m *Memory) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	if err := check(ctx, session.StoreKey{Project: project, Session: id}); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for key := range m.all {
		if key.Project == project && key.Session == id && key.Subpath != "" {
			out = append(out, key.Subpath)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Delete implements [session.Store].
func (m *Memory) Delete(ctx context.Context, key session.StoreKey) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, func(k session.StoreKey, _ *stored) bool {
		return k == key || key.Subpath == "" && k.Project == key.Project && k.Session == key.Session
	})
	return nil
}

// AcquireLease implements [session.LeaseStore].
func (m *Memory) AcquireLease(ctx context.Context, r session.LeaseRequest) (session.Lease, error) {
	if err := ctx.Err(); err != nil {
		return session.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grant(r.Session).Acquire(r, now(m.Now))
}

// RenewLease implements [session.LeaseStore].
func (m *Memory) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grant(l.Session).Renew(l, ttl, now(m.Now))
}

// ReleaseLease implements [session.LeaseStore].
func (m *Memory) ReleaseLease(ctx context.Context, l session.Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grant(l.Session).Release(l)
	return nil
}

// grant is what is known of a session's lease; the caller has the lock.
func (m *Memory) grant(id string) *Grant {
	g := m.grants[id]
	if g == nil {
		if g = (&Grant{}); m.grants == nil {
			m.grants = make(map[string]*Grant)
		}
		m.grants[id] = g
	}
	return g
}

func check(ctx context.Context, key session.StoreKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return key.Valid()
}

// namesOf returns the name of each entry; see EntryName.
func namesOf(entries []json.RawMessage) ([]string, error) {
	out := make([]string, len(entries))
	for i, e := range entries {
		name, ok := EntryName(e)
		if !ok {
			return nil, fmt.Errorf("session store: entry %d is no JSON object", i)
		}
		out[i] = name
	}
	return out, nil
}

// EntryName identifies an entry that is appended again: its uuid and a hash of its
// content, because one uuid can come twice with different content. It is "" for an entry
// without a uuid; ok is false if the entry is not a JSON object.
func EntryName(entry []byte) (name string, ok bool) {
	var e struct {
		UUID json.RawMessage `json:"uuid"`
	}
	if trimmed := bytes.TrimSpace(entry); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(entry, &e) != nil {
		return "", false
	}
	var uuid string
	if json.Unmarshal(e.UUID, &uuid) != nil || uuid == "" { // none, or of another type
		return "", true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, entry) != nil {
		return "", false
	}
	sum := sha256.Sum256(compact.Bytes())
	return uuid + string(sum[:]), true
}

func now(f func() time.Time) time.Time {
	if f != nil {
		return f()
	}
	return time.Now() //troupe:seam the default for programs without a runtime; simulations set Memory.Now
}
