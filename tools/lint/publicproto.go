package lint

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// PublicProto reports exported declarations of packages that users can import whose
// type holds, however deep, a type of the actor library, of an internal package, or of an
// importable package without a promise of compatibility; and second names of public types,
// which package sdk alone has. Packages without a promise may use each other's types and
// internal ones, but not the actor library's.
func PublicProto() *analysis.Analyzer {
	return inspecting("publicproto", "report types that no user can name in exported declarations", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours || pass.Pkg.Name() == "main" || internalPackage(pass.Pkg.Path()) {
			return
		}
		scope := pass.Pkg.Scope()
		for _, name := range scope.Names() {
			obj := scope.Lookup(name)
			if !obj.Exported() || strings.HasSuffix(pass.Fset.Position(obj.Pos()).Filename, "_test.go") {
				continue
			}
			if of := renamed(obj); of != "" && path != "sdk" {
				pass.Reportf(obj.Pos(), "%s is another name of %s; use that one", name, of)
				continue
			}
			w := &signatureWalk{pkg: pass.Pkg, seen: map[types.Type]bool{}, promised: !unpromised(path)}
			w.object(obj)
			if w.found == nil {
				continue
			}
			of, internal := strings.CutPrefix(w.found.Obj().Pkg().Path(), modulePath+"/")
			if !internal {
				of = "the actor library"
			}
			pass.Reportf(w.at, "%s exposes %s of %s", name, w.found.Obj().Name(), of)
		}
	})
}

// signatureWalk looks through everything a caller of one declaration can see.
type signatureWalk struct {
	pkg      *types.Package
	promised bool // users rely on the package's declarations
	seen     map[types.Type]bool
	at       token.Pos
	found    *types.Named
}

func (w *signatureWalk) object(obj types.Object) {
	name, isType := obj.(*types.TypeName)
	if !isType {
		w.visit(obj.Pos(), obj.Type())
		return
	}
	if name.IsAlias() {
		w.visit(obj.Pos(), types.Unalias(obj.Type()))
		return
	}
	named := obj.Type().(*types.Named)
	w.params(obj.Pos(), named.TypeParams())
	w.visit(obj.Pos(), named.Underlying())
	for method := range named.Methods() {
		if method.Exported() {
			w.visit(method.Pos(), method.Type())
		}
	}
}

func (w *signatureWalk) visit(at token.Pos, t types.Type) {
	if w.found != nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		w.visit(at, types.Unalias(t))
	case *types.Named:
		w.named(at, t)
	case *types.TypeParam:
		w.visit(at, t.Constraint())
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() || field.Embedded() {
				w.visit(w.local(at, field), field.Type())
			}
		}
	case *types.Interface:
		for method := range t.ExplicitMethods() {
			if method.Exported() {
				w.visit(w.local(at, method), method.Type())
			}
		}
		for embedded := range t.EmbeddedTypes() {
			w.visit(at, embedded)
		}
	case *types.Signature:
		w.params(at, t.TypeParams())
		w.visit(at, t.Params())
		w.visit(at, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.visit(at, v.Type())
		}
	case *types.Map:
		w.visit(at, t.Key())
		w.visit(at, t.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		w.visit(at, t.Elem())
	case *types.Union:
		for term := range t.Terms() {
			w.visit(at, term.Type())
		}
	}
}

func (w *signatureWalk) named(at token.Pos, t *types.Named) {
	obj := t.Obj()
	if obj.Pkg() != nil && w.hidden(obj.Pkg().Path()) {
		w.at, w.found = at, t
		return
	}
	for arg := range t.TypeArgs().Types() {
		w.visit(at, arg)
	}
	// An unexported type is seen through the exported declaration that uses it;
	// an exported one is looked at by itself.
	if obj.Pkg() == w.pkg && !obj.Exported() {
		w.object(obj)
	}
}

// hidden says whether the types of a package must not be in the package's declarations.
func (w *signatureWalk) hidden(path string) bool {
	if within(path, actorLibrary) {
		return true
	}
	rel, ours := strings.CutPrefix(path, modulePath+"/")
	return w.promised && (internalPackage(path) || ours && unpromised(rel))
}

// renamed is the type of another public package of this module that an alias is, or "".
func renamed(obj types.Object) string {
	name, ok := obj.(*types.TypeName)
	if !ok || !name.IsAlias() {
		return ""
	}
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg() == obj.Pkg() || internalPackage(named.Obj().Pkg().Path()) {
		return ""
	}
	path, ours := strings.CutPrefix(named.Obj().Pkg().Path(), modulePath+"/")
	if !ours || unpromised(path) {
		return ""
	}
	return path + "." + named.Obj().Name()
}

// internalPackage says whether the package is one of this module that other
// modules cannot import.
func internalPackage(path string) bool {
	path, ours := strings.CutPrefix(path, modulePath+"/")
	return ours && strings.Contains("/"+path+"/", "/internal/")
}

// unpromised says whether the package, by its path in the module, is importable without a
// promise of compatibility.
func unpromised(path string) bool { return within(path, "actors") || within(path, "base") }

func (w *signatureWalk) params(at token.Pos, list *types.TypeParamList) {
	for p := range list.TypeParams() {
		w.visit(at, p)
	}
}

// local is the position of a member, when it is declared in this package.
func (w *signatureWalk) local(at token.Pos, member types.Object) token.Pos {
	if member.Pkg() == w.pkg {
		return member.Pos()
	}
	return at
}
