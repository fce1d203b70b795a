package troupesqlite_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	troupesqlite "github.com/agent-troupe/troupe/contrib/sqlite"
	"github.com/agent-troupe/troupe/session"
)

// testdata/recorded has a file that each release has written, named like it. A file is never changed
// after its release. go test -run TestRecord . -record NAME makes a new one.
var recordTo = flag.String("record", "", "write a file of this name in testdata/recorded")

const (
	project = "-work-shop"
	id      = "5e550000-0000-4000-8000-000000000001"
	other   = "5e550000-0000-4000-8000-000000000002"
)

func entry(kind, uuid, text string) json.RawMessage {
	return json.RawMessage(`{"type":"` + kind + `","uuid":"00000000-0000-4000-8000-00000000000` + uuid + `","sessionId":"` + id +
		`","cwd":"/work/shop","version":"2.1.329","timestamp":"2026-11-27T14:00:0` + uuid + `.000Z","message":{"role":"` + kind + `","content":"` + text + `"}}`)
}

var written = []json.RawMessage{entry("user", "1", "What do the notes say?"), entry("assistant", "2", "Buy bread.")}

// TestRecord writes a file, with -record.
func TestRecord(t *testing.T) {
	t.Parallel()
	if *recordTo == "" {
		t.Skip("it writes a record, with -record NAME")
	}
	require.NoError(t, os.MkdirAll("testdata/recorded", 0o755))
	s, err := troupesqlite.Open(t.Context(), filepath.Join("testdata/recorded", *recordTo+".db"), troupesqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Append(t.Context(), session.StoreKey{Project: project, Session: id}, written))
	require.NoError(t, s.Append(t.Context(), session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-1"}, written[:1]))
	require.NoError(t, s.Append(t.Context(), session.StoreKey{Project: "-other", Session: other}, written[:1]))
	_, err = s.AcquireLease(t.Context(), session.LeaseRequest{Session: id, Holder: session.LeaseHolder{Host: "first", PID: 1}, TTL: time.Second})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// A file of an earlier release is read and extended by this one, and its leases are over.
func TestARecordedFile(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("testdata/recorded/*.db")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, from := range all {
		t.Run(filepath.Base(from), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(from)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "sessions.db")
			require.NoError(t, os.WriteFile(file, raw, 0o600))
			s, err := troupesqlite.Open(t.Context(), file, troupesqlite.Options{})
			require.NoError(t, err)
			key := session.StoreKey{Project: project, Session: id}
			load := func() (entries []json.RawMessage) {
				for e, err := range s.Load(t.Context(), key) {
					require.NoError(t, err)
					entries = append(entries, e)
				}
				return entries
			}
			assert.Equal(t, written, load())
			stored, err := s.Sessions(t.Context(), project)
			require.NoError(t, err)
			require.Len(t, stored, 1)
			assert.Equal(t, id, stored[0].ID)
			summaries, err := s.Summaries(t.Context(), project)
			require.NoError(t, err)
			assert.Len(t, summaries, 1)
			below, err := s.Subpaths(t.Context(), project, id)
			require.NoError(t, err)
			assert.Equal(t, []string{"subagents/agent-1"}, below)
			_, err = s.AcquireLease(t.Context(), session.LeaseRequest{Session: id, Holder: session.LeaseHolder{Host: "second", PID: 1}, TTL: time.Minute})
			require.NoError(t, err)
			require.NoError(t, s.Append(t.Context(), key, append(written[1:], entry("user", "3", "And now?"))))
			assert.Len(t, load(), 3, "an entry is there once")
			require.NoError(t, s.Close())
		})
	}
}
