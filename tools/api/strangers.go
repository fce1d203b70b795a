package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// strangers says which stable packages have exported names whose types are those of a package of
// this module without a promise.
func strangers(set packageSet, promised []string) (problems []string) {
	for _, path := range set.paths() {
		w := walker{home: set[path], seen: map[types.Type]bool{}, found: map[string]string{}}
		for _, name := range set[path].Scope().Names() {
			if obj := set[path].Scope().Lookup(name); obj.Exported() {
				w.at = name
				w.object(obj)
			}
		}
		for other, name := range w.found {
			if !slices.Contains(promised, other) && !slices.Contains(mayName[path], other) {
				problems = append(problems, fmt.Sprintf("%s.%s has a type of package %s, which docs/stability.md does not call stable", path, name, other))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// walker looks at the types of a package's exported names.
type walker struct {
	home  *types.Package
	at    string
	seen  map[types.Type]bool
	found map[string]string // packages of this module, and the first name with a type of theirs
}

func (w *walker) object(obj types.Object) {
	w.visit(obj.Type())
	if name, ok := obj.(*types.TypeName); ok && !name.IsAlias() {
		named := name.Type().(*types.Named)
		w.visit(named.Underlying())
		for m := range named.Methods() {
			if m.Exported() {
				w.visit(m.Type())
			}
		}
	}
}

func (w *walker) visit(t types.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.name(t.Obj())
		w.visit(types.Unalias(t))
	case *types.Named:
		w.name(t.Obj())
		for arg := range t.TypeArgs().Types() {
			w.visit(arg)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				w.visit(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				w.visit(m.Type())
			}
		}
	case *types.Signature:
		w.tuple(t.Params())
		w.tuple(t.Results())
	case *types.Map:
		w.visit(t.Key())
		w.visit(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.visit(t.Elem())
	}
}

func (w *walker) tuple(t *types.Tuple) {
	for v := range t.Variables() {
		w.visit(v.Type())
	}
}

func (w *walker) name(obj types.Object) {
	if obj.Pkg() == nil || obj.Pkg() == w.home {
		return
	}
	path, ours := strings.CutPrefix(obj.Pkg().Path(), modulePath+"/")
	if _, known := w.found[path]; ours && !known {
		w.found[path] = w.at
	}
}
