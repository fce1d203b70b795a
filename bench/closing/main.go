// Command closing measures what it takes to close sessions, and prints a line of
// JSON for each measurement:
//
//	go run ./bench/closing -foreign 0,500,2000,5000   # one at a time, with so many other processes on the host
//	go run ./bench/closing -closers 1,4,8,32          # many at a time
//	go run ./bench/closing -readers 1000,4000,16000   # with a reader of the events of each session, and without
//
// Without an argument it does all three, in small sizes.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

func main() {
	fast.Play()
	log.SetFlags(0)
	foreign := flag.String("foreign", "", "numbers of processes that are not the agents'")
	closers := flag.String("closers", "", "numbers of sessions that are opened and closed at the same time")
	readers := flag.String("readers", "", "numbers of sessions in memory that have a reader of their events each")
	n := flag.Int("n", 30, "sessions of each measurement with -foreign; each closer has 50 times as many")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if *foreign+*closers+*readers == "" {
		*foreign, *closers, *readers, *n = "0,20", "2", "50", 1
	}
	if err := run(*foreign, *closers, *readers, *n); err != nil {
		log.Fatal(err)
	}
}

func run(foreign, closers, readers string, n int) error {
	ctx := context.Background()
	path, env, err := fast.Self()
	if err != nil {
		return err
	}
	job := drive.Job{Backend: sdk.Claude(sdk.ClaudeConfig{Path: path}), Env: env}
	for _, m := range []struct {
		sizes   string
		measure func(size int) (any, error)
	}{
		{foreign, func(size int) (any, error) {
			job.Sessions = n
			return drive.Closing(ctx, job, size, 1)
		}},
		{closers, func(size int) (any, error) {
			job.Sessions = 50 * n * size
			return drive.Closing(ctx, job, 0, size)
		}},
		{readers, func(size int) (any, error) { return drive.Readers(ctx, size) }},
	} {
		for _, size := range strings.FieldsFunc(m.sizes, func(r rune) bool { return r == ',' }) {
			number, err := strconv.Atoi(size)
			if err != nil {
				return err
			}
			figures, err := m.measure(number)
			if err != nil {
				return err
			}
			if err := measure.Print(figures); err != nil {
				return err
			}
		}
	}
	return nil
}
