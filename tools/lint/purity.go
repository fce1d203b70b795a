package lint

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// purity separates calls that only compute from calls with side effects.
type purity struct {
	pass  *analysis.Pass
	decls map[*types.Func]*ast.FuncDecl
}

func newPurity(pass *analysis.Pass) *purity {
	p := &purity{pass: pass, decls: map[*types.Func]*ast.FuncDecl{}}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				if f, ok := pass.TypesInfo.Defs[d.Name].(*types.Func); ok {
					p.decls[f] = d
				}
			}
		}
	}
	return p
}

// purePackages hold only functions that compute.
var purePackages = map[string]bool{
	"bytes": true, "cmp": true, "errors": true, "maps": true, "math": true, "math/bits": true, "net/url": true,
	"path": true, "path/filepath": true, "reflect": true, "regexp": true, "slices": true, "sort": true,
	"strconv": true, "strings": true, "time": true, "unicode": true, "unicode/utf8": true,
}

// pureFunctions compute, though their package does more than that.
var pureFunctions = map[string]bool{
	"encoding/json.Marshal": true, "encoding/json.Unmarshal": true, "encoding/json.Valid": true,
	"fmt.Errorf": true, "fmt.Sprint": true, "fmt.Sprintf": true, "fmt.Sprintln": true,
}

// pureMethods are names that mean a computation wherever they stand.
var pureMethods = map[string]bool{
	"After": true, "Before": true, "Clone": true, "Cmp": true, "Compare": true, "Equal": true, "Error": true,
	"IsZero": true, "Len": true, "Load": true, "MatchString": true, "Name": true, "String": true, "Sub": true,
}

// impure names what the call does beyond computing, and says false when it does
// nothing beyond.
func (p *purity) impure(call *ast.CallExpr) (string, bool) {
	return p.impureTo(call, 3)
}

// impureTo follows functions of the package depth calls deep.
func (p *purity) impureTo(call *ast.CallExpr, depth int) (string, bool) {
	fun := ast.Unparen(call.Fun)
	if p.pass.TypesInfo.Types[fun].IsType() { // a conversion
		return "", false
	}
	if _, literal := fun.(*ast.FuncLit); literal { // its body is looked at by itself
		return "", false
	}
	if name := p.builtin(call); name != "" {
		switch name {
		case "close", "print", "println", "panic":
			return name, true
		}
		return "", false
	}
	f := callee(p.pass, call)
	if f == nil {
		return types.ExprString(call.Fun), true
	}
	if p.known(f) || depth > 0 && p.computes(f, depth) {
		return "", false
	}
	return f.Name(), true
}

func (p *purity) known(f *types.Func) bool {
	if f.Pkg() == nil { // error.Error
		return pureMethods[f.Name()]
	}
	path := f.Pkg().Path()
	if recv := f.Signature().Recv(); recv != nil {
		// A method on a value, as all of time.Time's, changes nothing; those of
		// reflect and sort reach through it.
		_, pointer := recv.Type().(*types.Pointer)
		return pureMethods[f.Name()] ||
			purePackages[path] && !pointer && !types.IsInterface(recv.Type()) && path != "reflect" && path != "sort"
	}
	return purePackages[path] || pureFunctions[path+"."+f.Name()]
}

// computes says whether f is declared here, and neither it nor what it calls
// changes anything but its own variables.
func (p *purity) computes(f *types.Func, depth int) bool {
	d := p.decls[f.Origin()]
	if d == nil || d.Body == nil {
		return false
	}
	computes := true
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt, *ast.SelectStmt:
			computes = false
		case *ast.UnaryExpr:
			computes = computes && n.Op != token.ARROW
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				computes = computes && p.owns(d, lhs)
			}
		case *ast.IncDecStmt:
			computes = computes && p.owns(d, n.X)
		case *ast.CallExpr:
			_, does := p.impureTo(n, depth-1)
			computes = computes && !does
		}
		return computes
	})
	return computes
}

// owns says whether assigning to the expression stays inside the function: it is
// reached from a variable of the body, or is itself a parameter or a result.
func (p *purity) owns(d *ast.FuncDecl, lhs ast.Expr) bool {
	id := base(lhs)
	if id == nil {
		return false
	}
	if id.Name == "_" {
		return true
	}
	obj := p.pass.TypesInfo.ObjectOf(id)
	if obj == nil {
		return false
	}
	if d.Body.Pos() <= obj.Pos() && obj.Pos() < d.Body.End() {
		return true
	}
	_, plain := ast.Unparen(lhs).(*ast.Ident)
	return plain && d.Pos() <= obj.Pos() && obj.Pos() < d.End()
}

// builtin is the name of the builtin the call uses, or empty.
func (p *purity) builtin(call *ast.CallExpr) string {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := p.pass.TypesInfo.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}
