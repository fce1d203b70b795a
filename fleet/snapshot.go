package fleet

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/runtime"
)

// Snapshot is a job and its tasks at a moment. Its JSON form is stable.
type Snapshot struct {
	Job  string `json:"job"`
	Host string `json:"host"` // that runs the job, or ran it last
	PID  int    `json:"pid"`  // of the process there
	// Live says that the process answered. Otherwise the snapshot is what the journal says.
	Live     bool           `json:"live"`
	Paused   bool           `json:"paused,omitempty"`
	Limit    int            `json:"limit,omitempty"` // attempts at the same time; 0 unless Live
	Parked   time.Time      `json:"parked,omitzero"` // as in Progress
	Stop     *Stop          `json:"stop,omitempty"`
	ByStatus map[Status]int `json:"byStatus"`
	Usage    Usage          `json:"usage"`
	Tasks    []TaskInfo     `json:"tasks"` // in the order of the tasks
	// Approvals are the calls that wait for a person.
	Approvals []Approval `json:"approvals,omitempty"`
}

// TaskInfo is a task in a [Snapshot].
type TaskInfo struct {
	ID       string    `json:"id"`
	State    TaskState `json:"state"`
	Status   Status    `json:"status,omitempty"` // of TaskOver
	Error    string    `json:"error,omitempty"`  // of TaskOver, or why the last attempt ended
	Attempts int       `json:"attempts"`         // the one that runs included
	Since    time.Time `json:"since,omitzero"`   // when the attempt that runs began
	Doing    string    `json:"doing,omitempty"`  // the last thing that the attempt began: preparing, the name of a tool, verifying
	Due      time.Time `json:"due,omitzero"`     // when a further attempt starts at the earliest
	// Next is how the next attempt begins, of a task that is not over in the journal of a
	// job that does not run.
	Next       Mode   `json:"next,omitempty"`
	Transcript string `json:"transcript,omitempty"` // file of the last attempt, relative to Job.Out
	Usage      Usage  `json:"usage"`
	// OnAccept is that of the result; see TaskResult.OnAccept.
	OnAccept *OnAccept `json:"onAccept,omitempty"`
}

// TaskState is where a task stands.
type TaskState string

// States.
const (
	TaskQueued  TaskState = "queued" // also those that wait for other tasks, or for their backoff
	TaskRunning TaskState = "running"
	TaskWaiting TaskState = "waiting" // for an approval, without a process
	TaskOver    TaskState = "over"
)

// Snapshot returns the job and its tasks as they are now.
func (h *Handle) Snapshot() (s Snapshot) {
	h.r.look(func() { s = h.r.snapshot() })
	return s
}

func (r *run) snapshot() Snapshot {
	p := r.progressNow()
	s := Snapshot{
		Job: r.job.ID, Host: hostName(), PID: os.Getpid(), Live: true, Paused: p.Paused, Limit: p.Limit, Parked: p.Parked,
		Stop: p.Stop, ByStatus: p.ByStatus, Usage: p.Usage, Approvals: r.approvals(),
	}
	for _, e := range r.order {
		t := TaskInfo{ID: e.task.ID, State: TaskQueued, Attempts: len(e.attempts), Due: e.due, Usage: e.usage}
		if n := len(e.attempts); n > 0 {
			t.Error = e.attempts[n-1].Error
		}
		number := max(e.number, t.Attempts)
		switch {
		case e.result != nil:
			t.State, t.Status, t.Error, t.Transcript, t.OnAccept = TaskOver, e.result.Status, e.result.Error, e.result.Transcript, e.result.OnAccept
		case slices.Contains(r.running, e):
			t.State, t.Since, t.Doing, t.Attempts, t.Error = TaskRunning, e.since, e.doing, number, ""
		case e.asking():
			t.State, t.Doing, t.Error = TaskWaiting, "approval", ""
		}
		if r.root != "" && t.Transcript == "" && number > 0 {
			t.Transcript = transcriptOf(t.ID, number)
		}
		s.Tasks = append(s.Tasks, t)
	}
	return s
}

