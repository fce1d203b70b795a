package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// The operators.
const (
	droppedCase = "dropped case"
	negated     = "negated condition"
	offByOne    = "off by one"
	swapped     = "swapped effects"
	lostError   = "lost error"
	missingSync = "missing sync"
)

func operators() []string {
	return []string{droppedCase, negated, offByOne, swapped, lostError, missingSync}
}

// Site is a place that an operator can break.
type Site struct {
	Key   string // names it as long as its text stays
	File  string // from the root of the module
	Func  string
	Op    string
	Text  string // what is broken, on one line
	Line  int
	block []token.Position // that coverage may know, the innermost first
	sims  []simulation     // that execute it; nil if unknown
	from  int              // offsets of what is changed
	to    int
	edits func(n int) []edit
}

// rank is the place of a site in the draw of a seed.
func (s *Site) rank(seed uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d|%s", seed, s.Key) // a hash takes everything
	x := h.Sum64()                              // the low bits of the last bytes decide too much: mix them
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// sites returns all sites of the packages, in the order of the files.
func sites(root string, dirs []string) ([]*Site, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	patterns := make([]string, len(dirs))
	for i, dir := range dirs {
		patterns[i] = "./" + dir
	}
	pkgs, err := packages.Load(&packages.Config{
		Dir:  root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var all []*Site
	for _, pkg := range pkgs {
		for _, e := range pkg.Errors {
			return nil, fmt.Errorf("load %s: %w", pkg.PkgPath, e)
		}
		for _, file := range pkg.Syntax {
			path := pkg.Fset.File(file.FileStart).Name()
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f := &finder{name: filepath.ToSlash(name), fset: pkg.Fset, info: pkg.TypesInfo, text: string(text)}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					f.function(fn)
				}
			}
			all = append(all, f.found...)
		}
	}
	slices.SortStableFunc(all, func(a, b *Site) int { return cmp.Compare(a.File, b.File) })
	seen := map[string]int{}
	for _, s := range all {
		key := fmt.Sprintf("%s | %s | %s | %s", s.File, s.Func, s.Op, s.Text)
		seen[key]++
		if s.Key = key; seen[key] > 1 {
			s.Key = fmt.Sprintf("%s | %d", key, seen[key])
		}
	}
	return all, nil
}

// finder looks for the sites of a file.
type finder struct {
	name  string
	fset  *token.FileSet
	info  *types.Info
	text  string
	fn    string
	stack []ast.Node
	found []*Site
}

func (f *finder) function(fn *ast.FuncDecl) {
	f.fn = fn.Name.Name
	if fn.Recv != nil && len(fn.Recv.List) > 0 {
		f.fn = strings.TrimLeft(f.src(fn.Recv.List[0].Type), "*") + "." + f.fn
	}
	f.stack = f.stack[:0]
	ast.Inspect(fn, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		f.stack = append(f.stack, n)
		f.node(n)
		return true
	})
}

func (f *finder) at(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) src(n ast.Node) string { return f.text[f.at(n.Pos()):f.at(n.End())] }

// parent returns the i-th node above the present one.
func (f *finder) parent(i int) ast.Node {
	if n := len(f.stack) - 1 - i; n >= 0 {
		return f.stack[n]
	}
	return nil
}

// add notes a site. covers is where coverage has to know that it runs.
func (f *finder) add(op string, n, covers ast.Node, edits func(n int) []edit) *Site {
	line := strings.Join(strings.Fields(f.src(n)), " ")
	if len(line) > 100 {
		line = line[:100] + "…"
	}
	s := &Site{
		File: f.name, Func: f.fn, Op: op, Text: line, Line: f.fset.Position(n.Pos()).Line,
		block: []token.Position{f.fset.Position(covers.Pos())},
		from:  f.at(n.Pos()), to: f.at(n.End()), edits: edits,
	}
	for i := range f.stack {
		s.block = append(s.block, f.fset.Position(f.stack[len(f.stack)-1-i].Pos()))
	}
	f.found = append(f.found, s)
	return s
}

// wrap puts text around a node; %d is the number of the mutant.
func (f *finder) wrap(n ast.Node, before, after string) func(int) []edit {
	from, to := f.at(n.Pos()), f.at(n.End())
	return func(k int) []edit {
		return []edit{opener(from, numbered(before, k)), closer(to, to, numbered(after, k))}
	}
}

func numbered(text string, k int) string {
	return strings.ReplaceAll(text, "%d", fmt.Sprint(k))
}
