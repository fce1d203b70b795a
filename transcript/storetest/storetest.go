package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// Run tests the stores that open returns, each of which must be empty. A method that
// returns an error that matches errors.ErrUnsupported the first time it is called skips
// what needs it; Append and Load are needed. A store that implements session.LeaseStore is
// tested as one. It takes a few seconds at most with a store
// that answers within a millisecond.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, session.Store)
	}{
		{"an unknown key has no entries", unknown},
		{"entries come back as they were, in their order", order},
		{"appends go to the end", appends},
		{"an entry with a known uuid is left out", twice},
		{"an entry with a known uuid that says something else is kept", changed},
		{"entries without a uuid are added each time", anonymous},
		{"JSON survives", content},
		{"the store keeps copies", copies},
		{"keys are apart", keys},
		{"subpaths", subpaths},
		{"sessions of a project", sessions},
		{"a deleted session is gone with its subpaths", deletes},
		{"a deleted subpath leaves the session", deletesOne},
		{"a deleted session can begin anew", again},
		{"a large entry", large},
		{"many entries", many},
		{"a loop over Load may end early", breaks},
		{"a context that has ended", cancelled},
		{"many sessions at once", parallel},
		{"readers beside a writer see a beginning of it", readers},
		{"files have the same entries", files},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	for _, c := range leaserTests() {
		t.Run(c.name, func(t *testing.T) { c.leases(t, open(t)) })
	}
}

const project, id, other = "-home-ada-work", "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a0001", "0b7de7f0-3c1c-4f5b-9d0e-1d7c3f0a0002"

// whole is the key of a session.
func whole() session.StoreKey { return session.StoreKey{Project: project, Session: id} }

