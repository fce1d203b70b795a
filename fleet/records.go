package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/session"
)

// Names of the files in Job.Out, besides the journal.
const (
	resultsFile    = "results.jsonl" // a TaskResult on each line, in the order of the tasks
	summaryFile    = "summary.json"  // a Summary
	transcriptsDir = "transcripts"
	attemptsDir    = "attempts" // what only some attempts leave
)

// maxInline is the longest text in the journal. A longer one is in a separate file.
const maxInline = 64 << 10

// records are what a job writes down: the journal, and the files that it names. Attempts
// write their own records.
type records struct {
	clock  session.Clock
	fs     journal.FS
	log    journal.Journal // nil without Out
	keeper *journal.Keeper // nil without Out
	store  queue.Files     // the files in Out; nil without Out
	others queue.Files     // Job.Files
	worker string          // this program in Job.Queue
}

// record makes a record. Its data are types of this package, which encode.
func (r *records) record(kind, task string, attempt int, data any) journal.Record {
	raw, err := json.Marshal(data)
	if err != nil { // structured output is always JSON
		raw, _ = json.Marshal(fmt.Sprint("cannot be encoded: ", err))
	}
	return journal.Record{At: r.clock.Now().UTC(), Kind: kind, Task: task, Attempt: attempt, Data: raw}
}

func (r *records) append(ctx context.Context, records ...journal.Record) error {
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
func (r *records) starting(ctx context.Context, a *attempt) error {
	if r.log == nil {
		return nil
	}
	name := transcriptOf(a.task.ID, a.number)
	script, err := r.fs.Create(name)
	if err != nil {
		return &journal.FailedError{Op: "create", Err: fmt.Errorf("%s: %w", name, err)}
	}
	a.script, a.Transcript = script, name
	rec := startingRecord{Mode: a.begins(), Session: a.session, Space: a.space, Fence: a.fence}
	if !a.opts.PersistSession.Or(true) {
		rec.Session = ""
	}
	begins := r.record(kindStarting, a.task.ID, a.number, rec)
	if !a.arrived {
		return r.append(ctx, begins)
	}
	// This program has the turns of the other one from here on.
	return r.append(ctx, begins, r.record(kindTurn, a.task.ID, a.number, a.turnAt(a.turns)))
}

// turned says that a turn has its result: it is not run again.
func (r *records) turned(ctx context.Context, a *attempt) error {
	rec := a.turnAt(a.turns + 1)
	rec.Session = a.client.SessionID()
	return r.append(ctx, r.record(kindTurn, a.task.ID, a.number, rec))
}

// turnAt is the record of so many turns.
func (a *attempt) turnAt(turns int) turnRecord {
	rec := turnRecord{Turns: turns, ToolCalls: a.ToolCalls, Session: a.session, Usage: a.spent}
	if len(a.Text) <= maxInline && len(a.Structured) <= maxInline {
		rec.Text, rec.Structured = a.Text, a.Structured
	} else {
		rec.Turns = max(turns-1, 0) // the answer would be lost: ask for it again
	}
	return rec
}

// verified says what a verifier has said.
func (r *records) verified(ctx context.Context, a *attempt) error {
	return r.append(ctx, r.record(kindVerified, a.task.ID, a.number, *a.Verdict))
}

// fold puts a long answer into files, durably, before the record that names them, and returns
// their names. A text that cannot be moved stays in the line.
func (r *records) fold(ctx context.Context, t *TaskResult, number int) (text, structured string) {
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
	return put("text.txt", []byte(t.Text)), put("structured.json", t.Structured)
}

// inFiles is a result without the texts that are in files.
func inFiles(t *TaskResult) TaskResult {
	kept := *t
	if t.TextFile != "" {
		kept.Text = ""
	}
	if t.StructuredFile != "" {
		kept.Structured = nil
	}
	return kept
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
func (r *records) stored(name string) ([]byte, error) {
	f, err := r.store.Get(context.Background(), name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}
