// Command bench measures how long it takes to list sessions and to read a transcript of an
// SQLite file, as the command bench/sessions does for files, directories and memory:
//
//	go run ./bench/sessions -stores -keep DIR                  # in the main module
//	cd contrib/sqlite && go run ./bench -files DIR
//
// The files of DIR are imported first, and that time is printed, too. Each line of JSON has
// the figures of that command, but for the memory.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	troupesqlite "github.com/agent-troupe/troupe/contrib/sqlite"
	"github.com/agent-troupe/troupe/transcript"
)

// dir is the directory whose sessions bench/sessions has made.
const dir = "/bench/project"

// large is its session to read, in a separate directory.
const large = "5e550000-0000-4000-8000-999999999999"

// figure is the result of one measurement.
type figure struct {
	By      string  `json:"by"`
	Task    string  `json:"task"` // import, list or read
	Count   int     `json:"count"`
	Seconds float64 `json:"seconds"`
}

func main() {
	log.SetFlags(0)
	files := flag.String("files", "", "directory that bench/sessions has kept; required")
	flag.Parse()
	if *files == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *files); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, files string) error {
	at, err := os.MkdirTemp("", "troupe-bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(at) }()
	db, err := troupesqlite.Open(ctx, filepath.Join(at, "sessions.db"), troupesqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	many := &transcript.Sessions{Vendor: transcript.Claude, Root: files, Dir: dir}
	all, err := many.List(ctx, transcript.ListOptions{})
	if err != nil {
		return err
	}
	slices.Reverse(all) // the newest last, as they came
	one := &transcript.Sessions{Vendor: transcript.Claude, Root: filepath.Join(files, "large"), Dir: dir}
	stored := &transcript.Sessions{Vendor: transcript.Claude, Dir: dir, Store: db}
	bring := func(ctx context.Context) (n int, err error) {
		for _, s := range all {
			if _, err := many.Import(ctx, s.SessionID, db, transcript.ImportOptions{}); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	list := func(ctx context.Context) (int, error) {
		rows, err := stored.List(ctx, transcript.ListOptions{})
		return len(rows), err
	}
	read := func(ctx context.Context) (n int, err error) {
		for _, err := range stored.Messages(ctx, large, transcript.ShownOptions{}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	bringLarge := func(ctx context.Context) (int, error) {
		done, err := one.Import(ctx, large, db, transcript.ImportOptions{})
		return done.Entries, err
	}
	for _, task := range []struct {
		name   string
		rounds int
		do     func(context.Context) (int, error)
	}{{"import", 1, bring}, {"list", 3, list}, {"import large", 1, bringLarge}, {"read", 3, read}} {
		best := figure{By: "troupe sqlite", Task: task.name}
		for i := range task.rounds {
			from := time.Now()
			n, err := task.do(ctx)
			if err != nil {
				return err
			}
			if d := time.Since(from).Seconds(); i == 0 || d < best.Seconds {
				best.Count, best.Seconds = n, d
			}
		}
		if err := json.NewEncoder(os.Stdout).Encode(best); err != nil {
			return err
		}
	}
	return nil
}
