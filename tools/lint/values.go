package lint

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Values reports what keeps a machine from being a value: a goroutine, a channel, a
// field that holds a function, a lock, or a way to the world outside. Its Step would
// then depend on more than its input, and its Snapshot would leave something out.
func Values() *analysis.Analyzer {
	return inspecting("values", "report what keeps a machine from being a value", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours {
			return
		}
		for _, file := range pass.Files {
			if isTest(pass, file) || !ofMachine(path, fileName(pass, file)) {
				continue
			}
			for _, imp := range file.Imports {
				if name, _ := strconv.Unquote(imp.Path.Value); slices.Contains(outside[:], name) {
					pass.Reportf(imp.Pos(), "a machine is a value and does not import %s", name)
				}
			}
			at, _ := root(pass).FindNode(file)
			for c := range at.Preorder((*ast.GoStmt)(nil), (*ast.ChanType)(nil), (*ast.StructType)(nil)) {
				switch n := c.Node().(type) {
				case *ast.GoStmt:
					pass.Reportf(n.Pos(), "a machine starts no goroutine: return an effect")
				case *ast.ChanType:
					pass.Reportf(n.Pos(), "a machine has no channel: return an effect")
				case *ast.StructType:
					fields(pass, n)
				}
			}
		}
	})
}

// ofMachine says whether a file has the code of a machine: all files of the session's, and some of
// the job's, which needs the public types of its package.
func ofMachine(path, file string) bool {
	return within(path, "actors/machine") || path == "fleet" && strings.HasPrefix(file, "machine")
}

// Owned reports code outside the machine of a job that reads or writes a field of the machine, or
// of one of its tasks: it asks the job, or tells it.
func Owned() *analysis.Analyzer {
	return inspecting("owned", "report fields of a job's machine outside its files", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours || path != "fleet" {
			return
		}
		for _, file := range pass.Files {
			if isTest(pass, file) || ofMachine(path, fileName(pass, file)) {
				continue
			}
			at, _ := root(pass).FindNode(file)
			for c := range at.Preorder((*ast.SelectorExpr)(nil)) {
				sel, _ := c.Node().(*ast.SelectorExpr)
				if s := pass.TypesInfo.Selections[sel]; s != nil && s.Kind() == types.FieldVal && owned(s.Recv()) {
					pass.Reportf(sel.Sel.Pos(), "%s is a field of the job's machine: ask it, or tell it", sel.Sel.Name)
				}
			}
		}
	})
}

// owned says whether a type is the machine of a job, or a task in it.
func owned(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && (n.Obj().Name() == "machine" || n.Obj().Name() == "node")
}

// outside are the packages of the standard library that a machine cannot need.
var outside = [...]string{"sync", "sync/atomic", "context", "os", "io", "math/rand", "math/rand/v2", "crypto/rand", "runtime", "unsafe", "log/slog"}

func fields(pass *analysis.Pass, s *ast.StructType) {
	for _, f := range s.Fields.List {
		if t := pass.TypesInfo.TypeOf(f.Type); t != nil {
			if _, ok := t.Underlying().(*types.Signature); ok {
				pass.Reportf(f.Pos(), "a field that holds a function is no value: make it an interface in Config, or an effect")
			}
		}
	}
}
