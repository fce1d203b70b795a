package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Queue shares the tasks of one job among programs, on one machine or on many. Each of
// them runs the same job with the same tasks. It leases a task before it starts it, holds
// the lease over all attempts, and gives the result to the queue. Package queuetest has
// tests that each implementation must pass. Implementations are safe for concurrent use,
// and try again by themselves when the network fails: an error other than those named here
// stops the job.
//
// A queue serves one job. Its size is that of the job: it forgets nothing.
type Queue interface {
	// Offer makes tasks known. A task that is known stays as it is, leased or over. If it
	// was offered with another hash, the error matches [ErrOtherHash]. An offer with a result
	// ends a task that is not over, and its lease.
	Offer(ctx context.Context, tasks ...Offer) error
	// Lease gives a task to a worker, at once or not at all. The error is a *[LeasedError]
	// while another lease is valid, and matches [ErrFinished] or [ErrNotOffered].
	Lease(ctx context.Context, task, worker string) (Lease, error)
	// Extend lets leases last their TTL from this call on. It returns one error for each lease,
	// in their order: nil, or one that matches [ErrLeaseLost] if that lease is not valid any more.
	Extend(ctx context.Context, leases ...Lease) []error
	// Note keeps l.Starts and a note, in JSON, for the next lease of the task, in place of those
	// before. The error matches [ErrLeaseLost] if the lease is not valid any more: then nothing is
	// kept.
	Note(ctx context.Context, l Lease, note json.RawMessage) error
	// Finish ends a task with its result, which is a fleet.TaskResult in JSON. The error matches
	// [ErrLeaseLost] if the lease is not valid any more: the result then counts for nothing. A
	// second call with the lease that has finished the task does nothing.
	Finish(ctx context.Context, l Lease, result json.RawMessage) error
	// Release gives a task back without a result. The error matches [ErrLeaseLost] if the
	// lease is not valid any more.
	Release(ctx context.Context, l Lease) error
	// Decide keeps a decision for all programs. It is durable when Decide returns nil. A second
	// call with the same decision does nothing. The error matches [ErrDecided] if another
	// decision has the ID.
	Decide(ctx context.Context, d Decision) error
	// Watch yields where each known task stands and all decisions, then one change that says
	// [Current], and then what changes, until ctx ends or the loop does. It may leave out a change that a later one has made void, but
	// no result and no decision. Decisions come in the order in which they were made. An error is
	// yielded last; the end of ctx is not an error.
	Watch(ctx context.Context) iter.Seq2[Change, error]
}

// Files keep what is too large for a [Queue], under names with slashes. Package
// queuetest has tests that each implementation must pass. Implementations are safe for
// concurrent use.
type Files interface {
	// Put keeps content until the reader's end, in place of what had the name. If it returns
	// an error, what had the name may be lost, and Get returns no part of content. When it
	// returns nil the content is durable.
	Put(ctx context.Context, name string, content io.Reader) error
	// Get returns what Put has kept. The error matches fs.ErrNotExist if there is nothing.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
}

// Offer is a task for a [Queue].
type Offer struct {
	Task string // id; letters, digits and . _ - #
	Hash string // of its content
	// Result says that the task is over already: it is from a journal, for a queue that has lost
	// it. nil: the task has no result.
	Result json.RawMessage
	Fence  uint64 // of Result
}

// Lease is the right to run a task.
type Lease struct {
	Task   string
	Worker string
	// Fence is higher than that of every earlier lease of the queue. A system that a task
	// writes to can refuse what comes with a lower number than it has seen.
	Fence uint64
	// TTL is how long the lease lasts unless it is extended, from when the call that returned it
	// began, by any clock. 0: it does not end by itself.
	TTL time.Duration
	// Starts is how often the task was started before, by all programs, and Note what its last
	// holder has left: both as the last call of Note has kept them. Default: 0 and nil.
	Starts int
	Note   json.RawMessage
}

// Decision is what a person decides about a job, for all programs that share it. A queue keeps
// it, and package fleet gives Op, Task and Arg their meanings.
type Decision struct {
	ID   string    `json:"id"` // letters, digits and . _ - #
	Op   string    `json:"op"`
	Task string    `json:"task,omitempty"`
	Arg  string    `json:"arg,omitempty"`
	By   string    `json:"by,omitempty"` // who has decided
	At   time.Time `json:"at"`
}

// Change says where a task stands, or what was decided.
type Change struct {
	// Decision is nil unless the change is a decision: then the other fields are zero.
	Decision *Decision
	Task     string
	State    State
	Worker   string          // that has the lease, or has finished the task; "" if it is free, or its result was offered
	Fence    uint64          // of its lease, or of its result
	Note     json.RawMessage // the last one of a task that is not over
	Result   json.RawMessage // of Over
}

// State is where a task of a [Queue] stands.
type State string

// States.
const (
	Free   State = "free"
	Leased State = "leased"
	Over   State = "over"
	// Current is the state of one change of each Watch, which has no task: what was so when the
	// loop began has been yielded.
	Current State = "current"
)

// Errors of a [Queue], to be matched with errors.Is.
var (
	// ErrLeaseLost says that a lease has ended, or that the task has been given to another worker.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrFinished says that a task has a result.
	ErrFinished = errors.New("the task has a result already")
	// ErrNotOffered says that the queue does not know a task.
	ErrNotOffered = errors.New("the task was not offered")
	// ErrOtherHash says that the queue knows a task with another content.
	ErrOtherHash = errors.New("the task has changed since it was offered")
	// ErrDecided says that another decision has the same ID.
	ErrDecided = errors.New("another decision has this id")
)

// LeasedError says that another worker has a task.
type LeasedError struct {
	Task   string
	Worker string
	TTL    time.Duration // a hint: how long that lease may still last; 0 if that is unknown
}

func (e *LeasedError) Error() string {
	s := fmt.Sprintf("task %q is leased by %s", e.Task, e.Worker)
	if e.TTL > 0 {
		s += fmt.Sprintf(" for another %v", e.TTL)
	}
	return s
}
