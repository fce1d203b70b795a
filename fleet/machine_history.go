package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// history is what a journal knows.
type history struct {
	markers []string
	last    hostRecord
	order   []string // of the tasks
	tasks   map[string]*node
	parked  parkedRecord
	fence   uint64    // the highest one
	ran     int       // attempts that ran when the last host died
	at      time.Time // of the last record
}

// hostEnded is why an attempt ended that its host did not outlive.
const hostEnded = "the program that ran it was ended"

// same finds tasks that are not what they were.
func (h *history) same(entries []*entry) error {
	for _, e := range entries {
		if k := h.tasks[e.task.ID]; k != nil && k.hash != e.hash {
			return fmt.Errorf("%w (task %s has changed)", ErrOtherTasks, e.task.ID)
		}
	}
	return nil
}

func (h *history) apply(rec *journal.Record) error {
	decode := func(to any) error { return json.Unmarshal(rec.Data, to) }
	if rec.Kind == kindHost {
		var host hostRecord
		err := decode(&host)
		h.died(host.Ran)
		h.at = rec.At
		h.markers, h.last = append(h.markers, host.Marker), host
		return err
	}
	h.at = rec.At
	if rec.Kind == kindParked {
		return decode(&h.parked)
	}
	k := h.tasks[rec.Task]
	if rec.Kind == kindAdmitted {
		var a admittedRecord
		err := decode(&a)
		h.tasks[rec.Task] = &node{spec: spec{id: rec.Task, hash: a.Hash}}
		h.order = append(h.order, rec.Task)
		return err
	}
	if k == nil {
		return errors.New("the task was never admitted")
	}
	switch rec.Kind {
	case kindStarting:
		var s startingRecord
		if err := decode(&s); err != nil {
			return err
		}
		h.fence, k.ran = max(h.fence, s.Fence), max(k.ran, s.Fence)
		k.starts, k.open, k.runs, k.seen = max(rec.Attempt, k.starts+1), true, true, Usage{}
		k.cut = Attempt{Number: rec.Attempt, Status: Interrupted, Error: hostEnded, Mode: s.Mode, Session: s.Session, Started: rec.At}
		if s.Mode != modeResume {
			k.next.turns, k.partial = 0, partial{}
		}
		k.space = s.Space
		k.next = launch{mode: modeResume, session: s.Session, space: s.Space.Dir, turns: k.next.turns}
		if s.Session == "" {
			k.next.mode = modeAgain
		}
	case kindAsked, kindDecided, kindUsed:
		return k.approval(rec.Kind, decode)
	case kindAccepting, kindOnAccept, kindRepeat:
		return k.afterwards(rec.Kind, decode)
	case kindCanceled:
		k.canceled = true
	case kindRequeued:
		var r requeuedRecord
		if err := decode(&r); err != nil {
			return err
		}
		k.void()
		k.requeued = max(k.requeued, r.Number)
	case kindTurn:
		var t turnRecord
		if err := decode(&t); err != nil {
			return err
		}
		k.next.turns, k.seen = t.Turns, t.Usage
		if t.Session != "" {
			k.cut.Session = t.Session
		}
		if t.Session != "" && k.next.mode == modeResume {
			k.next.session = t.Session
		}
		k.partial = partial{Text: t.Text, Structured: t.Structured, ToolCalls: t.ToolCalls}
	case kindAttempt:
		var a attemptRecord
		if err := decode(&a); err != nil {
			return err
		}
		k.open, k.runs, k.deaths = false, false, 0
		if a.Attempt.Number > 0 { // else nothing ran
			k.tries = append(k.tries, a.Attempt)
		}
		k.starts = max(k.starts, a.Attempt.Number)
		if a.Counts {
			k.attempts++
		}
		if a.Free {
			k.free++
		}
		if k.voided {
			k.paid.add(a.Attempt.Usage)
		} else {
			k.usage.add(a.Attempt.Usage)
		}
		k.voided = false
		k.next = launch{mode: a.Next, session: a.Session, space: a.Space.Dir, turns: a.Turns, why: a.Why}
		k.space, k.ran = a.Space, max(k.ran, a.Fence)
	case kindResult:
		var r resultRecord
		if err := decode(&r); err != nil {
			return err
		}
		t := r.TaskResult
		if !t.Status.known() {
			return fmt.Errorf("the result of task %q has the status %q, which does not exist", rec.Task, t.Status)
		}
		h.fence = max(h.fence, t.Fence)
		k.runs, k.deaths = false, 0
		k.open, k.result, k.status, k.tries, k.usage = false, &t, t.Status, t.Attempts, t.Usage
		k.paid, k.canceled, k.requeued, k.calls, k.voided = Usage{}, false, t.Requeued, nil, false
		k.began(&r)
	}
	return nil
}

