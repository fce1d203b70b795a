package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// oddLine is a message of session 1. Its parent is the n-th message; 0: none.
func oddLine(n, parent int, text string) string {
	above := "null"
	if parent > 0 {
		above = fmt.Sprintf("%q", sessionN(100+parent))
	}
	return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%s,"isSidechain":false,"message":{"role":"user","content":%q},"sessionId":%q,"cwd":"/w","timestamp":"2026-11-22T00:00:0%d.000Z"}`+"\n",
		sessionN(100+n), above, text, sessionN(1), n)
}

// oddFile makes a file of session 1 in the folder of a directory.
func oddFile(t *testing.T, v transcript.Vendor, dir, content string) (s *transcript.Sessions, file string) {
	t.Helper()
	s = &transcript.Sessions{Vendor: v, Root: t.TempDir()}
	folder := filepath.Join(s.Root, "projects", transcript.FolderName(v, dir))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	file = filepath.Join(folder, sessionN(1)+".jsonl")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	return s, file
}

// texts are the messages of session 1, and the error that ends them.
func texts(s *transcript.Sessions, o transcript.ShownOptions) (all []string, err error) {
	for m, err := range s.Messages(context.Background(), sessionN(1), o) {
		if err != nil {
			return all, err
		}
		all = append(all, m.Text())
	}
	return all, nil
}

// What is no line costs itself and what hangs on it, is reported, and does not keep edits
// from working.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		want    string
		damaged int
	}{
		"torn":               {oddLine(1, 0, "a") + oddLine(2, 1, "b") + `{"type":"user","uuid":"x`, "a b", 1},
		"no newline":         {oddLine(1, 0, "a") + strings.TrimSuffix(oddLine(2, 1, "b"), "\n"), "a b", 0},
		"zeros":              {oddLine(1, 0, "a") + strings.Repeat("\x00", 5000) + "\n" + oddLine(2, 1, "b"), "a b", 1},
		"zeros to the end":   {oddLine(1, 0, "a") + oddLine(2, 1, "b") + strings.Repeat("\x00", 70000), "a b", 1},
		"zeros in a text":    {oddLine(1, 0, "a") + strings.ReplaceAll(oddLine(2, 1, "bX"), "X", "\x00") + oddLine(3, 1, "c"), "a c", 1},
		"a line of 70 MB":    {oddLine(1, 0, "a") + `{"type":"x","y":"` + strings.Repeat("z", 70<<20) + "\"}\n" + oddLine(2, 1, "b"), "a b", 1},
		"its own parent":     {oddLine(1, 0, "a") + oddLine(2, 2, "b") + oddLine(3, 1, "c"), "a c", 0},
		"a circle of three":  {oddLine(1, 3, "a") + oddLine(2, 1, "b") + oddLine(3, 2, "c") + oddLine(4, 0, "d"), "d", 0},
		"only a circle":      {oddLine(1, 2, "a") + oddLine(2, 1, "b"), "", 0},
		"two branches":       {oddLine(1, 0, "a") + oddLine(2, 1, "b") + oddLine(3, 1, "c"), "a c", 0},
		"one uuid twice":     {oddLine(1, 0, "a") + oddLine(2, 1, "b") + oddLine(2, 1, "B") + oddLine(3, 2, "c"), "a B c", 0},
		"the child is first": {oddLine(2, 1, "b") + oddLine(1, 0, "a"), "a b", 0},
		"arrays and numbers": {oddLine(1, 0, "a") + "[1]\n7\nnull\n" + oddLine(2, 1, "b"), "a b", 3},
		"deep":               {oddLine(1, 0, "a") + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000) + "\n" + oddLine(2, 1, "b"), "a b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := oddFile(t, transcript.Claude, "/w", c.content)
			check := func() {
				t.Helper()
				got, err := texts(s, transcript.ShownOptions{})
				require.NoError(t, err)
				require.Equal(t, c.want, strings.Join(got, " "))
				f, err := s.Open(t.Context(), sessionN(1))
				require.NoError(t, err)
				n, reports := f.Damaged()
				require.Equal(t, c.damaged, n)
				require.Len(t, reports, n)
				require.NoError(t, f.Close())
			}
			check()
			require.NoError(t, s.Rename(t.Context(), sessionN(1), "x\n\x00y\u202e"))
			check()
			info, err := s.Info(t.Context(), sessionN(1))
			require.NoError(t, err)
			require.Equal(t, "x\n\x00y\u202e", info.CustomTitle)
			if c.want == "" {
				return
			}
			fork, err := s.Fork(t.Context(), sessionN(1), transcript.ForkOptions{})
			if name == "a line of 70 MB" {
				require.ErrorIs(t, err, transcript.ErrLineTooLong)
			} else {
				require.NoError(t, err)
				n := 0
				for _, err := range s.Messages(t.Context(), fork, transcript.ShownOptions{}) {
					require.NoError(t, err)
					n++
				}
				require.Equal(t, len(strings.Fields(c.want)), n)
			}
			db := &store.Memory{}
			done, err := s.Import(t.Context(), sessionN(1), db, transcript.ImportOptions{})
			require.NoError(t, err)
			require.Equal(t, c.damaged, done.Damaged)
			kept := &transcript.Sessions{Vendor: transcript.Claude, Store: db, Dir: "/w"}
			got, err := texts(kept, transcript.ShownOptions{})
			require.NoError(t, err)
			require.Equal(t, c.want, strings.Join(got, " "), "in the store")
		})
	}
}