// ReadJob reads what the journal in a directory says of its job, also while the job runs.
// It changes nothing. Without a journal the error matches [journal.ErrMissing].
func ReadJob(dir string) (Snapshot, error) {
	fs := journal.Dir(dir)
	head, records, err := journal.Read(fs)
	if err != nil {
		return Snapshot{}, err
	}
	r := &run{fs: fs, store: &dirStore{fs: fs}}
	h, err := r.replay(records)
	if err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{Job: head.Job, Host: head.Host, PID: head.PID, ByStatus: map[Status]int{}, Parked: h.parked.Until}
	if h.last.PID != 0 {
		s.Host, s.PID = h.last.Host, h.last.PID
	}
	for _, id := range h.order {
		k := h.tasks[id]
		t := TaskInfo{ID: id, State: TaskQueued, Attempts: k.starts, Usage: k.usage, Next: k.next.mode}
		t.Usage.add(k.paid)
		s.Usage.add(t.Usage)
		switch {
		case k.result != nil:
			t.State, t.Status, t.Error, t.Transcript, t.Next, t.OnAccept = TaskOver, k.result.Status, k.result.Error, k.result.Transcript, "", k.result.OnAccept
			s.ByStatus[t.Status]++
		case k.waits():
			t.State, t.Doing = TaskWaiting, "approval"
			for _, a := range k.asks {
				if a.state == askWaits {
					s.Approvals = append(s.Approvals, a.Approval)
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
	return s, nil
}

// Amendment is what [Amend] decides about tasks.
type Amendment struct {
	Cancel  []string // as Handle.CancelTask
	Requeue []string // as Handle.Requeue
	Answers []Answer
	// OnAccept are accepted tasks for which Job.OnAccept is to run once more, as
	// [Handle.RunOnAccept]. A resume with the command runs it.
	OnAccept []string
}

// Answer decides a call that waits for a person, as [Handle.Decide] does.
type Answer struct {
	ID     string // of the [Approval]
	Allow  bool
	Reason string // of a denial, for the model
}

// Amend decides about tasks of a job that does not run; a resume obeys. What it says is
// durable when it returns nil, and otherwise nothing is decided. results.jsonl and the
// report are as before until the job is resumed. The error matches [journal.ErrLocked]
// while a process runs the job, [journal.ErrMissing], [ErrNoTask], [ErrTaskOver], [ErrNoApproval],
// [ErrNotAccepted] or [ErrOnAcceptRuns].
func Amend(ctx context.Context, dir string, a Amendment) (err error) {
	if _, _, err := journal.Read(journal.Dir(dir)); err != nil {
		return err // and nothing is made
	}
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = rt.Shutdown(context.WithoutCancel(ctx)) }()
	r := &run{fs: journal.Dir(dir), store: &dirStore{fs: journal.Dir(dir)}, clock: rt.Clock(), exec: rt.Executor()}
	log, err := journal.Open(journal.Config{FS: r.fs, Clock: r.clock, Executor: r.exec}, journal.Header{Host: hostName(), PID: os.Getpid()})
	if err != nil {
		return err
	}
	defer func() {
		if closed := log.Close(); err == nil {
			err = closed
		}
	}()
	h, err := r.replay(log.Records())
	if err != nil {
		return err
	}
	var records []journal.Record
	for _, id := range a.Cancel {
		switch k := h.tasks[id]; {
		case k == nil:
			return fmt.Errorf("task %q: %w", id, ErrNoTask)
		case k.result != nil && k.status != Canceled:
			return fmt.Errorf("task %q: %w", id, ErrTaskOver)
		case k.result == nil:
			records = append(records, r.record(kindCanceled, id, 0, struct{}{}))
		}
	}
	for _, id := range a.Requeue {
		k := h.tasks[id]
		if k == nil {
			return fmt.Errorf("task %q: %w", id, ErrNoTask)
		}
		if k.starts > k.base || k.result != nil || k.canceled {
			records = append(records, r.record(kindRequeued, id, 0, struct{}{}))
		}
	}
	for _, d := range a.Answers {
		task := h.waiting(d.ID)
		if task == "" {
			return fmt.Errorf("approval %q: %w", d.ID, ErrNoApproval)
		}
		records = append(records, r.record(kindDecided, task, 0, decidedRecord(d)))
	}
	for _, id := range a.OnAccept {
		k := h.tasks[id]
		if k == nil {
			return fmt.Errorf("task %q: %w", id, ErrNoTask)
		}
		if err := mayRepeat(k.result); err != nil {
			return fmt.Errorf("task %q: %w", id, err)
		}
		records = append(records, r.record(kindRepeat, id, 0, onAcceptRecord{Requeued: k.result.Requeued}))
	}
	if len(records) == 0 {
		return nil
	}
	return log.Append(ctx, records...)
}

// waiting returns the task whose call waits for a person; "": none does.
func (h *history) waiting(id string) string {
	for _, task := range h.order {
		for _, a := range h.tasks[task].asks {
			if a.ID == id && a.state == askWaits {
				return task
			}
		}
	}
	return ""
}
