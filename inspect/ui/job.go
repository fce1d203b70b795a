package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// Job is a job of this program, as the window shows and steers it. Job of package
// fleet/control makes one of a fleet.Handle. Implementations are safe for concurrent use.
type Job interface {
	// ID is the id of the job, which is part of addresses.
	ID() string
	// State is where the job stands now.
	State(ctx context.Context) (JobState, error)
	// Transcript opens the transcript of a task's last attempt, lines of JSON, from a byte
	// on. Without one the error matches fs.ErrNotExist.
	Transcript(ctx context.Context, task string, at int64) (io.ReadCloser, error)
	// Do carries out a decision. The error matches [ErrNoTask], [ErrOver], [ErrDecided] or
	// [ErrUnsupported] where that is why.
	Do(ctx context.Context, c Command) error
}

// JobState is a job at a moment.
type JobState struct {
	Summary any // the job without its tasks and approvals; a struct for JSON
	Tasks   []JobTask
	// Approvals are the calls that wait for a person.
	Approvals []Approval
}

// JobTask is a task of a job.
type JobTask struct {
	ID     string
	State  string    // queued, running, waiting or over
	Status string    // of a task that is over
	Error  string    // the first error of a task that is over
	Since  time.Time // when the attempt that runs began
	Value  any       // the task; a struct for JSON
}

// Command is a decision of a person about a job, or about a [Host].
type Command struct {
	Op       Op
	Task     string // of CancelTask and RequeueTask
	Limit    int    // of Retune: attempts at the same time; 0: start nothing. Of RetuneAccount, also -1: adapt
	Approval string // of Decide
	Verdict  Verdict
	Who      string // who has decided, for events

	Session string        // of Interrupt and CloseSession
	Account string        // label, of ParkAccount and RetuneAccount
	For     time.Duration // of ParkAccount; 0: unpark
	Why     string        // of ParkAccount; may be empty
}

// Op is what a [Command] does.
type Op string

// Operations.
const (
	Pause       Op = "pause"
	Resume      Op = "resume"
	Retune      Op = "retune"
	CancelJob   Op = "cancel"
	CancelTask  Op = "cancel_task"
	RequeueTask Op = "requeue_task"
	Decide      Op = "decide"
)

// Operations of a [Host].
const (
	Interrupt     Op = "interrupt" // the turn of a session
	CloseSession  Op = "close"
	ParkAccount   Op = "park_account"
	RetuneAccount Op = "retune_account"
	Drain         Op = "drain" // start nothing more, and end
)

// Verdict answers a call that waits for a person.
type Verdict struct {
	Allow  bool            `json:"allow"`
	Input  json.RawMessage `json:"input,omitempty"`  // in place of the input that the model wrote; a JSON object
	Reason string          `json:"reason,omitempty"` // of a denial, for the model
	Who    string          `json:"who,omitempty"`    // who has answered
}

// Errors of [Job.Do] and [Host].
var (
	ErrNoTask      = errors.New("there is no such task")
	ErrOver        = errors.New("the job or the task is over")
	ErrDecided     = errors.New("the call was answered, or does not wait any more")
	ErrUnsupported = errors.New("this job or host cannot do that")
)

// DecidedError is an [ErrDecided] that knows the answer.
type DecidedError struct {
	Verdict Verdict
	At      time.Time
}

func (e *DecidedError) Error() string { return ErrDecided.Error() + ": by " + e.Verdict.Who }
func (e *DecidedError) Unwrap() error { return ErrDecided }

// Approval is a call of a tool that waits for a person.
type Approval struct {
	ID      string          `json:"id"`
	Job     string          `json:"job,omitempty"`
	Host    string          `json:"host,omitempty"` // id of its host; empty: this program
	Task    string          `json:"task,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Session string          `json:"session,omitempty"` // the runtime's id; empty: not known
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input,omitempty"` // as the model wrote it; needs Access.Content
	Cwd     string          `json:"cwd,omitempty"`   // where the agent works
	Said    string          `json:"said,omitempty"`  // what the agent said before; needs Access.Content
	At      time.Time       `json:"at"`              // when the agent asked
	// HoldUntil is until when the agent keeps its process; zero: it has given it up at once.
	HoldUntil time.Time `json:"hold_until,omitzero"`
	// Rule is the rule that asks, RuleList its list, and RuleFrom where it is. Reason explains it
	// with a part of Input, and needs Access.Content.
	Rule     string `json:"rule,omitempty"`
	RuleList string `json:"rule_list,omitempty"`
	RuleFrom string `json:"rule_from,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Diff is what an edit changes, as a unified diff; needs Access.Content.
	Diff string `json:"diff,omitempty"`
	// Answer says that this window can answer it. Others are shown.
	Answer bool `json:"answer"`
}
