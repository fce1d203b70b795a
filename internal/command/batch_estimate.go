package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/estimate"
)

// estimateText says what all tasks will use, after those of --estimate have run.
func (s *settings) estimateText(e estimate.Estimate) string {
	if e.Samples == 0 {
		return "no task has run, so nothing can be estimated\n"
	}
	job := &s.batch.job
	var b strings.Builder
	fmt.Fprintf(&b, "all %s, estimated from %d (%d accepted):\n", shown.Count(e.Tasks, "task"), e.Samples, e.Accepted)
	row := func(name string, p estimate.Projection, format func(float64) string) {
		if p.Total > 0 {
			fmt.Fprintf(&b, "  %-20s %s", name, format(p.Total))
			if e.Samples > 1 && e.Samples < e.Tasks {
				fmt.Fprintf(&b, ", between %s and %s", format(p.Low), format(p.High))
			}
			fmt.Fprintf(&b, " (a task: %s to %s)\n", format(p.Least), format(p.Most))
		}
	}
	dollars := func(v float64) string { return fmt.Sprintf("$%.2f", v) }
	if e.USD.Total == 0 && e.Credits.Total == 0 {
		b.WriteString("  the agent reports no cost\n")
	}
	row("cost", e.USD, dollars)
	row("credits", e.Credits, func(v float64) string { return fmt.Sprintf("%.2f", v) })
	row("turns", e.Turns, amount)
	row("input tokens", e.InputTokens, amount)
	row("output tokens", e.OutputTokens, amount)
	row("written to the cache", e.CacheWrite, amount)
	row("read from the cache", e.CacheRead, amount)
	row("time of the agents", e.Seconds, seconds)
	if job.Pace == nil {
		n := atATime(job)
		likely, low, high := e.Elapsed(n)
		fmt.Fprintf(&b, "  %-20s %s", fmt.Sprintf("elapsed, %d at a time", n), rounded(likely))
		if e.Samples > 1 && e.Samples < e.Tasks {
			fmt.Fprintf(&b, ", between %s and %s", rounded(low), rounded(high))
		}
		b.WriteString("\n")
	}
	if e.Samples == 1 && e.Tasks > 1 {
		b.WriteString("one sample does not show how much tasks differ; --resume --estimate 5 adds four\n")
	}
	if left := e.Tasks - e.Samples; left > 0 {
		fmt.Fprintf(&b, "the results of the samples are kept in %s; the same command with --resume and without --estimate runs the other tasks\n", job.Out)
	}
	return b.String()
}

// atATime is how many tasks of a job without a pace run at the same time.
func atATime(job *fleet.Job) int {
	const usual, deferred = 4, 256
	if job.Deferred {
		return cmp.Or(job.Concurrency, deferred)
	}
	return cmp.Or(job.Concurrency, usual)
}

// amount is a number of things, with three digits.
func amount(v float64) string {
	switch {
	case v < 10_000:
		return fmt.Sprintf("%.0f", v)
	case v < 1_000_000:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3gM", v/1e6)
}

func seconds(v float64) string { return rounded(time.Duration(v * float64(time.Second))) }
