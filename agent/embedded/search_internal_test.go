package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// handsIn are hands in a new directory with files, each newer than the one before: name, text.
func handsIn(t *testing.T, files ...string) *hands {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for i := 0; i < len(files); i += 2 {
		at := filepath.Join(root, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o750))
		require.NoError(t, os.WriteFile(at, []byte(files[i+1]), 0o600))
		mtime := time.Unix(1_700_000_000+int64(i), 0)
		require.NoError(t, os.Chtimes(at, mtime, mtime))
	}
	seams := backend.Seams{Rand: kernel.NewRand(new(uint64(1))), Clock: kernel.NewClock(clock.New())}
	return newHands(agent.Launch{Dir: root, Env: []string{"TMPDIR=" + t.TempDir()}}, seams, func(string) bool { return false })
}

// Answers of Grep, as observed of Claude Code 2.1.329.
func TestGrep(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "alpha\nbeta\ngamma\nBETA\n", "b.txt", "  beta one\n\nbeta two\n", "sub/c.go", "package c\r\nfunc beta() {}\r\n", "bin.dat", "x first\nx\x00y\nx last\n", "long.md", "y\n"+strings.Repeat("c", 501)+"\n")
	require.NoError(t, os.Symlink("sub", filepath.Join(h.root, "l")))
	for _, c := range []struct {
		in   agent.Object
		want string
		err  bool
	}{
		{agent.Object{"pattern": "beta"}, "Found 3 files\nsub/c.go\nb.txt\na.txt", false},
		{agent.Object{"pattern": "beta", "offset": 50.0}, "No entries at this offset. [Showing results with pagination = offset: 50]", false},
		{agent.Object{"pattern": "beta", "offset": 1.0, "head_limit": 1.0}, "Found 1 file limit: 1, offset: 1\nb.txt", false},
		{agent.Object{"pattern": "beta", "output_mode": "content", "-C": 1.0}, "a.txt-1-alpha\na.txt:2:beta\na.txt-3-gamma\n--\nb.txt:1:  beta one\nb.txt-2-\nb.txt:3:beta two\n--\nsub/c.go-1-package c\nsub/c.go:2:func beta() {}", false},
		{agent.Object{"pattern": "beta", "output_mode": "content", "-A": 1.0, "-C": 0.0, "context": 2.0, "path": "a.txt"}, "1-alpha\n2:beta\n3-gamma\n4-BETA", false},
		{agent.Object{"pattern": "^", "output_mode": "content", "-n": false, "path": " b.txt/ "}, "  beta one\n\nbeta two", false},
		{agent.Object{"pattern": "beta", "output_mode": "content", "-o": true, "-n": false}, "a.txt:beta\nb.txt:beta\nb.txt:beta\nsub/c.go:beta", false},
		{agent.Object{"pattern": "beta", "output_mode": "count"}, "a.txt:1\nb.txt:2\nsub/c.go:1\n\nFound 4 total occurrences across 3 files.", false},
		{agent.Object{"pattern": "beta", "output_mode": "count", "path": "a.txt"}, "a.txt:1\n\nFound 1 total occurrence across 1 file.", false},
		{agent.Object{"pattern": "beta", "output_mode": "count", "offset": 9.0}, "No entries at this offset\n\nFound 4 total occurrences across 3 files. with pagination = offset: 9", false},
		{agent.Object{"pattern": "zzz", "output_mode": "count"}, "No matches found\n\nFound 0 total occurrences across 0 files.", false},
		{agent.Object{"pattern": "x", "path": "bin.dat", "output_mode": "content"}, "1:x first\n3:x last\nbinary file matches (found \"\\0\" byte around offset 9)", false},
		{agent.Object{"pattern": "x", "path": "bin.dat", "output_mode": "count"}, "bin.dat:3\n\nFound 3 total occurrences across 1 file.", false},
		{agent.Object{"pattern": "x first"}, "No files found", false},
		{agent.Object{"pattern": "y", "output_mode": "content", "-A": 1.0, "glob": "*.md"}, "long.md:1:y\nlong.md-2-[Omitted long context line]", false},
		{agent.Object{"pattern": "c+", "output_mode": "content", "-o": true, "glob": "*.md"}, "long.md:2:[Omitted long matching line]", false},
		{agent.Object{"pattern": "beta", "path": "l"}, "Found 1 file\nl/c.go", false},
		{agent.Object{"pattern": "beta", "path": "a.txt", "glob": "*.go", "type": "go"}, "Found 1 file\na.txt", false},
		{agent.Object{"pattern": "beta", "glob": "*.go,*.md a.*"}, "Found 2 files\nsub/c.go\na.txt", false},
		{agent.Object{"pattern": "beta", "glob": "{a,b"}, rejected + "error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)", true},
		{agent.Object{"pattern": "beta", "type": "nope"}, rejected + "unrecognized file type: nope", true},
		{agent.Object{"pattern": "beta", "output_mode": "content", "context": -1.0}, rejected + "error parsing flag -C: value is not a valid number: invalid digit found in string", true},
		{agent.Object{"pattern": "beta", "output_mode": "content", "-A": 1.5}, rejected + "error parsing flag -A: value is not a valid number: invalid digit found in string", true},
		{agent.Object{"pattern": "beta", "path": "a.tx"}, "Path does not exist: a.tx. Note: your current working directory is " + h.root + ".", true},
		{agent.Object{"pattern": "beta", "path": "/dev/null"}, "Refusing to search /dev/null: it is a pipe or a device, not a file or a folder.", true},
	} {
		r := h.grep(t.Context(), c.in)
		assert.Equal(t, c.want, r.Content, fmt.Sprint(c.in))
		assert.Equal(t, c.err, r.IsError, fmt.Sprint(c.in))
	}
	assert.Equal(t, "head_limit must be a whole number of 0 or more, got -1. Pass 0 for unlimited.", grep().check(h, agent.Object{"head_limit": -1.0}))
	assert.Equal(t, "offset must be a whole number of 0 or more, got 1.5.", grep().check(h, agent.Object{"offset": 1.5}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.True(t, h.grep(ctx, agent.Object{"pattern": "beta"}).IsError)
}

// Answers of Glob, as observed.
func TestGlob(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "", "sub/b.txt", "", ".git/c.txt", "", "sub/.gitignore", "b.txt", "d.go", "")
	require.NoError(t, os.Symlink("a.txt", filepath.Join(h.root, "l.txt")))
	for _, c := range []struct{ pattern, path, want string }{
		{"*.txt", "", "a.txt\nsub/b.txt\n.git/c.txt"},
		{"sub/**", "", "sub/b.txt\nsub/.gitignore"},
		{h.root + "/sub/*.txt", "", "sub/b.txt"},
		{h.root + "/sub/../*.go", "", "d.go"},
		{h.root + "/a.txt", "", "a.txt"},
		{h.root + "/nope/*", "", "No files found"},
		{"../*", "", "No files found"},
		{"sub", "", "No files found"},
		{"", "sub", "sub/b.txt\nsub/.gitignore"},
		{"!*.txt", "", "sub/.gitignore\nd.go"},
		{"{a,d}.*", "", "a.txt\nd.go"},
		{"*", "nope", "Directory does not exist: nope. Note: your current working directory is " + h.root + "."},
		{"*", "a.txt", "Path is not a directory: a.txt"},
		{"[a", "", rejected + "error parsing glob '[a': unclosed character class; missing ']'"},
	} {
		assert.Equal(t, c.want, h.glob(t.Context(), agent.Object{"pattern": c.pattern, "path": c.path}).Content, c.pattern+" "+c.path)
	}
}

