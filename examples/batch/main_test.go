package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/fleet"
)

func Example() {
	dir, err := os.MkdirTemp("", "batch-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var said []string
	err = run(context.Background(), arguments{agent: "scripted", out: dir, concurrency: 16}, func(line string) { said = append(said, line) })
	fmt.Println(err, said[len(said)-2])
	for _, name := range []string{fleet.ResultsFile, fleet.SummaryFile, fleet.ReportFile} {
		_, err := os.Stat(filepath.Join(dir, name))
		fmt.Println(name, err)
	}
	// Output:
	// <nil> accepted: 100 of 100; not at the first attempt: 10
	// results.jsonl <nil>
	// summary.json <nil>
	// report.html <nil>
}
