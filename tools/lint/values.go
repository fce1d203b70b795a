package lint

import (
	"go/ast"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/analysis"
)

// Values reports what keeps a machine from being a value: a goroutine, a channel, a
// field that holds a function, a lock, or a way to the world outside. Its Step would
// then depend on more than its input, and its Snapshot would leave something out.
func Values() *analysis.Analyzer {
	return inspecting("values", "report what keeps a machine from being a value", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours || !within(path, "actors/machine") {
			return
		}
		for _, file := range pass.Files {
			if isTest(pass, file) {
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