// A page has what is left, whatever its numbers are.
func TestPagesAtTheBorders(t *testing.T) {
	t.Parallel()
	s, file := oddFile(t, transcript.Claude, "/w", oddLine(1, 0, "a")+oddLine(2, 1, "b")+oddLine(3, 2, "c"))
	for n := 2; n <= 3; n++ {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		other := strings.ReplaceAll(string(raw), sessionN(1), sessionN(n))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), sessionN(n)+".jsonl"), []byte(other), 0o600))
	}
	stored := &transcript.Sessions{Vendor: transcript.Claude, Store: store.NewDir(filepath.Join(s.Root, "projects")), Dir: "/w"}
	for _, c := range []struct{ limit, offset, want int }{
		{0, 0, 3}, {3, 0, 3}, {4, 0, 3}, {2, 0, 2}, {1, 2, 1}, {2, 2, 1}, {0, 3, 0}, {1, 4, 0},
		{math.MaxInt, 1, 2}, {math.MaxInt, math.MaxInt, 0}, {1, math.MaxInt, 0}, {-1, -1, 3}, {math.MinInt, math.MinInt, 3},
	} {
		for _, s := range []*transcript.Sessions{s, stored} {
			list, err := s.List(t.Context(), transcript.ListOptions{Limit: c.limit, Offset: c.offset})
			require.NoError(t, err)
			require.Len(t, list, c.want, "%+v", c)
			got, err := texts(s, transcript.ShownOptions{Limit: c.limit, Offset: c.offset})
			require.NoError(t, err)
			require.Len(t, got, c.want, "%+v", c)
		}
	}
}

// Sessions of directories with odd names are found, also by way of a link.
func TestOddDirectories(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	long := strings.Repeat(strings.Repeat("é", 100)+"/", 3)
	for name, below := range map[string]string{
		"letters": "日本語 Ärger", "decomposed": "e\u0301", "beyond the plane": "😀", "long": long, "no UTF-8": "a\xffb", "a newline": "a\nb", "dots": "..a", "wildcards": "[a]*?{b}",
	} {
		for _, v := range []transcript.Vendor{transcript.Claude, transcript.Qoder} {
			t.Run(fmt.Sprint(name, v), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(base, fmt.Sprint("v", v), below)
				require.NoError(t, os.MkdirAll(dir, 0o700))
				s, _ := oddFile(t, v, dir, oddLine(1, 0, "a"))
				link := filepath.Join(t.TempDir(), "link")
				require.NoError(t, os.Symlink(dir, link))
				for _, d := range []string{"", dir, dir + "/", dir + "/x/..", link, link + "/"} {
					at := *s
					at.Dir = d
					list, err := at.List(t.Context(), transcript.ListOptions{})
					require.NoError(t, err)
					require.Len(t, list, 1, "%q", d)
					_, err = at.Info(t.Context(), sessionN(1))
					require.NoError(t, err)
				}
				at := *s
				at.Dir = base
				list, err := at.List(t.Context(), transcript.ListOptions{})
				require.NoError(t, err)
				require.Empty(t, list, "another directory")
			})
		}
	}
}

