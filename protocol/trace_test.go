package protocol

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// The recordings under testdata/traces hold one event per line. Their long
// lists and strings were cut when they were made: "…+7 more" stands in a list
// for the elements that were left out, and is removed before a line is read.

// recorded is one line of a recording.
type recorded struct {
	file  string
	n     int // line number, from 1
	agent bool
	// line is the line of the wire; nil if the recording kept raw instead.
	line []byte
	// raw is the line as it was written, for those that are not JSON.
	raw string
}

var cutMark = regexp.MustCompile(`^(…\+\d+ more|<\d+ more>)$`)

// uncut removes the cut marks from all lists of v.
func uncut(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = uncut(e)
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if s, ok := e.(string); ok && cutMark.MatchString(s) {
				continue
			}
			out = append(out, uncut(e))
		}
		return out
	}
	return v
}

// generic decodes JSON without losing digits.
func generic(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", b)
	return v
}

// traces calls f for every recording, as a subtest.
func traces(t *testing.T, f func(t *testing.T, lines []recorded)) {
	t.Helper()
	root := filepath.Join("testdata", "traces")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".ndjson" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if name == "claude/options-map.ndjson" {
			return nil // another format; see TestOptionsMap
		}
		files++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, readTrace(t, path, name))
		})
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 300, "the recordings are missing")
}

func readTrace(t testing.TB, path, name string) []recorded {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var out []recorded
	for i, l := range bytes.Split(b, []byte("\n")) {
		if len(bytes.TrimSpace(l)) == 0 {
			continue
		}
		var e struct {
			Dir string
			Msg json.RawMessage
			Raw *string
		}
		require.NoError(t, json.Unmarshal(l, &e), "%s:%d", name, i+1)
		if e.Dir != "cli->sdk" && e.Dir != "sdk->cli" {
			continue
		}
		r := recorded{file: name, n: i + 1, agent: e.Dir == "cli->sdk"}
		if e.Raw != nil {
			r.raw = *e.Raw
		} else if typ := jsonscan.Get(e.Msg, "type"); string(typ) == `"RAW"` || typ == nil && jsonscan.Get(e.Msg, "raw") != nil {
			r.raw = jsonscan.Text(jsonscan.Get(e.Msg, "raw"))
		} else {
			r.line, err = Marshal(uncut(generic(t, e.Msg)))
			require.NoError(t, err)
		}
		out = append(out, r)
	}
	return out
}