// entry is a line as agents write them.
func entry(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"user","uuid":"%08d-0000-4000-8000-000000000000","message":{"role":"user","content":"%d"}}`, n, n))
}

func entries(from, to int) (all []json.RawMessage) {
	for n := from; n < to; n++ {
		all = append(all, entry(n))
	}
	return all
}

func load(t *testing.T, s session.Store, key session.StoreKey) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for e, err := range s.Load(t.Context(), key) {
		require.NoError(t, err, "load %s", key)
		all = append(all, e)
	}
	return all
}

// holds compares the entries as JSON: a store may change the space and the order of members.
func holds(t *testing.T, s session.Store, key session.StoreKey, want []json.RawMessage) {
	t.Helper()
	got := load(t, s, key)
	require.Len(t, got, len(want), "the number of entries of %s", key)
	for i := range want {
		require.JSONEq(t, string(want[i]), string(got[i]), "entry %d of %s", i, key)
	}
}

func add(t *testing.T, s session.Store, key session.StoreKey, all ...json.RawMessage) {
	t.Helper()
	require.NoError(t, s.Append(t.Context(), key, all), "append to %s", key)
}

func supported(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the store does not offer it")
	}
	require.NoError(t, err)
}

func unknown(t *testing.T, s session.Store) {
	assert.Empty(t, load(t, s, whole()))
	add(t, s, whole(), entry(1))
	assert.Empty(t, load(t, s, session.StoreKey{Project: project, Session: other}))
	assert.Empty(t, load(t, s, session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-a"}))
	assert.Empty(t, load(t, s, session.StoreKey{Project: "-elsewhere", Session: id}))
}

func order(t *testing.T, s session.Store) {
	want := entries(0, 20)
	slices.Reverse(want)
	add(t, s, whole(), want...)
	holds(t, s, whole(), want)
	holds(t, s, whole(), want)
}

func appends(t *testing.T, s session.Store) {
	for n := range 10 {
		add(t, s, whole(), entries(3*n, 3*n+3)...)
	}
	holds(t, s, whole(), entries(0, 30))
	require.NoError(t, s.Append(t.Context(), whole(), nil), "nothing to append")
	holds(t, s, whole(), entries(0, 30))
}

func twice(t *testing.T, s session.Store) {
	add(t, s, whole(), entries(0, 4)...)
	add(t, s, whole(), entries(2, 6)...)
	add(t, s, whole(), entry(6), entry(6))
	holds(t, s, whole(), entries(0, 7))
	another := session.StoreKey{Project: project, Session: other}
	add(t, s, another, entry(0))
	holds(t, s, another, entries(0, 1))
}

func changed(t *testing.T, s session.Store) {
	later := json.RawMessage(strings.Replace(string(entry(1)), `"content":"1"`, `"content":"changed"`, 1))
	add(t, s, whole(), entry(1), entry(2), later)
	holds(t, s, whole(), []json.RawMessage{entry(1), entry(2), later})
	add(t, s, whole(), entry(1), entry(2), later) // the answer was lost
	holds(t, s, whole(), []json.RawMessage{entry(1), entry(2), later})
}

func anonymous(t *testing.T, s session.Store) {
	title := json.RawMessage(`{"type":"custom-title","customTitle":"a","sessionId":"` + id + `"}`)
	add(t, s, whole(), title, entry(1), title)
	add(t, s, whole(), title)
	odd := json.RawMessage(`{"type":"x","uuid":null}`)
	add(t, s, whole(), odd, odd)
	holds(t, s, whole(), []json.RawMessage{title, entry(1), title, title, odd, odd})
}

func content(t *testing.T, s session.Store) {
	want := []json.RawMessage{
		json.RawMessage(`{}`),
		json.RawMessage(`{"a":"\u0000\n\u2028😀\"\\","b":[1.50,-0,1e400,12345678901234567890],"c":{"":null,"uuid":"x"}}`),
		json.RawMessage(`{"type":"user", "unknown" : [ true , false ] }`),
	}
	add(t, s, whole(), want...)
	got := load(t, s, whole())
	require.Len(t, got, 3)
	assert.JSONEq(t, `{}`, string(got[0]))
	assert.JSONEq(t, string(want[2]), string(got[2]))
	for _, part := range []string{"12345678901234567890", "1e400"} {
		assert.Contains(t, strings.ToLower(string(got[1])), part, "numbers keep their digits")
	}
	var members struct{ A string }
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(string(got[1]), "1e400", "1", 1)), &members))
	assert.Equal(t, "\x00\n\u2028😀\"\\", members.A)
}

func copies(t *testing.T, s session.Store) {
	mine := []byte(entry(1))
	add(t, s, whole(), mine)
	copy(mine, strings.Repeat("x", len(mine)))
	got := load(t, s, whole())
	require.Len(t, got, 1)
	copy(got[0], strings.Repeat("y", len(got[0])))
	holds(t, s, whole(), entries(1, 2))
}

func keys(t *testing.T, s session.Store) {
	all := []session.StoreKey{
		whole(),
		{Project: project, Session: other},
		{Project: project + "-2", Session: id},
		{Project: project, Session: id, Subpath: "subagents/agent-a"},
		{Project: project, Session: id, Subpath: "subagents/agent-b"},
		{Project: project, Session: strings.ToUpper(id)},
		{Project: "_%", Session: "%_"},
	}
	for i, key := range all {
		add(t, s, key, entries(i, i+2)...)
	}
	for i, key := range all {
		holds(t, s, key, entries(i, i+2))
	}
}

func subpaths(t *testing.T, s session.Store) {
	got, err := s.Subpaths(t.Context(), project, id)
	supported(t, err)
	assert.Empty(t, got)
	want := []string{"subagents/agent-a", "subagents/agent-b", "subagents/deep/agent-c"}
	for i, sub := range want {
		add(t, s, session.StoreKey{Project: project, Session: id, Subpath: sub}, entry(i))
	}
	add(t, s, whole(), entry(9))
	add(t, s, session.StoreKey{Project: project, Session: other, Subpath: "subagents/agent-x"}, entry(1))
	add(t, s, session.StoreKey{Project: "-elsewhere", Session: id, Subpath: "subagents/agent-y"}, entry(1))
	got, err = s.Subpaths(t.Context(), project, id)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, got)
}

func sessions(t *testing.T, s session.Store) {
	got, err := s.Sessions(t.Context(), project)
	supported(t, err)
	assert.Empty(t, got)
	add(t, s, whole(), entry(1))
	add(t, s, session.StoreKey{Project: project, Session: other}, entry(2))
	add(t, s, session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-a"}, entry(3))
	add(t, s, session.StoreKey{Project: project + "-2", Session: "third"}, entry(4))
	got, err = s.Sessions(t.Context(), project)
	require.NoError(t, err)
	found := make(map[string]time.Time)
	for _, row := range got {
		found[row.ID] = row.Modified
		assert.False(t, row.Modified.IsZero(), "session %s has no time", row.ID)
	}
	require.Len(t, got, 2, "each session once: %v", got)
	require.Contains(t, found, id)
	require.Contains(t, found, other)
	n := 4
	require.Eventually(t, func() bool { // times of files are coarse
		n++
		err := s.Append(t.Context(), whole(), entries(n, n+1))
		got, listed := s.Sessions(t.Context(), project)
		i := slices.IndexFunc(got, func(row session.StoredSession) bool { return row.ID == id })
		return err == nil && listed == nil && i >= 0 && got[i].Modified.After(found[id]) && got[i].Modified.After(found[other])
	}, 10*time.Second, 5*time.Millisecond, "an append changes the time of its session, which is then the newest")
}

func deletes(t *testing.T, s session.Store) {
	sub := session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-a"}
	neighbour := session.StoreKey{Project: project, Session: other, Subpath: "subagents/agent-a"}
	supported(t, s.Delete(t.Context(), whole()))
	add(t, s, whole(), entry(1))
	add(t, s, sub, entry(2))
	add(t, s, neighbour, entry(3))
	require.NoError(t, s.Delete(t.Context(), whole()))
	assert.Empty(t, load(t, s, whole()))
	assert.Empty(t, load(t, s, sub), "the subpaths go with the session")
	holds(t, s, neighbour, entries(3, 4))
	if rows, err := s.Sessions(t.Context(), project); err == nil {
		assert.False(t, slices.ContainsFunc(rows, func(row session.StoredSession) bool { return row.ID == id }), "it is listed no more")
	}
	if left, err := s.Subpaths(t.Context(), project, id); err == nil {
		assert.Empty(t, left)
	}
	require.NoError(t, s.Delete(t.Context(), whole()), "what is not there")
}

func deletesOne(t *testing.T, s session.Store) {
	sub := session.StoreKey{Project: project, Session: id, Subpath: "subagents/agent-a"}
	supported(t, s.Delete(t.Context(), sub))
	add(t, s, whole(), entry(1))
	add(t, s, sub, entry(2))
	require.NoError(t, s.Delete(t.Context(), sub))
	assert.Empty(t, load(t, s, sub))
	holds(t, s, whole(), entries(1, 2))
}

func again(t *testing.T, s session.Store) {
	supported(t, s.Delete(t.Context(), whole()))
	add(t, s, whole(), entries(0, 3)...)
	require.NoError(t, s.Delete(t.Context(), whole()))
	add(t, s, whole(), entry(1))
	holds(t, s, whole(), entries(1, 2))
}

func large(t *testing.T, s session.Store) {
	text := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB
	add(t, s, whole(), json.RawMessage(`{"uuid":"a","text":"`+text+`"}`), entry(1))
	got := load(t, s, whole())
	require.Len(t, got, 2)
	var e struct{ Text string }
	require.NoError(t, json.Unmarshal(got[0], &e))
	if e.Text != text {
		t.Error("an entry of 4 MiB came back otherwise")
	}
}

func many(t *testing.T, s session.Store) {
	for n := range 10 {
		add(t, s, whole(), entries(500*n, 500*n+500)...)
	}
	holds(t, s, whole(), entries(0, 5000))
}

func breaks(t *testing.T, s session.Store) {
	add(t, s, whole(), entries(0, 10)...)
	for range 50 { // abandoned leases run out
		for e, err := range s.Load(t.Context(), whole()) {
			require.NoError(t, err)
			require.JSONEq(t, string(entry(0)), string(e))
			break
		}
	}
	add(t, s, whole(), entry(10))
	holds(t, s, whole(), entries(0, 11))
}

func cancelled(t *testing.T, s session.Store) {
	add(t, s, whole(), entry(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Append(ctx, whole(), entries(2, 3)), context.Canceled)
	var failed error
	for _, err := range s.Load(ctx, whole()) {
		failed = err
	}
	require.ErrorIs(t, failed, context.Canceled)
	if _, err := s.Sessions(ctx, project); !errors.Is(err, errors.ErrUnsupported) {
		require.ErrorIs(t, err, context.Canceled)
	}
	holds(t, s, whole(), entries(1, 2))
}

func parallel(t *testing.T, s session.Store) {
	key := func(n int) session.StoreKey {
		return session.StoreKey{Project: project, Session: fmt.Sprintf("s%d", n)}
	}
	t.Run("at once", func(t *testing.T) {
		for n := range 8 {
			t.Run(key(n).Session, func(t *testing.T) {
				t.Parallel()
				for i := range 20 {
					add(t, s, key(n), entry(i))
				}
			})
		}
	})
	for n := range 8 {
		holds(t, s, key(n), entries(0, 20))
	}
}

func readers(t *testing.T, s session.Store) {
	t.Run("at once", func(t *testing.T) {
		t.Run("writer", func(t *testing.T) {
			t.Parallel()
			for i := range 40 {
				add(t, s, whole(), entries(2*i, 2*i+2)...)
			}
		})
		t.Run("reader", func(t *testing.T) {
			t.Parallel()
			for range 20 {
				n := 0
				for e, err := range s.Load(t.Context(), whole()) {
					require.NoError(t, err)
					require.JSONEq(t, string(entry(n)), string(e))
					n++
				}
			}
		})
	})
	holds(t, s, whole(), entries(0, 80))
}
