// Command batch gives a hundred tasks to agents, several at a time, and keeps every
// result once.
//
//	go run ./examples/batch                             # scripted agents, no account, some ten seconds
//	go run ./examples/batch -agent claude -tasks my.jsonl -out results
//	go run ./examples/batch -agent claude -tasks my.jsonl -out results -resume
//
// Look for: overloaded calls are tried again in the same session, a wrong answer goes back to its
// agent, the last task uses the results of all others, and the report is an HTML file. Kill the
// program (kill -9) and start it with -resume: it continues where it was. The command troupe batch
// does the same without a program: see docs/fleets.md.
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
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/supervisor"
)

//go:embed tasks.jsonl
var ownTasks []byte

type arguments struct {
	agent, tasks, out string
	resume            bool
	concurrency       int
}

func main() {
	var a arguments
	flag.StringVar(&a.agent, "agent", "scripted", "scripted, claude or qoder")
	flag.StringVar(&a.tasks, "tasks", "", "a file with a task on each line; default: the example's own")
	flag.StringVar(&a.out, "out", "", "directory for the results; default: a new one")
	flag.BoolVar(&a.resume, "resume", false, "go on with the job in -out")
	flag.IntVar(&a.concurrency, "concurrency", 8, "how many tasks run at the same time")
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
	opts, err := options(a.agent)
	if err != nil {
		return err
	}
	if a.out == "" {
		if a.out, err = os.MkdirTemp("", "batch-"); err != nil {
			return err
		}
		say("results: " + a.out)                // before anything can go wrong: -resume needs it
		defer func() { _ = os.Remove(a.out) }() // only if it is empty: the job was not begun
	}
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	opts.Runtime = rt
	defer func() { _ = rt.Shutdown(context.WithoutCancel(ctx)) }()
	job := fleet.Job{
		ID: "reviews", Tasks: tasks, Options: opts, Concurrency: a.concurrency, Out: a.out, Resume: a.resume,
		Backoff: supervisor.Backoff{Initial: 100 * time.Millisecond},
		Budget:  &fleet.Budget{USD: 20},
		Verify: &fleet.Verify{
			Check: func(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
				return fleet.Verdict{OK: strings.Contains(c.Text, "VERDICT:"), Output: "there is no line that begins with VERDICT:"}, nil
			},
			Prompt: "Your answer was not accepted: {{.Output}}. Give it again, with such a line.",
		},
	}
	accepted, again := 0, 0
	for r, err := range fleet.Run(ctx, job) {
		if err != nil {
			return err
		}
		if len(r.Attempts) > 1 {
			again++
		}
		if r.OK() {
			accepted++
		}
		say(fmt.Sprintf("[%3d/%d] %-12s %s", accepted, len(tasks), r.ID, r.Status))
	}
	say(fmt.Sprintf("accepted: %d of %d; not at the first attempt: %d", accepted, len(tasks), again))
	say("report: " + filepath.Join(a.out, "report.html"))
	if accepted < len(tasks) {
		return fmt.Errorf("tasks that were not accepted: %d", len(tasks)-accepted)
	}
	return nil
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
