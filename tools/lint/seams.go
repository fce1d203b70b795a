package lint

import (
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// forbidden are the functions that reach past the kernel's seams, by package.
// An empty list of names means every function of the package.
var forbidden = map[string]struct {
	names   []string
	except  []string
	instead string
}{
	"time": {
		names:   []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		instead: "take a kernel.Clock",
	},
	"context": {
		names:   []string{"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
		instead: "take the kernel's deadlines and its executor",
	},
	// Sources made from a given seed are what simulation is made of.
	"math/rand":              {except: []string{"New", "NewSource", "NewZipf"}, instead: "take a kernel.Rand"},
	"math/rand/v2":           {except: []string{"New", "NewPCG", "NewChaCha8", "NewZipf"}, instead: "take a kernel.Rand"},
	"crypto/rand":            {instead: "take a kernel.Rand"},
	"hash/maphash":           {instead: "hash with a fixed seed"},
	"github.com/google/uuid": {instead: "take identifiers from a kernel.Rand"},
	"os":                     {names: []string{"CreateTemp", "MkdirTemp"}, instead: "name temporary files from a kernel.Rand"},
	"io/ioutil":              {names: []string{"TempFile", "TempDir"}, instead: "name temporary files from a kernel.Rand"},
}

// Seams reports uses of clocks, deadlines, goroutines and randomness that the
// simulation cannot see.
func Seams() *analysis.Analyzer {
	return inspecting("seams", "report clocks, goroutines, randomness and deadlines that bypass the kernel", runSeams)
}

func runSeams(pass *analysis.Pass) {
	if !library(pass) || ownsSeams(pass) {
		return
	}
	allow := allowed(pass, allowSeam)
	defer allow.done()
	for _, file := range pass.Files {
		if isTest(pass, file) {
			continue
		}
		goroutines := mayStartGoroutines(pass, file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if !goroutines {
					allow.report(n.Pos(), "a bare go statement is invisible to the simulation; take a kernel.Executor")
				}
			case *ast.Ident:
				// Any mention counts, called or not: a clock handed on is a clock.
				if f, ok := pass.TypesInfo.Uses[n].(*types.Func); ok {
					seamUse(allow, n, f, goroutines)
				}
			}
			return true
		})
	}
}

func seamUse(allow *allowances, at *ast.Ident, f *types.Func, goroutines bool) {
	if f.Pkg() == nil {
		return
	}
	if recv := f.Signature().Recv(); recv != nil {
		if f.FullName() == "(*sync.WaitGroup).Go" && !goroutines {
			allow.report(at.Pos(), "%s starts a goroutine the simulation cannot see; take a kernel.Executor", f.FullName())
		}
		return
	}
	rule, ok := forbidden[f.Pkg().Path()]
	if !ok || slices.Contains(rule.except, f.Name()) {
		return
	}
	if len(rule.names) == 0 || slices.Contains(rule.names, f.Name()) {
		allow.report(at.Pos(), "%s bypasses the kernel's seams; %s", f.FullName(), rule.instead)
	}
}
