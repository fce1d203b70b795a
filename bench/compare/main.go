// Command compare measures sessions and the bare loop in turn, and prints the
// ratios:
//
//	go run ./bench/compare            # about a minute
//	go run ./bench/compare -runs 11   # steadier
//
// It fails if a measurement fails, or if a callback ran on the reader; never because
// of a figure. README.md in bench explains the figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/bare"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

// size is how much is measured.
type size struct{ runs, stream, callbacks, idle, crowd int }

func main() {
	fast.Play()
	log.SetFlags(0)
	s := size{runs: 5, stream: 200000, callbacks: 5000, idle: 200, crowd: 10000}
	if os.Getenv("TROUPE_SMOKE") != "" {
		s = size{runs: 1, stream: 200, callbacks: 20, idle: 2, crowd: 20}
	}
	flag.IntVar(&s.runs, "runs", s.runs, "repetitions of each measurement")
	flag.IntVar(&s.stream, "stream", s.stream, "events of a stream")
	flag.IntVar(&s.callbacks, "callbacks", s.callbacks, "callbacks of a turn")
	flag.IntVar(&s.idle, "idle", s.idle, "idle sessions with a process each")
	flag.IntVar(&s.crowd, "crowd", s.crowd, "sessions on agents in one process")
	var part = flag.String("part", "", "internal: the measurement that this process makes")
	flag.Parse()
	if flag.NArg() > 0 || s.runs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	var err error
	if *part != "" {
		err = measured(*part, s)
	} else {
		err = s.compare()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// figures are what one part reports to the whole.
type figures struct {
	Line  measure.Line `json:"line"`
	Hops  float64      `json:"hops"`
	Crowd drive.Crowd  `json:"crowd"`
}

// own is this program as an agent.
func own(mode string, n int) (drive.Job, []string, error) {
	path, env, err := fast.Self()
	vars := []string{measure.ModeEnv + "=" + mode, measure.CountEnv + "=" + strconv.Itoa(n)}
	for k, v := range env {
		vars = append(vars, k+"="+v)
	}
	return drive.Job{Backend: sdk.Claude(sdk.ClaudeConfig{Path: path}), Env: env, Mode: mode, N: n}, vars, err
}

// measured is one measurement in a separate process: "bare hook", "hook", "idle",
// "crowd", "probe".
func measured(part string, s size) error {
	ctx := context.Background()
	var mode string
	loop, _ := fmt.Sscanf(part, "bare %s", &mode)
	if loop == 0 {
		mode = part
	}
	job, env, err := own(mode, s.count(mode))
	if err != nil {
		return err
	}
	var f figures
	switch {
	case loop == 1:
		path, _, _ := fast.Self()
		before := measure.Switches()
		f.Line, err = bare.Run([]string{path}, env, mode, job.N)
		f.Hops = float64(measure.Switches()-before) / float64(max(job.N, 1))
	case mode == measure.Probe:
		err = drive.Probe(ctx, job)
	case mode == "crowd":
		f.Crowd, err = drive.Many(ctx, drive.Job{Backend: scripted.New(), Sessions: s.crowd}, false, false)
	default:
		if mode == measure.Idle {
			job.Sessions = s.idle
		}
		f.Line, f.Hops, err = drive.Run(ctx, job)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

func (s size) count(mode string) int {
	switch mode {
	case measure.Stream:
		return s.stream
	case measure.Hook, measure.Perm, measure.MCP:
		return s.callbacks
	}
	return 0
}

// run makes one measurement in a fresh process.
func (s size) run(part string) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-part", part,
		"-stream", strconv.Itoa(s.stream), "-callbacks", strconv.Itoa(s.callbacks),
		"-idle", strconv.Itoa(s.idle), "-crowd", strconv.Itoa(s.crowd))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", part, err)
	}
	return f, nil
}

// goals are the ratios to stay below.
var goals = []struct {
	mode string
	goal float64
}{{measure.Stream, 1.8}, {measure.Hook, 1.25}, {measure.Perm, 1.25}, {measure.MCP, 1.5}}

func (s size) compare() error {
	if _, err := s.run(measure.Probe); err != nil {
		return errors.Join(drive.ErrOnReader, err)
	}
	fmt.Printf("no callback ran on the reader; medians of %d runs\n\n", s.runs)
	fmt.Printf("%-7s %8s  %12s %12s  %6s %6s  %s\n", "mode", "n", "bare loop", "session", "ratio", "goal", "hops per callback (bare loop)")
	for _, g := range goals {
		var loops, sessions, ratios, hops, loopHops []float64
		for range s.runs {
			loop, err := s.run("bare " + g.mode)
			if err != nil {
				return err
			}
			session, err := s.run(g.mode)
			if err != nil {
				return err
			}
			a, b := cost(loop.Line), cost(session.Line)
			loops, sessions, ratios = append(loops, a), append(sessions, b), append(ratios, b/a)
			hops, loopHops = append(hops, session.Hops), append(loopHops, loop.Hops)
		}
		n, unit, hop := s.count(g.mode), "µs each", fmt.Sprintf("%.1f (%.1f)", median(hops), median(loopHops))
		if g.mode == measure.Stream {
			unit, hop = "ms", ""
		}
		fmt.Printf("%-7s %8d  %6.1f %-7s %6.1f %-7s %6.2f %6.2f  %s\n", g.mode, n, median(loops), unit, median(sessions), unit, median(ratios), g.goal, hop)
	}
	return s.sizes()
}

// cost is what a mode is judged by: for a stream the milliseconds that its turn
// took, for callbacks the microseconds that the agent waited for each.
func cost(l measure.Line) float64 {
	if l.Mode == measure.Stream {
		return l.WallMillis
	}
	return float64(l.CLINanos) / 1e3 / float64(max(l.N, 1))
}

func (s size) sizes() error {
	idle, err := s.run(measure.Idle)
	if err != nil {
		return err
	}
	kb := (idle.Line.RSS - idle.Line.Base) * 1024 / float64(s.idle)
	fmt.Printf("\nidle: %d sessions with a process each, %.1f KB of this process each (goal 20), %.1f goroutines each\n",
		s.idle, kb, float64(idle.Line.Goroutines)/float64(s.idle))
	crowd, err := s.run("crowd")
	if err != nil {
		return err
	}
	c := crowd.Crowd
	fmt.Printf("crowd: %d sessions with their agents in one process, %.1f KB each (goal 22), %.1f goroutines each; opened in %.2f s, closed in %.2f s (goals 3), %d goroutines left\n",
		c.Sessions, c.RSSEach, c.Goroutines, c.OpenMillis/1e3, c.CloseMilli/1e3, c.Left)
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
