package lint

import (
	"go/ast"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// Locks reports a lock in the machines and the actors that [permitted] does not name.
// What an actor owns is reached by message; a lock makes a second way to it.
func Locks() *analysis.Analyzer {
	return inspecting("locks", "report a lock that is not on the list", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours || !within(path, "actors") && !within(path, "internal/actors") && !within(path, "internal/machine") {
			return
		}
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			at, _ := root(pass).FindNode(file)
			for c := range at.Preorder((*ast.TypeSpec)(nil)) {
				spec := c.Node().(*ast.TypeSpec)
				s, ok := spec.Type.(*ast.StructType)
				if !ok || slices.Contains(permitted[:], path+"."+spec.Name.Name) {
					continue
				}
				for _, f := range s.Fields.List {
					if t := pass.TypesInfo.TypeOf(f.Type); t != nil && (t.String() == "sync.Mutex" || t.String() == "sync.RWMutex") {
						pass.Reportf(f.Pos(), "%s has a lock: let an actor own it, or add it to the list with the reason", spec.Name.Name)
					}
				}
			}
		}
	})
}
