package simtests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// batch is a job in a world. Its hosts die one after the other, each with what was not
// synced, and the next one goes on from what the disk has left.
type batch struct {
	*simtests.World
	job     fleet.Job
	disk    *journaltest.Disk
	history *scripted.MemoryHistory
	spent   int // windows that may still be found spent

	known  map[string]fleet.Status // results that a reader has seen, of all hosts
	starts int

	// of the host that runs
	handle  *fleet.Handle
	running map[string]bool
	parked  time.Time
	probe   string
	dead    bool // its disk takes nothing any more
}

// hostOf says how a host ends: its disk fails before an operation.
type hostOf struct {
	after int   // operations that go well; negative: all
	err   error // nil: the host dies there
}

func newBatch(w *simtests.World) *batch {
	r := w.Rand()
	b := &batch{World: w, disk: &journaltest.Disk{}, history: &scripted.MemoryHistory{}, known: map[string]fleet.Status{}, spent: r.IntN(3)}
	b.job = fleet.Job{
		Out: "out", Attempts: 4, MaxStarts: 100, Backoff: supervisor.Backoff{Initial: time.Second, Max: time.Minute},
		Options:   &sdk.Options{Runtime: w.Runtime()},
		Configure: b.configure, OnEvent: b.saw,
	}
	for i := range 1 + r.IntN(7) {
		t := fleet.Task{ID: fmt.Sprint("t", i), Prompt: "work", Priority: r.IntN(2)}
		if i > 0 && r.IntN(4) == 0 {
			t.After = []string{fmt.Sprint("t", r.IntN(i))}
			t.Prompt = "work {{len .Results}}"
		}
		b.job.Tasks = append(b.job.Tasks, t)
	}
	if r.IntN(2) == 0 {
		b.job.Pace = &fleet.Pace{Ceiling: 1 + r.IntN(4), Start: 1, Starved: func() bool { return false }}
	} else {
		b.job.Concurrency = 1 + r.IntN(4)
	}
	if r.IntN(3) == 0 {
		b.job.Budget = &fleet.Budget{USD: float64(1 + r.IntN(9))}
	}
	return b
}

// configure draws what the agent of an attempt does.
func (b *batch) configure(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
	steps := scripted.Steps{scripted.Delay(time.Duration(1+b.Rand().IntN(60)) * time.Second)}
	refused := func(text string, status int, fields map[string]any) scripted.Step {
		return &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: status, Fields: fields}
	}
	switch what := b.Rand().IntN(10); {
	case what == 0:
		steps = append(steps, refused("overloaded", 529, nil))
	case what == 1:
		steps = append(scripted.Steps{&scripted.APIRetry{Status: 429, Delay: time.Second}}, append(steps, scripted.Text("done"))...)
	case what == 2 && b.spent > 0:
		b.spent--
		reset := time.Now().Add(time.Duration(1+b.Rand().IntN(300)) * time.Minute)
		steps = append(steps,
			&scripted.Message{Fields: map[string]any{"type": "rate_limit_event", "rate_limit_info": map[string]any{"status": "rejected", "resetsAt": reset.Unix()}}},
			refused("You've hit your session limit", 429, map[string]any{"api_error": "usage_limit_reached"}))
	case what == 3:
		steps = append(steps, scripted.Text(""))
	default:
		steps = append(steps, scripted.Text("done"), &scripted.Result{Subtype: "success", Cost: 1})
	}
	o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}), scripted.WithHistory(b.history))
	return nil
}

// saw checks each event of a job against what must always be so.
func (b *batch) saw(e fleet.Event) {
	b.Note("%s %s/%d %s %s", e.Kind, e.Task, e.Attempt, e.Status, e.Detail)
	switch e.Kind {
	case fleet.EventStarted:
		b.starts++
		_, over := b.known[e.Task]
		assert.False(b, over, "%s was started after its result", e.Task)
		b.running[e.Task] = true
		limit := b.job.Concurrency
		if b.job.Pace != nil {
			limit = b.job.Pace.Ceiling
		}
		if !b.dead { // what ended then is not told, and what starts finds that nothing can be written
			assert.LessOrEqual(b, len(b.running), limit, "more attempts than may run")
		}
		if !b.parked.IsZero() {
			assert.False(b, e.At.Before(b.parked), "%s was started while the account was parked", e.Task)
			assert.Empty(b, b.probe, "%s is a second probe", e.Task)
			b.probe = e.Task
		}
		if b.job.Budget != nil && b.handle != nil {
			assert.Less(b, b.handle.Progress().Usage.USD, b.job.Budget.USD, "%s was started without money", e.Task)
		}
	case fleet.EventEnded, fleet.EventFinished:
		delete(b.running, e.Task)
		if b.probe == e.Task {
			b.probe = ""
		}
	case fleet.EventParked:
		at, _, _ := bytes.Cut([]byte(e.Detail), []byte(": "))
		until, err := time.Parse(time.RFC3339, string(at))
		assert.NoError(b, err)
		b.parked = until
	case fleet.EventUnparked:
		b.parked, b.probe = time.Time{}, ""
	}
}

