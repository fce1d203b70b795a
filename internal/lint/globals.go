package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// Globals reports package-level variables that could change, or be changed
// through. What cannot is left alone, as long as nothing assigns to it: error
// sentinels, embedded files, values of immutable types, functions of
// sync.OnceFunc and its kin, and unexported tables that are only ever read.
func Globals() *analysis.Analyzer {
	return inspecting("globals", "report package-level mutable state", func(pass *analysis.Pass) {
		if !library(pass) {
			return
		}
		g := &globals{pass: pass, allow: allowed(pass, allowGlobal), uses: map[types.Object]*usage{}}
		defer g.allow.done()
		g.collectUses()
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			for _, decl := range file.Decls {
				if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
					g.check(d)
				}
			}
		}
	})
}

type globals struct {
	pass  *analysis.Pass
	allow *allowances
	uses  map[types.Object]*usage
}

// usage is what the package does with one of its variables.
type usage struct {
	assigned bool // the variable itself, or its address is taken
	leaks    bool // used other than by reading an element, its length or its range
}

func (g *globals) check(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if embedded(d.Doc) || embedded(s.Doc) {
			continue
		}
		for i, name := range s.Names {
			if name.Name == "_" || g.fixed(name, initial(s, i)) {
				continue
			}
			if !g.allow.at(d.Pos()) {
				g.allow.report(name.Pos(), "package-level variable %s is mutable state; make it a const, a function, or a field of what owns it", name.Name)
			}
		}
	}
}

// initial is the expression the i-th name of the spec starts with, or nil.
func initial(s *ast.ValueSpec, i int) ast.Expr {
	if len(s.Values) == len(s.Names) {
		return s.Values[i]
	}
	return nil
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// fixed says whether the variable can only ever have its first value.
func (g *globals) fixed(name *ast.Ident, value ast.Expr) bool {
	obj := g.pass.TypesInfo.Defs[name]
	use := g.uses[obj]
	if use == nil {
		use = &usage{}
	}
	if value == nil || use.assigned {
		return false
	}
	if immutable(obj.Type()) || g.sentinel(name.Name, obj.Type()) || g.once(value) {
		return true
	}
	_, literal := ast.Unparen(value).(*ast.CompositeLit)
	return literal && !obj.Exported() && !use.leaks && holdsElements(obj.Type())
}

// sentinel is an error by type and by name: Err…, err….
func (g *globals) sentinel(name string, t types.Type) bool {
	return (strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")) &&
		types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

func (g *globals) once(value ast.Expr) bool {
	call, ok := ast.Unparen(value).(*ast.CallExpr)
	return ok && isFunc(callee(g.pass, call), "sync", "OnceFunc", "OnceValue", "OnceValues")
}

// immutable says whether a value of the type cannot be changed through it.
func immutable(t types.Type) bool {
	switch types.TypeString(t, nil) {
	case "*regexp.Regexp", "*strings.Replacer", "reflect.Type", "*time.Location",
		"encoding/binary.littleEndian", "encoding/binary.bigEndian":
		return true
	}
	s, ok := t.Underlying().(*types.Struct)
	return ok && s.NumFields() == 0
}

func holdsElements(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Map, *types.Slice, *types.Array:
		return true
	}
	return false
}

// collectUses looks at every mention of a package-level variable.
func (g *globals) collectUses() {
	for c := range root(g.pass).Preorder((*ast.Ident)(nil)) {
		obj, ok := g.pass.TypesInfo.Uses[c.Node().(*ast.Ident)].(*types.Var)
		if !ok || obj.Parent() != g.pass.Pkg.Scope() {
			continue
		}
		use := g.uses[obj]
		if use == nil {
			use = &usage{}
			g.uses[obj] = use
		}
		if written(c) {
			use.assigned = true
		} else if !g.reads(c) {
			use.leaks = true
		}
	}
}

// written says whether the expression is assigned to, or its address taken.
func written(c inspector.Cursor) bool {
	switch c.ParentEdgeKind() {
	case edge.AssignStmt_Lhs, edge.IncDecStmt_X, edge.RangeStmt_Key, edge.RangeStmt_Value:
		return true
	case edge.UnaryExpr_X:
		return c.Parent().Node().(*ast.UnaryExpr).Op == token.AND
	}
	return false
}

// reads says whether the mention only reads from the table: an element, its
// length, or all of it by range.
func (g *globals) reads(c inspector.Cursor) bool {
	switch c.ParentEdgeKind() {
	case edge.RangeStmt_X:
		return true
	case edge.IndexExpr_X:
		return !written(c.Parent())
	case edge.CallExpr_Args:
		call := c.Parent().Node().(*ast.CallExpr)
		if fun, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
			if b, ok := g.pass.TypesInfo.Uses[fun].(*types.Builtin); ok {
				return b.Name() == "len" || b.Name() == "cap"
			}
		}
		f := callee(g.pass, call)
		return f != nil && f.Pkg() != nil && readers[f.Pkg().Path()+"."+f.Name()]
	}
	return false
}

// readers are functions that neither change nor keep the table they are given.
var readers = map[string]bool{
	"slices.Contains": true, "slices.ContainsFunc": true, "slices.Index": true, "slices.IndexFunc": true,
	"slices.BinarySearch": true, "slices.BinarySearchFunc": true, "slices.Clone": true, "slices.Equal": true,
	"slices.Values": true, "slices.All": true, "maps.Clone": true, "maps.Keys": true, "maps.Values": true,
	"maps.All": true, "strings.Join": true,
}
