package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/search"
)

const (
	searchLimit   = time.Minute
	maxSearched   = 20000    // characters of a result that the model reads
	maxSearchKept = 16 << 20 // bytes of a result that are kept
	maxColumns    = 500      // bytes of a line that is shown
	headLimit     = 250
)

// grep is the tool Grep, as Claude Code 2.1.329 has it (observed). Package search does the
// work of ripgrep.
func grep() *tool {
	return &tool{
		name:  "Grep",
		about: "Searches files with ripgrep, but for those that ignore files leave out. The result has the files with a match, the newest first; with output_mode the lines, with their numbers, or how many. -A, -B, -C, -i, -o, glob and type are ripgrep's options.",
		reads: true,
		path:  "path",
		tree:  true,
		params: []param{
			{name: "pattern", kind: "string", required: true},
			{name: "path", kind: "string", about: "A file or a directory; the shell's if none is given."},
			{name: "glob", kind: "string", about: "Such as *.go or !*_test.go; a comma between several."},
			{
				name: "output_mode", kind: "string", more: `,"enum":["content","files_with_matches","count"]`,
				take: oneOf("content", "files_with_matches", "count"),
			},
			{name: "-B", kind: "number"},
			{name: "-A", kind: "number"},
			{name: "-C", kind: "number"},
			{name: "context", kind: "number", hidden: true},
			{name: "-n", kind: "boolean", hidden: true},
			{name: "-i", kind: "boolean"},
			{name: "-o", kind: "boolean"},
			{name: "type", kind: "string"},
			{name: "head_limit", kind: "number", about: "The most results: 250 if not given; 0 is no limit."},
			{name: "offset", kind: "number", about: "Results to leave out before."},
			{name: "multiline", kind: "boolean", about: "Matches span lines; . matches a newline."},
		},
		check: func(_ *hands, in agent.Object) string {
			for _, name := range []string{"head_limit", "offset"} {
				n, given := number(in, name)
				if !given || n >= 0 && n == math.Trunc(n) {
					continue
				}
				text := name + " must be a whole number of 0 or more, got " + strconv.FormatFloat(n, 'f', -1, 64) + "."
				if name == "head_limit" {
					text += " Pass 0 for unlimited."
				}
				return text
			}
			return ""
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult { return h.grep(ctx, in) },
	}
}

// errFull ends a search whose result is large enough.
var errFull = errors.New("the result is full")

// searched is where a search goes.
type searched struct {
	path string // as the input says
	real string // the same, with its links followed
	file bool   // it is a file
}

// shown is a path below it as results have it: from the shell's directory, if it is below that.
func (h *hands) shown(path string) string {
	if rel, err := filepath.Rel(h.dir(), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

// whereTo finds out where a search goes; what is wrong is the model's to read. missing is what
// it reads of a path that does not exist.
func (h *hands) whereTo(u *spot, name, missing string) (searched, string) {
	at := searched{path: h.dir()}
	if trimmed := strings.TrimSpace(name); trimmed != "" {
		at.path = h.path(trimmed)
	}
	info, err := os.Stat(at.path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return at, "EACCES: permission denied, stat '" + at.path + "'"
	case err != nil:
		return at, missing + " does not exist: " + name + ". Note: your current working directory is " + h.dir() + "."
	case info.Mode().IsRegular():
		at.file = true
	case !info.IsDir():
		return at, "Refusing to search " + at.path + ": it is a pipe or a device, not a file or a folder."
	}
	at.real = u.leadsTo(at.path)
	return at, ""
}

const rejected = "Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: "

func (h *hands) grep(ctx context.Context, in agent.Object) agent.ToolResult {
	at, problem := h.whereTo(spotOf(ctx), str(in, "path"), "Path")
	if problem != "" {
		return failure("%s", problem)
	}
	multi, _ := in["multiline"].(bool)
	fold, _ := in["-i"].(bool)
	pattern, err := search.Compile(str(in, "pattern"), fold, multi)
	if err != nil {
		return failure("%s%s", rejected, err)
	}
	g := &grepping{h: h, in: in, at: at, pattern: pattern, page: pageOf(in), mode: str(in, "output_mode")}
	ctx, cancel := h.limited(ctx)
	defer cancel()
	if err := g.search(ctx); err != nil {
		return searchFailure(ctx, err)
	}
	return h.inFile(g.result())
}

// limited ends a search that takes too long.
func (h *hands) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := h.seams.Clock.AfterFunc(searchLimit, func() { cancel(errTimedOut) })
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// searchFailure is what the model reads of a search that failed.
func searchFailure(ctx context.Context, err error) agent.ToolResult {
	var badType *search.BadTypeError
	var badGlob *search.WildcardError
	var number *flagError
	switch {
	case errors.Is(context.Cause(ctx), errTimedOut):
		return failure("Search timed out after %d seconds. Narrow the path, glob or pattern, and search again.", int(searchLimit.Seconds()))
	case errors.As(err, &badType), errors.As(err, &badGlob), errors.As(err, &number):
		return failure("%s%s", rejected, err)
	}
	return failure("Search failed: %s", err)
}

// flagError is a number of lines that is not a number.
type flagError struct{ flag string }

func (e *flagError) Error() string {
	return "error parsing flag " + e.flag + ": value is not a valid number: invalid digit found in string"
}

// inFile saves a long result in a file, of which the model reads the beginning.
func (h *hands) inFile(r agent.ToolResult) agent.ToolResult {
	text, _ := r.Content.(string)
	if len([]rune(text)) <= maxSearched {
		return r
	}
	path, err := h.persist([]byte(text))
	if err != nil {
		return failure("%s", err)
	}
	r.Content = persisted(path, len(text), text)
	return r
}

// grepping is one search.
type grepping struct {
	h       *hands
	in      agent.Object
	at      searched
	pattern *search.Pattern
	page    *page
	mode    string

	found   []foundFile // in the mode of files
	total   int         // matches, in the mode of count
	last    string      // the file of the last line
	context bool
}

type foundFile struct {
	name  string
	mtime time.Time
}

// lines are the lines of context that the input wants: context before -C, and both before -A
// and -B.
func (g *grepping) lines() (before, after int, err error) {
	count := func(flags ...string) (int, bool) {
		for _, f := range flags {
			n, given := number(g.in, f)
			switch {
			case !given:
				continue
			case n < 0 || n != math.Trunc(n):
				err = &flagError{strings.Replace(f, "context", "-C", 1)}
				return 0, true
			}
			return int(min(n, math.MaxInt32)), true
		}
		return 0, false
	}
	if n, both := count("context", "-C"); both {
		return n, n, err
	}
	before, _ = count("-B")
	after, _ = count("-A")
	return before, after, err
}

func (g *grepping) search(ctx context.Context) error {
	scan := search.Scan{Named: g.at.file, First: g.mode != "content" && g.mode != "count"}
	if g.mode == "content" {
		var err error
		if scan.Before, scan.After, err = g.lines(); err != nil {
			return err
		}
		g.context = scan.Before > 0 || scan.After > 0
		scan.Parts, _ = g.in["-o"].(bool)
	}
	dir, only := g.at.real, ""
	if g.at.file {
		dir, only = filepath.Split(g.at.real)
	}
	root, err := g.h.enterDir(filepath.Clean(dir), false)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // it was read
	tree := search.Tree{Dir: dir, Root: root, Only: only, Globs: []string{"!.git", "!.svn", "!.hg", "!.bzr", "!.jj", "!.sl"}, Type: str(g.in, "type"), Ignores: true, Home: g.h.home(), Config: g.h.getenv("XDG_CONFIG_HOME")}
	tree.Globs = append(tree.Globs, globsOf(str(g.in, "glob"))...)
	err = tree.Walk(ctx, func(f *search.File) error { return g.file(ctx, f, filepath.Join(dir, f.Path), scan) })
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

// globsOf are the wildcards of a text: white space separates them, and a comma where no
// braces are.
func globsOf(text string) (globs []string) {
	for _, word := range strings.Fields(text) {
		if strings.Contains(word, "{") && strings.Contains(word, "}") {
			globs = append(globs, word)
			continue
		}
		globs = append(globs, slices.DeleteFunc(strings.Split(word, ","), func(s string) bool { return s == "" })...)
	}
	return globs
}

// file searches a file. One that cannot be read is left out.
func (g *grepping) file(ctx context.Context, f *search.File, target string, scan search.Scan) error {
	if device.MatchString(target) || g.h.hidden(target) || g.h.hidden(filepath.Join(g.at.path, f.Path)) || g.h.disk.ask(diskRead, target) != nil {
		return nil
	}
	file, err := f.Open()
	if err != nil {
		return nil // it cannot be read
	}
	defer func() { _ = file.Close() }() // it was read
	name := g.h.shown(g.at.path)
	if !g.at.file {
		name = g.h.shown(filepath.Join(g.at.path, f.Path))
	}
	if g.mode == "content" {
		scan.Line = func(l search.Line) bool { return g.line(name, l) }
	}
	found, err := g.pattern.Search(ctx, file, scan)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || found.Matches == 0:
		return nil // as above
	}
	switch g.mode {
	case "content":
		if g.at.file && found.NUL >= 0 {
			g.page.add(fmt.Sprintf("binary file matches (found \"\\0\" byte around offset %d)", found.NUL))
		}
	case "count":
		if found.NUL < 0 || g.at.file {
			g.total += found.Matches
			g.page.add(name + ":" + strconv.Itoa(found.Matches))
		}
	default:
		g.found = append(g.found, foundFile{name, f.Info.ModTime()})
	}
	return nil
}

// line takes a line with a match, or of context.
func (g *grepping) line(name string, l search.Line) bool {
	if g.context && (l.Gap || g.last != "" && g.last != name) {
		g.page.add("--")
	}
	g.last = name
	mark := ":"
	text := toUTF8(l.Text)
	if l.Context {
		mark = "-"
	}
	switch {
	case len(text) > maxColumns && l.Context:
		text = "[Omitted long context line]"
	case len(text) > maxColumns:
		text = "[Omitted long matching line]"
	}
	text = strings.TrimSuffix(text, "\r")
	if numbered, given := g.in["-n"].(bool); numbered || !given {
		text = strconv.Itoa(l.Number) + mark + text
	}
	if !g.at.file {
		text = name + mark + text
	}
	g.page.add(text)
	return true
}
