package simtests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

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
	tasks   map[string]*fleet.Task
	disk    *journaltest.Disk
	history *scripted.MemoryHistory
	spent   int // windows that may still be found spent
	steps   int // decisions that a person may still make about tasks

	watched
}

// hostOf says how a host ends: its disk fails before an operation.
type hostOf struct {
	after int   // operations that go well; negative: all
	err   error // nil: the host dies there
}

func newBatch(w *simtests.World) *batch {
	r := w.Rand()
	b := &batch{World: w, tasks: map[string]*fleet.Task{}, disk: &journaltest.Disk{}, history: &scripted.MemoryHistory{}, spent: r.IntN(3), steps: r.IntN(4), watched: newWatched()}
	b.job = fleet.Job{
		Out: "out", Attempts: 4, MaxStarts: 100, Backoff: supervisor.Backoff{Initial: time.Second, Max: time.Minute},
		Options:   &sdk.Options{Runtime: w.Runtime()},
		Configure: b.configure, OnEvent: b.saw,
	}
	for i := range 1 + r.IntN(9) {
		t := fleet.Task{ID: fmt.Sprint("t", i), Prompt: "work", Priority: r.IntN(2)}
		if i > 0 && r.IntN(4) == 0 {
			t.After = []string{fmt.Sprint("t", r.IntN(i))}
			t.Prompt = "work {{len .Results}}"
		}
		if r.IntN(4) == 0 {
			t.Exclusive = fmt.Sprint("key", r.IntN(2))
		}
		if r.IntN(4) == 0 {
			t.Verify = &fleet.Verify{Check: b.verify}
			if t.Verify.Rounds = r.IntN(3); t.Verify.Rounds > 0 {
				t.Verify.Prompt = "work again: {{.Output}}"
			}
		}
		for range max(0, r.IntN(6)-3) {
			t.Turns = append(t.Turns, "work on")
		}
		switch r.IntN(8) {
		case 0:
			t.NotBefore = time.Now().Add(time.Duration(r.IntN(600)) * time.Second)
		case 1:
			t.Timeout = fleet.Duration(30+r.IntN(60)) * fleet.Duration(time.Second)
		case 2:
			t.Budget = &fleet.Budget{USD: float64(1 + r.IntN(3))}
		case 3:
			t.Clean = true
		case 4:
			t.ExpectTools = true
		}
		b.job.Tasks = append(b.job.Tasks, t)
	}
	for i := range b.job.Tasks {
		b.tasks[b.job.Tasks[i].ID] = &b.job.Tasks[i]
	}
	if r.IntN(2) == 0 {
		b.job.Pace = &fleet.Pace{Floor: 1 + r.IntN(2), Ceiling: 2 + r.IntN(5), Starved: func() bool { return false }}
	} else {
		b.job.Concurrency = 1 + r.IntN(4)
	}
	if r.IntN(3) == 0 {
		b.job.Budget = &fleet.Budget{USD: float64(1 + r.IntN(9))}
	}
	if r.IntN(3) == 0 {
		b.job.Approvals = &fleet.Approvals{Hold: []time.Duration{-1, 0}[r.IntN(2)]}
	}
	return b
}