// host runs the job until it ends, or its disk fails.
func (b *batch) host(h hostOf) error {
	ops := 0
	b.running, b.parked, b.probe, b.dead, b.handle = map[string]bool{}, time.Time{}, "", false, nil
	b.disk.Fail = func(op journaltest.Op) error {
		ops++
		switch {
		case h.after < 0 || ops <= h.after:
			return nil
		case h.err == nil:
			b.dead = true
			return errors.New("the host is dead")
		case op.Kind == journaltest.Write || op.Kind == journaltest.Sync:
			if !b.dead {
				b.dead = true
				return h.err
			}
		}
		return nil
	}
	b.job.FS = b.disk
	b.Note("a host whose disk fails after %d operations with %v", h.after, h.err)
	_, missing := b.disk.Read(journal.Name)
	b.job.Resume = missing == nil
	before := len(b.known)
	require.False(b, !b.job.Resume && before > 0, "%d results are lost with the journal", before)
	handle, err := fleet.Start(b.Context(), b.job)
	if err != nil {
		return err
	}
	b.handle, b.parked = handle, handle.Progress().Parked
	again := map[string]bool{}
	for result, failed := range handle.Results(b.Context()) {
		if failed != nil {
			err = failed
			break
		}
		status, old := b.known[result.ID]
		assert.True(b, !old || status == result.Status, "%s was %s and is %s", result.ID, status, result.Status)
		assert.True(b, !old || result.Earlier, "a second result of %s", result.ID)
		assert.False(b, again[result.ID], "%s came twice to one reader", result.ID)
		b.known[result.ID], again[result.ID] = result.Status, true
		b.Note("result of %s: %s, earlier %v", result.ID, result.Status, result.Earlier)
	}
	for id := range b.known {
		assert.True(b, again[id], "the result of %s is lost", id)
	}
	return err
}

// crash keeps of the disk what was synced, and any part of the rest.
func (b *batch) crash() {
	b.disk = b.disk.Crash(b.disk.Ops(), func(int) int { return b.Rand().IntN(3) })
}

// inJournal counts the results in the journal.
func (b *batch) inJournal() map[string]int {
	r, err := b.disk.Read(journal.Name)
	require.NoError(b, err)
	text, err := io.ReadAll(r)
	require.NoError(b, err)
	all := map[string]int{}
	for line := range bytes.Lines(text) {
		var rec journal.Record
		require.NoError(b, json.Unmarshal(line, &rec))
		if rec.Kind == "result" {
			all[rec.Task]++
		}
	}
	return all
}

// TestExploreAJob: whatever agents do, whenever hosts die and whatever their disks lose,
// each task has one result, no more attempts run than may, nothing starts while the account
// is parked or after the money is gone, and the job comes to its end.
func TestExploreAJob(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 60, Cost: 4, Twice: 1}, func(w *simtests.World) {
		b := newBatch(w)
		deaths := w.Rand().IntN(4)
		for range deaths {
			h := hostOf{after: w.Rand().IntN(60)}
			if w.Rand().IntN(3) == 0 {
				h.err = []error{syscall.ENOSPC, syscall.EIO}[w.Rand().IntN(2)]
			}
			err := b.host(h)
			if b.dead && h.err == nil {
				require.Error(w, err, "a job without a disk is not over")
			}
			var stopped *fleet.StoppedError
			if errors.As(err, &stopped) && b.dead {
				w.Sometimes("a disk failed in the middle of a job", true)
			}
			w.Sometimes("a host died while the account was parked", b.dead && b.parked.After(time.Now()))
			if h.err == nil || w.Rand().IntN(2) == 0 {
				b.crash()
			} else {
				b.disk = b.disk.Crash(b.disk.Ops(), func(int) int { return 2 })
			}
		}
		err := b.host(hostOf{after: -1})
		var stopped *fleet.StoppedError
		if errors.As(err, &stopped) {
			require.Equal(w, fleet.StopBudget, stopped.Reason, "%v", err)
			require.NotNil(w, b.job.Budget)
			w.Sometimes("the money was gone", true)
		} else {
			require.NoError(w, err)
			require.Len(w, b.known, len(b.job.Tasks), "each task has a result")
		}
		in := b.inJournal()
		require.Len(w, in, len(b.known))
		for id, n := range in {
			require.Equal(w, 1, n, "results of %s in the journal", id)
		}
		w.Sometimes("a host went on after another one", deaths > 0 && b.starts > len(b.job.Tasks))
	})
}
