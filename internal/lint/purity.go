package lint

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// purity tells calls that only compute from calls that do something.
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

// purePackages hold only functions that compute; their methods are judged by
// name.
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

// impureTo follows one-line functions of the package depth calls deep.
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
	if f.Signature().Recv() != nil {
		return pureMethods[f.Name()]
	}
	if f.Pkg() == nil {
		return false
	}
	path := f.Pkg().Path()
	return purePackages[path] && !strings.HasPrefix(f.Name(), "Sleep") || pureFunctions[path+"."+f.Name()]
}

// computes says whether f is declared here and only returns an expression that
// computes.
func (p *purity) computes(f *types.Func, depth int) bool {
	d := p.decls[f.Origin()]
	if d == nil || d.Body == nil || len(d.Body.List) != 1 {
		return false
	}
	ret, ok := d.Body.List[0].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	computes := true
	ast.Inspect(ret, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if _, bad := p.impureTo(n, depth-1); bad {
				computes = false
			}
		case *ast.UnaryExpr:
			if n.Op.String() == "<-" {
				computes = false
			}
		}
		return computes
	})
	return computes
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
