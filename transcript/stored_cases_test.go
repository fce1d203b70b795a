package transcript_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// storeCase is a call of one of the vendor's functions with a session store.
type storeCase struct {
	vendorCase

	Store struct {
		Without, Reject []string
	} `json:"store"`
	StoreEmpty bool        `json:"store_empty"`
	Calls      []storeCall `json:"store_calls"`
	After      []any       `json:"after"`
}

// storeCall is a call of the store.
type storeCall struct {
	Method string          `json:"method"`
	Key    *vendorKey      `json:"key"`
	Arg    json.RawMessage `json:"arg"`
	Types  []string        `json:"types"`
}

type vendorKey struct {
	ProjectKey, SessionID, Subpath string
}

// String is the call in short form.
func (c *storeCall) String() string {
	key := ""
	switch {
	case c.Key != nil:
		key = session.StoreKey{Project: c.Key.ProjectKey, Session: c.Key.SessionID, Subpath: c.Key.Subpath}.String()
	default:
		var k vendorKey
		if json.Unmarshal(c.Arg, &key) != nil && json.Unmarshal(c.Arg, &k) == nil {
			key = session.StoreKey{Project: k.ProjectKey, Session: k.SessionID, Subpath: k.Subpath}.String()
		}
	}
	return strings.TrimSpace(c.Method + " " + key + " " + strings.Join(c.Types, ","))
}

// recorder is a store that lacks some methods, fails in others, and keeps what was called.
type recorder struct {
	store.Memory

	without, reject []string
	calls           []string
}

var errBoom = errors.New("boom")

func (r *recorder) call(method, key string, types ...string) error {
	if slices.Contains(r.without, method) {
		return errors.ErrUnsupported
	}
	r.calls = append(r.calls, strings.TrimSpace(method+" "+key+" "+strings.Join(types, ",")))
	if slices.Contains(r.reject, method) {
		return errBoom
	}
	return nil
}

func (r *recorder) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	var types []string
	for _, e := range entries {
		var row struct {
			Type       string
			Attachment *struct{ Type string }
		}
		if err := json.Unmarshal(e, &row); err != nil {
			return err
		}
		if row.Attachment != nil {
			row.Type += "(" + row.Attachment.Type + ")"
		}
		types = append(types, row.Type)
	}
	return cmp.Or(r.call("append", key.String(), types...), r.Memory.Append(ctx, key, entries))
}

func (r *recorder) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	if err := r.call("load", key.String()); err != nil {
		return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
	}
	return r.Memory.Load(ctx, key)
}

func (r *recorder) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	if err := r.call("listSessions", project); err != nil {
		return nil, err
	}
	return r.Memory.Sessions(ctx, project)
}

func (r *recorder) Summaries(ctx context.Context, project string) ([]session.StoredSummary, error) {
	if err := r.call("listSessionSummaries", project); err != nil {
		return nil, err
	}
	return r.Memory.Summaries(ctx, project)
}

func (r *recorder) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	if err := r.call("listSubkeys", project+"/"+id); err != nil {
		return nil, err
	}
	return r.Memory.Subpaths(ctx, project, id)
}

func (r *recorder) Delete(ctx context.Context, key session.StoreKey) error {
	if err := r.call("delete", key.String()); err != nil {
		return err
	}
	return r.Memory.Delete(ctx, key)
}

// storeDeviations are the cases in which Troupe differs on purpose: what it does instead.
var storeDeviations = map[string]string{
	"import-without-dir":    "the session keeps the project of its own folder: append -w-proj2/5e550000-0000-4000-8000-000000000080 user,assistant",
	"rename-unknown-id":     "not found",
	"delete-without-method": "unsupported operation",
	"archive":               "there is no archive",
}

func TestClaudesFunctionsWithAStore(t *testing.T) {
	t.Parallel()
	var file struct{ Cases []storeCase }
	readJSON(t, "claude-store-functions.json", &file)
	require.Len(t, file.Cases, 52)
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			if c.Fn == "foldSessionSummary" {
				foldCase(t, &c)
				return
			}
			runStoreCase(t, &c)
		})
	}
}

// foldCase runs a case of foldSessionSummary, whose id and time are the store's matter here.
func foldCase(t *testing.T, c *storeCase) {
	var prev, want struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal(c.Args[0], &prev))
	require.NoError(t, json.Unmarshal(c.Result, &want))
	var entries []json.RawMessage
	require.NoError(t, json.Unmarshal(c.Args[2], &entries))
	assert.JSONEq(t, string(want.Data), string(transcript.FoldSummary(prev.Data, entries)))
	data := prev.Data
	for _, e := range entries {
		data = transcript.FoldSummary(data, []json.RawMessage{e})
	}
	assert.JSONEq(t, string(want.Data), string(data), "one by one")
}