// began takes from a result how often its task was started in this directory: a compaction drops the records of the
// starts, and what is there under their numbers must not be taken for anything else.
func (n *node) began(r *resultRecord) {
	n.starts, n.base = max(n.starts, r.Starts), max(n.base, r.Base)
	if r.Starts > 0 {
		return
	}
	// Older versions did not write that. The attempts of another program have the numbers of its directory.
	if last := len(r.Attempts) - 1; last >= 0 && r.Worker == "" {
		n.starts = max(n.starts, r.Attempts[last].Number)
	}
	n.starts = max(n.starts, len(r.Attempts))
	if r.Status == Skipped {
		n.base = n.starts
	}
}

// died takes the end of a host: what it was running then may be what it died of. known is how
// many attempts these were, where a host has noted it: a compaction drops those that are over.
func (h *history) died(known int) {
	h.ran = 0
	for _, id := range h.order {
		if h.tasks[id].runs {
			h.ran++
		}
	}
	h.ran = max(h.ran, known)
	for _, id := range h.order {
		k := h.tasks[id]
		if k.voided {
			k.paid.add(k.seen)
			k.seen, k.voided = Usage{}, false
		}
		if !k.runs {
			continue
		}
		k.cut.Ended, k.cut.Usage = h.at, k.seen
		k.tries = append(k.tries, k.cut)
		k.usage.add(k.seen)
		k.seen = Usage{}
		k.runs, k.alone = false, h.ran == 1
		k.deaths++
		k.free++ // the host's end is not the task's
	}
}

// void is what a requeued record says of a task.
func (n *node) void() {
	if n.result != nil {
		n.former, n.result = n.result, nil
		n.requeued++
	}
	n.voided = n.voided || n.runs
	n.reset()
	n.status, n.canceled, n.runs = "", false, false
}

// reopen finds the tasks that were skipped because of a task which was requeued while no
// process ran the job, and requeues them. A task without a result that was not requeued has one
// in the queue, which another program knew when it skipped the task after it.
func (h *history) reopen(entries []*entry) []string {
	var all []string
	for again := true; again; {
		again = false
		for _, e := range entries {
			k := h.tasks[e.task.ID]
			if k == nil || k.status != Skipped || k.starts != k.base {
				continue
			}
			if slices.ContainsFunc(e.task.After, func(id string) bool { b := h.tasks[id]; return b != nil && b.result == nil && b.requeued > 0 }) {
				k.void()
				all, again = append(all, e.task.ID), true
			}
		}
	}
	return all
}

// approval is what a record says about the calls of a task.
func (n *node) approval(kind string, decode func(any) error) error {
	if kind == kindAsked {
		var a Approval
		err := decode(&a)
		n.calls = append(n.calls, &call{Approval: a})
		return err
	}
	var d decidedRecord
	err := decode(&d)
	for _, a := range n.calls {
		switch {
		case a.ID != d.ID:
		case kind == kindUsed:
			a.state = askUsed
		default:
			a.decide(d)
		}
	}
	return err
}

// afterwards is what a record says of the command of an accepted task.
func (n *node) afterwards(kind string, decode func(any) error) error {
	var rec onAcceptRecord
	if err := decode(&rec); err != nil {
		return err
	}
	if n.result == nil || n.result.Requeued != rec.Requeued { // a result that is void
		return nil
	}
	switch kind {
	case kindAccepting:
		rec.OnAccept = OnAccept{State: onAcceptUnknown, Error: whyUnknown} // unless its end follows
	case kindRepeat:
		rec.OnAccept = OnAccept{State: onAcceptPending}
	}
	n.result.OnAccept = &rec.OnAccept
	return nil
}

// read reads what earlier processes did. get is where long answers are.
func read(records []journal.Record, get func(name string) ([]byte, error)) (history, error) {
	h := history{tasks: map[string]*node{}}
	for i := range records {
		if err := h.apply(&records[i]); err != nil {
			return h, fmt.Errorf("journal: record %d (%s of task %q): %w", records[i].Seq, records[i].Kind, records[i].Task, err)
		}
	}
	h.died(0)
	for id, k := range h.tasks { //troupe:maporder each task by itself
		if k.result != nil {
			if err := unfold(k.result, get); err != nil {
				return h, fmt.Errorf("journal: result of task %s: %w", id, err)
			}
			continue
		}
		if k.former != nil {
			if err := unfold(k.former, get); err != nil {
				return h, fmt.Errorf("journal: earlier result of task %s: %w", id, err)
			}
		}
		if k.open {
			k.next.why = hostEnded
		}
	}
	return h, nil
}

