package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// Names of the files in Job.Out, besides the journal.
const (
	resultsFile    = "results.jsonl" // a TaskResult on each line, in the order of the tasks
	summaryFile    = "summary.json"  // a Summary
	transcriptsDir = "transcripts"
	attemptsDir    = "attempts" // what only some attempts leave
)

// maxInline is the longest text in the journal. A longer one is in a file of its own.
const maxInline = 64 << 10

// record makes a record. Its data are types of this package, which encode.
func (r *run) record(kind, task string, attempt int, data any) journal.Record {
	raw, err := json.Marshal(data)
	if err != nil { // structured output that is no JSON never gets here
		raw, _ = json.Marshal(fmt.Sprint("cannot be encoded: ", err))
	}
	return journal.Record{At: r.clock.Now().UTC(), Kind: kind, Task: task, Attempt: attempt, Data: raw}
}

func (r *run) append(ctx context.Context, records ...journal.Record) error {
	if r.log == nil || len(records) == 0 {
		return nil
	}
	return r.log.Append(context.WithoutCancel(ctx), records...)
}

// place is the directory of an attempt's files.
func place(task string, number int) string { return path.Join(attemptsDir, task, fmt.Sprint(number)) }

// transcriptOf is the transcript of an attempt. All are in one directory: a new directory
// for each would cost more than the file.
func transcriptOf(task string, number int) string {
	return path.Join(transcriptsDir, fmt.Sprintf("%s.%d.jsonl", task, number))
}

// starting says in the journal that the attempt may start its agent, and opens the
// transcript.
func (r *run) starting(ctx context.Context, a *attempt) error {
	if r.root == "" {
		return nil
	}
	name := transcriptOf(a.task.ID, a.number)
	script, err := r.fs.Create(name)
	if err != nil {
		return &journal.FailedError{Op: "create", Err: fmt.Errorf("%s: %w", name, err)}
	}
	a.script, a.Transcript = script, name
	rec := startingRecord{Mode: a.mode, Session: a.session, Space: a.space, Fence: a.fence}
	if !a.opts.PersistSession.Or(true) {
		rec.Session = ""
	}
	return r.append(ctx, r.record(kindStarting, a.task.ID, a.number, rec))
}

// turned says that a turn has its result: it is not run again.
func (r *run) turned(ctx context.Context, a *attempt) error {
	rec := turnRecord{Turns: a.turns + 1, ToolCalls: a.ToolCalls, Session: a.client.SessionID(), Usage: a.spent}
	if len(a.Text) <= maxInline && len(a.Structured) <= maxInline {
		rec.Text, rec.Structured = a.Text, a.Structured
	} else {
		rec.Turns = a.turns // the answer would be lost: ask for it again
	}
	return r.append(ctx, r.record(kindTurn, a.task.ID, a.number, rec))
}

func (r *run) verified(ctx context.Context, a *attempt) error {
	status := Accepted
	if !a.Verdict.OK {
		status = Rejected
	}
	r.tell(Event{Kind: EventVerified, Task: a.task.ID, Attempt: a.number, Status: status, Detail: short(a.Verdict.Output)})
	return r.append(ctx, r.record(kindVerified, a.task.ID, a.number, *a.Verdict))
}

// attemptRecord is that of an attempt whose task is not over.
func (r *run) attemptRecord(e again) journal.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tasks[e.id]
	rec := attemptRecord{
		Counts: e.counts, Free: e.free, Next: e.next.mode, Session: e.next.session, Turns: e.next.turns, Why: e.next.why, Space: t.space,
	}
	if len(t.attempts) > 0 {
		rec.Attempt = t.attempts[len(t.attempts)-1]
	}
	return r.record(kindAttempt, e.id, t.last.number, rec)
}

// resultRecord makes the result of a task that is over, and gives it to the queue. If that
// fails, nothing has happened. lost: the queue does not take the result.
func (r *run) resultRecord(now time.Time, f finish) (rec journal.Record, lost bool, err error) {
	e, err := r.owner(f.id)
	if err != nil {
		return journal.Record{}, false, err
	}
	t, kept, warnings := r.result(now, e, f)
	for _, w := range warnings {
		r.tell(Event{Kind: EventWarning, Task: f.id, Attempt: e.last.number, Detail: w})
	}
	if r.root != "" {
		r.fold(r.hard, kept, e.number)
		r.mu.Lock() // others see it already
		t.TextFile, t.StructuredFile = kept.TextFile, kept.StructuredFile
		r.mu.Unlock()
	}
	rec = r.record(kindResult, f.id, len(kept.Attempts), *kept)
	lost, err = r.settle(r.hard, e, t, rec.Data)
	return rec, lost, err
}

