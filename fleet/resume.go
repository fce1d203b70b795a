package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/session"
)

// Kinds of records.
const (
	kindHost     = "host"     // a process took the job up; its marker
	kindAdmitted = "admitted" // a task and the hash of its content
	kindStarting = "starting" // an attempt may start its agent from now on
	kindTurn     = "turn"     // a turn of an attempt has its result
	kindVerified = "verified" // a verifier has spoken
	kindAttempt  = "attempt"  // an attempt ended, and the task did not
	kindResult   = "result"   // the task is over
	kindParked   = "parked"   // nothing starts before a window of the account begins
	kindCanceled = "canceled" // the task is to be canceled; its result follows
	kindRequeued = "requeued" // the task begins anew; a result that it had is void
)

type (
	hostRecord struct {
		Host   string `json:"host"`
		PID    int    `json:"pid"`
		Marker string `json:"marker"`
		Ran    int    `json:"ran,omitempty"` // attempts that ran when the host before it died
	}
	parkedRecord struct {
		Until time.Time `json:"until"`
		Why   string    `json:"why"`
	}
	admittedRecord struct {
		Hash string `json:"hash"`
	}
	startingRecord struct {
		Mode    Mode   `json:"mode"`
		Session string `json:"session,omitempty"` // "": it cannot be resumed
		Space   space  `json:"space"`
		Fence   uint64 `json:"fence,omitempty"`
	}
	turnRecord struct {
		Turns      int             `json:"turns"` // of the session that are done
		Text       string          `json:"text,omitempty"`
		Structured json.RawMessage `json:"structured,omitempty"`
		ToolCalls  int             `json:"toolCalls,omitempty"`
		Session    string          `json:"session,omitempty"`
		Usage      Usage           `json:"usage"` // of the attempt so far
	}
	attemptRecord struct {
		Attempt Attempt `json:"attempt"`
		Counts  bool    `json:"counts"`         // against Job.Attempts
		Free    bool    `json:"free,omitempty"` // not even against Job.MaxStarts
		// Next is how the next one begins.
		Next    Mode   `json:"next"`
		Session string `json:"session,omitempty"`
		Turns   int    `json:"turns,omitempty"`
		Space   space  `json:"space,omitzero"`
		Why     string `json:"why,omitempty"`
	}
)

// ErrOtherTasks is the error of a resume with tasks whose content has changed.
var ErrOtherTasks = errors.New("the job in the journal has other tasks; resume it with the tasks that it was started with, or start the new ones in another directory")

// history is what a journal knows.
type history struct {
	markers []string
	last    hostRecord
	order   []string // of the tasks
	tasks   map[string]*known
	parked  parkedRecord
	fence   uint64    // the highest one
	ran     int       // attempts that ran when the last host died
	at      time.Time // of the last record
}

// hostEnded is why an attempt ended that its host did not outlive.
const hostEnded = "the program that ran it was ended"

// known is what a journal knows of a task.
type known struct {
	past
	hash     string
	attempts []Attempt
	result   *TaskResult
	space    space
	partial  partial
	open     bool        // an attempt was under way when a host died
	runs     bool        // an attempt is under way in the host that is read
	seen     Usage       // of the attempt under way, until its last turn
	cut      Attempt     // the attempt under way, if its host dies
	former   *TaskResult // that is void
	requeued int         // results that are void
	asks     []*asked
}

// same finds tasks that are not what they were.
func (h *history) same(entries []*entry) error {
	for _, e := range entries {
		if k := h.tasks[e.task.ID]; k != nil && k.hash != e.hash {
			return fmt.Errorf("%w (task %s has changed)", ErrOtherTasks, e.task.ID)
		}
	}
	return nil
}

// open makes or opens the journal. Nothing was started yet.
func (r *run) open(ctx context.Context, entries []*entry) error {
	var err error
	if r.root, err = absolute(r.job.Out); err != nil || r.root == "" {
		return err
	}
	if err := r.job.checkOut(true); err != nil {
		return err
	}
	if r.fs = r.job.FS; r.fs == nil {
		r.fs = journal.Dir(r.root)
	}
	if err := r.writable(); err != nil {
		return err
	}
	r.keeper = journal.NewKeeper(r.fs, r.exec)
	r.store = &dirStore{fs: r.fs, keeper: r.keeper, top: attemptsDir}
	set := ""
	if r.source == nil && len(entries) > 0 {
		set = setHash(entries)
	}
	cfg := journal.Config{FS: r.fs, Clock: r.clock, Executor: r.exec, Compact: compact}
	head := journal.Header{Job: r.job.ID, Tasks: set, Host: hostName(), PID: os.Getpid()}
	if r.job.Resume {
		log, err := journal.Open(cfg, head)
		if err != nil {
			return err
		}
		r.log = log
		if h := log.Header(); h.Job != r.job.ID {
			return fmt.Errorf("the journal is of job %q, not %q: give another directory", h.Job, r.job.ID)
		} else if set != "" && h.Tasks != "" && h.Tasks != set {
			r.found, _ = r.replay(log.Records())
			return cmp.Or(r.found.same(entries), ErrOtherTasks)
		}
		if r.found, err = r.replay(log.Records()); err != nil {
			return err
		}
		if err := r.found.same(entries); err != nil {
			return err
		}
	} else {
		log, err := journal.Create(cfg, head)
		if err != nil {
			return err
		}
		r.log = log
	}
	records := []journal.Record{r.record(kindHost, "", 0, hostRecord{hostName(), os.Getpid(), r.marker, r.found.ran})}
	for _, id := range r.found.reopen(entries) {
		records = append(records, r.record(kindRequeued, id, 0, struct{}{}))
	}
	return r.append(ctx, records...)
}

