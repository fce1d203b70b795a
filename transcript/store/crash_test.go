package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// onDisk is a store whose disk remembers what is durable.
func onDisk(t *testing.T) (*store.Dir, *journaltest.Disk) {
	t.Helper()
	root, disk := t.TempDir(), new(journaltest.Disk)
	s := store.NewDir(root)
	files, err := disk.Files(root)
	require.NoError(t, err)
	s.Files = files
	return s, disk
}

// after is the store that a crash leaves.
func after(t *testing.T, disk *journaltest.Disk) *store.Dir {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, disk.WriteTo(root))
	return store.NewDir(root)
}

func acquire(t *testing.T, s *store.Dir) session.Lease {
	t.Helper()
	l, err := s.AcquireLease(t.Context(), session.LeaseRequest{Session: key.Session, TTL: time.Minute, Dead: func(session.LeaseHolder) bool { return true }})
	require.NoError(t, err)
	return l
}

// What a loss of power leaves of a store has every lease and every entry that the store had
// given or taken before it: a token never falls, or two hosts would write one session.
func TestALossOfPower(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	given, taken := map[int]int64{}, map[int]int{} // by the operations before the store said so
	entries := 0
	for range 2 {
		l := acquire(t, s)
		given[disk.Ops()] = l.Token
		ctx := session.WithLease(t.Context(), l)
		for range 2 {
			entries++
			require.NoError(t, s.Append(ctx, key, []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"uuid":"%d"}`, entries))}))
			taken[disk.Ops()] = entries
		}
		require.NoError(t, s.ReleaseLease(t.Context(), l))
	}
	var token int64
	least, states := 0, 0
	for n, left := range disk.Crashes() {
		token, least = max(token, given[n]), max(least, taken[n])
		found := after(t, left)
		require.Greater(t, acquire(t, found).Token, token, "after operation %d", n)
		all := texts(t, found)
		require.GreaterOrEqual(t, len(all), least, "after operation %d", n)
		for i, text := range all {
			require.Equal(t, fmt.Sprintf(`{"uuid":"%d"}`, i+1), text, "after operation %d", n) //nolint:testifylint // to the byte
		}
		states++
	}
	require.Greater(t, states, 100)
}

// An entry that is appended after the session was deleted is durable as well, whether this store or
// another program has deleted it.
func TestALossOfPowerAfterADelete(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]bool{"this store": false, "another program": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, k := range []session.StoreKey{key, {Project: key.Project, Session: key.Session, Subpath: "subagents/agent-1"}} {
				root, disk := t.TempDir(), new(journaltest.Disk)
				files, err := disk.Files(root)
				require.NoError(t, err)
				s := store.NewDir(root)
				s.Files = files
				deletes := s
				if other {
					deletes = store.NewDir(root)
					deletes.Files = files
				}
				require.NoError(t, s.Append(t.Context(), k, []json.RawMessage{json.RawMessage(`{"uuid":"1"}`), json.RawMessage(`{"uuid":"2"}`)}))
				require.NoError(t, deletes.Delete(t.Context(), k))
				require.NoError(t, s.Append(t.Context(), k, []json.RawMessage{json.RawMessage(`{"uuid":"3"}`)}))
				done, states := disk.Ops(), 0
				for n, left := range disk.Crashes() {
					if n != done {
						continue
					}
					states++
					var all []string
					for e, err := range after(t, left).Load(t.Context(), k) {
						require.NoError(t, err)
						all = append(all, string(e))
					}
					require.Equal(t, []string{`{"uuid":"3"}`}, all)
				}
				require.Positive(t, states)
			}
		})
	}
}

// Each operation fails once: what the store had said stays, nothing else is left, and the
// next try works.
func TestADiskThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for at := range 40 {
		s, disk := onDisk(t)
		n := 0
		disk.Fail = func(journaltest.Op) error {
			if n++; n == at {
				return full
			}
			return nil
		}
		var token int64
		for range 3 {
			l, err := s.AcquireLease(t.Context(), session.LeaseRequest{Session: key.Session, TTL: time.Minute, Dead: func(session.LeaseHolder) bool { return true }})
			if err != nil {
				require.ErrorIs(t, err, full)
				l = acquire(t, s)
			}
			require.Greater(t, l.Token, token, "operation %d", at)
			token = l.Token
			ctx, one := session.WithLease(t.Context(), l), []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"uuid":"%d"}`, token))}
			if err := s.Append(ctx, key, one); err != nil {
				require.ErrorIs(t, err, full)
				require.NoError(t, s.Append(ctx, key, one), "operation %d", at)
			}
		}
		require.Contains(t, texts(t, s), fmt.Sprintf(`{"uuid":"%d"}`, token))
	}
}