func runStoreCase(t *testing.T, c *storeCase) {
	root := sharedCorpus(t)
	now := int64(1800000060000)
	r := &recorder{}
	r.Now = func() time.Time { return time.UnixMilli(now) }
	files := &transcript.Sessions{Vendor: transcript.Claude, Root: root, Dir: "/w/proj"}
	if !c.StoreEmpty {
		for _, n := range []int{1, 2, 3, 4, 5, 10, 11, 13, 14, 16, 18, 20, 24, 25, 30, 31, 32, 34, 70} {
			_, err := files.Import(t.Context(), sessionN(n), r, transcript.ImportOptions{})
			require.NoError(t, err)
			now += 60000
		}
	}
	now = 1800100000000
	r.calls, r.without, r.reject = nil, c.Store.Without, c.Store.Reject
	ids := 0
	s := &transcript.Sessions{
		Vendor: transcript.Claude, Store: r,
		Now:   func() time.Time { return time.UnixMilli(now) },
		NewID: func() string { ids++; return fmt.Sprintf("<new-uuid-%d>", ids) },
	}
	words, o := storeArgs(t, c)
	s.Dir, files.Dir = o.Dir, o.Dir
	result, err := callStored(t, s, files, c, words, o)
	if want, ok := storeDeviations[c.ID]; ok {
		assert.Contains(t, fmt.Sprint(err, r.calls, want), strings.TrimPrefix(want, "the session keeps the project of its own folder: "))
		return
	}
	here, absErr := filepath.Abs(".")
	require.NoError(t, absErr)
	project := transcript.FolderName(transcript.Claude, here) // of the process
	if c.Error != "" {
		require.Error(t, err)
		assert.Equal(t, c.Error, storeErrorText(err, c))
	} else {
		require.NoError(t, err)
		var want any
		require.NoError(t, json.Unmarshal(c.Result, &want))
		assert.Equal(t, want, shorten(result, want))
	}
	want := []string{}
	for i := range c.Calls {
		want = append(want, strings.ReplaceAll(c.Calls[i].String(), "<PROCESS-CWD-SLUG>", project))
	}
	calls := r.calls
	if c.Fn == "renameSession" || c.Fn == "tagSession" {
		calls = slices.DeleteFunc(calls, func(call string) bool { return strings.HasPrefix(call, "load ") }) // is it there?
	}
	assert.Equal(t, want, append([]string{}, calls...), "the calls of the store")
	checkAfter(t, c, r, words[0])
}

func sessionN(n int) string { return fmt.Sprintf("5e550000-0000-4000-8000-%012d", n) }

// checkAfter compares what the store has at the end with the recorded case.
func checkAfter(t *testing.T, c *storeCase, r *recorder, id string) {
	if c.After == nil {
		return
	}
	all := []any{}
	for e, err := range r.Memory.Load(t.Context(), session.StoreKey{Project: "-w-proj", Session: id}) {
		require.NoError(t, err)
		var row any
		require.NoError(t, json.Unmarshal(e, &row))
		all = append(all, row)
	}
	if len(c.After) > 0 {
		all = all[len(all)-len(c.After):]
		all[0].(map[string]any)["timestamp"] = "<now>"
	}
	assert.Equal(t, c.After, all)
}

type storeOptions struct {
	caseOptions

	BatchSize        int
	IncludeSubagents *bool
}

func storeArgs(t *testing.T, c *storeCase) (words []string, o storeOptions) {
	for _, a := range c.Args {
		var word *string
		if json.Unmarshal(a, &word) != nil {
			require.NoError(t, json.Unmarshal(a, &o))
			continue
		}
		if word == nil {
			words = append(words, "$null")
		} else if *word != "$store" {
			words = append(words, *word)
		}
	}
	return append(words, ""), o
}

func callStored(t *testing.T, s, files *transcript.Sessions, c *storeCase, words []string, o storeOptions) (any, error) {
	if c.Fn != "importSessionToStore" {
		return call(t, s, c.Fn, words, o.caseOptions)
	}
	_, err := files.Import(t.Context(), words[0], s.Store, transcript.ImportOptions{
		Batch: o.BatchSize, SkipSubagents: o.IncludeSubagents != nil && !*o.IncludeSubagents,
	})
	return "$undefined", err
}

// shorten brings our result into the short forms of the recorded cases.
func shorten(result, want any) any {
	rows, ok := result.([]any)
	if !ok {
		return dropZero(result)
	}
	wanted, _ := want.([]any)
	for i, r := range rows {
		row, ok := r.(map[string]any)
		if !ok || i >= len(wanted) {
			continue
		}
		short, ok := wanted[i].([]any)
		dropZero(row)
		switch {
		case !ok:
		case row["summary"] != nil:
			rows[i] = []any{row["sessionId"], row["summary"], row["lastModified"], row["fileSize"]}
		case len(short) == 3:
			rows[i] = []any{row["type"], row["parent_tool_use_id"], row["parent_agent_id"]}
		default:
			rows[i] = []any{row["type"], row["$text"]}
		}
	}
	return rows
}

// dropZero removes a size that is not known.
func dropZero(v any) any {
	if row, ok := v.(map[string]any); ok && row["fileSize"] == 0.0 {
		delete(row, "fileSize")
	}
	return v
}

func storeErrorText(err error, c *storeCase) string {
	var missing *transcript.NotFoundError
	var failed *session.StoreError
	switch {
	case errors.As(err, &missing):
		return "Session " + missing.ID + " not found"
	case errors.As(err, &failed) && errors.Is(err, errors.ErrUnsupported):
		return map[string]string{
			"listSessions":  "sessionStore.listSessions is not implemented -- cannot list sessions. Provide a store with a listSessions() method.",
			"listSubagents": "sessionStore.listSubkeys is not implemented -- cannot list subagents. Provide a store with a listSubkeys() method.",
		}[c.Fn]
	case errors.As(err, &failed):
		return failed.Err.Error()
	}
	return errorText(err, transcript.Claude, c.Fn)
}