// A transcript that is replaced, cut or deleted while it is open is read as it was, or ends
// with an error.
func TestAFileThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	var content strings.Builder
	content.WriteString(oddLine(1, 0, "first"))
	for n := 2; n < 400; n++ {
		content.WriteString(strings.Replace(oddLine(2, 1, strings.Repeat("x", 5000)), sessionN(102), sessionN(100+n), 1))
	}
	content.WriteString(strings.ReplaceAll(oddLine(2, 1, "last"), sessionN(102), sessionN(900)))
	for name, change := range map[string]func(t *testing.T, s *transcript.Sessions, file string){
		"replaced": func(t *testing.T, _ *transcript.Sessions, file string) {
			t.Helper()
			require.NoError(t, os.WriteFile(file+".new", []byte(oddLine(1, 0, "new")), 0o600))
			require.NoError(t, os.Rename(file+".new", file))
		},
		"deleted": func(t *testing.T, s *transcript.Sessions, _ string) {
			t.Helper()
			require.NoError(t, s.Delete(t.Context(), sessionN(1)))
			var missing *transcript.NotFoundError
			require.ErrorAs(t, s.Delete(t.Context(), sessionN(1)), &missing)
			require.ErrorIs(t, s.Rename(t.Context(), sessionN(1), "x"), fs.ErrNotExist)
		},
		"appended": func(t *testing.T, s *transcript.Sessions, _ string) {
			t.Helper()
			require.NoError(t, s.Rename(t.Context(), sessionN(1), "x"))
		},
		"cut": func(t *testing.T, _ *transcript.Sessions, file string) {
			t.Helper()
			require.NoError(t, os.Truncate(file, 100))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, file := oddFile(t, transcript.Claude, "/w", content.String())
			f, err := s.Open(t.Context(), sessionN(1))
			require.NoError(t, err)
			change(t, s, file)
			var got []string
			var failed error
			for m, err := range f.Shown(transcript.ShownOptions{}) {
				if failed = err; err == nil {
					got = append(got, m.Text())
				}
			}
			require.NoError(t, f.Close())
			if name == "cut" {
				require.Error(t, failed)
				return
			}
			require.NoError(t, failed)
			require.Equal(t, []string{"first", "last"}, got)
		})
	}
}

// What cannot be copied leaves nothing behind.
func TestAForkThatFails(t *testing.T) {
	t.Parallel()
	s, file := oddFile(t, transcript.Claude, "/w", oddLine(1, 0, "a")+oddLine(2, 1, "b"))
	db := &store.Memory{}
	_, err := s.Import(t.Context(), sessionN(1), db, transcript.ImportOptions{})
	require.NoError(t, err)
	stored := &transcript.Sessions{Vendor: transcript.Claude, Store: db, Dir: "/w"}
	for _, at := range []*transcript.Sessions{s, stored} {
		for _, upTo := range []string{sessionN(107), "x", "../x", "\x00"} {
			_, err := at.Fork(t.Context(), sessionN(1), transcript.ForkOptions{UpTo: upTo})
			require.Error(t, err, "%q", upTo)
		}
		_, err := at.Fork(t.Context(), sessionN(9), transcript.ForkOptions{})
		require.ErrorIs(t, err, fs.ErrNotExist)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = at.Fork(cancelled, sessionN(1), transcript.ForkOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, at.Rename(t.Context(), sessionN(9), "x"), fs.ErrNotExist)
		require.ErrorIs(t, at.Tag(t.Context(), sessionN(9), "x"), fs.ErrNotExist)
		require.Error(t, at.Rename(t.Context(), "../../etc/passwd", "x"))
		list, err := at.List(t.Context(), transcript.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list, 1)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A line that no reader holds is no reason for a copy that lacks it.
func TestAForkOfAHugeLine(t *testing.T) {
	t.Parallel()
	huge := oddLine(2, 1, strings.Repeat("x", 64<<20))
	for name, c := range map[string]struct{ content, upTo, err string }{
		"before it":      {oddLine(1, 0, "a") + huge + oddLine(3, 2, "c"), sessionN(101), ""},
		"after it":       {oddLine(1, 0, "a") + huge + oddLine(3, 2, "c"), sessionN(103), "line 2"},
		"all":            {oddLine(1, 0, "a") + huge + oddLine(3, 2, "c"), "", "line 2"},
		"it is the last": {oddLine(1, 0, "a") + huge, "", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, file := oddFile(t, transcript.Claude, "/w", c.content)
			_, err := s.Fork(t.Context(), sessionN(1), transcript.ForkOptions{UpTo: c.upTo})
			left, wrong := os.ReadDir(filepath.Dir(file))
			require.NoError(t, wrong)
			if c.err == "" {
				require.NoError(t, err)
				require.Len(t, left, 2)
				return
			}
			require.ErrorIs(t, err, transcript.ErrLineTooLong)
			require.ErrorContains(t, err, c.err)
			require.Len(t, left, 1)
		})
	}
}

// wayward is a store that loads its sessions in its own way.
type wayward struct {
	*store.Memory
	load func(ctx context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error]
}

// Summaries leaves nothing but the sessions to a list.
func (w wayward) Summaries(context.Context, string) ([]session.StoredSummary, error) {
	return nil, errors.ErrUnsupported
}

// Load implements [session.Store].
func (w wayward) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	var all []json.RawMessage
	for e, err := range w.Memory.Load(ctx, key) {
		if err != nil {
			break
		}
		all = append(all, e)
	}
	return w.load(ctx, all)
}

