// Command kernelcover checks how much of the kernel its tests run:
//
//	go run ./internal/lint/cmd/kernelcover
//
// Each line of production.go, which no simulation runs, has to be covered by the
// kernel's tests in the virtual time of testing/synctest, which are called
// TestProduction. Of all the rest, the kernel's seeded simulations have to cover 95 %
// of statements. Those are its other tests but TestGoroutines, which run on real
// goroutines. The command prints what is not covered, and fails below the bar.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"golang.org/x/tools/cover"
)

const (
	pkg        = "github.com/agent-troupe/troupe/internal/kernel"
	production = "production.go"
)

func main() {
	log.SetFlags(0)
	err := errors.Join(
		check("production", 100, func(file string) bool { return file == production }, "-run", "^TestProduction"),
		check("simulation", 95, func(file string) bool { return file != production }, "-skip", "^Test(Production|Goroutines)"),
	)
	if err != nil {
		log.Fatal(err)
	}
}

// check runs tests and compares their coverage of some files with a bar in percent.
func check(what string, bar float64, of func(file string) bool, tests ...string) error {
	dir, err := os.MkdirTemp("", "kernelcover")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	profile := filepath.Join(dir, "profile")
	run := exec.Command("go", append([]string{"test", "-count=1", "-coverprofile=" + profile, pkg}, tests...)...)
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", what, err, out)
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return err
	}
	covered, all := 0, 0
	for _, p := range profiles {
		if !of(path.Base(p.FileName)) {
			continue
		}
		for _, b := range p.Blocks {
			all += b.NumStmt
			if b.Count > 0 {
				covered += b.NumStmt
			} else if b.NumStmt > 0 {
				fmt.Printf("%s does not run %s:%d\n", what, path.Base(p.FileName), b.StartLine)
			}
		}
	}
	percent := 100 * float64(covered) / float64(max(all, 1))
	fmt.Printf("%s: %.1f %% of %d statements\n", what, percent, all)
	if percent < bar {
		return fmt.Errorf("%s covers %.1f %% of the kernel's statements, and has to cover %.0f %%", what, percent, bar)
	}
	return nil
}
