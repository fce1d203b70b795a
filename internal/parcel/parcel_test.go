package parcel_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/parcel"
)

const limit = 1 << 20

func root(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, dir
}

func write(t *testing.T, dir, name, content string, perm fs.FileMode) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(content), perm))
	require.NoError(t, os.Chmod(file, perm))
}

// unpack writes all that a parcel has below files into a directory.
func unpack(r io.Reader, to *os.Root, limit int64) error {
	p := parcel.NewReader(r, limit)
	for {
		name, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = p.Write(to, strings.TrimPrefix(name, "files/"))
		}
		if err != nil {
			return err
		}
	}
}

// listing is what a directory has: modes, links and contents.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, name)
		require.NoError(t, err)
		st, err := d.Info()
		require.NoError(t, err)
		switch {
		case rel == ".":
		case d.IsDir():
			all[filepath.ToSlash(rel)] = "directory"
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(name)
			require.NoError(t, err)
			all[filepath.ToSlash(rel)] = "-> " + to
		default:
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			all[filepath.ToSlash(rel)] = fmt.Sprintf("%o %s", st.Mode().Perm(), content)
		}
		return nil
	}))
	return all
}

// A directory is the same on the other machine: contents, modes, links, empty directories and times.
func TestADirectoryTravels(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of Unix")
	}
	from, dir := root(t)
	write(t, dir, "a.txt", "hello", 0o644)
	write(t, dir, "bin/run", "#!/bin/sh", 0o755)
	write(t, dir, "secret", "s", 0o400)
	write(t, dir, "-odd name\n", "x", 0o600)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	require.NoError(t, os.Symlink("../a.txt", filepath.Join(dir, "bin", "link")))
	require.NoError(t, os.Symlink("bin", filepath.Join(dir, "dir")))
	at := time.Unix(1_700_000_000, 0)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "a.txt"), at, at))
	var b bytes.Buffer
	p := parcel.NewPacker(&b, limit)
	require.NoError(t, p.Tree("files", from))
	require.NoError(t, p.Close())
	assert.Empty(t, p.Left)
	to, copied := root(t)
	write(t, copied, "a.txt/in the way", "old", 0o600)
	require.NoError(t, unpack(&b, to, limit))
	assert.Equal(t, listing(t, dir), listing(t, copied))
	st, err := os.Stat(filepath.Join(copied, "a.txt"))
	require.NoError(t, err)
	assert.True(t, st.ModTime().Equal(at))
}

// Files that must not travel are left out, and are named.
func TestWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links of Unix")
	}
	from, dir := root(t)
	write(t, dir, "kept", "k", 0o600)
	write(t, dir, ".git/hooks/pre-commit", "evil", 0o700)
	write(t, dir, "sub/.GIT/config", "evil", 0o600)
	for name, target := range map[string]string{"out": "/etc/passwd", "up": "../x", "sub/up": "../../x", "hooks": ".git/hooks"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	var b bytes.Buffer
	p := parcel.NewPacker(&b, limit)
	require.NoError(t, p.Tree("files", from))
	gone, err := p.Files("files", from, []string{"kept", "deleted", "kept/below", "nested/"})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	assert.Equal(t, []string{"deleted", "kept/below"}, gone)
	assert.Len(t, p.Left, 7, "%q", p.Left)
	to, copied := root(t)
	require.NoError(t, unpack(&b, to, limit))
	assert.Equal(t, map[string]string{"kept": "600 k", "sub": "directory"}, listing(t, copied))
}

// A parcel has a size on both sides.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	from, dir := root(t)
	write(t, dir, "a", strings.Repeat("x", 700), 0o600)
	write(t, dir, "b", strings.Repeat("x", 700), 0o600)
	var large *parcel.TooLargeError
	p := parcel.NewPacker(io.Discard, 1000)
	require.ErrorAs(t, p.Tree("files", from), &large)
	assert.EqualValues(t, 1000, large.Limit)
	var b bytes.Buffer
	p = parcel.NewPacker(&b, 2000)
	require.NoError(t, p.Tree("files", from))
	require.NoError(t, p.Close())
	to, _ := root(t)
	require.ErrorAs(t, unpack(&b, to, 1000), &large)
}

