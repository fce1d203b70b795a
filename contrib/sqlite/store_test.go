package troupesqlite_test

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	troupesqlite "github.com/agent-troupe/troupe/contrib/sqlite"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/storetest"
)

func open(t *testing.T, file string, o troupesqlite.Options) *troupesqlite.Store {
	t.Helper()
	s, err := troupesqlite.Open(t.Context(), file, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) session.Store {
		return open(t, filepath.Join(t.TempDir(), "a name with ? # % and ü.db"), troupesqlite.Options{})
	})
}

var key = session.StoreKey{Project: "-work", Session: "5e550000-0000-4000-8000-000000000001"}

func entries(texts ...string) (all []json.RawMessage) {
	for _, s := range texts {
		all = append(all, json.RawMessage(s))
	}
	return all
}

func loaded(t *testing.T, s session.Store) (all []string) {
	t.Helper()
	for e, err := range s.Load(t.Context(), key) {
		require.NoError(t, err)
		all = append(all, string(e))
	}
	return all
}

func TestTheFileStays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sessions.db")
	s, err := troupesqlite.Open(t.Context(), file, troupesqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), key, entries(`{"uuid":"1"}`)))
	require.NoError(t, s.Close())
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s = open(t, file, troupesqlite.Options{})
	require.NoError(t, s.Append(t.Context(), key, entries(`{"uuid":"1"}`, `{"uuid":"2"}`)))
	assert.Equal(t, []string{`{"uuid":"1"}`, `{"uuid":"2"}`}, loaded(t, s))
}

func TestTwoPrograms(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sessions.db")
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		s := open(t, file, troupesqlite.Options{})
		all.Go(func() {
			for range 30 {
				assert.NoError(t, s.Append(t.Context(), key, entries(`{"from":"`+name+`"}`, `{"from":"`+name+`2"}`)))
			}
		})
	}
	all.Wait()
	got := loaded(t, open(t, file, troupesqlite.Options{}))
	require.Len(t, got, 120)
	for i := 0; i < len(got); i += 2 {
		assert.Contains(t, []string{`{"from":"a"}{"from":"a2"}`, `{"from":"b"}{"from":"b2"}`}, got[i]+got[i+1], "an append stays together")
	}
}

func TestAListLoadsNothing(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1800000000000)
	s := open(t, filepath.Join(t.TempDir(), "s.db"), troupesqlite.Options{Now: func() time.Time { return now }})
	sessions := &transcript.Sessions{Vendor: transcript.Claude, Store: s, Dir: "/work"}
	require.NoError(t, s.Append(t.Context(), key, entries(`{"type":"user","uuid":"1","message":{"role":"user","content":"hello"}}`)))
	require.NoError(t, s.Append(t.Context(), key, entries(`{"type":"custom-title","customTitle":"T","uuid":"2"}`)))
	list, err := sessions.List(t.Context(), transcript.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, transcript.Info{
		SessionID: key.Session, Summary: "T", CustomTitle: "T", FirstPrompt: "hello", Cwd: "/work", LastModified: now.Add(time.Millisecond).UTC(),
	}, list[0])
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	_, err := troupesqlite.Open(t.Context(), filepath.Join(t.TempDir(), "no", "dir.db"), troupesqlite.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = troupesqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), troupesqlite.Options{Busy: -1})
	require.ErrorContains(t, err, "Options.Busy is negative")
	text := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte("this is no database, but a text that is long enough to be looked at"), 0o600))
	_, err = troupesqlite.Open(t.Context(), text, troupesqlite.Options{})
	require.ErrorContains(t, err, "not a database")

	newer := filepath.Join(t.TempDir(), "newer.db")
	db, err := sql.Open("sqlite", newer)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = troupesqlite.Open(t.Context(), newer, troupesqlite.Options{})
	require.ErrorContains(t, err, "version 99")
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "s.db"), troupesqlite.Options{})
	require.ErrorContains(t, s.Append(t.Context(), session.StoreKey{Project: "..", Session: "x"}, entries(`{}`)), "is no key")
	require.ErrorContains(t, s.Append(t.Context(), key, entries(`{}`, `[]`)), "entry 1 is no JSON object")
	assert.Empty(t, loaded(t, s), "all or nothing")
}
