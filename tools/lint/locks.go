package lint

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// Locks reports a lock in the machines and the actors that [permitted] does not name.
// The state of an actor is reached by message; a lock makes a second way to it. Every
// use of a type of a lock counts: as a field however deep, as a variable, by a pointer.
func Locks() *analysis.Analyzer {
	return inspecting("locks", "report a lock that is not on the list", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours || !within(path, "actors") {
			return
		}
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			at, _ := root(pass).FindNode(file)
			for c := range at.Preorder((*ast.SelectorExpr)(nil)) {
				sel := c.Node().(*ast.SelectorExpr)
				if !isLock(pass.TypesInfo.Uses[sel.Sel]) {
					continue
				}
				name := ""
				for spec := range c.Enclosing((*ast.TypeSpec)(nil)) {
					name = spec.Node().(*ast.TypeSpec).Name.Name
				}
				if name = path + "." + name; name != double && !slices.Contains(permitted[:], name) {
					pass.Reportf(sel.Pos(), "a lock that is not on the list: let an actor own what it guards, or add its type to the list with the reason")
				}
			}
		}
	})
}

// isLock reports whether the name is that of a type of package sync that locks.
func isLock(name types.Object) bool {
	t, ok := name.(*types.TypeName)
	return ok && t.Pkg() != nil && t.Pkg().Path() == "sync" &&
		slices.Contains([]string{"Mutex", "RWMutex", "Locker", "Cond", "Map"}, t.Name())
}
