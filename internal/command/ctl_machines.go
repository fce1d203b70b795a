package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// remoteFlags are those of troupe ctl for a job of many machines.
func remoteFlags() []flagSpec {
	return append(serverFlags(), flagSpec{name: "host", arg: "NAME", help: "with drain: the worker", set: text(func(s *settings) *string { return &s.machines.host })},
		flagSpec{name: "account", arg: "NAME", help: "with limit N: how many tasks of this account (--account of troupe batch) run at the same time on all workers; 0: no limit", set: setAccount})
}

// ctlMachines is troupe ctl for a job of many machines.
func ctlMachines(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeServers(p, "troupe ctl --nats"); err != nil {
		return c.usage(err)
	}
	if err := s.needsServers("troupe ctl for many machines"); err != nil {
		return c.usage(err)
	}
	account, most := s.batch.job.Account, -1
	if account != "" {
		if len(s.words) == 2 && s.words[0] == "limit" {
			if n, err := strconv.Atoi(s.words[1]); err == nil {
				most = n
			}
		}
		if most < 0 {
			return c.usage(&usageError{"--account is for limit and a number from 0 alone", "write troupe ctl --nats URL --account NAME limit N"})
		}
	} else if s.machines.host != "" {
		if !slices.Equal(s.words, []string{"drain"}) {
			return c.usage(&usageError{"--host is for drain alone", "write troupe ctl --nats URL --host NAME drain"})
		}
	} else if len(s.words) == 0 {
		return c.usage(&usageError{"troupe ctl --nats needs the name of a job", "troupe jobs lists them"})
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	cluster, err := s.connect(ctx, p)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer cluster.Close()
	if account != "" {
		if err := cluster.Limit(ctx, account, most); err != nil {
			return machinesFailed(c, err)
		}
		return exitOK
	}
	if s.machines.host != "" {
		if err := cluster.Drain(ctx, s.machines.host); err != nil {
			return machinesFailed(c, err)
		}
		return exitOK
	}
	e, err := jobNamed(ctx, cluster, s.words[0])
	if err != nil {
		return machinesFailed(c, err)
	}
	q, files, end, err := cluster.Open(ctx, e)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer end()
	command := "status"
	if len(s.words) > 1 {
		command = s.words[1]
	}
	if command == "tail" {
		if len(s.words) != 3 || s.asJSON || s.status != "" {
			return c.usage(&usageError{"troupe ctl tail takes the id of one task, and no other flags", "troupe ctl --nats URL JOB lists the tasks"})
		}
		return s.tailRemote(ctx, c, cluster, q, files, &e, s.words[2])
	}
	code, done := s.steerRemote(ctx, c, q, &e, command, s.words[min(2, len(s.words)):])
	if command == "requeue" && done > 0 { // the job may have ended since its entry was read
		if err := cluster.Reopen(ctx, e.Job); err != nil {
			return machinesFailed(c, err)
		}
	}
	return code
}

// steerRemote looks at a job, or decides about it. done is how many orders the queue has.
func (s *settings) steerRemote(ctx context.Context, c *console, q queue.Queue, e *JobEntry, command string, rest []string) (code, done int) {
	wrong := func(problem, fix string) (int, int) { return c.usage(&usageError{problem, fix}), 0 }
	shows := slices.Contains([]string{"status", "results", "approvals"}, command)
	switch {
	case s.asJSON && !shows:
		return wrong("--json is for status, results and approvals", "leave it out")
	case s.status != "" && command != "requeue":
		return wrong("--status is for requeue", "leave it out")
	case (shows || command == "pause" || command == "resume") && len(rest) > 0:
		return wrong("troupe ctl "+command+" takes no arguments", "leave them out")
	case command == "retune" && len(rest) != 1, slices.Contains([]string{"allow", "deny"}, command) && len(rest) == 0:
		return wrong("troupe ctl "+command+" takes "+map[string]string{"retune": "a number", "allow": "the ids of calls", "deny": "the id of a call, and a reason"}[command], "troupe ctl --nats URL JOB approvals lists the calls that wait")
	}
	var orders []fleet.Order
	switch command {
	case "status", "results", "approvals":
		return s.showRemote(ctx, c, q, e, command), 0
	case "pause", "resume":
		orders = []fleet.Order{{Op: command}}
	case "retune":
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 1 {
			return wrong("troupe ctl retune takes a number from 1", "troupe ctl --nats URL JOB pause starts nothing more")
		}
		orders = []fleet.Order{{Op: command, N: n}}
	case "cancel", "requeue":
		if s.status != "" {
			seen, err := look(ctx, q, e)
			if err != nil {
				return machinesFailed(c, err), 0
			}
			for i := range seen.Tasks {
				if t := &seen.Tasks[i]; t.State == fleet.TaskOver && string(t.Status) == s.status {
					rest = append(rest, t.ID)
				}
			}
		}
		if len(rest) == 0 {
			return wrong("troupe ctl "+command+" takes the ids of tasks", "troupe ctl --nats URL JOB lists them")
		}
		for _, id := range rest {
			orders = append(orders, fleet.Order{Op: command, Task: id})
		}
	case "allow":
		for _, id := range rest {
			orders = append(orders, fleet.Order{Op: command, Approval: id})
		}
	case "deny":
		orders = []fleet.Order{{Op: command, Approval: rest[0], Reason: strings.Join(rest[1:], " ")}}
	default:
		return wrong(fmt.Sprintf("troupe ctl has no command %q for a job of many machines", command), "there are status, results, tail, approvals, pause, resume, retune, cancel, requeue, allow and deny")
	}
	code = exitOK
	for _, o := range orders {
		o.By = ownName()
		if err := s.decide(ctx, q, e, &o); err != nil {
			c.note("%s%s", printable(cmp.Or(o.Task, o.Approval, e.Job)+": "), printable(err.Error()))
			code = exitResult
		} else {
			done++
		}
	}
	return code, done
}

// decide gives an order. The beginning of the id of a call is enough.
func (s *settings) decide(ctx context.Context, q queue.Queue, e *JobEntry, o *fleet.Order) error {
	if o.Approval != "" {
		seen, err := look(ctx, q, e)
		if err != nil {
			return err
		}
		var found []string
		for i := range seen.Approvals {
			if id := seen.Approvals[i].ID; strings.HasPrefix(id, o.Approval) {
				found = append(found, id)
			}
		}
		if len(found) > 1 {
			return errors.New("several calls have an id that begins so: write more of it")
		}
		if len(found) == 1 {
			o.Approval = found[0]
		}
	}
	return fleet.Decide(ctx, q, *o)
}

// remoteView is a job of many machines at a moment.
type remoteView struct {
	fleet.Snapshot
	by     map[string]string // the worker of each task
	fences map[string]uint64 // of tasks
}

// look reads where the tasks of a job stand, from its queue.
func look(ctx context.Context, q queue.Queue, e *JobEntry) (*remoteView, error) {
	v := &remoteView{Snapshot: fleet.Snapshot{Job: e.Job, Live: e.State == JobOpen, ByStatus: map[fleet.Status]int{}}, by: map[string]string{}, fences: map[string]uint64{}}
	tickets, at := map[string]queue.Change{}, []string{}
	current := false
	for change, err := range q.Watch(ctx) {
		if err != nil {
			return nil, err
		}
		if d := change.Decision; d != nil && (d.Op == "pause" || d.Op == "resume") {
			v.Paused = d.Op == "pause"
		}
		if current = change.State == queue.Current; current {
			break
		}
		if change.Task == "" {
			continue
		}
		if _, known := tickets[change.Task]; !known {
			at = append(at, change.Task)
		}
		tickets[change.Task] = change
	}
	if !current {
		return nil, context.Cause(ctx)
	}
	place, number := map[string]int{}, map[string]int{}
	for _, ticket := range at {
		id, requeued, _ := strings.Cut(ticket, "#")
		n, _ := strconv.Atoi(requeued)
		t := v.task(tickets[ticket], id)
		i, known := place[id]
		switch {
		case !known:
			place[id] = len(v.Tasks)
			v.Tasks = append(v.Tasks, t)
		case n > number[id]:
			v.Tasks[i] = t
		default:
			continue
		}
		number[id] = n
	}
	for i := range v.Tasks {
		if t := &v.Tasks[i]; t.State == fleet.TaskOver {
			v.ByStatus[t.Status]++
		}
	}
	return v, nil
}

// requeued reports whether a task was requeued that has no result since then.
func requeued(ctx context.Context, q queue.Queue) (bool, error) {
	last, over := map[string]int{}, map[string]bool{} // by id; by ticket
	for change, err := range q.Watch(ctx) {
		if err != nil {
			return false, err
		}
		if d := change.Decision; d != nil {
			id, number, _ := strings.Cut(d.Task, "#")
			if n, err := strconv.Atoi(number); err == nil && d.Op == "requeue" {
				last[id] = max(last[id], n)
			}
			continue
		}
		if change.State == queue.Current {
			for id, n := range last { //troupe:maporder is there any
				if !over[fmt.Sprintf("%s#%d", id, n)] {
					return true, nil
				}
			}
			return false, nil
		}
		over[change.Task] = change.State == queue.Over
	}
	return false, context.Cause(ctx)
}

// task is a task of the queue.
func (v *remoteView) task(change queue.Change, id string) fleet.TaskInfo {
	t := fleet.TaskInfo{ID: id, State: fleet.TaskQueued}
	var note fleet.TaskNote
	if len(change.Note) > 0 && json.Unmarshal(change.Note, &note) == nil {
		t.Usage = note.Usage
		v.Approvals = append(v.Approvals, note.Approvals...)
		if len(note.Approvals) > 0 {
			t.State = fleet.TaskWaiting
		}
	}
	v.by[id], v.fences[id] = cmp.Or(change.Worker, note.Worker), change.Fence
	switch change.State {
	case queue.Leased:
		if t.State == fleet.TaskQueued {
			t.State = fleet.TaskRunning
		}
	case queue.Over:
		var r fleet.TaskResult
		if t.State = fleet.TaskOver; json.Unmarshal(change.Result, &r) == nil {
			t.Status, t.Error, t.Attempts, t.Usage, t.OnAccept, t.Transcript = r.Status, r.Error, len(r.Attempts), r.Usage, r.OnAccept, r.Transcript
		}
	}
	return t
}

// showRemote prints what command asks for.
func (s *settings) showRemote(ctx context.Context, c *console, q queue.Queue, e *JobEntry, command string) int {
	v, err := look(ctx, q, e)
	if err != nil {
		return machinesFailed(c, err)
	}
	if command == "results" {
		v.Tasks = slices.DeleteFunc(v.Tasks, func(t fleet.TaskInfo) bool { return t.State != fleet.TaskOver })
	}
	if s.asJSON {
		var value any = v.Snapshot
		if command == "approvals" {
			value = append([]fleet.Approval{}, v.Approvals...)
		}
		return c.printJSON(value)
	}
	if command == "approvals" {
		return c.print(callsText(v.Approvals))
	}
	return c.print(v.text(e, command == "results"))
}

// callsText are the calls that wait, as people read them.
func callsText(calls []fleet.Approval) string {
	if len(calls) == 0 {
		return "no call waits\n"
	}
	var b strings.Builder
	for i := range calls {
		a := &calls[i]
		fmt.Fprintf(&b, "%-12s %-20s %s %s\n", shorten(a.ID, 12), shorten(a.Task, 20), shorten(a.Tool, 20), shorten(string(a.Input), 120))
	}
	return b.String()
}

// text is a job as people read it: what runs first, then what waits, then what is over.
func (v *remoteView) text(e *JobEntry, over bool) string {
	var b strings.Builder
	count := map[fleet.TaskState]int{}
	for i := range v.Tasks {
		count[v.Tasks[i].State]++
	}
	if !over {
		state := string(e.State)
		if v.Paused {
			state += ", paused"
		}
		fmt.Fprintf(&b, "%s: %s, of %s, %s ago\n%d running, %d queued, %d over", printable(e.Job), state, printable(e.Submitter), rounded(time.Since(e.Submitted)),
			count[fleet.TaskRunning], max(count[fleet.TaskQueued], e.Tasks-len(v.Tasks)), count[fleet.TaskOver])
		if n := count[fleet.TaskWaiting]; n > 0 {
			fmt.Fprintf(&b, ", %d waiting for an approval (troupe ctl --nats URL %s approvals)", n, printable(e.Job))
		}
		for _, status := range slices.Sorted(maps.Keys(v.ByStatus)) {
			fmt.Fprintf(&b, ", %d %s", v.ByStatus[status], status)
		}
		b.WriteString("\n")
	}
	for _, state := range []fleet.TaskState{fleet.TaskRunning, fleet.TaskWaiting, fleet.TaskQueued, fleet.TaskOver} {
		for i := range v.Tasks {
			if t := &v.Tasks[i]; t.State == state {
				fmt.Fprintf(&b, "  %-20s %-14s %-24s %s\n", shorten(t.ID, 40), stateText(t), shorten(v.by[t.ID], 24), taskText(t, time.Now()))
			}
		}
	}
	return b.String()
}