// over reports whether a task has a result, and whether it ran.
func (h *history) over(id string) (over, ran bool) {
	k := h.tasks[id]
	return k != nil && k.result != nil, k != nil && len(k.tries) > 0
}

// accepted reports whether all of these tasks were accepted.
func (h *history) accepted(ids []string) bool {
	for _, id := range ids {
		if k := h.tasks[id]; k == nil || k.status != Accepted {
			return false
		}
	}
	return true
}

// offer is what the queue is offered for a task: also its result, which a queue that was made
// anew does not have. The long texts are in it, since the files may be lost with the queue.
func (h *history) offer(e *entry) queue.Offer {
	k := h.tasks[e.task.ID]
	if k == nil {
		return queue.Offer{Task: e.task.ID, Hash: e.hash}
	}
	o := queue.Offer{Task: k.ticket(), Hash: e.hash}
	if k.result != nil {
		whole := *k.result
		whole.TextFile, whole.StructuredFile = "", ""
		if raw, err := json.Marshal(whole); err == nil { // it was read from JSON
			o.Result, o.Fence = raw, whole.Fence
		}
	}
	return o
}

// snapshot is the job as the journal has it.
func (h *history) snapshot(head journal.Header) Snapshot {
	s := Snapshot{Job: head.Job, Host: head.Host, PID: head.PID, ByStatus: map[Status]int{}, Parked: h.parked.Until, Total: len(h.order)}
	if h.last.PID != 0 {
		s.Host, s.PID = h.last.Host, h.last.PID
	}
	for _, id := range h.order {
		k := h.tasks[id]
		t := TaskInfo{ID: id, State: TaskQueued, Attempts: k.starts, Usage: k.total(), Next: k.next.mode}
		s.Usage.add(t.Usage)
		t.describe(k)
		switch {
		case k.result != nil:
			t.State, t.Status, t.Error, t.Transcript, t.Next, t.OnAccept = TaskOver, k.result.Status, k.result.Error, k.result.Transcript, "", k.result.OnAccept
			s.ByStatus[t.Status]++
		case k.asking():
			t.State, t.Doing = TaskWaiting, "approval"
			for _, c := range k.calls {
				if c.state == askWaits {
					s.Approvals = append(s.Approvals, c.Approval)
				}
			}
		case k.next.mode == "":
			t.Next = modeFresh
		default:
			t.Error = k.next.why
		}
		if t.Transcript == "" && k.starts > 0 {
			t.Transcript = transcriptOf(id, k.starts)
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

// decision is a record of a decision about a job that does not run.
type decision struct {
	kind, task string
	data       any
}

// amend checks an amendment, and returns what the journal is to say.
func (h *history) amend(a *Amendment, now time.Time) (all []decision, err error) {
	fail := func(id string, err error) ([]decision, error) { return nil, fmt.Errorf("task %q: %w", id, err) }
	for _, id := range a.Cancel {
		switch k := h.tasks[id]; {
		case k == nil:
			return fail(id, ErrNoTask)
		case k.result != nil && k.status != Canceled:
			return fail(id, ErrTaskOver)
		case k.result == nil:
			all = append(all, decision{kindCanceled, id, struct{}{}})
		}
	}
	for _, id := range a.Requeue {
		k := h.tasks[id]
		if k == nil {
			return fail(id, ErrNoTask)
		}
		if k.begun() || k.result != nil || k.canceled {
			all = append(all, decision{kindRequeued, id, struct{}{}})
		}
	}
	for _, d := range a.Answers {
		if err := d.check(); err != nil {
			return nil, err
		}
		task := h.waiting(d.ID)
		if task == "" {
			return nil, fmt.Errorf("approval %q: %w", d.ID, ErrNoApproval)
		}
		all = append(all, decision{kindDecided, task, answerRecord(d, now)})
	}
	for _, id := range a.OnAccept {
		k := h.tasks[id]
		if k == nil {
			return fail(id, ErrNoTask)
		}
		if err := mayRepeat(k.result); err != nil {
			return fail(id, err)
		}
		all = append(all, decision{kindRepeat, id, onAcceptRecord{Requeued: k.result.Requeued}})
	}
	return all, nil
}

// waiting returns the task whose call waits for a person; "": none does.
func (h *history) waiting(id string) string {
	for _, task := range h.order {
		if c := h.tasks[task].find(id); c != nil && c.state == askWaits {
			return task
		}
	}
	return ""
}
