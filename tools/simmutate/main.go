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
		case strings.HasPrefix(m.ID, "shared-"):
			pattern = "^TestExploreASharedJob$"
		case strings.HasPrefix(m.ID, "outage-"):
			pattern = "^TestPlantedBugsOfOutages$"
		case strings.HasPrefix(m.ID, "store-"):
			pattern = "^TestPlantedBugsOfStores$"
		case strings.HasPrefix(m.ID, "batch-"):
			pattern = "^TestPlantedBugsOfBatches$"
		case strings.HasPrefix(m.ID, "deferred-"):
			pattern = "^TestPlantedBugsOfDeferredJobs$"
		case strings.HasPrefix(m.ID, "sub-"):
			pattern = "^TestPlantedBugsOfSubagents$"
		case strings.HasPrefix(m.ID, "loop-"):
			pattern = "^TestPlantedBugsOfEmbedded$"
		case strings.HasPrefix(m.ID, "compaction-"):
			pattern = "^TestPlantedBugsOfCompaction$"
		case strings.HasPrefix(m.ID, "check-"):
			pattern = "^TestPlantedBugsOfChecks$"
		case strings.HasPrefix(m.ID, "rewind-"):
			pattern = "^TestPlantedBugsOfRewinds$"
		case strings.HasPrefix(m.ID, "web-"):
			pattern = "^TestPlantedBugsOfTheWeb$"
		case strings.HasPrefix(m.ID, "mode-"):
			pattern = "^TestPlantedBugsOfModes$"
		case strings.HasPrefix(m.ID, "mcp-"):
			pattern = "^TestPlantedBugsOfServers$"
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
			took, by := mutation.Found(out)
			fmt.Printf("| %s | %s | %s |\n", m.ID, took, by)
		}
	}
	return errors.Join(problems...)
}
