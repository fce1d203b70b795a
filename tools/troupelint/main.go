// Command troupelint runs the project's own analyzers, and those of go vet that matter in
// files for another system, which go vet itself would have to compile first.
//
//	go run ./tools/troupelint -test=false ./...
//
// It exits with 3 when it has something to report.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"

	"github.com/agent-troupe/troupe/tools/lint"
)

func main() {
	multichecker.Main(append(lint.Analyzers(),
		copylock.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer)...)
}
