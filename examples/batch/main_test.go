package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	for _, name := range []string{"results.jsonl", "summary.json", "report.html"} {
		_, err := os.Stat(filepath.Join(dir, name))
		fmt.Println(name, err)
	}
	// Output:
	// <nil> accepted: 100 of 100; not at the first attempt: 10
	// results.jsonl <nil>
	// summary.json <nil>
	// report.html <nil>
}