// configure draws what the agent of an attempt does.
func (b *batch) configure(_ context.Context, t *fleet.Task, o *sdk.Options) error {
	steps := scripted.Steps{scripted.Delay(time.Duration(1+b.Rand().IntN(60)) * time.Second)}
	refused := func(text string, status int, fields map[string]any) scripted.Step {
		return &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: status, Fields: fields}
	}
	attempt := b.running[t.ID]
	switch what := b.Rand().IntN(10); {
	case what == 0:
		attempt.presses, b.pressed = true, true
		steps = append(steps, refused("overloaded", 529, nil))
	case what == 1:
		attempt.presses, b.pressed = true, true
		steps = append(scripted.Steps{&scripted.APIRetry{Status: 429, Delay: time.Second}}, append(steps, scripted.Text("done"))...)
	case what == 2 && b.spent > 0:
		b.spent--
		attempt.presses, b.pressed = true, true
		reset := time.Now().Add(time.Duration(1+b.Rand().IntN(300)) * time.Minute)
		text := "You've hit your session limit"
		if b.Rand().IntN(2) == 0 {
			text += reset.UTC().Format(" · resets 3:04pm (UTC)")
		} else {
			steps = append(steps, &scripted.Message{Fields: map[string]any{"type": "rate_limit_event", "rate_limit_info": map[string]any{"status": "rejected", "resetsAt": reset.Unix()}}})
		}
		steps = append(steps, refused(text, 429, map[string]any{"api_error": "usage_limit_reached"}))
	case what == 3:
		steps = append(steps, scripted.Text(""))
	case what < 6 && b.job.Approvals != nil:
		steps = append(steps, &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Effect: "deploys", Result: "deployed"}, scripted.Text("deployed"))
	default:
		steps = append(steps, scripted.Text("done"), &scripted.Result{Subtype: "success", Cost: 1})
	}
	o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}), scripted.WithHistory(b.history),
		scripted.WithEffect(func(string, string) error { b.deployed(t.ID); return nil }))
	return nil
}

// verify draws what the verifier says.
func (b *batch) verify(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
	b.Sleep(time.Duration(b.Rand().IntN(10)) * time.Second)
	switch b.Rand().IntN(6) {
	case 0:
		return fleet.Verdict{}, errors.New("the verifier is ill")
	case 1, 2:
		b.said[c.Task.ID] = fleet.Rejected
		return fleet.Verdict{Output: "not good"}, nil
	}
	b.said[c.Task.ID] = fleet.Accepted
	return fleet.Verdict{OK: true}, nil
}

// idle lets time pass, up to the end of ctx.
func idle(ctx context.Context, w *simtests.World, seconds int) error {
	wake := make(chan struct{})
	timer := w.Runtime().Clock().AfterFunc(time.Duration(seconds)*time.Second, func() { close(wake) })
	defer timer.Stop()
	return w.Runtime().Executor().Await(ctx, wake)
}

// person answers calls, pauses and retunes the job, and cancels and requeues tasks, until ctx
// ends. doomed: the host need not come to the end of the job.
func (b *batch) person(ctx context.Context, h *fleet.Handle, doomed bool) {
	for {
		if idle(ctx, b.World, 1+b.Rand().IntN(120)) != nil {
			return
		}
		if asked := h.Approvals(); len(asked) > 0 && b.Rand().IntN(2) == 0 {
			a := asked[b.Rand().IntN(len(asked))]
			allow := b.Rand().IntN(3) > 0
			if allow {
				b.allowed[a.Task]++
			}
			err := h.Decide(ctx, a.ID, allow, "no")
			b.Note("decided about %s of %s: %v, %v", a.ID, a.Task, allow, err)
			if allow && errors.Is(err, fleet.ErrNoApproval) {
				b.allowed[a.Task]--
			}
			continue
		}
		if b.steps == 0 || b.Rand().IntN(3) > 0 {
			continue
		}
		b.steps--
		switch what := b.Rand().IntN(8); {
		case what == 0:
			h.Pause()
			_ = idle(ctx, b.World, 1+b.Rand().IntN(120))
			h.Unpause()
			continue
		case what == 1:
			n := 1 + b.Rand().IntN(4)
			b.retuned(n)
			h.Retune(n)
			continue
		case what == 2 && doomed:
			b.Note("the job is ended")
			[]func(){h.Drain, h.Cancel, h.Kill}[b.Rand().IntN(3)]()
			continue
		}
		id := b.job.Tasks[b.Rand().IntN(len(b.job.Tasks))].ID
		if b.Rand().IntN(2) == 0 {
			err := h.CancelTask(ctx, id)
			b.canceled[id] = b.canceled[id] || err == nil
			b.Note("canceled %s: %v", id, err)
			continue
		}
		err := h.Requeue(ctx, id)
		if err != nil { // it may be in the journal, or not
			b.doubt(id)
		}
		b.Note("requeued %s: %v", id, err)
	}
}

