package queuetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// RunFiles tests the stores that open returns, each of which must be empty.
func RunFiles(t *testing.T, open func(t *testing.T) queue.Files) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, queue.Files)
	}{
		{"content comes back as it was", contents},
		{"a name that has nothing", missing},
		{"a second Put replaces the first", replaces},
		{"a reader that fails", failing},
		{"names are apart", names},
		{"many at once", atOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func put(t *testing.T, s queue.Files, name string, content io.Reader) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), name, content))
}

func get(t *testing.T, s queue.Files, name string) string {
	t.Helper()
	f, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(text)
}

func contents(t *testing.T, s queue.Files) {
	for i, text := range []string{"", "x", "\x00\xff\r\n", strings.Repeat("0123456789abcdef", 1<<18)} {
		name := fmt.Sprintf("7/attempts/t.%d/1/text.txt", i)
		put(t, s, name, iotest.HalfReader(strings.NewReader(text))) // content has no length
		for range 2 {                                               // it can be read again
			if got := get(t, s, name); got != text {
				require.FailNow(t, "the content differs", "number %d has %d bytes, not %d", i, len(got), len(text))
			}
		}
	}
}

func missing(t *testing.T, s queue.Files) {
	for _, name := range []string{"a", "a/b"} {
		_, err := s.Get(t.Context(), name)
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

func replaces(t *testing.T, s queue.Files) {
	put(t, s, "a/b", strings.NewReader("a longer first one"))
	put(t, s, "a/b", strings.NewReader("second"))
	assert.Equal(t, "second", get(t, s, "a/b"))
}

func failing(t *testing.T, s queue.Files) {
	odd := errors.New("odd")
	half := func() io.Reader {
		return io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x"), 100_000)), iotest.ErrReader(odd))
	}
	require.ErrorIs(t, s.Put(t.Context(), "a/new", half()), odd)
	_, err := s.Get(t.Context(), "a/new")
	require.ErrorIs(t, err, fs.ErrNotExist)
	put(t, s, "a/old", strings.NewReader("whole"))
	require.ErrorIs(t, s.Put(t.Context(), "a/old", half()), odd)
	f, err := s.Get(t.Context(), "a/old")
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	assert.Equal(t, "whole", string(text))
}

func names(t *testing.T, s queue.Files) {
	all := []string{"1/a", "2/a", "1/a-", "1/b/a", "11/a", "1/A#1_x.Y"}
	for _, name := range all {
		put(t, s, name, strings.NewReader(name))
	}
	for _, name := range all {
		assert.Equal(t, name, get(t, s, name))
	}
}

func atOnce(t *testing.T, s queue.Files) {
	var all sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		all.Go(func() { //troupe:seam a test of a store, which no simulation runs
			errs[i] = s.Put(t.Context(), fmt.Sprintf("dir/%d/x", i), strings.NewReader(fmt.Sprint(i)))
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for i := range errs {
		assert.Equal(t, fmt.Sprint(i), get(t, s, fmt.Sprintf("dir/%d/x", i)))
	}
}
