package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/tools/mutation"
)

// simulation is explorations of package simtests.
type simulation struct {
	name  string   // for the table
	tests []string // their names
	share int      // how many of a hundred histories each of them plays
	fleet bool     // those of fleet's code come first in it
}

func (s simulation) pattern() string { return "^(" + strings.Join(s.tests, "|") + ")$" }

// simulations are what a mutant is tried on, in this order: about as many histories as the
// shares say, since some tests divide the number by what a history costs.
func simulations() []simulation {
	return []simulation{
		{"reach", []string{"TestPlantedBugs"}, 36, false},
		{"scenarios", []string{
			"TestAFailingHookBesideAPolicy", "TestOneOfTwoHooksIsCancelled", "TestThePolicyOfAnotherSession", "TestExploreACalmSession", "TestExploreFaults",
			"TestAStoreThatHoldsUpARestart", "TestADeadSessionMakesRoom", "TestNothingFollowsEnded", "TestDecideRecovery", "TestCloseWhileItIsDecided", "TestStall",
			"TestLimits", "TestWhatIsShown", "TestCloudInACalmWorld", "TestCloudWhenActorsDie", "TestCloudThatIsInterrupted", "TestAskReturnsWhatATurnSaid",
		}, 1, false},
		{"leases", []string{"TestTwoHosts"}, 4, false},
		{"jobs", []string{"TestPlantedBugsOfJobs"}, 13, true},
		{"outages", []string{"TestPlantedBugsOfOutages"}, 5, true},
		{"shared servers", []string{"TestExploreASharedJob"}, 6, true},
		{"recovery", []string{"TestTurnsOutliveTheirAgent"}, 8, false},
		{"mirror", []string{"TestMirror"}, 4, false},
		{"cloud", []string{"TestCloudInAnyWeather"}, 4, false},
		{"combinations", []string{"TestNoFalseAlarm"}, 5, false},
	}
}

// loopSimulations are those of the embedded agent.
func loopSimulations() []simulation {
	return []simulation{
		{"calm worlds", []string{"TestEmbeddedInACalmWorld", "TestCompactionInACalmWorld", "TestSubagentsInACalmWorld", "TestAnMCPServerInACalmWorld"}, 5, false},
		{"sessions", []string{"TestPlantedBugsOfEmbedded"}, 25, false},
		{"compactions", []string{"TestPlantedBugsOfCompaction"}, 20, false},
		{"sub-agents", []string{"TestPlantedBugsOfSubagents"}, 15, false},
		{"servers", []string{"TestPlantedBugsOfServers"}, 10, false},
		{"checks", []string{"TestPlantedBugsOfChecks"}, 10, false},
		{"rewinds", []string{"TestPlantedBugsOfRewinds"}, 10, false},
		{"web", []string{"TestEmbeddedOnTheWeb"}, 5, false},
		{"modes", []string{"TestPlantedBugsOfModes"}, 5, false},
	}
}

// order is the simulations that execute a mutant, with those first that know its code.
func (j subject) order(s *Site) (all []simulation) {
	sims := s.sims
	if sims == nil {
		sims = j.simulations
	}
	ofFleet := strings.HasPrefix(s.File, "fleet/")
	for _, first := range []bool{true, false} {
		for _, sim := range sims {
			if (sim.fleet == ofFleet) == first {
				all = append(all, sim)
			}
		}
	}
	return all
}

// bench is a copy of the tree with the mutants in it, and the tests that are built there.
type bench struct {
	of    subject
	dir   string // of the copy
	bins  string // of the test programs
	limit time.Duration

	mu    sync.Mutex
	built map[string]*unit
	plain map[string]string // hashes of histories without a mutant
}

// unit is the built tests of a package.
type unit struct {
	once sync.Once
	bin  string
	took time.Duration // of a run without a mutant
	err  error
}

// build compiles the tests of a package, once, and runs them without a mutant.
func (b *bench) build(ctx context.Context, pkg string) (*unit, error) {
	b.mu.Lock()
	u := b.built[pkg]
	if u == nil {
		u = &unit{bin: filepath.Join(b.bins, strings.ReplaceAll(pkg, "/", "_")+".test")}
		b.built[pkg] = u
	}
	b.mu.Unlock()
	u.once.Do(func() {
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", u.bin, "./"+pkg)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			u.err = fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, out)
			return
		}
		if pkg == "simtests" {
			return
		}
		started := time.Now()
		out, err := b.run(ctx, pkg, u.bin, 0, 5*time.Minute, nil, "-test.short")
		u.took = time.Since(started)
		fmt.Fprintf(os.Stderr, "the tests of %s take %.1f s\n", pkg, u.took.Seconds())
		if err != nil {
			u.err = fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", pkg, err, out)
		}
	})
	return u, u.err
}

var errSlow = errors.New("too slow")

// run runs a test program with a mutant.
func (b *bench) run(ctx context.Context, pkg, bin string, n int, limit time.Duration, env []string, args ...string) (string, error) {
	short, stop := context.WithTimeout(ctx, limit)
	defer stop()
	cmd := exec.CommandContext(short, bin, append([]string{"-test.failfast", fmt.Sprintf("-test.timeout=%s", 2*limit)}, args...)...)
	if cmd.Dir = filepath.Join(b.dir, pkg); pkg == "simtests" { // what one mutant keeps is not played for the next
		dir, err := os.MkdirTemp(b.bins, "cases-")
		if err != nil {
			return "", err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		cmd.Dir = dir
	}
	cmd.WaitDelay = time.Second // a child may hold the pipe
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("TROUPE_MUTANT=%d", n)), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case short.Err() != nil:
		return out.String(), errSlow
	case err == nil && strings.Contains(out.String(), "no tests to run"):
		return "", fmt.Errorf("%s has no tests %v", pkg, args)
	}
	return out.String(), err
}

