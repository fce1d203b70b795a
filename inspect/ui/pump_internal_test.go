package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// crowd is a window of a runtime with sessions, and what would make its frames.
func crowd(t *testing.T, n int) (*Window, *pump, []*runtime.Session) {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	w := Handler(rt, Config{Access: inspect.Access{Token: "0123456789abcdef"}})
	t.Cleanup(w.Close)
	var all []*runtime.Session
	for i := range n {
		s, err := rt.Open(t.Context(), runtime.Spec{ID: fmt.Sprintf("s%02d", i), Dialect: claude.New(), Program: scripted.New(scripted.WithScript(&scripted.Script{}))})
		require.NoError(t, err)
		all = append(all, s)
	}
	p := &pump{w: w, marked: map[string]bool{}, ends: map[string]*session.Ended{}, rows: map[string]*row{}}
	for _, s := range all {
		require.NoError(t, s.AwaitReady(t.Context()))
		of := s.Outline()
		r := rowOf(&of)
		p.rows[s.ID()] = &r
	}
	return w, p, all
}

// handled is how many messages the session's actor has handled. To ask is one more each time.
func handled(t *testing.T, s *runtime.Session) int64 {
	t.Helper()
	return s.Tree(t.Context()).Actors[0].Handled
}

// TestManySessionsAreNotAsked makes rows of many sessions without a question to them, but asks the one whose
// actor has failed.
func TestManySessionsAreNotAsked(t *testing.T) {
	t.Parallel()
	w, p, all := crowd(t, 60)
	handled(t, all[0])
	one := handled(t, all[0])
	asks := handled(t, all[0]) - one // what a look costs
	require.Positive(t, asks)
	since := func(do func()) int64 {
		t.Helper()
		before := handled(t, all[0])
		do()
		return handled(t, all[0]) - before - asks
	}
	ready := &session.EventRecord{Session: "s00", Event: &session.StateChanged{From: "running", To: "ready"}}
	more := since(func() {
		assert.False(t, p.heard(ready), "to wake a task for each change of state is what a busy program pays for")
		p.flush(t.Context())
	})
	assert.Positive(t, more, "a session among few is asked")
	w.sweepMany = 10
	assert.Zero(t, since(func() {
		p.heard(ready)
		p.flush(t.Context())
		assert.Empty(t, p.dirty)
	}))
	assert.Positive(t, since(func() {
		assert.True(t, p.heard(&session.EventRecord{Session: "s00", Event: &session.ActorFailed{Actor: "x", Reason: errors.New("crash")}}))
		p.heard(ready)
		p.flush(t.Context())
	}))
	for _, s := range all {
		p.mark(s.ID())
	}
	p.flush(t.Context())
	assert.Len(t, p.dirty, len(all)-manyRows)
}

// TestARowKeepsWhatItWasNotAskedFor has the restarts and the memory of the last look.
func TestARowKeepsWhatItWasNotAskedFor(t *testing.T) {
	t.Parallel()
	w, p, all := crowd(t, 3)
	w.sweepMany = 1
	last := *p.rows["s00"]
	last.lives, last.Restarts, last.RSS = 2, 2, 1<<20
	r := p.describe(t.Context(), all[0], &last, false)
	assert.True(t, last.same(&r))
	assert.Equal(t, int64(1<<20), r.RSS)
}

// TestTheTreeAsksFew has groups with their first sessions whole, and counts the others.
func TestTheTreeAsksFew(t *testing.T) {
	t.Parallel()
	w, _, all := crowd(t, groupSize+2)
	last := all[len(all)-1]
	handled(t, last)
	one := handled(t, last)
	asks := handled(t, last) - one
	read := func(path string, to any) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, http.NoBody)
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), to))
	}
	before := handled(t, last)
	var tree struct {
		Groups []struct {
			Count    int
			Sessions []struct {
				ID     string
				Actors []struct{ Name string }
			}
		}
	}
	read("/api/tree", &tree)
	assert.Equal(t, asks, handled(t, last)-before, "the last session is not shown")
	require.Len(t, tree.Groups, 1)
	assert.Equal(t, groupSize+2, tree.Groups[0].Count)
	require.Len(t, tree.Groups[0].Sessions, groupSize)
	for _, s := range tree.Groups[0].Sessions {
		assert.Greater(t, len(s.Actors), 1, s.ID)
	}
	var rows struct{ Sessions []struct{ ID, State string } }
	before = handled(t, last)
	read("/api/rows?id=s07&id=gone&id=s01", &rows)
	assert.Greater(t, handled(t, last)-before, asks, "a row in view is")
	require.Len(t, rows.Sessions, 2)
	assert.Equal(t, "s07", rows.Sessions[0].ID)
	read("/api/rows?id="+strings.Repeat("s01&id=", 100), &rows)
	assert.Len(t, rows.Sessions, maxShown)
}

// TestGroupsOfSeveralHosts counts the sessions of all, and leaves the groups of this program as they were.
func TestGroupsOfSeveralHosts(t *testing.T) {
	t.Parallel()
	ready := func(id string) runtime.SessionTree { return runtime.SessionTree{ID: id, State: session.StateReady} }
	g := groupingOf(nil)
	g.add("", []runtime.SessionTree{ready("a"), ready("b")})
	own := g.sorted()
	far := &inspect.Report{}
	for i := range groupSize {
		far.Tree.Sessions = append(far.Tree.Sessions, ready(fmt.Sprint(i)))
	}
	far.Tree.Sessions = append(far.Tree.Sessions, runtime.SessionTree{ID: "f", State: session.StateFailed})
	for range 2 {
		all := groupingOf(own).hosts(map[string]*inspect.Report{"77": far}).sorted()
		require.Len(t, all, 2)
		assert.Equal(t, []any{session.StateFailed, 1}, []any{all[0].State, all[0].Count}, "trouble first")
		assert.Equal(t, groupSize+2, all[1].Count)
		require.Len(t, all[1].Sessions, groupSize)
		assert.Equal(t, []string{"", "77"}, []string{all[1].Sessions[1].Host, all[1].Sessions[2].Host})
	}
	require.Len(t, own, 1)
	assert.Equal(t, 2, own[0].Count)
	assert.Len(t, own[0].Sessions, 2)
}
