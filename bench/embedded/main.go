// Command embedded measures the embedded agent, with the model in a separate process, and
// fails if a figure is outside of its limit:
//
//	go run ./bench/embedded                  # 10,000 sessions, as the limits are meant
//	go run ./bench/embedded -n 1000 -part crowd -heap heap.pprof
//
// The parts are: first, from the start to the first answer, against Claude Code if it is
// there; stream, a long answer against loops that read it without Troupe; stored, turns
// with a transcript; crowd, all sessions at once: open, after a turn, streaming, interrupted
// and closed. Processor time and memory are compared with fixed limits, all else with what
// else ran in the same run.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/conformance"
)

const roleEnv = "TROUPE_EMBEDDED_MODEL"

func main() {
	log.SetFlags(0)
	if dir := os.Getenv(roleEnv); dir != "" {
		if err := serve(dir); err != nil {
			log.Fatal(err)
		}
		return
	}
	b := bench{sessions: 10_000, deltas: 200_000, rounds: 5, limits: whole}
	if os.Getenv("TROUPE_SMOKE") != "" {
		b.sessions, b.deltas, b.rounds, b.limits = 1000, 20_000, 3, tenth
	}
	flag.IntVar(&b.sessions, "n", b.sessions, "sessions at once")
	flag.IntVar(&b.deltas, "deltas", b.deltas, "deltas of the long answer")
	flag.IntVar(&b.rounds, "rounds", b.rounds, "how often the long answer is read in each way, of which the least time counts, and Claude Code is started, of which the median does")
	flag.StringVar(&b.claude, "claude", installed(), "the program of Claude Code; .ci/conformance-install prints its path")
	flag.StringVar(&b.heap, "heap", "", "write heap profiles of the crowd to files that begin so")
	cpu := flag.String("cpu", "", "write a processor profile to this file")
	part := flag.String("part", "", "measure this part only")
	flag.Parse()
	if flag.NArg() > 0 || b.sessions < 1 || b.deltas < 1 || b.rounds < 1 || *part != "" && !slices.Contains(parts, *part) {
		flag.Usage()
		os.Exit(2)
	}
	b.heapProfiles()
	stop, err := measure.CPUProfile(*cpu)
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(b.run(context.Background(), *part), stop())
	if err != nil {
		log.Fatal(err)
	}
}

// installed is where Claude Code is; "": nowhere.
func installed() string {
	path, _ := conformance.Claude.Installed() // without it a part is left out
	return path
}

// parts are the parts, in their order. The crowd comes last: what it leaves behind is
// beside no other figure.
var parts = []string{"first", "stream", "stored", "crowd"}

type bench struct {
	sessions, deltas, rounds int
	claude, heap             string
	limits                   limits

	dir      string    // of the sessions, with a file to read
	at       endpoints // of the model
	missed   int
	claudeMB float64 // resident set of one session of Claude Code; 0: not known
}

// endpoints are the servers of the model's process.
type endpoints struct {
	Model    string `json:"model"`    // plays what prompts ask for; see model
	Scripted string `json:"scripted"` // of modelapi, which Claude Code can use
}

func (b *bench) run(ctx context.Context, part string) error {
	dir, err := os.MkdirTemp("", "troupe-embedded-")
	if err != nil {
		return err
	}
	b.dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the directory for temporary files
	if err := os.WriteFile(b.file(), []byte(strings.Repeat("a line of the file\n", 20)), 0o600); err != nil {
		return err
	}
	end, err := b.model()
	if err != nil {
		return err
	}
	defer end()
	fmt.Printf("%d sessions; %s\n", b.sessions, condition())
	for _, p := range parts {
		if part != "" && p != part {
			continue
		}
		var err error
		switch p {
		case "first":
			err = b.first(ctx)
		case "stream":
			err = b.stream(ctx)
		case "stored":
			err = b.stored(ctx)
		case "crowd":
			err = b.crowd(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if b.missed > 0 {
		return fmt.Errorf("%d figures are outside of their limits", b.missed)
	}
	return nil
}

// file is what a turn reads.
func (b *bench) file() string { return filepath.Join(b.dir, "file.txt") }

// model starts the model's process.
func (b *bench) model() (end func(), err error) {
	line, over, err := measure.Twin(roleEnv + "=" + b.dir)
	if err != nil {
		return nil, fmt.Errorf("start the model: %w", err)
	}
	end = func() { _ = over() } // how it ends is of no interest
	if err := json.Unmarshal(line, &b.at); err != nil {
		end()
		return nil, fmt.Errorf("start the model: %w", err)
	}
	return end, nil
}

// condition says how busy the machine is.
func condition() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "the machine's load is not known"
	}
	return "load of the machine before: " + strings.Join(strings.Fields(string(load))[:3], " ")
}
