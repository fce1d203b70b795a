package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// Memory is a store in memory, for tests. The zero value is empty and ready to use. It is
// safe for concurrent use.
type Memory struct {
	// Now returns the time of an append. nil: the time of the machine. Sessions shows
	// strictly rising times in any case.
	Now func() time.Time

	mu   sync.Mutex
	last time.Time
	all  map[session.StoreKey]*stored
}

var _ session.Store = (*Memory)(nil)

type stored struct {
	entries  []json.RawMessage
	seen     map[string]struct{} // the uuids of entries
	modified time.Time
}

// Append implements [session.Store].
func (m *Memory) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	uuids, err := uuidsOf(entries)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.all[key]
	if s == nil {
		if s = (&stored{seen: make(map[string]struct{})}); m.all == nil {
			m.all = make(map[session.StoreKey]*stored)
		}
		m.all[key] = s
	}
	for i, e := range entries {
		if _, twice := s.seen[uuids[i]]; twice {
			continue
		}
		if uuids[i] != "" {
			s.seen[uuids[i]] = struct{}{}
		}
		s.entries = append(s.entries, bytes.Clone(e))
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

func check(ctx context.Context, key session.StoreKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return key.Valid()
}

// uuidsOf returns the uuid of each entry, "" for those that have none.
func uuidsOf(entries []json.RawMessage) ([]string, error) {
	out := make([]string, len(entries))
	for i, e := range entries {
		uuid, ok := uuidOf(e)
		if !ok {
			return nil, fmt.Errorf("session store: entry %d is no JSON object", i)
		}
		out[i] = uuid
	}
	return out, nil
}

// uuidOf is the uuid of an entry; ok is false if it is no JSON object.
func uuidOf(entry []byte) (uuid string, ok bool) {
	var e struct {
		UUID json.RawMessage `json:"uuid"`
	}
	if trimmed := bytes.TrimSpace(entry); len(trimmed) == 0 || trimmed[0] != '{' || json.Unmarshal(entry, &e) != nil {
		return "", false
	}
	if json.Unmarshal(e.UUID, &uuid) != nil { // none, or of another type
		return "", true
	}
	return uuid, true
}

func now(f func() time.Time) time.Time {
	if f != nil {
		return f()
	}
	return time.Now() //troupe:seam the default for programs without a runtime; simulations set Memory.Now
}
