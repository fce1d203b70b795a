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

	"github.com/agent-troupe/troupe/fleet/journal"
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
	requeuedRecord struct {
		Number int `json:"number,omitempty"` // of the ticket, in a job that programs share
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
	resultRecord struct {
		TaskResult
		Starts int `json:"starts,omitempty"` // of the task in this directory
		Base   int `json:"base,omitempty"`   // those before it was requeued last
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
		Fence   uint64 `json:"fence,omitempty"`
	}
)

// ErrOtherTasks is the error of a resume with tasks whose content has changed.
var ErrOtherTasks = errors.New("the job in the journal has other tasks; resume it with the tasks that it was started with, or start the new ones in another directory")

// open makes or opens the journal, and says what earlier processes did. Nothing was started yet.
// complete: entries are all tasks.
func (r *records) open(ctx context.Context, e *env, entries []*entry, complete bool) (found history, err error) {
	if e.root, err = absolute(e.job.Out); err != nil || e.root == "" {
		return found, err
	}
	if err := e.job.checkOut(true); err != nil {
		return found, err
	}
	if r.fs = e.job.FS; r.fs == nil {
		r.fs = journal.Dir(e.root)
	}
	if err := r.writable(); err != nil {
		return found, err
	}
	r.keeper = journal.NewKeeper(r.fs, e.exec)
	r.store = &dirStore{fs: r.fs, keeper: r.keeper, top: attemptsDir}
	set := ""
	if complete && len(entries) > 0 {
		set = setHash(entries)
	}
	cfg := journal.Config{FS: r.fs, Clock: e.clock, Executor: e.exec, Compact: compact}
	head := journal.Header{Job: e.job.ID, Tasks: set, Host: hostName(), PID: os.Getpid()}
	if !e.job.Resume {
		if r.log, err = journalOf(journal.Create(cfg, head)); err != nil {
			return found, err
		}
	} else {
		if r.log, err = journalOf(journal.Open(cfg, head)); err != nil {
			return found, err
		}
		h := r.log.Header()
		if h.Job != e.job.ID {
			return found, fmt.Errorf("the journal is of job %q, not %q: give another directory", h.Job, e.job.ID)
		}
		found, err = r.replay(r.log.Records())
		if set != "" && h.Tasks != "" && h.Tasks != set {
			return found, cmp.Or(found.same(entries), ErrOtherTasks)
		}
		if err := cmp.Or(err, found.same(entries)); err != nil {
			return found, err
		}
	}
	records := []journal.Record{r.record(kindHost, "", 0, hostRecord{hostName(), os.Getpid(), e.marker, found.ran})}
	for _, id := range found.reopen(entries) {
		records = append(records, r.record(kindRequeued, id, 0, struct{}{}))
	}
	return found, r.append(ctx, records...)
}

// journalOf keeps a nil journal from being one in an interface.
func journalOf(l *journal.Log, err error) (journal.Journal, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// replay reads what earlier processes did.
func (r *records) replay(all []journal.Record) (history, error) { return read(all, r.stored) }

// writable finds a directory that cannot be written before anything starts.
func (r *records) writable() error {
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
