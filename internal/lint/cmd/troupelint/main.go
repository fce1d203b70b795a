// Command troupelint runs the project's own analyzers.
//
//	go run ./internal/lint/cmd/troupelint -test=false ./...
//
// It exits with 3 when it has something to report.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"

	"github.com/agent-troupe/troupe/internal/lint"
)

func main() { multichecker.Main(lint.Analyzers()...) }
