package search

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Short patterns that stand for large ones are refused before they are written out.
func TestPatternsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{
		"counts in counts": "(?:a{16000000}){16000000}", "three": "((a{5000}){5000}){5000}", "at most": "(?:a{0,16000000}){0,16000000}", "many": strings.Repeat("a{900000}", 1000),
		"a large program": strings.Repeat("a{1000}", 30), "nested": "(?:(?:a{1000}){100})b", "long": strings.Repeat("a", 10*maxPattern), "classes": `(?:\w{0,500}){0,100}`,
	} {
		_, err := Compile(pattern, false, false)
		var e *SyntaxError
		require.ErrorAs(t, err, &e, name)
		assert.Less(t, len(err.Error()), 5*maxPattern, name)
	}
	for _, pattern := range []string{".{0,1000}", "a{5000}", `\w{1,200}`, "(foo|bar){1,100}", strings.Repeat("x|", 3000) + "y"} {
		_, err := Compile(pattern, true, true)
		require.NoError(t, err, pattern[:5])
	}
}

// late is a context that ends when it was asked some times.
type late struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (l *late) Err() error {
	if l.left--; l.left < 0 {
		return context.Canceled
	}
	return nil
}

// A search that takes long ends within a line, too.
func TestASearchEndsWithinALine(t *testing.T) {
	t.Parallel()
	p, err := Compile("a{0,900}b", false, false)
	require.NoError(t, err)
	text := bytes.Repeat([]byte("a"), 3<<20)
	require.Greater(t, p.steps*len(text), maxWork)
	_, err = p.Search(&late{t.Context(), 20}, bytes.NewReader(text), Scan{})
	require.ErrorIs(t, err, context.Canceled)
	multi, err := Compile("a{0,900}b", false, true)
	require.NoError(t, err)
	_, err = multi.Search(t.Context(), bytes.NewReader(text), Scan{})
	require.ErrorIs(t, err, ErrTooLarge)
}

// Both ways to look for a match find the same one.
func TestFindInEitherWay(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"b", "^b", "a$", `\bx`, "é+", `\w+`, "^$", "[^a]", `x\B`} {
		p, err := Compile(pattern, false, false)
		require.NoError(t, err)
		for _, text := range []string{"", "ab", "a\nb\n", "x\xffé\xc3x", "éé b", "\n\nx", strings.Repeat("a\n", 3000) + "b"} {
			slow := p.re.FindReaderIndex(&runes{ctx: t.Context(), rest: []byte(text)})
			assert.Equal(t, p.re.FindIndex([]byte(text)), slow, "%s in %q", pattern, text)
		}
	}
}

// Lines before a match are kept up to a size, however many are wanted.
func TestContextThatIsKept(t *testing.T) {
	t.Parallel()
	p, err := Compile("x", false, false)
	require.NoError(t, err)
	shown, size := 0, 0
	last := 0
	_, err = p.Search(t.Context(), strings.NewReader(strings.Repeat(strings.Repeat("y", 1000)+"\n", 40_000)+"x\n"), Scan{Before: 1 << 30, Line: func(l Line) bool {
		shown++
		size += len(l.Text)
		last = l.Number
		return true
	}})
	require.NoError(t, err)
	assert.Equal(t, 40_001, last)
	assert.LessOrEqual(t, size, maxHeld)
	assert.Greater(t, size, maxHeld/2)
	f := &finder{Scan: Scan{Before: 1 << 30, Line: func(Line) bool { return true }}}
	for range 100 {
		f.gap(bytes.Repeat([]byte("\n"), 1<<16))
	}
	assert.LessOrEqual(t, len(f.held), maxHeld/perLine)
}

// The parts of a line are counted, but not all kept.
func TestPartsOfALongLine(t *testing.T) {
	t.Parallel()
	p, err := Compile("a", false, false)
	require.NoError(t, err)
	parts := 0
	_, err = p.Search(t.Context(), strings.NewReader(strings.Repeat("a", 4<<20)), Scan{Parts: true, Line: func(Line) bool { parts++; return true }})
	require.NoError(t, err)
	assert.Equal(t, maxMatches, parts)
}

// Ignore files of a repository do not fill the memory: those of a directory and of all above
// it count up to a size.
func TestLargeIgnoreFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := dir
	line := []byte(strings.Repeat("?a*[b-c]?", 400) + "\n")
	for range 30 {
		require.NoError(t, os.MkdirAll(at, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(at, ".ignore"), bytes.Repeat(line, maxIgnoreFile/len(line)/2), 0o600))
		at = filepath.Join(at, "d")
	}
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(at), "f"), nil, 0o600))
	found := false
	require.NoError(t, (&Tree{Dir: dir, Ignores: true}).Walk(t.Context(), func(f *File) error {
		found = found || filepath.Base(f.Path) == "f"
		return nil
	}))
	assert.True(t, found)
	l := levelOf(nil, "", openRoot(t, dir))
	assert.LessOrEqual(t, levelOf(levelOf(l, "d", openRoot(t, dir)), "d", openRoot(t, dir)).size, int64(maxIgnoreFile))
}

func openRoot(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestWildcardsThatAreTooLong(t *testing.T) {
	t.Parallel()
	_, err := parseIgnore(strings.Repeat("{a", 3000) + strings.Repeat("}", 3000))
	var e *WildcardError
	require.ErrorAs(t, err, &e)
	assert.Empty(t, parseRules([]byte(strings.Repeat("x", 5000)+"\n")))
	require.ErrorAs(t, (&Tree{Dir: t.TempDir(), Globs: make([]string, maxGlobs+1)}).Walk(t.Context(), nil), &e)
}