// writable finds a directory that cannot be written before anything starts.
func (r *run) writable() error {
	var err error
	for _, name := range []string{".", transcriptsDir, attemptsDir} {
		if err == nil {
			err = r.fs.Mkdir(name)
		}
	}
	if err == nil {
		err = r.fs.SyncDir(".")
	}
	if err != nil {
		return fmt.Errorf("the directory of the job cannot be written: %w: make it writable, or give another directory", err)
	}
	return nil
}

// setHash identifies a set of tasks.
func setHash(entries []*entry) string {
	sum := sha256.New()
	for _, e := range entries {
		_, _ = io.WriteString(sum, e.task.ID+" "+e.hash+"\n")
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// replay reads what earlier processes did.
func (r *run) replay(records []journal.Record) (history, error) {
	h := history{tasks: map[string]*known{}}
	for i := range records {
		if err := h.apply(&records[i]); err != nil {
			return h, fmt.Errorf("journal: record %d (%s of task %q): %w", records[i].Seq, records[i].Kind, records[i].Task, err)
		}
	}
	h.died(0)
	for id, k := range h.tasks { //troupe:maporder each task by itself
		if k.result != nil {
			if err := unfold(k.result, r.stored); err != nil {
				return h, fmt.Errorf("journal: result of task %s: %w", id, err)
			}
			continue
		}
		if k.former != nil {
			if err := unfold(k.former, r.stored); err != nil {
				return h, fmt.Errorf("journal: earlier result of task %s: %w", id, err)
			}
		}
		if k.open {
			k.next.why = hostEnded
		}
	}
	return h, nil
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
		h.tasks[rec.Task] = &known{hash: a.Hash}
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
		h.fence = max(h.fence, s.Fence)
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
		return k.after(rec.Kind, decode)
	case kindCanceled:
		k.canceled = true
	case kindRequeued:
		k.requeue()
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
		k.attempts = append(k.attempts, a.Attempt)
		k.starts = max(k.starts, a.Attempt.Number)
		if a.Counts {
			k.past.attempts++
		}
		if a.Free {
			k.free++
		}
		k.usage.add(a.Attempt.Usage)
		k.next = launch{mode: a.Next, session: a.Session, space: a.Space.Dir, turns: a.Turns, why: a.Why}
		k.space = a.Space
	case kindResult:
		var t TaskResult
		if err := decode(&t); err != nil {
			return err
		}
		if !t.Status.known() {
			return fmt.Errorf("the result of task %q has the status %q, which does not exist", rec.Task, t.Status)
		}
		h.fence = max(h.fence, t.Fence)
		k.runs, k.deaths = false, 0
		k.open, k.result, k.status, k.attempts, k.usage = false, &t, t.Status, t.Attempts, t.Usage
		k.paid, k.canceled, k.requeued, k.asks = Usage{}, false, t.Requeued, nil
	}
	return nil
}

// compact drops what a result has made void.
func compact(all []journal.Record) []journal.Record {
	over := map[string]int{} // 1 + the index of the result; 0: none that is not void
	for i := range all {
		switch all[i].Kind {
		case kindResult:
			over[all[i].Task] = i + 1
		case kindRequeued:
			over[all[i].Task] = 0
		}
	}
	var keep []journal.Record
	for i := range all {
		r := &all[i]
		switch last := over[r.Task]; {
		case r.Kind == kindHost, r.Kind == kindAdmitted, r.Kind == kindParked, last == 0, last == i+1, i+1 > last && keepAfter(r):
			keep = append(keep, *r)
		}
	}
	return keep
}

// sweep ends what earlier hosts have left running, before anything starts.
func (r *run) sweep(ctx context.Context) error {
	if why := r.job.tight(openFiles()); why != "" {
		r.tell(Event{Kind: EventWarning, Detail: why})
	}
	for _, marker := range r.found.markers {
		left, err := r.rt.SweepMarker(ctx, marker)
		if err != nil {
			return fmt.Errorf("processes of an earlier host (%s) could not be ended, %d are left: %w", marker, len(left), err)
		}
	}
	for _, spawner := range []session.Spawner{r.job.Options.Spawner, r.job.CommandSpawner} {
		if err := r.adopt(ctx, spawner); err != nil {
			return err
		}
	}
	if len(r.found.markers) > 0 {
		r.tell(Event{Kind: EventSwept, Detail: shown.Count(len(r.found.markers), "earlier host")})
	}
	return nil
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
		if !k.runs {
			continue
		}
		k.cut.Ended, k.cut.Usage = h.at, k.seen
		k.attempts = append(k.attempts, k.cut)
		k.usage.add(k.seen)
		k.seen = Usage{}
		k.runs, k.alone = false, h.ran == 1
		k.deaths++
		k.free++ // the host's end is not the task's
	}
}
