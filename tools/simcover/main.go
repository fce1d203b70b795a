// Command simcover checks how much of the kernel, the machines and the actors the
// simulations run:
//
//	go run ./tools/simcover
//
// Simulations are the tests that run production's code on the seeded scheduler. They have
// to cover 95 % of the kernel's statements, and 95 % of those of the machines and the
// actors. Code that no simulation can run is listed here by file, with the reason. Each
// line of the kernel's production.go has to be covered by tests in the virtual time of
// testing/synctest instead. The command prints what is not covered, and fails below a bar.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/cover"
)

const module = "github.com/agent-troupe/troupe/"

// outside are the files that no simulation runs, with the reason.
var outside = map[string]string{
	"internal/kernel/production.go": "the wall clock, goroutines and their monitor, which a simulation replaces",
	"actors/transport/process.go":   "starts processes of the operating system; internal/osproc and tests of runtime run it with real ones",
}

// check is tests and the statements that they have to run.
type check struct {
	what  string
	bar   float64 // percent
	of    []string
	files func(name string) bool
	tests []string // packages and flags
}

func main() {
	log.SetFlags(0)
	simulated := func(name string) bool { return outside[name] == "" }
	kernel := []string{"./internal/kernel"}
	tree := []string{"./actors/..."}
	// Tests called Production or Goroutines run on real goroutines; /production is such
	// a half of a test. Those of hard edges start real processes.
	// It stands last: go test looks at no alternative behind one that a name matches in part.
	const skip = "-skip=Production|Goroutines|^TestEdge|^TestGuard|Process|^TestAgentDies|^TestInitializeGoesWrong|/production"
	var errs []error
	for _, c := range []check{
		{"production", 100, kernel, func(name string) bool { return name == "internal/kernel/production.go" }, append([]string{"-run=^TestProduction"}, kernel...)},
		{"kernel", 95, kernel, simulated, append([]string{skip}, kernel...)},
		{"machines and actors", 95, tree, simulated, append([]string{"-short", skip, "./runtime"}, tree...)},
	} {
		errs = append(errs, c.run())
	}
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

func (c check) run() error {
	dir, err := os.MkdirTemp("", "simcover")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	profile := filepath.Join(dir, "profile")
	args := append([]string{"test", "-count=1", "-coverpkg=" + strings.Join(c.of, ","), "-coverprofile=" + profile}, c.tests...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c.what, err, out)
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return err
	}
	covered, all := 0, 0
	for _, p := range profiles {
		name := strings.TrimPrefix(p.FileName, module)
		if !c.files(name) || strings.Contains(name, "test/") { // a package for tests
			continue
		}
		for _, b := range p.Blocks {
			all += b.NumStmt
			if b.Count > 0 {
				covered += b.NumStmt
			} else if b.NumStmt > 0 {
				fmt.Printf("%s: %s:%d does not run\n", c.what, name, b.StartLine)
			}
		}
	}
	percent := 100 * float64(covered) / float64(max(all, 1))
	fmt.Printf("%s: %.1f %% of %d statements\n", c.what, percent, all)
	if percent < c.bar {
		return fmt.Errorf("%s: the tests run %.1f %% of the statements, and have to run %.0f %%", c.what, percent, c.bar)
	}
	return nil
}
