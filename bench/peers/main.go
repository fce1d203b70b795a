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
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/internal/command"
)

// roleEnv makes this program one of those that are measured: "troupe" or "host".
const roleEnv = "TROUPE_PEERS_ROLE"

func main() {
	log.SetFlags(0)
	role := os.Getenv(roleEnv)
	_ = os.Unsetenv(roleEnv) // not for commands of the agent; it can fail for bad names only
	switch role {
	case "troupe":
		os.Exit(command.Main(context.Background(), os.Args[1:]))
	case "host":
		if err := host(os.Stdin, os.Stdout, os.Args[1], os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	b := bench{counts: []int{1, 8, 64}, rounds: 3, many: 50, hold: 12 * time.Second}
	if os.Getenv("TROUPE_SMOKE") != "" {
		b = bench{counts: []int{1, 8}, rounds: 1, many: 50, hold: 3 * time.Second, only: []string{ours}}
	}
	flag.StringVar(&b.agents, "agents", "", "the directory with the agents, each in a directory of its own, as -install makes it")
	install := flag.Bool("install", false, "install the pinned versions that are missing below -agents, from npm")
	only := flag.String("only", "", "names of agents, with commas between; default: all")
	flag.Func("at", "how many at once, with commas between (default 1,8,64)", func(s string) error { return numbers(s, &b.counts) })
	flag.IntVar(&b.rounds, "rounds", b.rounds, "how often one at a time is measured; the median counts")
	flag.IntVar(&b.many, "many", b.many, "further sessions of one process; of the embedded agent twice so many")
	flag.DurationVar(&b.hold, "hold", b.hold, "how long the last answer of a busy session takes")
	flag.Parse()
	if flag.NArg() > 0 || b.rounds < 1 || b.many < 1 || *install && b.agents == "" {
		flag.Usage()
		os.Exit(2)
	}
	if *only != "" {
		b.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.all(ctx, *install)
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

type bench struct {
	agents       string   // directory
	only         []string // names; nil: all
	counts       []int    // sessions at once
	rounds, many int
	hold         time.Duration

	dir    string // temporary: homes and working directories
	sites  int    // made so far
	server *modelapi.Server
}

func (b *bench) all(ctx context.Context, install bool) (err error) {
	if err := adopt(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "troupe-peers-")
	if err == nil {
		b.dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the directory for temporary files
	if b.server, err = modelapi.Start(modelapi.Config{}); err != nil {
		return err
	}
	defer func() { _ = b.server.Close() }()
	fmt.Printf("%s, %s\n\n", time.Now().Format(time.DateOnly), condition())

	peers := all()
	for name := range slices.Values(b.only) {
		if !slices.ContainsFunc(peers, func(p peer) bool { return p.name == name }) {
			return fmt.Errorf("no agent is named %s", name)
		}
	}
	var alone, shared []row
	var missing []string
	for _, p := range peers {
		if b.only != nil && !slices.Contains(b.only, p.name) {
			continue
		}
		programs, err := b.find(ctx, p, install)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		p.programs = programs
		p.script(b.server, b.hold)
		rows, err := b.measure(ctx, p)
		alone = append(alone, rows...)
		if err == nil && p.serve != nil {
			var r row
			if r, err = b.together(ctx, p); err == nil {
				shared = append(shared, r)
			}
		}
		if ctx.Err() != nil {
			missing = append(missing, "what was to come: "+context.Cause(ctx).Error())
			break
		}
		if err != nil {
			if p.own() {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			missing = append(missing, fmt.Sprintf("%s: %v", p.name, err))
		}
	}
	fmt.Print(table(atOnceHead, alone), "\n")
	if len(shared) > 0 {
		fmt.Print(table(sharedHead, shared), "\n")
	}
	for _, line := range append(missing, notMeasured...) {
		fmt.Println("not measured:", line)
	}
	return errors.Join(context.Cause(ctx), verdict(os.Stdout, alone, shared))
}

// condition says how busy the machine is.
func condition() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "the machine's load is not known"
	}
	return "load of the machine before: " + strings.Join(strings.Fields(string(load))[:3], " ")
}