// host runs the job until it ends, or its disk fails.
func (b *batch) host(h hostOf) error {
	ops, struck := 0, false
	b.next()
	b.disk.Fail = func(op journaltest.Op) error {
		ops++
		switch {
		case h.after < 0 || ops <= h.after:
			return nil
		case h.err == nil:
			b.dead = true
			return errors.New("the host is dead")
		case op.Kind == journaltest.Write || op.Kind == journaltest.Sync:
			if !struck {
				struck = true
				b.dead = !strings.HasPrefix(op.Name, "results.jsonl") // without a projection the job goes on
				return h.err
			}
		}
		return nil
	}
	b.job.FS = b.disk
	b.Note("a host whose disk fails after %d operations with %v", h.after, h.err)
	_, missing := b.disk.Read(journal.Name)
	b.job.Resume = missing == nil
	require.False(b, !b.job.Resume && len(b.known) > 0, "%d results are lost with the journal", len(b.known))
	handle, err := fleet.Start(b.Context(), b.job)
	if errors.Is(err, journal.ErrMissing) { // its first host died before the first line was whole
		require.Zero(b, b.starts, "the journal is lost")
		b.job.Resume = false
		handle, err = fleet.Start(b.Context(), b.job)
	}
	if err != nil {
		return err
	}
	p := handle.Progress()
	b.handle, b.parked, b.limit = handle, p.Parked, p.Limit
	close(b.ready)
	ctx, leave := context.WithCancel(b.Context())
	left := make(chan struct{})
	b.Go(func() {
		defer close(left)
		b.person(ctx, handle, h.after >= 0)
	})
	for result, failed := range handle.Results(b.Context()) {
		if failed != nil {
			err = failed
			break
		}
		b.got(&result)
	}
	leave()
	require.NoError(b, b.Runtime().Executor().Await(b.Context(), left))
	for id := range b.known { //troupe:maporder each by itself
		b.must(b.again[id], "exactly-once: the result of %s is lost", id)
	}
	return err
}

// crash keeps of the disk what was synced, and any part of the rest.
func (b *batch) crash() {
	b.disk = b.disk.Crash(b.disk.Ops(), func(int) int { return b.Rand().IntN(3) })
}

// inJournal returns the statuses of the results that the journal has of each task.
func (b *batch) inJournal() map[string][]fleet.Status {
	all := map[string][]fleet.Status{}
	r, err := b.disk.Read(journal.Name)
	if err != nil {
		return all
	}
	text, err := io.ReadAll(r)
	require.NoError(b, err)
	for line := range bytes.Lines(text) {
		var rec journal.Record
		if json.Unmarshal(line, &rec) != nil { // the torn last one
			break
		}
		switch rec.Kind {
		case "result":
			var t fleet.TaskResult
			require.NoError(b, json.Unmarshal(rec.Data, &t))
			all[rec.Task] = append(all[rec.Task], t.Status)
		case "requeued": // which makes it void
			delete(all, rec.Task)
		}
	}
	return all
}

// TestExploreAJob: whatever agents do, whatever a person decides, whenever hosts die and
// whatever their disks lose, each task has one result, no more attempts run than may, nothing
// starts while the account is parked or after the money is gone, and the job comes to its end.
func TestExploreAJob(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(60), Cost: 4, Twice: 1}, aJob)
}

// The planted bugs of jobs have to be found by this one.
func TestPlantedBugsOfJobs(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Twice: -1, Shrink: -1, DoNotKeep: true}, aJob)
}

func aJob(w *simtests.World) {
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
		b.must(len(b.known) == len(b.job.Tasks), "exactly-once: %d results of %d tasks", len(b.known), len(b.job.Tasks))
	}
	in := b.inJournal()
	require.Len(w, in, len(b.known))
	for id, all := range in { //troupe:maporder each by itself
		b.must(len(all) == 1, "exactly-once: %d results of %s in the journal", len(all), id)
	}
	w.Sometimes("a host went on after another one", deaths > 0 && b.starts > len(b.job.Tasks))
	b.reached()
}