// Fate is what became of a mutant.
type Fate struct {
	By      string // the simulation, or the package whose tests noticed; "": it lives
	History string // how many histories of that simulation it took
	How     string // the oracle, or the test
	Played  int    // histories, at most, that were played in vain
	Changed string // "same", if the mutant lives in simulations and changes no history
}

// simulate tries a mutant on the simulations, with so many histories in all. Those up to from
// were played before.
func (b *bench) simulate(ctx context.Context, s *Site, n, from, histories int) (Fate, error) {
	u, err := b.build(ctx, "simtests")
	if err != nil {
		return Fate{}, err
	}
	changed := "same"
	for _, sim := range b.of.order(s) {
		env := []string{fmt.Sprintf("TROUPE_SEEDS=%d", max(1, (histories-from)*sim.share/100))}
		if from > 0 {
			env = append(env, fmt.Sprintf("TROUPE_SIM_SEED=%d", max(1, from*sim.share/100)))
		}
		plain, err := b.plainly(ctx, u, sim, env)
		if err != nil {
			return Fate{}, err
		}
		out, err := b.run(ctx, "simtests", u.bin, n, b.limit, env, "-test.v", "-test.run="+sim.pattern())
		switch {
		case ctx.Err() != nil:
			return Fate{}, ctx.Err()
		case errors.Is(err, errSlow), err != nil && strings.Contains(out, noStep):
			if !b.slowAgain(ctx, u, sim, n, env) {
				changed = "" // the machine was busy, and the rest of the histories was not played
				continue
			}
			took, _ := mutation.Found(out)
			return Fate{By: sim.name, History: took, How: "watchdog"}, nil
		case err != nil:
			took, by := mutation.Found(out)
			if t := failedTest.FindStringSubmatch(out); t != nil && len(sim.tests) > 1 {
				by = t[1] + ": " + by
			}
			return Fate{By: sim.name, History: took, How: by}, nil
		case hashesOf(out) != plain:
			changed = ""
		}
	}
	return Fate{Played: histories, Changed: changed}, nil
}

// noStep is what the watchdog of the kit says.
const noStep = "no step in "

// slowAgain reports whether a simulation is ended by the watchdog or by the limit of time twice
// more: on a machine with much other work a healthy one may be, once.
func (b *bench) slowAgain(ctx context.Context, u *unit, sim simulation, n int, env []string) bool {
	for range 2 {
		out, err := b.run(ctx, "simtests", u.bin, n, b.limit, env, "-test.run="+sim.pattern())
		if !errors.Is(err, errSlow) && (err == nil || !strings.Contains(out, noStep)) {
			return false
		}
	}
	return true
}

var hash = regexp.MustCompile(`sim: \d+ histories, hash \w+`)

// plainly returns the hashes of the histories of a simulation without a mutant.
func (b *bench) plainly(ctx context.Context, u *unit, sim simulation, env []string) (string, error) {
	key := sim.name + " " + strings.Join(env, " ")
	b.mu.Lock()
	hashes, ok := b.plain[key]
	b.mu.Unlock()
	if ok {
		return hashes, nil
	}
	out, err := b.run(ctx, "simtests", u.bin, 0, b.limit, env, "-test.v", "-test.run="+sim.pattern())
	if err != nil {
		return "", fmt.Errorf("%s fails without a mutant: %w\n%s", sim.name, err, out)
	}
	hashes = hashesOf(out)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plain[key] = hashes
	return hashes, nil
}

// hashesOf returns the hashes in the output of tests that run side by side.
func hashesOf(out string) string {
	return strings.Join(slices.Sorted(slices.Values(hash.FindAllString(out, -1))), "\n")
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// unitTests tries a mutant on the tests of packages.
func (b *bench) unitTests(ctx context.Context, n int, pkgs []string) (Fate, error) {
	for _, pkg := range pkgs {
		u, err := b.build(ctx, pkg)
		if err != nil {
			return Fate{}, err
		}
		out, err := b.run(ctx, pkg, u.bin, n, 5*u.took+20*time.Second, nil, "-test.short")
		if ctx.Err() != nil {
			return Fate{}, ctx.Err()
		}
		if err != nil {
			how := "the end of the test's process"
			if m := failedTest.FindStringSubmatch(out); m != nil {
				how = m[1]
			} else if errors.Is(err, errSlow) {
				how = "time limit"
			}
			return Fate{By: pkg, How: how}, nil
		}
	}
	return Fate{}, nil
}

// testsOf are the packages whose tests are those of a file: its own, and those of package
// actors for what it drives.
func testsOf(file string) []string {
	dir := filepath.Dir(file)
	switch {
	case dir == "fleet/journal":
		return []string{dir, "fleet"}
	case dir == "agent":
		return []string{dir, "agent/embedded"}
	case strings.HasPrefix(dir, "actors/"):
		return []string{dir, "actors"}
	}
	return []string{dir}
}
