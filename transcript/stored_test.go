package transcript_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

func userEntry(n int, text, more string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":null,"timestamp":"2026-09-10T00:00:00.000Z","cwd":"/w/x","isSidechain":false,"message":{"role":"user","content":%q}%s}`, sessionN(n), text, more))
}

// newStore has sessions of all kinds: 6 is a sidechain, and 2 has nothing to show.
func newStore(t *testing.T) (*recorder, *transcript.Sessions) {
	t.Helper()
	r := &recorder{}
	r.Now = func() time.Time { return time.UnixMilli(1800000000000) }
	for i, e := range []json.RawMessage{
		userEntry(1, "one", ""), json.RawMessage(`{"type":"mode","mode":"x"}`), userEntry(3, "three", ""),
		json.RawMessage(`{"type":"custom-title","customTitle":"T4"}`), userEntry(5, "odd", ""),
		json.RawMessage(strings.Replace(string(userEntry(6, "six", "")), "false", "true", 1)), userEntry(7, "prog", `,"entrypoint":"sdk-ts"`),
	} {
		id := sessionN(i + 1)
		if i == 4 {
			id = "odd name"
		}
		require.NoError(t, r.Append(t.Context(), session.StoreKey{Project: "-w-proj", Session: id}, []json.RawMessage{e}))
	}
	r.calls = nil
	return r, &transcript.Sessions{Vendor: transcript.Claude, Store: r, Dir: "/w/proj"}
}

// The expected lists are those of the Claude Agent SDK 0.3.329 with the same store.
func TestListOfAStore(t *testing.T) {
	t.Parallel()
	all := []string{"prog", "odd", "T4", "three", "one"}
	for name, c := range map[string]struct {
		without, reject []string
		o               transcript.ListOptions
		want            []string
		loads           int
	}{
		"summaries":                       {want: all},
		"no summaries":                    {without: []string{"listSessionSummaries"}, want: all, loads: 7},
		"programs' sessions stay":         {o: transcript.ListOptions{SkipProgrammatic: true}, want: all},
		"negative limits":                 {o: transcript.ListOptions{Limit: -1, Offset: -3}, want: all},
		"beyond the end":                  {o: transcript.ListOptions{Offset: 99}},
		"a page of summaries is full":     {o: transcript.ListOptions{Limit: 2, Offset: 1}, want: []string{"odd", "T4"}},
		"a page that is loaded is short":  {without: []string{"listSessionSummaries"}, o: transcript.ListOptions{Limit: 2, Offset: 1}, want: []string{"odd"}, loads: 2},
		"sessions that cannot be loaded":  {without: []string{"listSessionSummaries"}, reject: []string{"load"}, o: transcript.ListOptions{Limit: 3}, want: []string{"", "", ""}, loads: 3},
		"a rejected list is an error":     {reject: []string{"listSessions"}},
		"rejected summaries are an error": {reject: []string{"listSessionSummaries"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newStore(t)
			r.without, r.reject = c.without, c.reject
			list, err := s.List(t.Context(), c.o)
			if strings.HasSuffix(name, "is an error") || strings.HasSuffix(name, "are an error") {
				var failed *session.StoreError
				require.ErrorAs(t, err, &failed)
				require.ErrorIs(t, err, errBoom)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, i := range list {
				got = append(got, i.Summary)
				if i.Summary == "T4" {
					assert.Equal(t, "/w/proj", i.Cwd, "of the list's directory")
				}
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.loads, strings.Count(strings.Join(r.calls, "\n"), "load "))
		})
	}
}

// stale is a store whose summaries are old, missing, or of a session that is gone.
type stale struct{ *recorder }

func (s stale) Summaries(ctx context.Context, project string) ([]session.StoredSummary, error) {
	rows, err := s.recorder.Summaries(ctx, project)
	out := []session.StoredSummary{{ID: sessionN(99), Data: json.RawMessage(`{"firstPrompt":"ghost","firstPromptLocked":true}`)}}
	for _, row := range rows {
		switch row.ID {
		case sessionN(3):
			continue
		case sessionN(1):
			row.Modified, row.Data = row.Modified.Add(-5*time.Millisecond), json.RawMessage(`{"firstPrompt":"old","firstPromptLocked":true}`)
		}
		out = append(out, row)
	}
	return out, err
}

func TestStaleSummaries(t *testing.T) {
	t.Parallel()
	r, s := newStore(t)
	s.Store = stale{r}
	list, err := s.List(t.Context(), transcript.ListOptions{})
	require.NoError(t, err)
	var got []string
	for _, i := range list {
		got = append(got, fmt.Sprint(i.Summary, " ", i.FileSize > 0))
	}
	assert.Equal(t, []string{"prog false", "odd false", "T4 false", "three true", "one true"}, got)
}

func TestSubagentsOfAStore(t *testing.T) {
	t.Parallel()
	r, s := newStore(t)
	for _, sub := range []string{"subagents/agent-b", "subagents/deep/agent-c", "other/agent-d", "subagents/x", "notes"} {
		key := session.StoreKey{Project: "-w-proj", Session: sessionN(1), Subpath: sub}
		require.NoError(t, r.Append(t.Context(), key, []json.RawMessage{userEntry(30, sub, `,"agentId":"b"`)}))
	}
	require.NoError(t, r.Append(t.Context(), session.StoreKey{Project: "-w-proj", Session: sessionN(1), Subpath: "subagents/agent-b"},
		[]json.RawMessage{json.RawMessage(`{"type":"agent_metadata","agentType":"g","toolUseId":"tu","parentAgentId":"pa"}`)}))
	list, err := s.Subagents(t.Context(), sessionN(1))
	require.NoError(t, err)
	assert.Equal(t, []transcript.Subagent{{ID: "b"}, {ID: "c"}}, list)
	for _, without := range [][]string{nil, {"listSubkeys"}} {
		r.without = without
		for m, err := range s.SubagentMessages(t.Context(), sessionN(1), "b", transcript.ShownOptions{}) {
			require.NoError(t, err)
			assert.Equal(t, "tu pa", *m.ParentToolUseID+" "+*m.ParentAgentID)
		}
	}
	r.without = nil
	for _, unknown := range []string{"d", "x", "", "zz", "../x"} {
		f, err := s.OpenSubagent(t.Context(), sessionN(1), unknown)
		var missing *transcript.NotFoundError
		require.ErrorAs(t, err, &missing, "%q", unknown)
		require.Nil(t, f)
	}
}

// A transcript that does not fit into memory goes through a file, which is removed.
func TestALargeStoredSession(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r, s := newStore(t)
	key := session.StoreKey{Project: "-w-proj", Session: sessionN(50)}
	parent := "null"
	all := 24
	if testing.Short() || sim.Raced() {
		all = 8
	}
	for n := range all {
		e := strings.Replace(string(userEntry(100+n, fmt.Sprintf("m%d %s", n, strings.Repeat("x", 1<<20)), "")), `"parentUuid":null`, `"parentUuid":`+parent, 1)
		parent = fmt.Sprintf("%q", sessionN(100+n))
		require.NoError(t, r.Append(t.Context(), key, []json.RawMessage{json.RawMessage(e)}))
	}
	n := 0
	for m, err := range s.Messages(t.Context(), sessionN(50), transcript.ShownOptions{}) {
		require.NoError(t, err)
		assert.Contains(t, string(m.Message[:60]), fmt.Sprintf("m%d ", n))
		n++
		assert.Len(t, tree(t, tmp), 1)
	}
	assert.Equal(t, all, n)
	assert.Empty(t, tree(t, tmp), "the file is removed")
}
