// Command batch gives a hundred tasks to agents, several at a time, and keeps every
// result once.
//
//	go run ./examples/batch                             # demonstrations, no account, half a minute
//	go run ./examples/batch -agent claude -tasks my.jsonl -out results
//	go run ./examples/batch -agent claude -tasks my.jsonl -out results -resume
//
// Each task repairs a copy of a small project, and the project's check verifies the
// work. Look for: some agents are careless, and get what the check said, in the same session; each
// result has its diff; the last task uses the results of all others; the report is an HTML file.
// Kill the program (kill -9) and start it with -out and -resume: it continues where it was. The
// command troupe batch does the same without a program: see docs/fleets.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/runtime"
)

//go:embed tasks.jsonl
var ownTasks []byte

type arguments struct {
	agent       *choice.Agent
	tasks, out  string
	resume      bool
	concurrency int
	first       int
}

func main() {
	a := arguments{agent: choice.Flags()}
	flag.StringVar(&a.tasks, "tasks", "", "a file with a task on each line; default: the example's own")
	flag.StringVar(&a.out, "out", "", "directory for the results; default: a new one")
	flag.BoolVar(&a.resume, "resume", false, "go on with the job in -out")
	flag.IntVar(&a.concurrency, "concurrency", 8, "how many tasks run at the same time")
	flag.IntVar(&a.first, "first", 0, "only so many tasks, and those that come after them; 0: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, a, func(line string) { fmt.Println(line) }); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, a arguments, say func(line string)) (err error) {
	tasks, err := readTasks(a.tasks)
	if err != nil {
		return err
	}
	if a.first > 0 {
		tasks = firstOf(tasks, a.first)
	}
	if a.out == "" {
		if a.out, err = os.MkdirTemp("", "batch-"); err != nil {
			return err
		}
		say("results: " + a.out)                // before anything can go wrong: -resume needs it
		defer func() { _ = os.Remove(a.out) }() // only if it is empty: the job was not begun
	}
	if a.agent.Demonstrates() && a.agent.Dir == "" {
		if a.agent.Dir, err = filepath.Abs(a.out + ".demo"); err != nil { // the same when the job is resumed
			return err
		}
	}
	opts, err := options(a.agent)
	if err != nil {
		return err
	}
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	opts.Runtime = rt
	defer func() { _ = rt.Shutdown(context.WithoutCancel(ctx)) }()
	job := fleet.Job{
		ID: "reviews", Tasks: tasks, Options: opts, Concurrency: a.concurrency, Out: a.out, Resume: a.resume,
		Budget: &fleet.Budget{USD: 20},
	}
	if a.tasks == "" {
		if err := ownJob(&job, a.out+".demo"); err != nil {
			return err
		}
	}
	accepted, again := 0, 0
	for r, err := range fleet.Run(ctx, job) {
		if err != nil {
			return err
		}
		if r.Verdict.Rounds > 1 {
			again++
		}
		if r.OK() {
			accepted++
		}
		say(fmt.Sprintf("[%3d/%d] %-12s %s", accepted, len(tasks), r.ID, r.Status))
	}
	say(fmt.Sprintf("accepted: %d of %d; in a second round: %d", accepted, len(tasks), again))
	say("report: " + filepath.Join(a.out, "report.html"))
	if accepted < len(tasks) {
		return fmt.Errorf("tasks that were not accepted: %d", len(tasks)-accepted)
	}
	return nil
}

// firstOf are the first n tasks, and those that come after other tasks.
func firstOf(tasks []fleet.Task, n int) (some []fleet.Task) {
	left := map[string]bool{}
	for i := range tasks {
		t := tasks[i]
		if left[t.ID] = len(t.After) == 0 && len(some) >= n; left[t.ID] {
			continue
		}
		t.After = slices.DeleteFunc(slices.Clone(t.After), func(id string) bool { return left[id] })
		some = append(some, t)
	}
	return some
}

// readTasks reads a task from each line.
func readTasks(file string) ([]fleet.Task, error) {
	text := ownTasks
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var all []fleet.Task
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		var t fleet.Task
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, t)
	}
	return all, lines.Err()
}