// finishing returns the record of a result. A task that is over without an attempt, or by a
// person, is over here even if the queue does not take its result.
func (r *run) finishing(now time.Time, f finish) (journal.Record, error) {
	r.mu.Lock()
	e := r.tasks[f.id]
	c := e.claimed
	e.claimed = nil
	r.mu.Unlock()
	rec, err := journal.Record{}, error(nil)
	if c != nil {
		rec, err = c.record, c.err
	} else {
		rec, _, err = r.resultRecord(now, f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.result, e.unkept = e.unkept, nil
	return rec, err
}

// owner returns a task whose result this program may give, if it has not come from another
// one. A task that is over without a start has no lease yet; when another program has it, as
// when it is canceled here, the queue does not learn this result.
func (r *run) owner(id string) (*entry, error) {
	r.mu.Lock()
	e := r.tasks[id]
	leased := e.tenure != nil || e.foreign != nil
	r.mu.Unlock()
	if leased {
		return e, nil
	}
	if _, _, err := r.lease(r.hard, e); err != nil {
		return e, &queueError{err}
	}
	return e, nil
}

// result makes a result known in this process, and returns a copy for the journal.
func (r *run) result(now time.Time, e *entry, f finish) (t, kept *TaskResult, warnings []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t = e.foreign; t != nil {
		t.Requeued, t.OnAccept = e.requeued, nil // the other program runs that
	} else {
		t, warnings = e.made(now, f)
		if r.job.OnAccept != "" && t.OK() {
			t.OnAccept = &OnAccept{State: onAcceptPending}
		}
		if e.tenure != nil {
			t.Fence = e.tenure.Fence
		}
		if r.job.Queue != nil {
			t.Worker = r.worker
		}
	}
	e.unkept = t
	whole := *t
	return t, &whole, warnings
}

// made is the result of a task that this program has run; mu is held.
func (e *entry) made(now time.Time, f finish) (t *TaskResult, warnings []string) {
	t = &TaskResult{
		ID: f.id, Status: f.status, Family: f.status.Family(), Usage: e.usage, Attempts: e.attempts,
		Tags: e.task.Tags, Ended: now.UTC(), Error: f.why, Requeued: e.requeued,
	}
	if a := e.last; a != nil {
		t.Text, t.Structured, t.Verdict, t.Denied, t.ToolCalls = a.Text, a.Structured, a.Verdict, a.Denied, a.ToolCalls
		t.Denials = a.Denials
		t.Subagents, t.SubagentsDenied = a.Subagents, a.Refused
		t.SessionID, t.Workspace, t.Transcript, t.Diff = a.Session, a.Workspace, a.Transcript, a.Diff
		if t.Err = a.err; a.err != nil && f.status != Accepted && t.Error == "" {
			t.Error, t.Class = a.err.Error(), classOf(a.err)
		}
		if a.decided != "" {
			t.Error = a.decided
		}
		warnings = a.warnings
	}
	if len(e.attempts) > 0 {
		t.Started = e.attempts[0].Started
	}
	return t, warnings
}

// fold moves a long answer into files, durably, before the record that names them. What
// cannot be moved stays: better a long line than none.
func (r *run) fold(ctx context.Context, t *TaskResult, number int) {
	put := func(name string, content []byte) string {
		if len(content) <= maxInline {
			return ""
		}
		name = path.Join(place(t.ID, number), name)
		err := r.store.Put(ctx, name, bytes.NewReader(content))
		if err == nil && (t.Worker == "" || t.Worker == r.worker) {
			err = r.lend(ctx, t.Fence, name)
		}
		if err != nil {
			return ""
		}
		return name
	}
	if t.TextFile = put("text.txt", []byte(t.Text)); t.TextFile != "" {
		t.Text = ""
	}
	if t.StructuredFile = put("structured.json", t.Structured); t.StructuredFile != "" {
		t.Structured = nil
	}
}

// unfold reads what fold has moved. get is where the files are.
func unfold(t *TaskResult, get func(name string) ([]byte, error)) error {
	if t.TextFile != "" && t.Text == "" {
		text, err := get(t.TextFile)
		if err != nil {
			return err
		}
		t.Text = string(text)
	}
	if t.StructuredFile != "" && len(t.Structured) == 0 {
		var err error
		if t.Structured, err = get(t.StructuredFile); err != nil {
			return err
		}
	}
	return nil
}

// stored reads a file of this job.
func (r *run) stored(name string) ([]byte, error) {
	f, err := r.store.Get(context.Background(), name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// keepDiff writes what the task has changed, if its workspace is its own and in git.
func (r *run) keepDiff(ctx context.Context, a *attempt) {
	if r.root == "" || !a.workspace.owned() || a.Diff != "" || a.space.Base == "" || a.workspace.Make != nil {
		return
	}
	text, err := r.diff(ctx, a, a.space)
	if err == nil && text != "" {
		name := path.Join(place(a.task.ID, a.number), "diff.patch")
		if err = r.store.Put(ctx, name, strings.NewReader(text)); err == nil {
			a.Diff = name
			err = r.lend(ctx, a.fence, name)
		}
	}
	if err != nil {
		a.warnings = append(a.warnings, "the diff is not kept: "+err.Error())
	}
}

// Summary is what summary.json says.
type Summary struct {
	Job      string         `json:"job"`
	Started  time.Time      `json:"started"` // of this process
	Ended    time.Time      `json:"ended"`
	Tasks    int            `json:"tasks"`
	Accepted int            `json:"accepted"`
	Left     int            `json:"left"` // without a result
	ByStatus map[Status]int `json:"byStatus"`
	ByFamily map[Family]int `json:"byFamily"`
	Usage    Usage          `json:"usage"` // of all processes
	// Began is when the first attempt of all processes did; zero: there was none. Worked is for
	// how long at least one attempt ran, in all processes together.
	Began  time.Time `json:"began,omitzero"`
	Worked Duration  `json:"worked,omitzero"`
	// Agent, Model and Verifier are those of the job; a task may have its own. Verifier is the
	// command, or "a function". Title and Command are the job's.
	Title    string `json:"title,omitempty"`
	Command  string `json:"command,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Model    string `json:"model,omitempty"`
	Verifier string `json:"verifier,omitempty"`
	// Of all results: attempts, how often somebody had a task run again, runs of the verifier
	// in the last attempts, and calls of tools that were denied in them.
	Attempts int   `json:"attempts"`
	Requeued int   `json:"requeued"`
	Rounds   int   `json:"rounds"`
	Denied   int   `json:"denied"`
	Stop     *Stop `json:"stop,omitempty"` // why it ended before all tasks had; nil: it did not
	// Pace is how Job.Pace has changed the number of attempts that run, in this process; at
	// most the last 1,000 changes. Starved is for how long the machine had too little
	// processor time for them. Both are of jobs with Job.Pace.
	Pace    []runtime.AccountChange `json:"pace,omitempty"`
	Starved Duration                `json:"starved,omitzero"`
}

// summarize writes summary.json and the report.
func (r *run) summarize() error {
	p := r.progress()
	s := Summary{
		Job: r.job.ID, Started: r.begun.UTC(), Ended: r.clock.Now().UTC(), Tasks: p.Total + r.unsampled, Accepted: p.ByStatus[Accepted],
		Left: p.Total + r.unsampled - p.Finished, ByStatus: p.ByStatus, ByFamily: map[Family]int{}, Usage: p.Usage,
	}
	if s.Left > 0 {
		s.Stop = p.Stop
	}
	r.describe(&s)
	if r.job.Pace != nil {
		r.mu.Lock()
		s.Pace, s.Starved = slices.Clone(r.changes), Duration(p.Starved.Round(time.Millisecond))
		r.mu.Unlock()
	}
	for status, n := range p.ByStatus {
		s.ByFamily[status.Family()] += n
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	err = journal.WriteFile(r.fs, summaryFile, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	return errors.Join(err, r.report(s))
}

// overlay is a copy of base in which the keys of raw replace those of base. A key with
// the zero value of its field replaces nothing.
func overlay(base *sdk.Options, raw json.RawMessage) (*sdk.Options, error) {
	o := *base
	if len(raw) == 0 {
		return &o, nil
	}
	own, err := sdk.LoadOptions(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	to, from := reflect.ValueOf(&o).Elem(), reflect.ValueOf(own).Elem()
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return &o, nil
}
