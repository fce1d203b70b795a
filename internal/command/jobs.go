package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

func jobsFlags() []flagSpec {
	return append(serverFlags(), jsonFlag(), helpFlag())
}

func jobsPage() page {
	return page{text: `Usage: troupe jobs [flags] [rm JOB]

Lists the jobs that the servers have, and how far they are. rm removes a job with its results: workers
that run it end its agents.
`, groups: []flagGroup{{"Flags", jobsFlags()}}, end: `
Exit codes: 0 success, 1 it cannot be done, 2 a mistake in the arguments, 7 the output could not be
written.
`}
}

// jobsCommand is troupe jobs.
func jobsCommand(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeServers(p, "troupe jobs"); err != nil {
		return c.usage(err)
	}
	if err := s.needsServers("troupe jobs"); err != nil {
		return c.usage(err)
	}
	if len(s.words) > 0 && (s.words[0] != "rm" || len(s.words) != 2) {
		return c.usage(&usageError{"troupe jobs takes nothing, or rm and the name of a job", "write troupe jobs, or troupe jobs rm JOB"})
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	cluster, err := s.connect(ctx, p)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer cluster.Close()
	if len(s.words) > 0 {
		if err := cluster.Remove(ctx, s.words[1]); err != nil {
			return machinesFailed(c, err)
		}
		return exitOK
	}
	jobs, err := cluster.Jobs(ctx)
	if err != nil {
		return machinesFailed(c, err)
	}
	hosts, err := cluster.Hosts(ctx)
	if err != nil {
		return machinesFailed(c, err)
	}
	if s.asJSON {
		return c.printJSON(jobs)
	}
	return c.print(jobsText(jobs, hosts, time.Now()))
}

// jobsText is the list of jobs as people read it.
func jobsText(jobs []JobEntry, hosts []HostEntry, now time.Time) string {
	var b strings.Builder
	if len(jobs) == 0 {
		return "there are no jobs\n"
	}
	for i := range jobs {
		e := &jobs[i]
		over, running, on := 0, 0, 0
		for _, h := range hosts {
			for _, j := range h.Jobs {
				if j.Job != e.Job {
					continue
				}
				if over = max(over, j.Over); len(j.Running) > 0 {
					running += len(j.Running)
					on++
				}
			}
		}
		state := shown.Count(e.Tasks, "task")
		switch {
		case e.State != JobOpen:
		case running > 0:
			state = fmt.Sprintf("%d of %s over, %d running on %s", over, state, running, shown.Count(on, "worker"))
		default:
			state = fmt.Sprintf("%d of %s over, none running", over, state)
			if why := unrun(e, hosts); why != "" {
				state += "; " + why
			}
		}
		fmt.Fprintf(&b, "%-24s %-9s %-10s %s, %s ago by %s\n", printable(e.Job), e.State, shorten(e.Agent, 10), printable(state), rounded(now.Sub(e.Submitted)), printable(e.Submitter))
	}
	return b.String()
}
