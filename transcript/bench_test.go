package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/transcript"
)

// benchTranscript is a session of turns with a tool result of 7 KB.
func benchTranscript(turns int) []byte {
	var b bytes.Buffer
	code := strings.Repeat(`\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n`, 80)
	parent, n := "null", 0
	line := func(typ, rest string) {
		n++
		uuid := fmt.Sprintf("%08d-0000-4000-8000-000000000001", n)
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"type":%q,%s,"uuid":%q,"timestamp":"2026-11-22T00:00:00.000Z","entrypoint":"cli","cwd":"/bench","sessionId":"5e550000-0000-4000-8000-000000000001","gitBranch":"main"}`+"\n",
			parent, typ, rest, uuid)
		parent = `"` + uuid + `"`
	}
	for t := range turns {
		line("user", `"message":{"role":"user","content":[{"type":"text","text":"find the mistake"}]}`)
		line("assistant", fmt.Sprintf(`"message":{"id":"msg_%d","role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{}}]}`, t, t))
		line("user", fmt.Sprintf(`"message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":"%s"}]}`, t, code))
		line("assistant", fmt.Sprintf(`"message":{"id":"msg_%db","role":"assistant","content":[{"type":"text","text":"The error is wrapped twice."}]}`, t))
	}
	return b.Bytes()
}

func BenchmarkDecoder(b *testing.B) {
	raw := benchTranscript(1000)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		d := transcript.NewDecoder(bytes.NewReader(raw))
		for {
			_, err := d.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(b, err)
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	raw := benchTranscript(1000)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Claude)
		require.NoError(b, err)
	}
}

func BenchmarkShown(b *testing.B) {
	raw := benchTranscript(1000)
	tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Claude)
	require.NoError(b, err)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range tr.Shown(transcript.ShownOptions{}) {
			require.NoError(b, err)
			n++
		}
		require.Equal(b, 4000, n)
	}
}

func BenchmarkList(b *testing.B) {
	root := b.TempDir()
	folder := filepath.Join(root, "projects", "-bench")
	require.NoError(b, os.MkdirAll(folder, 0o700))
	raw := benchTranscript(3)
	for i := range 1000 {
		require.NoError(b, os.WriteFile(filepath.Join(folder, fmt.Sprintf("5e550000-0000-4000-8000-%012d.jsonl", i)), raw, 0o600))
	}
	s := &transcript.Sessions{Vendor: transcript.Claude, Root: root}
	b.ReportAllocs()
	for b.Loop() {
		list, err := s.List(b.Context(), transcript.ListOptions{})
		require.NoError(b, err)
		require.Len(b, list, 1000)
	}
}
