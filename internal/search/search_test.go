package search_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/search"
)

// A pattern that ripgrep 14.1.1 refuses is refused with its words (observed).
func TestPatternErrors(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`a(`:                "    (?:a()\n    ^\nerror: unclosed group",
		`*a`:                "    (?:*a)\n       ^\nerror: repetition operator missing expression",
		`interface{}`:       "    (?:interface{})\n                 ^\nerror: repetition quantifier expects a valid decimal",
		`a(?=b)`:            "    (?:a(?=b))\n        ^^^\nerror: look-around, including look-ahead and look-behind, is not supported\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.",
		`(?<!a)b`:           "    (?:(?<!a)b)\n       ^^^^\nerror: look-around, including look-ahead and look-behind, is not supported\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.",
		`a\`:                "    (?:a\\)\n    ^\nerror: unclosed group",
		`[a`:                "    (?:[a)\n       ^\nerror: unclosed character class",
		`a)`:                "    (?:a))\n         ^\nerror: unopened group",
		`a{2,1}`:            "    (?:a{2,1})\n        ^^^^^\nerror: invalid repetition count range, the start must be <= the end",
		`\1`:                "    (?:\\1)\n       ^^\nerror: backreferences are not supported\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.",
		`(?P<n>a`:           "    (?:(?P<n>a)\n    ^\nerror: unclosed group",
		`(?P<n`:             "    (?:(?P<n)\n            ^\nerror: invalid capture group character",
		`a{1`:               "    (?:a{1)\n        ^^\nerror: unclosed counted repetition",
		`a{1,`:              "    (?:a{1,)\n           ^\nerror: repetition quantifier expects a valid decimal",
		`[z-a]`:             "    (?:[z-a])\n        ^^^\nerror: invalid character class range, the start must be <= the end",
		`[a-\d]`:            "    (?:[a-\\d])\n          ^^\nerror: invalid range boundary, must be a literal",
		`\Z`:                "    (?:\\Z)\n       ^^\nerror: unrecognized escape sequence",
		`(?z)`:              "    (?:(?z))\n         ^\nerror: unrecognized flag",
		`(?i`:               "    (?:(?i)\n    ^\nerror: unclosed group",
		`(?)`:               "    (?:(?))\n        ^\nerror: repetition operator missing expression",
		`(?-)`:              "    (?:(?-))\n         ^\nerror: dangling flag negation operator",
		`\p{Foo}`:           "    (?:\\p{Foo})\n       ^^^^^^^\nerror: Unicode property not found",
		`\x{110000}`:        "    (?:\\x{110000})\n          ^^^^^^\nerror: hexadecimal literal is not a Unicode scalar value",
		`\xg`:               "    (?:\\xg)\n         ^\nerror: invalid hexadecimal digit",
		`\u{}`:              "    (?:\\u{})\n         ^^\nerror: hexadecimal literal empty",
		`[\b]`:              "    (?:[\\b])\n        ^^\nerror: invalid escape sequence found in character class",
		`[[]`:               "    (?:[[])\n        ^^\nerror: unclosed character class",
		`{a}`:               "    (?:{a})\n       ^\nerror: repetition operator missing expression",
		`a|*`:               "    (?:a|*)\n         ^\nerror: repetition operator missing expression",
		`[]`:                "    (?:[])\n       ^^\nerror: unclosed character class",
		`[^]`:               "    (?:[^])\n       ^^^\nerror: unclosed character class",
		`é(`:                "    (?:é()\n    ^\nerror: unclosed group",
		`\k<n>`:             "    (?:\\k<n>)\n       ^^\nerror: unrecognized escape sequence",
		`[a&&b`:             "    (?:[a&&b)\n       ^\nerror: unclosed character class",
		`(?P<n>a)(?P<n>b)b`: "    (?:(?P<n>a)(?P<n>b)b)\n           ^       ^\nerror: duplicate capture group name",
	} {
		_, err := search.Compile(pattern, false, false)
		var syntax *search.SyntaxError
		require.ErrorAs(t, err, &syntax, pattern)
		assert.Equal(t, "regex parse error:\n"+want, err.Error(), pattern)
	}
}

// grep is what a search shows, as ripgrep prints it.
func grep(t *testing.T, pattern, text string, fold, multi bool, s search.Scan) (string, search.Found) {
	t.Helper()
	p, err := search.Compile(pattern, fold, multi)
	require.NoError(t, err, pattern)
	var b strings.Builder
	s.Line = func(l search.Line) bool {
		mark := ":"
		if l.Context {
			mark = "-"
		}
		if l.Gap && s.Before+s.After > 0 {
			b.WriteString("--\n")
		}
		b.WriteString(strconv.Itoa(l.Number) + mark + string(l.Text) + "\n")
		return true
	}
	found, err := p.Search(t.Context(), strings.NewReader(text), s)
	require.NoError(t, err)
	counted, err := p.Search(t.Context(), strings.NewReader(text), search.Scan{Named: s.Named})
	require.NoError(t, err)
	assert.Equal(t, found.Matches, counted.Matches, "%s: what is counted is what is shown", pattern)
	return b.String(), found
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		fold, multi   bool
		scan          search.Scan
		want          string
	}{
		{pattern: "beta", text: "alpha\nbeta\ngamma\nBETA\n", want: "2:beta\n"},
		{pattern: "beta", text: "alpha\nbeta\ngamma\nBETA", fold: true, want: "2:beta\n4:BETA\n"},
		{pattern: "x", text: "x\n1\n2\n3\n4\n5\nx\n6\n", scan: search.Scan{Before: 1, After: 1}, want: "1:x\n2-1\n--\n6-5\n7:x\n8-6\n"},
		{pattern: "x", text: "a\nb\nx\nc\nx\n", scan: search.Scan{Before: 5}, want: "1-a\n2-b\n3:x\n4-c\n5:x\n"},
		{pattern: "x", text: "x\nx\nx", scan: search.Scan{After: 1}, want: "1:x\n2:x\n3:x\n"},
		{pattern: "be.a", text: "beta beta\n", scan: search.Scan{Parts: true}, want: "1:beta\n1:beta\n"},
		{pattern: "o*", text: "foo bar\nfoo\n", scan: search.Scan{Parts: true}, want: "1:\n1:oo\n1:\n1:\n1:\n1:\n2:\n2:oo\n"},
		{pattern: "x$", text: "x\r\ny\r\n", want: ""},
		{pattern: "^", text: "a\n\nb\n", want: "1:a\n2:\n3:b\n"},
		{pattern: "^$", text: "a\n\nb\n", want: "2:\n"},
		{pattern: "", text: "a\n", want: "1:a\n"},
		{pattern: "", text: "", want: ""},
		{pattern: `alpha\nbeta`, text: "alpha\nbeta\n", want: ""},
		{pattern: "a\nb", text: "a\nb\n", want: ""},
		{pattern: `b[\n]a`, text: "b\na\nba", want: ""},
		{pattern: `b[\n ]a`, text: "b\na\nb a", want: "3:b a\n"},
		{pattern: `[^x]a`, text: "b\na\nba", want: "3:ba\n"},
		{pattern: `b\s*a`, text: "b\na\nba", want: "3:ba\n"},
		{pattern: `(?s)b.a`, text: "b\na\nb a", want: "3:b a\n"},
		{pattern: `\Aa\z`, text: "a\nab\na", want: "1:a\n3:a\n"},
		{pattern: `\d+`, text: "٣\nx\n", want: "1:٣\n"},
		{pattern: `^\w+$`, text: "größe\na b\n", want: "1:größe\n"},
		{pattern: `a**`, text: "aa\n", want: "1:aa\n"},
		{pattern: `(?P<n>a)(?<m>b)`, text: "ab\n", want: "1:ab\n"},
		{pattern: `(?x) a b `, text: "ab\n", want: "1:ab\n"},
		{pattern: `[a-z&&[^b]]+`, text: "b\nac\n", want: "2:ac\n"},
		{pattern: `[a-c--b]`, text: "b\nc\n", want: "2:c\n"},
		{pattern: `[[:digit:]x]`, text: "1\ny\nx\n", want: "1:1\n3:x\n"},
		{pattern: `[\w&&\d]`, text: "a\n1\n", want: "2:1\n"},
		{pattern: `a{1200}`, text: strings.Repeat("a", 1199) + "\n" + strings.Repeat("a", 1200), scan: search.Scan{Parts: true}, want: "2:" + strings.Repeat("a", 1200) + "\n"},
		{pattern: `a{2,1500}b`, text: "ab\naab\n", want: "2:aab\n"},
		{pattern: `(?i)FOO|\bbar`, text: "foo\nxbar\nbar", want: "1:foo\n3:bar\n"},
		{pattern: "alpha.*gamma", text: "alpha\nbeta\ngamma\nBETA\n", multi: true, want: "1:alpha\n2:beta\n3:gamma\n"},
		{pattern: `bar\nfoo|foo\nend`, text: "foo bar\nfoo\nbar foo\nend\n", multi: true, scan: search.Scan{Parts: true}, want: "1:bar\n2:foo\n3:foo\n4:end\n"},
		{pattern: `bar\nfoo\n`, text: "foo bar\nfoo\nbar foo\nend\n", multi: true, scan: search.Scan{Before: 1, After: 1}, want: "1:foo bar\n2:foo\n3-bar foo\n"},
		{pattern: `b`, text: "a\nb\nc\nd\nb", multi: true, scan: search.Scan{Before: 1, After: 1}, want: "1-a\n2:b\n3-c\n4-d\n5:b\n"},
		{pattern: `b`, text: "b\n1\n2\n3\nb", multi: true, scan: search.Scan{Before: 1}, want: "1:b\n--\n4-3\n5:b\n"},
		{pattern: "^x", text: "\xef\xbb\xbfx one\nx two\n", want: "1:x one\n2:x two\n"},
		{pattern: "^x", text: "\xff\xfex\x00 \x00\n\x00x\x00", want: "1:x \n2:x\n"},
		{pattern: "^x", text: "\xfe\xff\x00x\x00\n\x00x", want: "1:x\n2:x\n"},
		{pattern: "x", text: "x first\nx\x00y\nx last\n", want: ""},
		{pattern: "x", text: "x first\nx\x00y\nx last\n", scan: search.Scan{Named: true}, want: "1:x first\n3:x last\n"},
	} {
		got, _ := grep(t, c.pattern, c.text, c.fold, c.multi, c.scan)
		assert.Equal(t, c.want, got, "%q in %q", c.pattern, c.text)
	}
}

// Where chunks of a file end has no influence on what is shown.
func TestSearchOverChunks(t *testing.T) {
	t.Parallel()
	var text, want strings.Builder
	for i := 1; i <= 60000; i++ {
		line := "line " + strconv.Itoa(i)
		switch {
		case i%1000 == 0:
			line += " needle"
			want.WriteString(strconv.Itoa(i) + ":" + line + "\n")
		case i%1000 == 999:
			want.WriteString("--\n" + strconv.Itoa(i-1) + "-line " + strconv.Itoa(i-1) + "\n" + strconv.Itoa(i) + "-" + line + "\n")
		case i%1000 == 1 && i > 1:
			want.WriteString(strconv.Itoa(i) + "-" + line + "\n")
		}
		text.WriteString(line + "\n")
	}
	got, found := grep(t, "needle", text.String(), false, false, search.Scan{Before: 2, After: 1})
	assert.Equal(t, strings.TrimPrefix(want.String(), "--\n"), got)
	assert.Equal(t, 60, found.Matches)
	long := strings.Repeat("x", 300_000)
	got, _ = grep(t, "needle", long+"needle\nneedle", false, false, search.Scan{Parts: true})
	assert.Equal(t, "1:needle\n2:needle\n", got, "a line longer than a chunk is one line")
	got, _ = grep(t, `x\s+y`, strings.Repeat("x\n", 5000)+"x y\n", false, false, search.Scan{})
	assert.Equal(t, "5001:x y\n", got, "many matches over lines do not count")
}

// A file with a NUL byte is searched up to the part where it is.
func TestSearchBinary(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("needle in the hay\n", 5000) + "\x00needle\n"
	shown, found := grep(t, "needle", text, false, false, search.Scan{})
	assert.EqualValues(t, 90000, found.NUL)
	assert.Less(t, found.Matches, 5000)
	assert.Equal(t, found.Matches, strings.Count(shown, "\n"))
	_, found = grep(t, "needle", text, false, false, search.Scan{Named: true})
	assert.Equal(t, 5001, found.Matches)
}

func TestSearchStops(t *testing.T) {
	t.Parallel()
	p, err := search.Compile("x", false, false)
	require.NoError(t, err)
	found, err := p.Search(t.Context(), strings.NewReader("x\nx\n"), search.Scan{First: true})
	require.NoError(t, err)
	assert.Equal(t, 1, found.Matches)
	lines := 0
	_, err = p.Search(t.Context(), strings.NewReader("x\nx\n"), search.Scan{Line: func(search.Line) bool { lines++; return false }})
	require.NoError(t, err)
	assert.Equal(t, 1, lines)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Search(ctx, strings.NewReader("x\nx\n"), search.Scan{})
	require.ErrorIs(t, err, context.Canceled)
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`a(b|c)*`, `[^\w--[:alpha:]]`, `\p{L}{2,}`, `(?i-s:x)`, `\x{41}`, `[[a]`, `a{1001}`} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, pattern string) {
		_, _ = search.Compile(pattern, true, false) // it returns
	})
}

func TestWalk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o750))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	}
	write("B.txt", "")
	write("a/f.txt", "")
	write("a-b/f.go", "")
	write("a.txt", "")
	write(".hidden", "")
	write("node_modules/m.js", "")
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "l.txt")))
	repo := map[string]string{
		"r/.gitignore": "*.log\n/build/\n!keep.log\n# c\n\\#x\n  \nsp\\ \n[\n", "r/.git/info/exclude": "e.txt\n", "r/.git/z.txt": "", "r/a.log": "", "r/keep.log": "",
		"r/build/b.txt": "", "r/sub/build/b.txt": "", "r/sub/c.log": "", "r/sub/d.txt": "", "r/sub/.ignore": "d.txt\n", "r/.rgignore": "q.txt\n",
		"r/q.txt": "", "r/e.txt": "", "r/#x": "", "r/sp ": "", "n/.gitignore": "x.txt\n", "n/x.txt": "", "n/.ignore": "y.txt", "n/y.txt": "", "r/sub/inner/.git/HEAD": "", "r/sub/inner/i.log": "",
	}
	for name, text := range repo {
		write(name, text)
	}
	for _, c := range []struct {
		name string
		tree search.Tree
		want string
	}{
		{"all", search.Tree{Globs: []string{"!r", "!n"}}, ".hidden B.txt a-b/f.go a.txt a/f.txt node_modules/m.js"},
		{"name", search.Tree{Globs: []string{"*.txt", "!r", "!n"}}, "B.txt a.txt a/f.txt"},
		{"rooted", search.Tree{Globs: []string{"/*.txt"}}, "B.txt a.txt"},
		{"path", search.Tree{Globs: []string{"a*/**"}}, "a-b/f.go a/f.txt"},
		{"case", search.Tree{Globs: []string{"b.TXT"}}, ""},
		{"braces", search.Tree{Globs: []string{"{a,B}.txt"}}, "B.txt a.txt"},
		{"class", search.Tree{Globs: []string{"[!B].txt", "!r", "!n"}}, "a.txt a/f.txt"},
		{"middle", search.Tree{Globs: []string{"r/**/b.txt"}}, "r/build/b.txt r/sub/build/b.txt"},
		{"closed, not opened", search.Tree{Globs: []string{"a}"}}, ""},
		{"directory", search.Tree{Globs: []string{"a"}}, ""},
		{"question", search.Tree{Globs: []string{"?/f.txt"}}, "a/f.txt"},
		{"type", search.Tree{Type: "go"}, "a-b/f.go"},
		{"glob before type", search.Tree{Globs: []string{"a.txt"}, Type: "go"}, "a.txt"},
		{"ignores", search.Tree{Globs: []string{"!.git"}, Ignores: true, Dir: "r"}, ".gitignore .rgignore keep.log sub/.ignore sub/build/b.txt sub/inner/i.log"},
		{"ignores from above", search.Tree{Ignores: true, Dir: "r/sub", Globs: []string{"!.git"}}, ".ignore build/b.txt inner/i.log"},
		{"glob lets in", search.Tree{Globs: []string{"*.log"}, Ignores: true, Dir: "r"}, "a.log keep.log sub/c.log sub/inner/i.log"},
		{"not in an ignored directory", search.Tree{Globs: []string{"build/**"}, Ignores: true, Dir: "r"}, ""},
		{"no repository", search.Tree{Ignores: true, Dir: "n"}, ".gitignore .ignore x.txt"},
		{"ignored directory by name", search.Tree{Ignores: true, Dir: "r/build"}, "b.txt"},
	} {
		var got []string
		c.tree.Dir = filepath.Join(dir, c.tree.Dir)
		err := c.tree.Walk(t.Context(), func(f *search.File) error {
			got = append(got, f.Path)
			return nil
		})
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, strings.Join(got, " "), c.name)
	}
}

func TestWalkErrors(t *testing.T) {
	t.Parallel()
	none := func(*search.File) error { return nil }
	for glob, want := range map[string]string{
		"[a":    "error parsing glob '[a': unclosed character class; missing ']'",
		"{a":    "error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
		"[z-a]": "error parsing glob '[z-a]': invalid range; 'z' > 'a'",
		`a\`:    `error parsing glob 'a\': dangling '\'`,
	} {
		require.EqualError(t, (&search.Tree{Dir: t.TempDir(), Globs: []string{glob}}).Walk(t.Context(), none), want)
	}
	var bad *search.BadTypeError
	require.ErrorAs(t, (&search.Tree{Dir: t.TempDir(), Type: "nosuch"}).Walk(t.Context(), none), &bad)
	require.ErrorIs(t, (&search.Tree{Dir: filepath.Join(t.TempDir(), "no")}).Walk(t.Context(), none), os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	require.ErrorIs(t, (&search.Tree{Dir: dir}).Walk(ctx, none), context.Canceled)
}