// Each function returns what a store does wrong as an error, or gets over it.
func TestOddStores(t *testing.T) {
	t.Parallel()
	errHalf := errors.New("half")
	plain := func(all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
		return func(yield func(json.RawMessage, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		load func(ctx context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error]
		err  error
		want string
	}{
		"an error midway": {func(_ context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			return func(yield func(json.RawMessage, error) bool) {
				if yield(all[0], nil) {
					yield(nil, errHalf)
				}
			}
		}, errHalf, ""},
		"no answer": {func(ctx context.Context, _ []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			return func(yield func(json.RawMessage, error) bool) {
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		}, context.Canceled, ""},
		"what is no JSON": {func(_ context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			return plain([]json.RawMessage{all[0], json.RawMessage(`{"x`)})
		}, &session.StoreError{}, ""},
		"each twice": {func(_ context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			return plain(slices.Concat(all, all))
		}, nil, "a b c"},
		"the last one first": {func(_ context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			all = slices.Clone(all)
			slices.Reverse(all)
			return plain(all)
		}, nil, "a b c"},
		"with newlines": {func(_ context.Context, all []json.RawMessage) iter.Seq2[json.RawMessage, error] {
			var out []json.RawMessage
			for _, e := range all {
				out = append(out, json.RawMessage(strings.Replace(string(e), ",", ",\r\n\t", 1)))
			}
			return plain(out)
		}, nil, "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := wayward{&store.Memory{}, c.load}
			var all []json.RawMessage
			for n, text := range []string{"a", "b", "c"} {
				all = append(all, json.RawMessage(oddLine(n+1, n, text)))
			}
			require.NoError(t, w.Append(t.Context(), session.StoreKey{Project: "-w", Session: sessionN(1)}, all))
			s := &transcript.Sessions{Vendor: transcript.Claude, Store: w, Dir: "/w"}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if errors.Is(c.err, context.Canceled) {
				cancel()
			}
			f, err := s.Open(ctx, sessionN(1))
			if c.err == nil {
				require.NoError(t, err)
				require.NoError(t, f.Close())
				got, err := texts(s, transcript.ShownOptions{})
				require.NoError(t, err)
				require.Equal(t, c.want, strings.Join(got, " "))
				list, err := s.List(ctx, transcript.ListOptions{})
				require.NoError(t, err)
				require.Len(t, list, 1)
				_, err = s.Fork(ctx, sessionN(1), transcript.ForkOptions{})
				require.NoError(t, err)
				return
			}
			_, info := s.Info(ctx, sessionN(1))
			_, fork := s.Fork(ctx, sessionN(1), transcript.ForkOptions{})
			for _, err := range []error{err, info, fork} {
				var stored *session.StoreError
				require.ErrorAs(t, err, &stored)
				require.Equal(t, sessionN(1), stored.Key.Session)
				if !errors.As(c.err, new(*session.StoreError)) {
					require.ErrorIs(t, err, c.err)
				}
			}
			list, err := s.List(ctx, transcript.ListOptions{})
			if ctx.Err() != nil {
				require.ErrorIs(t, err, context.Canceled)
				return
			}
			require.NoError(t, err)
			require.Len(t, list, 1, "a list has a row for a session that cannot be read")
			require.Empty(t, list[0].Summary)
		})
	}
}
