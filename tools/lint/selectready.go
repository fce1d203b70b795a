package lint

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
)

// SelectReady reports select statements with two or more communications: when
// both are ready Go picks one at random, and no seed reproduces the choice. A
// default does not help, since it is taken only when none is ready.
func SelectReady() *analysis.Analyzer {
	return inspecting("selectready", "report selects that may find two channels ready together", func(pass *analysis.Pass) {
		if !library(pass) {
			return
		}
		allow := allowed(pass, allowSelect)
		defer allow.done()
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectStmt); ok && communications(s) > 1 {
					allow.report(s.Pos(), "this select picks at random when two of its channels are ready; wait with Executor.Await, give one channel precedence, or say why it cannot matter with //troupe:select")
				}
				return true
			})
		}
	})
}

func communications(s *ast.SelectStmt) int {
	n := 0
	for _, clause := range s.Body.List {
		if clause.(*ast.CommClause).Comm != nil {
			n++
		}
	}
	return n
}