// Files that a deny rule hides are not found, by any name.
func TestSearchesHideWhatIsDenied(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.txt", "x\n", "secret/s.txt", "x\n")
	require.NoError(t, os.Symlink("secret", filepath.Join(h.root, "l")))
	tk := &talk{hands: h, shared: new(shared)}
	deny := agent.Permissions{Deny: []string{"Read(./secret/**)"}}
	for _, own := range []*tool{grep(), glob()} {
		judge := func(in agent.Object) agent.Verdict { return tk.judge(own)(deny, in) }
		assert.True(t, judge(agent.Object{"pattern": "*"}).Allow, own.name)
		assert.Equal(t, "Permission to read "+h.root+"/secret has been denied.", judge(agent.Object{"pattern": "*", "path": "secret"}).Deny, own.name)
		assert.NotEmpty(t, judge(agent.Object{"pattern": "*", "path": "l"}).Deny, own.name)
		assert.False(t, judge(agent.Object{"pattern": "*", "path": ".."}).Allow, own.name)
	}
	assert.NotEmpty(t, tk.judge(glob())(deny, agent.Object{"pattern": h.root + "/secret/*"}).Deny)
	assert.Equal(t, "Found 1 file\na.txt", h.grep(t.Context(), agent.Object{"pattern": "x"}).Content)
	assert.Equal(t, "a.txt", h.glob(t.Context(), agent.Object{"pattern": "**"}).Content)
	assert.Equal(t, "No files found", h.grep(t.Context(), agent.Object{"pattern": "x", "path": "l"}).Content)
}