// No entry that an agent could make up leaves the directory, or has a mode that is more than permissions.
func TestHostileParcels(t *testing.T) {
	t.Parallel()
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 4, Mode: 0o644}
	}
	for name, entries := range map[string][]tar.Header{
		"above":             {file("files/../../x")},
		"absolute":          {file("/files/x")},
		"a repository":      {file("files/.git/config")},
		"a nested one":      {file("files/a/.git/hooks/post-checkout")},
		"other letters":     {file("files/a/.GiT/config")},
		"windows":           {file("files/git~1/config")},
		"points at the end": {file("files/.git. /config")},
		"ignored on macOS":  {file("files/.g\u200cit/config")},
		"a stream":          {file("files/.git::$INDEX_ALLOCATION/config")},
		"backslashes":       {file(`files/a\..\..\x`)},
		"a link out":        {link("files/l", "../x")},
		"an absolute link":  {link("files/l", "/etc")},
		"a deep link out":   {link("files/a/b/l", "../../../x")},
		"above a link":      {link("files/l", "a/../..")},
		"up above a link":   {link("files/a/l", "../b/../c")},
		"a link into git":   {link("files/l", ".git/hooks")},
		"a hard link":       {{Typeflag: tar.TypeLink, Name: "files/l", Linkname: "files/x"}},
		"a device":          {{Typeflag: tar.TypeChar, Name: "files/d"}},
		"a pipe":            {{Typeflag: tar.TypeFifo, Name: "files/p"}},
		"the directory":     {{Typeflag: tar.TypeDir, Name: "./"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range entries {
				require.NoError(t, w.WriteHeader(&h))
				_, err := w.Write([]byte("evil")[:h.Size])
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			to, dir := root(t)
			write(t, dir, "kept", "k", 0o600)
			require.Error(t, unpack(&b, to, limit))
			assert.Equal(t, map[string]string{"kept": "600 k"}, listing(t, dir))
		})
	}
}

// Nothing is written through a link, also of the parcel itself, and no file is more than its permissions.
func TestLinksOnTheWay(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links of Unix")
	}
	outside := t.TempDir()
	to, dir := root(t)
	write(t, dir, ".git/hooks/x", "own", 0o600)
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(".git/hooks", filepath.Join(dir, "in")))
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "files/out/f", Size: 1, Mode: 0o6777},
		{Typeflag: tar.TypeReg, Name: "files/in/x", Size: 1, Mode: 0o600},
		{Typeflag: tar.TypeSymlink, Name: "files/l", Linkname: "a"},
		{Typeflag: tar.TypeReg, Name: "files/l/f", Size: 1, Mode: 0o600},
	} {
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write(make([]byte, h.Size))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, unpack(&b, to, limit))
	assert.Equal(t, "600 own", listing(t, dir)[".git/hooks/x"])
	assert.Equal(t, "directory", listing(t, dir)["l"])
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, left)
	st, err := os.Lstat(filepath.Join(dir, "out", "f"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o777), st.Mode())
}

// Remove removes the file with the name, and not the one that a link leads to. Repositories stay.
func TestRemove(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links of Unix")
	}
	to, dir := root(t)
	write(t, dir, "a/b", "x", 0o600)
	write(t, dir, "c", "x", 0o600)
	write(t, dir, ".git/HEAD", "x", 0o600)
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "l")))
	require.NoError(t, parcel.Remove(to, "l/b"))
	require.NoError(t, parcel.Remove(to, "c/d"))
	require.NoError(t, parcel.Remove(to, "nothing/here"))
	require.ErrorAs(t, parcel.Remove(to, ".git/HEAD"), new(*parcel.HostileError))
	require.ErrorAs(t, parcel.Remove(to, "../x"), new(*parcel.HostileError))
	assert.Len(t, listing(t, dir), 6)
	require.NoError(t, parcel.Remove(to, "a"))
	assert.Equal(t, map[string]string{"c": "600 x", "l": "-> a", ".git": "directory", ".git/HEAD": "600 x"}, listing(t, dir))
	require.NoError(t, parcel.Clear(to))
	assert.Equal(t, map[string]string{".git": "directory", ".git/HEAD": "600 x"}, listing(t, dir))
}
