package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/inspect"
)

func ctlFlags() []flagSpec {
	return []flagSpec{
		jsonFlag(),
		remarksFlag(),
		helpFlag(),
	}
}

func statusFlag() flagSpec {
	return flagSpec{name: "status", arg: "STATUS", help: "with requeue and on-accept: all tasks that are over with this status, in place of ids", set: text(func(s *settings) *string { return &s.status })}
}

func ctlPage() page {
	return page{text: `Usage: troupe ctl [flags] DIR [COMMAND]

Looks into a job of troupe batch from another shell, and decides about it. DIR is the directory of the
job (--out), or its file of tasks. Without a command: where the job and its tasks stand.

Commands:
  status            what is running, queued and over
  results           the tasks that are over
  tail TASK         print what the agent of a task says, until the attempt ends
  pause             start nothing more; what runs goes on
  resume            go on after a pause
  retune N          run N tasks at the same time
  cancel TASK...    end tasks; their status is canceled
  requeue TASK...   run tasks again from the beginning; a result that a task has is void
  on-accept TASK... run the command of --on-accept once more for accepted tasks

requeue --status rejected is for all tasks that are over with this status, and on-accept --status
unknown for all whose command has ended that way: failed, or unknown because its host died.

If the process that ran the job is gone, status, results and tail read the journal, and cancel,
requeue and on-accept write into it: troupe batch --resume obeys.

With --nats, DIR is the name of a job of many machines, and every worker obeys: status, results, tail TASK,
approvals, pause, resume, retune N (for each worker), cancel, requeue, allow ID..., deny ID [REASON].
troupe ctl --nats URL --host NAME drain: that worker starts nothing more, and ends.
troupe ctl --nats URL --account NAME limit N: at most N tasks of the account at a time, on all workers.
`, groups: []flagGroup{{"Flags", append(ctlFlags(), statusFlag())}, {"Jobs of many machines", remoteFlags()}}, end: `
Exit codes: 0 success, 1 it cannot be done, 2 a mistake in the arguments, 7 the output could not be
written.
`}
}

