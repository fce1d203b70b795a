// Command lockcount counts how often a callback takes a lock of this module on its way
// from the agent's stdout to its stdin:
//
//	go run ./tools/lockcount
//
// It runs the benchmark of each kind of callback with coverage counters, for two
// numbers of callbacks, and adds up how often the statements ran that call Lock or
// RLock. The difference is what the callbacks cost and their session does not. The
// command prints each place, and fails above the bar.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"
)

const (
	module = "github.com/agent-troupe/troupe/"
	few    = 500
	many   = 2500
)

// bars says how many locks a callback may take. Two of each wake the reader of an agent in
// memory, which rests between messages; that of a process does not while the agent works.
var bars = []struct {
	kind string
	most float64
}{{"hook", 4}, {"perm", 6}, {"mcp", 6}}

// agent is the files of an agent inside this process: it is the other end of stdin and
// stdout, and a real one is another process.
var agent = []string{"actors/transport/memory.go", "actors/transport/pipe.go"}

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "lockcount")
	if err != nil {
		log.Fatal(err)
	}
	err = build(dir)
	if err == nil {
		var all []error
		for _, bar := range bars {
			all = append(all, count(dir, bar.kind, bar.most))
		}
		err = errors.Join(all...)
	}
	_ = os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

func build(dir string) error {
	cmd := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, "bench"), "-covermode=atomic", "-coverpkg="+module+"...", module+"bench")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// place is a statement that takes locks.
type place struct {
	file  string // with its import path
	line  int
	locks int // calls in its block
	times int // that the block ran
}

func count(dir, kind string, most float64) error {
	before, err := run(dir, kind, few)
	if err != nil {
		return err
	}
	after, err := run(dir, kind, many)
	if err != nil {
		return err
	}
	sum := 0.0
	fmt.Printf("%s:\n", kind)
	for i, p := range after {
		each := float64(p.locks*(p.times-before[i].times)) / (many - few)
		if each < 0.005 {
			continue
		}
		sum += each
		fmt.Printf("  %5.2f  %s:%d\n", each, strings.TrimPrefix(p.file, module), p.line)
	}
	fmt.Printf("  %5.2f  in all\n", sum)
	if sum == 0 {
		return fmt.Errorf("no callback of kind %s was counted: is its benchmark still there?", kind)
	}
	// A timer of production's monitor comes now and then, whatever the callbacks do.
	if math.Floor(sum) > most {
		return fmt.Errorf("a callback of kind %s takes %.2f locks, and may take %.0f", kind, sum, most)
	}
	return nil
}

// run runs the benchmark of a kind with n callbacks and returns the places in the
// order of files and lines.
func run(dir, kind string, n int) ([]place, error) {
	profile := filepath.Join(dir, "profile")
	cmd := exec.Command(filepath.Join(dir, "bench"), "-test.run=^$", "-test.bench=^BenchmarkSession$/^"+kind+"$",
		fmt.Sprintf("-test.benchtime=%dx", n), "-test.coverprofile="+profile)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", kind, err, out)
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return nil, err
	}
	var all []place
	for _, p := range profiles {
		if slices.Contains(agent, strings.TrimPrefix(p.FileName, module)) {
			continue
		}
		calls, err := lockCalls(strings.TrimPrefix(p.FileName, module))
		if err != nil {
			return nil, err
		}
		for _, b := range p.Blocks {
			locks := 0
			for _, c := range calls {
				if within(c, b) {
					locks++
				}
			}
			if locks > 0 {
				all = append(all, place{file: p.FileName, line: b.StartLine, locks: locks, times: b.Count})
			}
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	return all, nil
}

// lockCalls returns where a file calls a method Lock or RLock without arguments.
func lockCalls(file string) ([]token.Position, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var calls []token.Position
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) > 0 {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && (sel.Sel.Name == "Lock" || sel.Sel.Name == "RLock") {
			calls = append(calls, set.Position(call.Pos()))
		}
		return true
	})
	return calls, nil
}

func within(p token.Position, b cover.ProfileBlock) bool {
	after := p.Line > b.StartLine || p.Line == b.StartLine && p.Column >= b.StartCol
	before := p.Line < b.EndLine || p.Line == b.EndLine && p.Column < b.EndCol
	return after && before
}
