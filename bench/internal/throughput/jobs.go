package throughput

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/bare"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Job is what [Jobs] runs.
type Job struct {
	Tasks, AtOnce, Rounds int
	Work                  time.Duration // of each task, whole milliseconds
}

// Figures are what [Jobs] found: tasks per second of each round, in order, and the medians
// of the rounds' ratios.
type Figures struct {
	Tasks  int       `json:"tasks"`
	AtOnce int       `json:"at_once"`
	Bare   []float64 `json:"bare_per_s"`
	Plain  []float64 `json:"plain_per_s"` // a job that keeps nothing
	Kept   []float64 `json:"kept_per_s"`  // with journal, transcripts, results and events
	// PlainOfBare and KeptOfBare are parts of the bare loop's tasks per second.
	PlainOfBare float64 `json:"plain_of_bare"`
	KeptOfBare  float64 `json:"kept_of_bare"`
	// Keeping is the part by which journal and events make a job longer; it may be negative,
	// by chance.
	Keeping float64 `json:"keeping"`
}

// Check fails if the figures miss a limit; 0: no limit.
func (f *Figures) Check(least, most float64) error {
	var errs []error
	if least > 0 && f.KeptOfBare < least {
		errs = append(errs, fmt.Errorf("a job has %.3f of the bare loop's tasks per second, less than %v", f.KeptOfBare, least))
	}
	if most > 0 && f.Keeping > most {
		errs = append(errs, fmt.Errorf("journal and events cost %.3f of a job, more than %v", f.Keeping, most))
	}
	return errors.Join(errs...)
}

// Jobs runs the rounds.
func Jobs(ctx context.Context, j Job) (f Figures, err error) {
	f = Figures{Tasks: j.Tasks, AtOnce: j.AtOnce}
	path, env, err := fast.Self()
	if err != nil {
		return f, err
	}
	// The files are removed when all is measured: that takes time, too, and ext4 makes
	// directories slowly for a while after others were removed.
	outs, err := os.MkdirTemp("", "troupe-bench-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(outs)) }()
	for range j.Rounds {
		for _, run := range []struct {
			into *[]float64
			run  func() error
		}{
			{&f.Bare, func() error { return j.bare(path, env) }},
			{&f.Plain, func() error { return j.fleet(ctx, path, env, "") }},
			{&f.Kept, func() error { return j.fleet(ctx, path, env, outs) }},
		} {
			began := time.Now()
			if err := run.run(); err != nil {
				return f, err
			}
			*run.into = append(*run.into, float64(j.Tasks)/time.Since(began).Seconds())
		}
	}
	f.PlainOfBare, f.KeptOfBare = ratio(f.Plain, f.Bare), ratio(f.Kept, f.Bare)
	f.Keeping = ratio(f.Plain, f.Kept) - 1
	return f, nil
}

// ratio is the median of the rounds' ratios.
func ratio(a, b []float64) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// bare runs the tasks in the bare loop.
func (j Job) bare(path string, more map[string]string) error {
	var env []string
	for k, v := range more {
		env = append(env, k+"="+v)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, j.AtOnce)
	for w := range errs {
		all.Go(func() {
			for errs[w] == nil && next.Add(1) <= int64(j.Tasks) {
				_, errs[w] = bare.Run([]string{path}, env, measure.Work, int(j.Work.Milliseconds()))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// fleet runs the tasks in a job, which keeps what it does in a directory below outs; "":
// nowhere.
func (j Job) fleet(ctx context.Context, path string, env map[string]string, outs string) (err error) {
	job := fleet.Job{
		Concurrency: j.AtOnce,
		Options:     &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: path}), Env: maps.Clone(env), Isolation: session.IsolationShared},
		Tasks:       make([]fleet.Task, j.Tasks),
	}
	for i := range job.Tasks {
		job.Tasks[i] = fleet.Task{ID: "t" + strconv.Itoa(i), Prompt: measure.Prompt(measure.Work, int(j.Work.Milliseconds()))}
	}
	events := 0
	if outs != "" {
		if job.Out, err = os.MkdirTemp(outs, "job-"); err != nil {
			return err
		}
		job.OnEvent = func(fleet.Event) { events++ }
	}
	n := 0
	for r, err := range fleet.Run(ctx, job) {
		if err != nil {
			return err
		}
		if !r.OK() {
			return fmt.Errorf("task %s is %s: %s", r.ID, r.Status, r.Error)
		}
		n++
	}
	if n != j.Tasks || outs != "" && events < 2*n {
		return fmt.Errorf("a job of %d tasks has %d results and %d events", j.Tasks, n, events)
	}
	return nil
}