// ctlCommand is troupe ctl.
func ctlCommand(ctx context.Context, p process, c *console, s *settings) int {
	if s.gave("nats") || s.gave("account") || s.machines.host != "" {
		return ctlMachines(ctx, p, c, s)
	}
	dir, name, rest, err := s.ofJob("ctl", "status")
	if err != nil {
		return c.usage(err)
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	if s.asJSON && name != "status" && name != "results" {
		return c.usage(&usageError{"--json is for status and results", "leave it out"})
	}
	if s.status != "" && name != string(control.Requeue) && name != string(control.OnAccept) {
		return c.usage(&usageError{"--status is for requeue and on-accept", "leave it out"})
	}
	none := func(do func() int) int {
		if len(rest) > 0 {
			return c.usage(&usageError{"troupe ctl " + name + " takes no arguments", "leave them out"})
		}
		return do()
	}
	switch op := control.Op(name); op {
	case "status", "results":
		return none(func() int { return s.ctlShow(ctx, c, dir, name == "results") })
	case control.Pause, control.Resume:
		return none(func() int { return ctlSend(ctx, c, dir, control.Command{Op: op}) })
	case control.Retune:
		n := 0
		if len(rest) == 1 {
			n, _ = strconv.Atoi(rest[0])
		}
		if n < 1 {
			return c.usage(&usageError{"troupe ctl retune takes a number from 1", "troupe ctl DIR pause starts nothing more"})
		}
		return ctlSend(ctx, c, dir, control.Command{Op: op, N: n})
	case control.Cancel, control.Requeue, control.OnAccept:
		if s.status != "" {
			if rest, err = s.withStatus(ctx, dir, op, rest); errors.As(err, new(*usageError)) {
				return c.usage(err)
			} else if err != nil {
				return ctlFailed(c, dir, err)
			}
		} else if len(rest) == 0 {
			return c.usage(&usageError{"troupe ctl " + name + " takes the ids of tasks", "troupe ctl DIR lists them"})
		}
		code := exitOK
		for _, id := range rest {
			code = max(code, ctlSend(ctx, c, dir, control.Command{Op: op, Task: id}))
		}
		return code
	case "tail":
		if len(rest) != 1 {
			return c.usage(&usageError{"troupe ctl tail takes the id of one task", "troupe ctl DIR lists them"})
		}
		return ctlTail(ctx, c, dir, rest[0])
	}
	fix := "troupe help ctl lists the commands"
	if near := nearest(name, ctlCommands()); near != "" {
		fix = "did you mean " + near + "?"
	}
	return c.usage(&usageError{fmt.Sprintf("troupe ctl has no command %q", name), fix})
}

// withStatus returns the tasks that are over with the status of --status or, for on-accept,
// whose command has ended with it.
func (s *settings) withStatus(ctx context.Context, dir string, op control.Op, rest []string) (ids []string, err error) {
	if len(rest) > 0 {
		return nil, &usageError{"--status and ids of tasks contradict each other", "give one of them"}
	}
	j, err := control.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for i := range j.Tasks {
		t := &j.Tasks[i]
		is := string(t.Status)
		if op == control.OnAccept {
			if is = ""; t.OnAccept != nil {
				is = string(t.OnAccept.State)
			}
		}
		if t.State != fleet.TaskOver || is == "" {
			continue
		}
		if there[is] = true; is == s.status {
			ids = append(ids, t.ID)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no task is over with the status %s; there are: %s", s.status, cmp.Or(strings.Join(slices.Sorted(maps.Keys(there)), ", "), "none"))
	}
	return ids, nil
}

// ofJob takes the words of a command about a job: its directory, what to do and with what.
// def is what to do if nothing is said.
func (s *settings) ofJob(command, def string) (dir, name string, rest []string, err error) {
	if len(s.words) == 0 {
		return "", "", nil, &usageError{"troupe " + command + " needs the directory of a job",
			fmt.Sprintf("write troupe %s DIR [COMMAND]; troupe help %s lists the commands", command, command)}
	}
	dir, name, rest = s.words[0], def, s.words[1:]
	if st, err := os.Stat(dir); err == nil && st.Mode().IsRegular() {
		dir = outOf(dir)
	}
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	return dir, name, rest, nil
}

// ctlFailed says why something cannot be done.
func ctlFailed(c *console, dir string, err error) int {
	if errors.Is(err, journal.ErrMissing) {
		c.note("%s has no journal of a job: give the directory that troupe batch calls --out", printable(dir))
	} else {
		c.note("%s", printable(err.Error()))
	}
	return exitResult
}

func ctlSend(ctx context.Context, c *console, dir string, cmd control.Command) int {
	offline, err := control.Send(ctx, dir, cmd)
	name := cmd.Task + cmd.Approval
	if err != nil {
		return ctlFailed(c, dir, err)
	}
	if offline {
		c.remark("%s: no process runs the job, so this is in its journal, and troupe batch --resume obeys", printable(name))
	}
	return exitOK
}

func (s *settings) ctlShow(ctx context.Context, c *console, dir string, over bool) int {
	done := c.working("reading the job")
	j, err := control.Read(ctx, dir)
	done()
	if err != nil {
		return ctlFailed(c, dir, err)
	}
	if over {
		j.Tasks = slices.DeleteFunc(j.Tasks, func(t fleet.TaskInfo) bool { return t.State != fleet.TaskOver })
	}
	if s.asJSON {
		return c.printJSON(j)
	}
	return c.print(jobText(&j, over, time.Now()))
}

// jobText is a job as people read it: what runs first, then what waits, then what is over.
func jobText(j *fleet.Snapshot, over bool, now time.Time) string {
	var b strings.Builder
	count := map[fleet.TaskState]int{}
	for i := range j.Tasks {
		count[j.Tasks[i].State]++
	}
	if !over {
		fmt.Fprintf(&b, "%s: ", printable(j.Job))
		switch {
		case !j.Live:
			fmt.Fprintf(&b, "not running (process %d on %s ran it last)", j.PID, printable(j.Host))
		case j.Stop != nil:
			fmt.Fprintf(&b, "stopping (%s), process %d", printable(j.Stop.Reason), j.PID)
		case j.Paused:
			fmt.Fprintf(&b, "paused, process %d, %d at a time", j.PID, j.Limit)
		default:
			fmt.Fprintf(&b, "running, process %d, %d at a time", j.PID, j.Limit)
		}
		if j.Parked.After(now) {
			fmt.Fprintf(&b, ", parked until %s", j.Parked.Local().Format("Jan 2 15:04"))
		}
		fmt.Fprintf(&b, "\n%d running, %d queued, %d over", count[fleet.TaskRunning], count[fleet.TaskQueued], count[fleet.TaskOver])
		if n := count[fleet.TaskWaiting]; n > 0 {
			fmt.Fprintf(&b, ", %d waiting for an approval (troupe approvals)", n)
		}
		for _, status := range sortedStatuses(j.ByStatus) {
			fmt.Fprintf(&b, ", %d %s", j.ByStatus[status], status)
		}
		fmt.Fprintf(&b, "; %s\n", spent(j.Usage))
	}
	for _, state := range []fleet.TaskState{fleet.TaskRunning, fleet.TaskWaiting, fleet.TaskQueued, fleet.TaskOver} {
		for i := range j.Tasks {
			if t := &j.Tasks[i]; t.State == state {
				fmt.Fprintf(&b, "  %-20s %-14s %s\n", shorten(t.ID, 40), stateText(t), taskText(t, now))
			}
		}
	}
	return b.String()
}

func stateText(t *fleet.TaskInfo) string {
	switch {
	case t.State == fleet.TaskOver:
		return string(t.Status)
	case t.Next == "resume":
		return "to resume"
	case t.Next == "again":
		return "to begin again"
	}
	return string(t.State)
}

func taskText(t *fleet.TaskInfo, now time.Time) string {
	var parts []string
	if t.Doing != "" {
		parts = append(parts, shorten(t.Doing, 20))
	}
	if !t.Since.IsZero() {
		parts = append(parts, rounded(now.Sub(t.Since)))
	}
	if t.Due.After(now) {
		parts = append(parts, "in "+rounded(t.Due.Sub(now)))
	}
	if t.Attempts > 1 {
		parts = append(parts, fmt.Sprintf("%d attempts", t.Attempts))
	}
	if t.OnAccept != nil {
		text := "on-accept " + string(t.OnAccept.State)
		if t.OnAccept.Error != "" {
			text += ": " + t.OnAccept.Error
		}
		parts = append(parts, shorten(text, 80))
	}
	if t.Error != "" {
		parts = append(parts, shorten(t.Error, 80))
	}
	return strings.Join(parts, ", ")
}

// openControl opens the socket of the job, if it is wanted. A job runs without it, too.
func (s *settings) openControl(c *console, h *fleet.Handle) (end func()) {
	if s.batch.noControl {
		return func() {}
	}
	server, err := control.Listen(h, s.batch.job.Out, inspect.Config{})
	if err != nil {
		c.note("troupe ctl cannot reach this job: %v", err)
		return func() {}
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(); err != nil {
			c.note("%v", err)
		}
	}()
	return func() {
		_ = server.Close()
		<-served
	}
}
