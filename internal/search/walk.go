package search

import (
	"bytes"
	"context"
	_ "embed"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Tree says which files of a directory are found.
type Tree struct {
	// Dir is the directory, an absolute path. A link is followed there, and nowhere below.
	Dir string
	// Root is that directory, opened; nil: Walk opens it.
	Root *os.Root
	// Only is the one file of Dir that is found, whatever the other rules say; "": all that
	// they let in.
	Only string
	// Globs are wildcards as of ripgrep's --glob: the last that matches decides, one that
	// begins with ! leaves out, and the others let in also what ignore files leave out.
	Globs []string
	// Type is one of ripgrep's file types; "": all files.
	Type string
	// Ignores says that ignore files count: .gitignore, .git/info/exclude and the user's file in
	// a repository, .ignore and .rgignore everywhere.
	Ignores bool
	// Home and Config are where the user's ignore file is: Config/git/ignore. Config "" is
	// Home/.config; if both are "", it is not read.
	Home, Config string
}

// File is a file that was found.
type File struct {
	Path string // with slashes, from the tree's directory
	Info fs.FileInfo

	root *os.Root
}

// Open opens the file: the one that was found, or none.
func (f *File) Open() (*os.File, error) { return Open(f.root, f.Info.Name(), f.Info) }

// maxDepth is how many directories deep a tree is searched: each has a file descriptor.
const maxDepth = 256

// maxGlobs is how many wildcards a tree may have.
const maxGlobs = 1000

// BadTypeError is a file type that does not exist.
type BadTypeError struct{ Type string }

func (e *BadTypeError) Error() string { return "unrecognized file type: " + e.Type }

// Walk calls visit for each regular file, in the order of their paths' bytes, until it returns
// an error. Directories and files that cannot be read are left out, as are links. Errors are
// those of visit and ctx, of Dir, and of wildcards and types, before the first visit.
func (t *Tree) Walk(ctx context.Context, visit func(*File) error) error {
	w := &walker{ctx: ctx, visit: visit, ignores: t.Ignores}
	if len(t.Globs) > maxGlobs {
		return &WildcardError{t.Globs[0], "there are more than " + strconv.Itoa(maxGlobs)}
	}
	for _, g := range t.Globs {
		r, err := parseIgnore(g)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		r.wants = !r.wants // a ! leaves out
		w.lets = w.lets || r.wants
		w.globs = append(w.globs, r)
	}
	if t.Type != "" {
		var err error
		if w.types, err = typeOf(t.Type); err != nil {
			return err
		}
	}
	root := t.Root
	if root == nil {
		var err error
		if root, err = os.OpenRoot(t.Dir); err != nil {
			return err
		}
		defer func() { _ = root.Close() }() // it was read
	}
	if t.Only != "" {
		info, err := root.Lstat(t.Only)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		return visit(&File{Path: t.Only, Info: info, root: root})
	}
	dir := t.Dir
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	var l *level
	if t.Ignores {
		l = levelOf(above(dir), filepath.Base(dir), root)
		w.user = globalRules(t.Home, t.Config)
	}
	return w.dir(root, "", l, 0)
}

type walker struct {
	ctx     context.Context //nolint:containedctx // of this walk
	visit   func(*File) error
	ignores bool
	globs   rules
	lets    bool // one of globs lets files in
	types   []*wildcard
	user    rules
}

// skips reports whether an entry is left out. The order is ripgrep's.
func (w *walker) skips(rel string, dir bool, l *level) bool {
	switch v := w.globs.about(rel, dir); {
	case v == wanted:
		return false
	case v == ignored, w.lets && !dir:
		return true
	}
	name := path.Base(rel)
	if w.ignores && l.about(name, dir, w.user) == ignored {
		return true
	}
	return w.types != nil && !dir && !slices.ContainsFunc(w.types, func(g *wildcard) bool { return g.matches(name) })
}

func (w *walker) dir(root *os.Root, rel string, l *level, depth int) error {
	for _, e := range entries(root) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		name := path.Join(rel, e.Name())
		dir := e.IsDir()
		if !dir && !e.Type().IsRegular() || w.skips(name, dir, l) {
			continue
		}
		info, err := root.Lstat(e.Name())
		if err != nil {
			continue
		}
		switch {
		case dir && info.IsDir() && depth < maxDepth:
			err = w.below(root, info, name, l, depth)
		case !dir && info.Mode().IsRegular():
			err = w.visit(&File{Path: name, Info: info, root: root})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// below walks a directory, if it is still the one that was found.
func (w *walker) below(up *os.Root, info fs.FileInfo, rel string, l *level, depth int) error {
	root, err := up.OpenRoot(info.Name())
	if err != nil {
		return nil // it cannot be read
	}
	defer func() { _ = root.Close() }() // it was read
	if now, err := root.Stat("."); err != nil || !os.SameFile(info, now) {
		return nil // another has taken its place
	}
	if w.ignores {
		l = levelOf(l, info.Name(), root)
	}
	return w.dir(root, rel, l, depth+1)
}

// entries are those of a directory, in the order of the paths of files below it.
func entries(root *os.Root) []fs.DirEntry {
	f, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was read
	list, _ := f.ReadDir(-1)         // what can be read of it
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return list
}

// types.txt has what ripgrep 14.1.1 prints for --type-list: a type and its wildcards in a line.
//
//go:embed types.txt
var types []byte

// typeOf are the wildcards of a type, of the names of files.
func typeOf(name string) (list []*wildcard, err error) {
	for line := range bytes.Lines(types) {
		words := strings.Fields(string(line))
		if name != "all" && words[0] != name {
			continue
		}
		for _, g := range words[1:] {
			w, err := parseWildcard(g, g)
			if err != nil {
				return nil, err
			}
			list = append(list, w)
		}
	}
	if list == nil {
		return nil, &BadTypeError{name}
	}
	return list, nil
}
