package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Journal is the durable record of one job. Implementations are safe for concurrent
// use. Package journaltest has tests that each of them must pass.
type Journal interface {
	// Header returns what the journal was made with.
	Header() Header
	// Records returns the records that were there when the journal was opened, in the
	// order of their Seq, which begins at 1 and has no gaps. Do not modify them.
	Records() []Record
	// Append adds records in order and returns when they are durable. Seq is set by the
	// journal. Concurrent calls share one sync. If ctx ends first, the records may still
	// become durable. After a *[FailedError] every later call returns it, too.
	Append(ctx context.Context, records ...Record) error
	// Close waits for the calls of Append that are under way, and lets another process
	// open the journal. A second Close does nothing.
	Close() error
}

// Header says which job a journal belongs to. Format is set by the journal.
type Header struct {
	Format int    `json:"format"`
	Job    string `json:"job"`             // id of the job
	Tasks  string `json:"tasks,omitempty"` // hash of the set of tasks; "": not known at the start
	Host   string `json:"host,omitempty"`  // name of the machine that made the journal
	PID    int    `json:"pid,omitempty"`   // process that made the journal
}

// Record is one entry of a journal.
type Record struct {
	Seq     uint64          `json:"seq"`
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	Task    string          `json:"task,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"` // a JSON value whose meaning Kind decides
}

// Errors of a journal, to be matched with errors.Is.
var (
	// ErrLocked says that another process uses the journal.
	ErrLocked = errors.New("another process uses the journal; wait for its end, or give another directory")
	// ErrExists says that a new journal was asked for where there is one.
	ErrExists = errors.New("there is a journal already; resume the job, or give another directory")
	// ErrMissing says that there is no journal.
	ErrMissing = errors.New("there is no journal; start the job without resume")
	// ErrClosed is the error of Append after Close.
	ErrClosed = errors.New("the journal is closed")
)

// CorruptError is damage that no crash explains. Nothing was changed. Restore the file
// from a copy, or start the job again in another directory.
type CorruptError struct {
	Name   string // file
	Line   int    // number of the bad line, from 1
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: line %d is damaged (%s): restore the file, or start the job in another directory", e.Name, e.Line, e.Reason)
}

// FailedError says that the journal, or a file that one of its records is to name, could not
// be written. It is final for the process:
// after a failed sync the system may have dropped what it could not write, so a second
// sync would prove nothing. Records of this call may or may not be in the file. Fix the
// cause, then resume the job.
type FailedError struct {
	Op  string // write, sync, create and the like
	Err error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("the journal, or a file that it names, cannot be written (%s), and this process writes no more: %v: fix the cause, then resume the job", e.Op, e.Err)
}

func (e *FailedError) Unwrap() error { return e.Err }
