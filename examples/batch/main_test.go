package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	dir, err := os.MkdirTemp("", "batch-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _, _ = os.RemoveAll(dir), os.RemoveAll(dir+".demo") }()
	var said []string
	err = run(context.Background(), arguments{agent: &choice.Agent{}, out: dir, concurrency: 8, first: 18}, func(line string) { said = append(said, line) })
	fmt.Println(err, said[len(said)-2])
	for _, name := range []string{"results.jsonl", "summary.json", "report.html", "workspaces/summary/1/summary.md"} {
		_, err := os.Stat(filepath.Join(dir, name))
		fmt.Println(name, err)
	}
	// Output:
	// <nil> accepted: 19 of 19; in a second round: 2
	// results.jsonl <nil>
	// summary.json <nil>
	// report.html <nil>
	// workspaces/summary/1/summary.md <nil>
}
