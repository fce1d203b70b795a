// Command chaos kills agents while they work, and fails if a message has not exactly one
// outcome, if anything is left behind or grows, or if more processes are started than the
// limit allows:
//
//	go run ./bench/chaos -for 1m
//
// In the first part the sessions may restart their agents: one of 200 is killed every
// 10 ms, and each turn has to have its result. In the second part they have the defaults:
// each session whose agent is killed fails with an error that says so. Then every agent is
// killed as soon as it starts, until the breaker of its program opens, and after that none
// is: the breaker has to close again.
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

const roleEnv = "TROUPE_CHAOS_AGENT"

func main() {
	if os.Getenv(roleEnv) != "" {
		agent.Main(scripted.New(scripted.WithScript(script())))
	}
	log.SetFlags(0)
	c := chaos{span: time.Minute, sessions: 200, every: 10 * time.Millisecond}
	if os.Getenv("TROUPE_SMOKE") != "" {
		c.span, c.sessions, c.every = 8*time.Second, 20, 100*time.Millisecond
	}
	flag.DurationVar(&c.span, "for", c.span, "how long the first part kills; the second part takes a fourth of it")
	flag.IntVar(&c.sessions, "sessions", c.sessions, "sessions at the same time")
	flag.DurationVar(&c.every, "every", c.every, "the time between two kills")
	flag.Parse()
	if flag.NArg() > 0 || c.sessions < 1 || c.span <= 0 || c.every <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run runs both parts.
func (c *chaos) run(ctx context.Context) (err error) {
	if len(measure.Children()) == 0 && !procs() {
		fmt.Println("skipped: children are known on Linux only")
		return nil
	}
	if c.path, err = os.Executable(); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "troupe-chaos-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.dir)) }()
	before := measure.Holds(c.dir)
	return errors.Join(c.recovers(ctx), c.defaults(ctx), left(before, measure.Holds(c.dir)))
}

// left compares what the process holds when no session lives with what it held at first.
func left(first, last measure.Holding) error {
	fmt.Printf("left: %d goroutines, %d descriptors, %d files, %d children (before: %d, %d, 0, 0); RSS %.0f MB, heap %.1f MB\n",
		last.Goroutines, last.Descriptors, last.Files, last.Children, first.Goroutines, first.Descriptors, last.RSS, last.Heap)
	var err error
	for what, grown := range map[string]int{
		"goroutines": last.Goroutines - first.Goroutines - 4, "descriptors": last.Descriptors - first.Descriptors - 4, // Go's own poller, and the runtime's watcher
		"files": last.Files, "children": last.Children,
	} {
		if grown > 0 {
			err = errors.Join(err, fmt.Errorf("%d %s are left", grown, what))
		}
	}
	return err
}
