// Command soak runs sessions with faults for a while and fails if anything grows,
// is left behind, or has not exactly one outcome:
//
//	go run ./bench/soak -for 10m
//
// Agents are processes and in memory. Their turns are answered, interrupted,
// asked for (hooks and permissions), read slowly or not at all, and broken off by
// the agent's death or by Close. Now and then a runtime is shut down in the middle.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/measure"
)

const roleEnv = "TROUPE_SOAK_AGENT"

func main() {
	if os.Getenv(roleEnv) != "" {
		agent.Main(scripted.New(scripted.WithScript(script())))
	}
	log.SetFlags(0)
	span := 10 * time.Minute
	if os.Getenv("TROUPE_SMOKE") != "" {
		span = 30 * time.Second
	}
	flag.DurationVar(&span, "for", span, "how long")
	workers := flag.Int("workers", 8, "sessions at the same time")
	flag.Parse()
	if flag.NArg() > 0 || *workers < 1 || span <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, span, *workers); err != nil {
		log.Fatal(err)
	}
}

// soak runs four spans of load. The first warms up; after each, nothing may be
// left, and the last may not hold more than the first.
func soak(ctx context.Context, span time.Duration, workers int) error {
	s, err := newSoak()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	const spans = 4
	var all []measure.Holding
	fmt.Println("   after   sends  sessions  RSS MB  heap MB  goroutines  descriptors  files  children")
	for range spans {
		if err := s.load(ctx, span/spans, workers); err != nil {
			return errors.Join(err, s.violated())
		}
		r := measure.Holds(s.dir)
		all = append(all, r)
		fmt.Printf("%8v %7d %9d %7.1f %8.1f %11d %12d %6d %9d\n", time.Since(s.began).Round(time.Second),
			s.sends.Load(), s.sessions.Load(), r.RSS, r.Heap, r.Goroutines, r.Descriptors, r.Files, r.Children)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), s.violated())
		}
	}
	fmt.Println("outcomes:", s.summary())
	return errors.Join(s.violated(), grown(all[0], all[spans-1]))
}

// grown compares the end with the end of the warm-up.
func grown(first, last measure.Holding) error {
	var err error
	check := func(what string, first, last, allowed float64) {
		if last > first+allowed {
			err = errors.Join(err, fmt.Errorf("%s grew from %.1f to %.1f", what, first, last))
		}
	}
	check("resident set (MB)", first.RSS, last.RSS, 0.3*first.RSS+16)
	check("heap (MB)", first.Heap, last.Heap, 0.1*first.Heap+2)
	check("goroutines", float64(first.Goroutines), float64(last.Goroutines), 2)
	check("open descriptors", float64(first.Descriptors), float64(last.Descriptors), 2)
	check("temporary files", 0, float64(last.Files), 0)
	check("child processes", 0, float64(last.Children), 0)
	return err
}
