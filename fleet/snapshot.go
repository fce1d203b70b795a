package fleet

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
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
	// Decided are the last calls that a person has decided about, at most 100, oldest first.
	Decided []Decided `json:"decided,omitempty"`

	Started time.Time `json:"started,omitzero"` // as in Progress; zero unless Live
	Total   int       `json:"total"`            // tasks that are known
	Budget  *Budget   `json:"budget,omitempty"` // Job.Budget; nil unless Live
	// Pace are the last changes of Limit, with their reasons, at most 100; see Job.Pace.
	Pace []runtime.AccountChange `json:"pace,omitempty"`
	// Rate is how many tasks a minute have got their result here in the last 10 minutes, or since
	// Started if that is later.
	Rate float64 `json:"rate_per_min"`
	// Starved is for how many milliseconds the machine had too little processor time, as in Progress.
	Starved int64 `json:"starved"`
}

// TaskInfo is a task in a [Snapshot].
type TaskInfo struct {
	ID       string    `json:"id"`
	State    TaskState `json:"state"`
	Status   Status    `json:"status,omitempty"` // of TaskOver
	Error    string    `json:"error,omitempty"`  // of TaskOver, or why the last attempt ended
	Attempts int       `json:"attempts"`         // the one that runs included
	Since    time.Time `json:"since,omitzero"`   // when the attempt that runs began
	Doing    string    `json:"doing,omitempty"`  // as in Running
	Due      time.Time `json:"due,omitzero"`     // when a further attempt starts at the earliest
	// Next is how the next attempt begins, of a task that is not over in the journal of a
	// job that does not run.
	Next       Mode   `json:"next,omitempty"`
	Transcript string `json:"transcript,omitempty"` // file of the last attempt, relative to Job.Out
	Usage      Usage  `json:"usage"`
	// OnAccept is that of the result; see TaskResult.OnAccept.
	OnAccept *OnAccept `json:"onAccept,omitempty"`

	Tags    []string  `json:"tags,omitempty"`
	Class   string    `json:"class,omitempty"`   // of the error of the last attempt that has ended; see Attempt
	Began   time.Time `json:"started,omitzero"`  // when its first attempt began
	Ended   time.Time `json:"ended,omitzero"`    // of TaskOver
	Session string    `json:"session,omitempty"` // the id, in the runtime, of the session of the attempt that runs
}

// TaskState is the scheduling state of a task.
type TaskState string

// States.
const (
	TaskQueued  TaskState = "queued" // also those that wait for other tasks, or for their backoff
	TaskRunning TaskState = "running"
	TaskWaiting TaskState = "waiting" // for an approval, without a process
	TaskOver    TaskState = "over"
)

// Snapshot returns the job and its tasks as they are now.
func (h *Handle) Snapshot() Snapshot {
	s := ask(h.b, func(to *kernel.Promise[Snapshot]) note { return snapshotOf{h.b.job.ID, h.b.root != "", to} })
	if s.Job == "" { // the machine was lost
		stop := s.Stop
		s = h.b.journaled()
		s.Stop = stop
	}
	s.Host, s.PID = hostName(), os.Getpid()
	return s
}

// ReadJob reads what the journal in a directory says of its job, also while the job runs.
// It changes nothing. Without a journal the error matches [journal.ErrMissing].
func ReadJob(dir string) (Snapshot, error) {
	fs := journal.Dir(dir)
	head, all, err := journal.Read(fs)
	if err != nil {
		return Snapshot{}, err
	}
	h, err := (&records{fs: fs, store: &dirStore{fs: fs}}).replay(all)
	if err != nil {
		return Snapshot{}, err
	}
	return h.snapshot(head), nil
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

// Answer decides a call that waits for a person, as [Handle.Answer] does.
type Answer struct {
	ID     string // of the [Approval]
	Allow  bool
	Reason string // of a denial, for the model
	// Input takes the place of the input that the model wrote, if the call is allowed: a JSON
	// object. nil: as it was.
	Input json.RawMessage
	By    string // who answers, for the records; "": not known
}

// Amend records decisions for a stopped job; they apply when it resumes. A decision is durable
// when Amend returns nil; otherwise none is recorded. results.jsonl and the report are as before
// until the job is resumed. The error matches [journal.ErrLocked] while a process runs the job,
// [journal.ErrMissing], [ErrNoTask], [ErrTaskOver], [ErrNoApproval], [ErrNotAccepted] or
// [ErrOnAcceptRuns].
func Amend(ctx context.Context, dir string, a Amendment) (err error) {
	if _, _, err := journal.Read(journal.Dir(dir)); err != nil {
		return err // and nothing is made
	}
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = rt.Shutdown(context.WithoutCancel(ctx)) }()
	r := &records{fs: journal.Dir(dir), store: queue.DirFiles(dir), clock: rt.Clock()}
	log, err := journal.Open(journal.Config{FS: r.fs, Clock: r.clock, Executor: rt.Executor()}, journal.Header{Host: hostName(), PID: os.Getpid()})
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
	decisions, err := h.amend(&a, r.clock.Now())
	if err != nil || len(decisions) == 0 {
		return err
	}
	records := make([]journal.Record, len(decisions))
	for i, d := range decisions {
		records[i] = r.record(d.kind, d.task, 0, d.data)
	}
	return log.Append(ctx, records...)
}
