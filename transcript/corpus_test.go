package transcript_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// corpusFile is one file of the recorded sessions.
type corpusFile struct {
	Path  string `json:"path"`
	MTime int64  `json:"mtime_ms"`
	data  []byte
}

// corpus returns the recorded sessions: testdata/corpus.zip.
var corpus = sync.OnceValues(func() ([]corpusFile, error) {
	z, err := zip.OpenReader("testdata/corpus.zip")
	if err != nil {
		return nil, err
	}
	defer z.Close()
	data := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		if data[f.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	var files []corpusFile
	if err := json.Unmarshal(data["manifest.json"], &files); err != nil {
		return nil, err
	}
	for i := range files {
		files[i].data = data[files[i].Path]
	}
	return files, nil
})

// copyCorpus writes the recorded sessions, with their file times, into a new
// configuration directory.
func copyCorpus(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	writeCorpus(t, root)
	return root
}

func writeCorpus(t testing.TB, root string) {
	t.Helper()
	files, err := corpus()
	require.NoError(t, err)
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.Path))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, f.data, 0o600))
		at := time.UnixMilli(f.MTime)
		require.NoError(t, os.Chtimes(name, at, at))
	}
}

// corpusData returns one file of the recorded sessions.
func corpusData(t testing.TB, suffix string) []byte {
	t.Helper()
	files, err := corpus()
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f.Path, suffix) {
			return f.data
		}
	}
	require.Fail(t, "no such file", suffix)
	return nil
}

// tree returns the content of all files below root.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out[filepath.ToSlash(rel)] = string(raw)
		return err
	}))
	return out
}

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, v))
}

// shared is a copy of the recorded sessions that no test changes; see TestMain.
var shared struct {
	once sync.Once
	root string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.root != "" {
		_ = os.RemoveAll(shared.root)
	}
	os.Exit(code)
}

// sharedCorpus returns a copy of the recorded sessions for tests that only read.
func sharedCorpus(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		root, err := os.MkdirTemp("", "sessions")
		require.NoError(t, err)
		shared.root = root
		writeCorpus(t, root)
	})
	return shared.root
}

// heap returns how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
