package fleet

import (
	"maps"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// change is what a task becomes once the journal has it.
type change struct {
	node   *node
	result *TaskResult // nil: the result is void
}

// conclude makes the result of a task that is over.
func (m *machine) conclude(n *node, s Status, why string, out []effect) []effect {
	if n.foreign != nil && n.ending == nil && m.rules.share == ShareWork {
		return m.abroad(n, n.foreign, out)
	}
	out = m.admit(n, out)
	e := finish{id: n.id, status: s, why: why, starts: n.starts, base: n.base}
	switch end := n.ending; {
	case end != nil:
		e.result, e.folded = end.result, true
	case n.foreign != nil:
		e.result = n.foreign
		e.result.Requeued, e.result.OnAccept = n.requeued, nil // the other program runs that
	default:
		e.result = m.made(n, s, why)
		if e.result.Fence = n.fence; n.fence == 0 {
			e.result.Fence = m.nextFence()
		}
	}
	if n.report != nil {
		for _, w := range n.report.warnings {
			out = append(out, tell{Event{Kind: EventWarning, Task: n.id, Attempt: n.number, Detail: w}})
		}
	}
	if e.number = n.number; e.number == 0 && !e.folded { // it never ran here: its files have the place of the first attempt
		e.number = 1
	}
	n.report, n.ending, n.foreign, n.fence = nil, nil, nil, 0
	if n.tenure != nil {
		n.tenure = nil
		out = append(out, disarm{n.id})
	}
	n.unkept = e.result
	m.pending = append(m.pending, change{n, e.result})
	return append(out, e)
}

// abroad keeps how a task ended that another program has run. Templates need its texts.
func (m *machine) abroad(n *node, r *TaskResult, out []effect) []effect {
	kept := &TaskResult{ID: r.ID, Status: r.Status, Family: r.Family, Usage: r.Usage, Requeued: n.requeued, Fence: r.Fence, Worker: r.Worker, Ended: r.Ended}
	if len(n.dependents) > 0 {
		all := *r
		kept = &all
		kept.Requeued, kept.OnAccept = n.requeued, nil
	}
	n.unkept, n.abroad = kept, true
	m.pending = append(m.pending, change{n, kept})
	n.report, n.foreign, n.fence = nil, nil, 0
	if n.tenure != nil {
		n.tenure = nil
		out = append(out, disarm{n.id})
	}
	return out
}

// admit has the journal know a task before anything else of it.
func (m *machine) admit(n *node, out []effect) []effect {
	if !n.unadmitted {
		return out
	}
	n.unadmitted = false
	return append(out, admitting{n.id, n.hash})
}

// made is the result of a task that this program has run.
func (m *machine) made(n *node, s Status, why string) *TaskResult {
	t := &TaskResult{
		ID: n.id, Status: s, Family: s.Family(), Usage: n.total(), Attempts: n.tries,
		Ended: m.now.UTC(), Error: why, Requeued: n.requeued, Worker: m.rules.worker,
	}
	if n.task != nil {
		t.Tags = n.task.Tags
	}
	if a := n.report; a != nil {
		t.Text, t.Structured, t.Verdict, t.Denied, t.ToolCalls = a.Text, a.Structured, a.Verdict, a.Denied, a.ToolCalls
		t.Denials = a.Denials
		t.Subagents, t.SubagentsDenied = n.fan.began, n.fan.refused
		t.SessionID, t.Workspace, t.Transcript, t.Diff = a.Session, a.Workspace, a.Transcript, a.Diff
		if t.Err = a.err; a.err != nil && s != Accepted && t.Error == "" {
			t.Error, t.Class = a.err.Error(), classOf(a.err)
		}
		if a.decided != "" {
			t.Error = a.decided
		}
	}
	if len(n.tries) > 0 {
		t.Started = n.tries[0].Started
	}
	if m.rules.onAccept && t.OK() {
		t.OnAccept = &OnAccept{State: onAcceptPending}
	}
	return t
}

// withdraw makes the result of a task void, once that is durable.
func (m *machine) withdraw(n *node) {
	n.report, n.foreign = nil, nil
	if n.result == nil && n.unkept == nil {
		return
	}
	n.unkept, n.abroad = nil, false
	n.requeued++
	m.pending = append(m.pending, change{node: n})
}

// written makes known what is durable now.
func (m *machine) written() {
	for _, c := range m.pending {
		n := c.node
		if c.result == nil {
			n.former, n.result = n.result, nil
			m.unread = slices.DeleteFunc(m.unread, func(o *node) bool { return o == n })
			continue
		}
		if n.result = c.result; n.unkept == c.result {
			n.unkept = nil
		}
		if !n.abroad {
			m.unread = append(m.unread, n)
		}
	}
	m.pending = nil
}

// delivery is what a reader gets.
type delivery struct {
	result TaskResult
	err    error
	more   bool
}

// offers returns what the next reader gets. ok: there is something.
func (m *machine) offers() (d delivery, ok bool) {
	switch {
	case len(m.unread) > 0:
		return delivery{result: *m.unread[0].result, more: true}, true
	case m.final:
		return delivery{err: m.err, more: m.err != nil}, true
	}
	return delivery{}, false
}

// read notes that a reader has what was offered.
func (m *machine) read() {
	if len(m.unread) > 0 {
		m.unread[0] = nil
		m.unread = m.unread[1:]
		return
	}
	m.err = nil
}

// resultsOf are the results that a template may use. One that is void is for a retry of a
// task that began before.
func (m *machine) resultsOf(ids []string) map[string]*TaskResult {
	if len(ids) == 0 {
		return nil
	}
	all := make(map[string]*TaskResult, len(ids))
	for _, id := range ids {
		switch n := m.nodes[id]; {
		case n == nil:
		case n.unkept != nil:
			all[id] = n.unkept
		case n.result != nil:
			all[id] = n.result
		case n.former != nil:
			all[id] = n.former
		}
	}
	return all
}

// total is what all attempts of a task have used that have ended.
func (n *node) total() Usage {
	all := n.usage
	all.add(n.paid)
	return all
}

// closing is what is to be written when nothing runs any more.
type closing struct {
	progress Progress
	results  []*TaskResult // in the order of the tasks
	tasks    []*Task
	remains  []*remains // of the last attempts
	changes  []runtime.AccountChange
	cause    error
	held     []jot // the last notes, and the leases to be given back
	left     int   // tasks without a result
}

// closing returns what is to be written at the end of the job.
func (m *machine) closing(now time.Time) closing {
	if m.stopped == nil { // it failed with the last result
		m.stopped = m.failure
	}
	if m.stopped == nil && m.rules.unsampled > 0 {
		m.stopped = sampleOver(len(m.order))
	}
	c := closing{progress: m.progress(now), results: m.results(), changes: slices.Clone(m.changes), cause: m.cause, left: m.rules.unsampled}
	for _, n := range m.order {
		c.tasks = append(c.tasks, n.task)
		if n.remains != nil {
			c.remains = append(c.remains, n.remains)
		}
		if n.result == nil {
			c.left++
		}
		if n.tenure != nil {
			l := n.tenure.Lease
			n.jots.running, l.Starts, l.Note = false, n.tenure.starts, nil
			c.held = append(c.held, jot{n.id, l, m.noteOf(n)})
			n.tenure = nil
		}
	}
	return c
}

// results are those that are durable, in the order of the tasks.
func (m *machine) results() (all []*TaskResult) {
	for _, n := range m.order {
		if n.result != nil && !n.abroad {
			all = append(all, n.result)
		}
	}
	return all
}

// progress is where the job stands.
func (m *machine) progress(now time.Time) Progress {
	p := Progress{
		Total: len(m.order), ByStatus: map[Status]int{}, Usage: m.usage, Started: m.rules.began, Stop: m.stopped, Limit: m.limit(),
		Parked: m.parked, Outage: m.outages.what(), Paused: m.pausing || m.haltsAll, Starved: m.gauge.starved(now),
	}
	for _, n := range m.order {
		if n.result != nil {
			p.Finished++
			if n.result.Earlier {
				p.Earlier++
			}
			p.ByStatus[n.result.Status]++
			p.Denied += n.result.Denied
		}
	}
	for _, n := range m.running {
		p.Running = append(p.Running, TaskInfo{ID: n.id, State: TaskRunning, Attempts: n.number, Since: n.since, Doing: n.doing})
	}
	p.Queued = p.Total - p.Finished - len(p.Running)
	return p
}

// snapshot is the job with its tasks. kept: there are transcripts.
// With no job it is in the place of one that only the journal knows.
func (m *machine) snapshot(now time.Time, job string, kept bool) Snapshot {
	p := m.progress(now)
	if m.replaces {
		return Snapshot{Stop: p.Stop}
	}
	s := Snapshot{
		Job: job, Live: true, Paused: p.Paused, Limit: p.Limit, Parked: p.Parked,
		Stop: p.Stop, ByStatus: maps.Clone(p.ByStatus), Usage: p.Usage, Approvals: m.approvals(), Decided: slices.Clone(m.verdicts),
		Started: p.Started, Total: p.Total, Budget: m.rules.budget, Pace: slices.Clone(m.changes), Rate: m.rate(now), Starved: p.Starved.Milliseconds(),
	}
	for _, n := range m.order {
		s.Tasks = append(s.Tasks, n.info(kept))
	}
	return s
}

// rateOver is the time that Snapshot.Rate looks at.
const rateOver = 10 * time.Minute

// rate is how many results a minute there were of late.
func (m *machine) rate(now time.Time) float64 {
	span := min(now.Sub(m.rules.began), rateOver)
	n := 0
	for _, t := range m.order {
		if t.result != nil && !t.result.Earlier && now.Sub(t.result.Ended) < rateOver {
			n++
		}
	}
	if n == 0 || span <= 0 {
		return 0
	}
	return float64(n) / max(span, time.Second).Minutes()
}

// describe adds what a task is, and when it began and ended.
func (t *TaskInfo) describe(n *node) {
	if n.task != nil {
		t.Tags = n.task.Tags
	}
	if len(n.tries) > 0 {
		t.Began, t.Class = n.tries[0].Started, n.tries[len(n.tries)-1].Class
	} else if n.state == nodeRuns {
		t.Began = n.since
	}
	if r := n.result; r != nil {
		t.Tags, t.Began, t.Ended, t.Class = r.Tags, r.Started, r.Ended, r.Class
	}
}

// info is the task as others see it.
func (n *node) info(kept bool) TaskInfo {
	t := TaskInfo{ID: n.id, State: TaskQueued, Attempts: len(n.tries), Usage: n.total()}
	if k := len(n.tries); k > 0 {
		t.Error = n.tries[k-1].Error
	}
	if (n.state == nodeRests || n.state == nodeReady) && n.begun() {
		t.Due = n.due
	}
	t.describe(n)
	number := max(n.number, t.Attempts)
	switch {
	case n.result != nil:
		t.State, t.Status, t.Error, t.Transcript, t.OnAccept = TaskOver, n.result.Status, n.result.Error, n.result.Transcript, n.result.OnAccept
	case n.state == nodeRuns:
		t.State, t.Since, t.Doing, t.Attempts, t.Error, t.Session = TaskRunning, n.since, n.doing, number, "", n.session
	case n.asking():
		t.State, t.Doing, t.Error = TaskWaiting, "approval", ""
	}
	if kept && t.Transcript == "" && number > 0 {
		t.Transcript = transcriptOf(t.ID, number)
	}
	return t
}
