package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/tools/mutation"
)

//go:embed bugs.txt
var bugsFile string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "simmutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root := flag.String("root", ".", "the `directory` of the module")
	seeds := flag.Int("seeds", 5000, "how many histories may be played to find a bug")
	bugs := flag.String("bug", "", "only bugs whose id matches the `expression`")
	flag.Parse()
	which, err := regexp.Compile(*bugs)
	if err != nil {
		return err
	}
	all, err := mutation.Parse("bugs.txt", bugsFile)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "simmutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var problems []error
	for _, m := range all {
		if !which.MatchString(m.ID) {
			continue
		}
		pattern := "^TestPlantedBugs$"
		switch {
		case strings.HasPrefix(m.ID, "job-"):
			pattern = "^TestPlantedBugsOfJobs$"
		case strings.HasPrefix(m.ID, "outage-"):
			pattern = "^TestPlantedBugsOfOutages$"
		}
		out, passed, err := m.Run(ctx, mutation.Test{
			Root: *root, Dir: dir, Package: "simtests", Pattern: pattern, Flags: []string{"-count=1", "-timeout=20m"},
			Env: []string{"TROUPE_SEEDS=" + strconv.Itoa(*seeds)},
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			problems = append(problems, err)
			fmt.Printf("INVALID | %s | %v\n", m.ID, err)
		case passed:
			problems = append(problems, fmt.Errorf("%s was not found in %d histories", m.ID, *seeds))
			fmt.Printf("| %s | not found | |\n", m.ID)
		default:
			took, by := found(out)
			fmt.Printf("| %s | %s | %s |\n", m.ID, took, by)
		}
	}
	return errors.Join(problems...)
}

var (
	afterHistories = regexp.MustCompile(`seed \d+, after (\d+) histor`)
	watchdogSeed   = regexp.MustCompile(`simtests: TestPlantedBugs(?:Of(?:Jobs|Outages))?, seed (\d+),`)
	crashedBubble  = regexp.MustCompile(`(?s)^panic: .*?synctest bubble (\d+)`) // one for each history
	oracle         = regexp.MustCompile(`(?:reach|mirror|fleet|fleet_outage)_test\.go:\d+: ([a-z-]+):`)
)

// found is how many histories it took to find a bug, and the oracle that found it.
func found(out string) (took, by string) {
	took, by = "?", "the end of the test's process"
	if m := afterHistories.FindStringSubmatch(out); m != nil {
		took = m[1]
	} else if m := watchdogSeed.FindStringSubmatch(out); m != nil {
		n, _ := strconv.ParseUint(m[1], 10, 63) // digits
		took, by = strconv.FormatUint(n+1, 10), "watchdog"
	} else if m := crashedBubble.FindStringSubmatch(out); m != nil {
		took, by = m[1], "panic"
	}
	if m := oracle.FindStringSubmatch(out); m != nil {
		by = m[1]
	}
	return took, by
}
