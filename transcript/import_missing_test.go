package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// What a store lacks is imported, in order, and once.
func TestImportOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	const (
		one   = `{"type":"user","uuid":"1","parentUuid":null,"message":{"role":"user","content":"a"}}`
		two   = `{"type":"assistant","uuid":"2","parentUuid":"1","n":12345678901234567890}`
		again = `{"n":12345678901234567890,"parentUuid":"1","uuid":"2","type":"assistant"}` // in another order
		three = `{"type":"user","uuid":"3","parentUuid":"2"}`
		four  = `{"type":"user","uuid":"4","parentUuid":"3"}`
		old   = `{"type":"custom-title","customTitle":"old"}`
		title = `{"type":"custom-title","customTitle":"new"}`
		named = `{"type":"custom-title","customTitle":"of the store","uuid":"9"}`
		call  = `{"type":"api-request","uuid":"8"}`
	)
	for name, c := range map[string]struct {
		file    string
		store   []string
		added   []string
		foreign int
		damaged int
	}{
		"all of it":              {one + "\n" + old + "\n" + two + "\n", nil, []string{one, old, two}, 0, 0},
		"nothing":                {one + "\n" + two + "\n", []string{one, again}, nil, 0, 0},
		"the tail":               {one + "\n" + two + "\n" + three + "\n" + title + "\n", []string{one, two}, []string{three, title}, 0, 0},
		"a torn tail":            {one + "\n" + two + "\n" + `{"type":"us`, []string{one}, []string{two}, 0, 1},
		"no newline, CRLF, BOM":  {"\ufeff" + one + "\r\n" + two + "\r\n" + three, []string{one, two}, []string{three}, 0, 0},
		"a gap":                  {one + "\n" + old + "\n" + two + "\n" + three + "\n" + title + "\n", []string{one, three, title}, []string{two}, 0, 0},
		"the same title again":   {one + "\n" + title + "\n" + two + "\n" + title + "\n", []string{one, title, two}, []string{title}, 0, 0},
		"requests are not there": {one + "\n" + call + "\n" + two + "\n", []string{one}, []string{two}, 0, 0},
		"a title of the store":   {one + "\n" + two + "\n", []string{one, named}, []string{two}, 0, 0},
		"one digit":              {one + "\n" + strings.Replace(two, "7890}", "7891}", 1), []string{one, again, three}, nil, 2, 0},
		"a uuid twice":           {one + "\n" + one + "\n" + two + "\n", []string{one}, []string{two}, 0, 0},
		"another machine":        {one + "\n" + three + "\n" + title + "\n", []string{one, two, four}, nil, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const id = "5e550000-0000-4000-8000-000000000001"
			root, s := t.TempDir(), &store.Memory{}
			folder := filepath.Join(root, "projects", "-w")
			require.NoError(t, os.MkdirAll(filepath.Join(folder, id, "subagents"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(folder, id+".jsonl"), []byte(c.file), 0o600))
			sub := filepath.Join(folder, id, "subagents", "agent-a")
			require.NoError(t, os.WriteFile(sub+".jsonl", []byte(one+"\n"), 0o600))
			require.NoError(t, os.WriteFile(sub+".meta.json", []byte(`{"agentType":"x"}`), 0o600))
			key := session.StoreKey{Project: "-w", Session: id}
			var had []json.RawMessage
			for _, e := range c.store {
				had = append(had, json.RawMessage(e))
			}
			require.NoError(t, s.Append(t.Context(), key, had))
			at := &transcript.Sessions{Vendor: transcript.Claude, Root: root}
			got, err := at.Import(t.Context(), id, s, transcript.ImportOptions{Missing: true, Batch: 1})
			require.NoError(t, err)
			require.Equal(t, transcript.Imported{Key: key, Entries: len(c.added) + 2, Damaged: c.damaged, Foreign: c.foreign}, got)
			all := func() string {
				var lines []string
				for e, err := range s.Load(t.Context(), key) {
					require.NoError(t, err)
					lines = append(lines, string(e))
				}
				return strings.Join(lines, "\n")
			}
			want := strings.Join(append(c.store, c.added...), "\n")
			require.Equal(t, want, all())
			got, err = at.Import(t.Context(), id, s, transcript.ImportOptions{Missing: true})
			require.NoError(t, err)
			require.Zero(t, got.Entries, "it is repeated")
			require.Equal(t, want, all())
		})
	}
}
