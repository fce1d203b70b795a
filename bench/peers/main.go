// Command peers compares the embedded agent with other agents that do the same: one model
// endpoint on loopback plays the same script to each of them, in its own protocol. Call 1 is
// the agent's tool that reads a file, call 2 its shell with "echo hi", call 3 a text.
//
//	go run ./bench/peers -agents DIR -install   # installs pinned versions below DIR, measures all
//	go run ./bench/peers -agents DIR            # measures those that are there
//	go run ./bench/peers -agents DIR -only codex,embedded
//
// The first table has a process for each session, and those that can have all in one process,
// at 1, 8 and 64 at once; the second what each further session costs where one process has many.
// It fails if the embedded agent is outside of a limit. Linux only.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/peers"
)

func main() {
	peers.Play()
	log.SetFlags(0)
	c := peers.Config{Counts: []int{1, 8, 64}, Rounds: 3, Many: 50, Hold: 12 * time.Second}
	if os.Getenv("TROUPE_SMOKE") != "" {
		c = peers.Config{Counts: []int{1, 8}, Rounds: 1, Many: 50, Hold: 3 * time.Second, Only: []string{peers.Own}}
	}
	flag.StringVar(&c.Agents, "agents", "", "the directory with the agents, each in a directory of its own, as -install makes it")
	flag.BoolVar(&c.Install, "install", false, "install the pinned versions that are missing below -agents, from npm")
	only := flag.String("only", "", "names of agents, with commas between; default: all")
	flag.Func("at", "how many at once, with commas between (default 1,8,64)", func(s string) error { return numbers(s, &c.Counts) })
	flag.IntVar(&c.Rounds, "rounds", c.Rounds, "how often one at a time is measured; the median counts")
	flag.IntVar(&c.Many, "many", c.Many, "further sessions of one process; of the embedded agent twice so many")
	flag.DurationVar(&c.Hold, "hold", c.Hold, "how long the last answer of a busy session takes")
	flag.Parse()
	if flag.NArg() > 0 || c.Rounds < 1 || c.Many < 1 || c.Install && c.Agents == "" {
		flag.Usage()
		os.Exit(2)
	}
	if *only != "" {
		c.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := peers.Run(ctx, c)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// numbers reads "1,8,64".
func numbers(s string, into *[]int) error {
	*into = nil
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number above 0", word)
		}
		*into = append(*into, n)
	}
	return nil
}
