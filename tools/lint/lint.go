package lint

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Analyzers returns all of them.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		Seams(), SelectReady(), MapOrder(), Layers(), PublicProto(), Values(), Owned(), Locks(), Directives(),
	}
}

// inspecting builds an analyzer that walks the syntax tree.
func inspecting(name, doc string, run func(*analysis.Pass)) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     name,
		Doc:      doc,
		Requires: []*analysis.Analyzer{inspect.Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			run(pass)
			return nil, nil
		},
	}
}

// root is the cursor above all files of the package.
func root(pass *analysis.Pass) inspector.Cursor {
	return pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
}

// callee is the function or method a call names, or nil: a call of a value, a
// conversion, a builtin.
func callee(pass *analysis.Pass, call *ast.CallExpr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(generic(call.Fun)).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := pass.TypesInfo.Uses[id].(*types.Func)
	return f
}

// generic strips the type arguments of an instantiation.
func generic(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return e.X
	case *ast.IndexListExpr:
		return e.X
	default:
		return e
	}
}

// isFunc says whether f is the package-level function path.name.
func isFunc(f *types.Func, path string, names ...string) bool {
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != path || f.Signature().Recv() != nil {
		return false
	}
	for _, name := range names {
		if f.Name() == name {
			return true
		}
	}
	return false
}
