package store_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
	"github.com/agent-troupe/troupe/transcript/storetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) session.Store { return &store.Memory{} })
}

func TestDir(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) session.Store { return store.NewDir(filepath.Join(t.TempDir(), "sessions")) })
}

var key = session.StoreKey{Project: "-work", Session: "s"}

func texts(t *testing.T, s session.Store) (all []string) {
	t.Helper()
	for e, err := range s.Load(t.Context(), key) {
		require.NoError(t, err)
		all = append(all, string(e))
	}
	return all
}

// A program that was killed while it appended has left half a line.
func TestATornLine(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first, second := json.RawMessage(`{"uuid":"1"}`), json.RawMessage(`{"uuid":"2"}`)
	require.NoError(t, store.NewDir(root).Append(t.Context(), key, []json.RawMessage{first}))
	name := filepath.Join(root, "-work", "s.jsonl")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(b, `{"uuid":"2`...), 0o600))
	s := store.NewDir(root)
	require.Equal(t, []string{`{"uuid":"1"}`}, texts(t, s))
	require.NoError(t, s.Append(t.Context(), key, []json.RawMessage{first, second}), "the batch is repeated")
	require.Equal(t, []string{`{"uuid":"1"}`, `{"uuid":"2"}`}, texts(t, s))
}

// Two programs use the directory in turn.
func TestAnotherProgramAppends(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, b := store.NewDir(root), store.NewDir(root)
	one, two := []json.RawMessage{json.RawMessage(`{"uuid":"1"}`)}, []json.RawMessage{json.RawMessage(`{ "uuid" : "2" }`)}
	require.NoError(t, a.Append(t.Context(), key, one))
	require.NoError(t, b.Append(t.Context(), key, two))
	require.NoError(t, a.Append(t.Context(), key, two))
	require.Equal(t, []string{`{"uuid":"1"}`, `{"uuid":"2"}`}, texts(t, a))
	info, err := os.Stat(filepath.Join(root, "-work", "s.jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]session.Store{"memory": &store.Memory{}, "directory": store.NewDir(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, bad := range []session.StoreKey{
				{}, {Project: "p"}, {Session: "s"}, {Project: "..", Session: "s"}, {Project: "p", Session: "../s"},
				{Project: "p", Session: "s", Subpath: "/etc"}, {Project: "p", Session: "s", Subpath: "a/../../b"}, {Project: "p", Session: "s", Subpath: "a//b"},
			} {
				require.ErrorContains(t, s.Append(t.Context(), bad, []json.RawMessage{[]byte(`{}`)}), "is no key", "%q", bad)
				require.ErrorContains(t, s.Delete(t.Context(), bad), "is no key", "%q", bad)
			}
			for _, bad := range []string{"", "[]", "{", "1", "null"} {
				err := s.Append(t.Context(), key, []json.RawMessage{[]byte(`{"uuid":"1"}`), []byte(bad)})
				require.ErrorContains(t, err, "entry 1 is no JSON object", "%q", bad)
			}
			require.Empty(t, texts(t, s), "all or nothing")
		})
	}
}
