package fleet_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

// begun starts a job, and returns its events.
func begun(t *testing.T, j fleet.Job) (*fleet.Handle, <-chan fleet.Event) {
	t.Helper()
	events := make(chan fleet.Event, 1000)
	j.OnEvent = func(e fleet.Event) { events <- e }
	h, err := fleet.Start(t.Context(), fast(j))
	require.NoError(t, err)
	return h, events
}

func await(t *testing.T, events <-chan fleet.Event, kind fleet.EventKind, task string) fleet.Event {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Kind == kind && e.Task == task {
				return e
			}
		case <-time.After(20 * time.Second):
			require.Fail(t, "no event", "%s of %s", kind, task)
		}
	}
}

// rest reads the results of a job to its end, by id; a later one replaces an earlier one.
func rest(t *testing.T, h *fleet.Handle) (map[string]fleet.TaskResult, error) {
	t.Helper()
	all := map[string]fleet.TaskResult{}
	for r, err := range h.Results(t.Context()) {
		if err != nil {
			return all, err
		}
		if before, ok := all[r.ID]; ok {
			require.Greater(t, r.Requeued, before.Requeued)
		}
		all[r.ID] = r
	}
	return all, nil
}

// projected are the lines of results.jsonl. Each id has one.
func projected(t *testing.T, out string) map[string]fleet.TaskResult {
	t.Helper()
	all := map[string]fleet.TaskResult{}
	for _, line := range lines(read(t, out, "results.jsonl")) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.NotContains(t, all, r.ID)
		all[r.ID] = r
	}
	return all
}

// held is an agent whose task "do 0" never ends by itself.
func held() []scripted.Turn {
	return []scripted.Turn{when("do 0", scripted.Delay(time.Hour)), when("do", scripted.Text("done"))}
}

func TestCancelATask(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	all := tasks(3)
	all[2].After = []string{"t1"}
	h, events := begun(t, fleet.Job{Tasks: all, Options: backend(held()...), Out: out, Concurrency: 1})
	await(t, events, fleet.EventStarted, "t0")
	require.ErrorIs(t, h.CancelTask(t.Context(), "none"), fleet.ErrNoTask)
	require.NoError(t, h.CancelTask(t.Context(), "t1"), "it is in the queue")
	assert.Equal(t, fleet.Canceled, await(t, events, fleet.EventFinished, "t1").Status)
	require.NoError(t, h.CancelTask(t.Context(), "t1"), "again")
	require.ErrorIs(t, h.CancelTask(t.Context(), "t2"), fleet.ErrTaskOver, "it was skipped")
	require.NoError(t, h.CancelTask(t.Context(), "t0"), "it runs")
	results, err := rest(t, h)
	require.NoError(t, err, "each task has its result")
	<-h.Done()
	require.ErrorIs(t, h.CancelTask(t.Context(), "t0"), fleet.ErrJobOver)
	require.ErrorIs(t, h.Requeue(t.Context(), "t0"), fleet.ErrJobOver)
	for id, want := range map[string]fleet.Status{"t0": fleet.Canceled, "t1": fleet.Canceled, "t2": fleet.Skipped} {
		assert.Equal(t, want, results[id].Status, id)
		assert.Equal(t, want, projected(t, out)[id].Status, id)
		assert.Equal(t, fleet.Family("not_run"), results[id].Family)
	}
	assert.Equal(t, "it was canceled by hand", results["t0"].Error)
	require.Len(t, results["t0"].Attempts, 1)
	assert.Equal(t, fleet.Interrupted, results["t0"].Attempts[0].Status)
}

// A task that is requeued has one result at a time, and takes those with it that were
// skipped because of it.
func TestRequeue(t *testing.T) {
	t.Parallel()
	out, dir := t.TempDir(), t.TempDir()
	good := filepath.Join(dir, "good")
	all := tasks(4)
	all[1].Verify = &fleet.Verify{Command: "test -e " + good}
	all[2].After = []string{"t1"}
	all[2].Prompt = "do 2 after {{(index .Results \"t1\").Status}}"
	all[3].After = []string{"t2"}
	job := fleet.Job{Tasks: all, Options: backend(held()...), Out: out, Concurrency: 2}
	h, events := begun(t, job)
	assert.Equal(t, fleet.Rejected, await(t, events, fleet.EventFinished, "t1").Status)
	assert.Equal(t, fleet.Skipped, await(t, events, fleet.EventFinished, "t3").Status)
	var first fleet.TaskResult
	for r, err := range h.Results(t.Context()) { // one of three was read
		require.NoError(t, err)
		first = r
		break
	}
	assert.Equal(t, "t1", first.ID)
	require.NoError(t, os.WriteFile(good, nil, 0o600))
	h.Pause() // so that nothing of it is over again
	require.NoError(t, h.Requeue(t.Context(), "t1"))
	require.NoError(t, h.Requeue(t.Context(), "t3"), "it is in the queue")
	s := h.Snapshot()
	assert.Empty(t, s.ByStatus, "their results are void")
	for _, task := range s.Tasks[1:] {
		assert.Equal(t, fleet.TaskQueued, task.State, task.ID)
	}
	h.Unpause()
	assert.Equal(t, fleet.Accepted, await(t, events, fleet.EventFinished, "t3").Status)
	require.NoError(t, h.CancelTask(t.Context(), "t0"))
	results, err := rest(t, h)
	require.NoError(t, err)
	<-h.Done()
	for id, want := range map[string]int{"t0": 0, "t1": 1, "t2": 1, "t3": 1} {
		assert.Equal(t, want, results[id].Requeued, id)
		assert.Equal(t, want, projected(t, out)[id].Requeued, id)
		assert.Equal(t, id != "t0", results[id].Status == fleet.Accepted, id)
	}
	assert.Contains(t, results["t2"].Text+read(t, out, results["t2"].Transcript), "done")
	require.Len(t, results["t1"].Attempts, 2)
	assert.Equal(t, fleet.Mode("fresh"), results["t1"].Attempts[1].Mode)
	assert.NotEqual(t, results["t1"].Attempts[0].Session, results["t1"].Attempts[1].Session)
	assert.Equal(t, "transcripts/t1.2.jsonl", results["t1"].Transcript, "files are not written over")
	job.Resume = true
	again, err := collect(t, job)
	require.NoError(t, err)
	require.Len(t, again, 4)
	assert.Equal(t, 1, again["t1"].Requeued)
	assert.True(t, again["t1"].Earlier && again["t1"].Status == fleet.Accepted)
}

// A task that was skipped, and is requeued by itself, is skipped again.
func TestRequeueOfASkippedTask(t *testing.T) {
	t.Parallel()
	all := tasks(3)
	all[1].Verify = &fleet.Verify{Command: "false"}
	all[2].After = []string{"t1"}
	out := t.TempDir()
	h, events := begun(t, fleet.Job{Tasks: all, Options: backend(held()...), Out: out, Concurrency: 2})
	await(t, events, fleet.EventFinished, "t2")
	require.NoError(t, h.Requeue(t.Context(), "t2"))
	assert.Equal(t, fleet.Skipped, await(t, events, fleet.EventFinished, "t2").Status)
	require.NoError(t, h.CancelTask(t.Context(), "t0"))
	results, err := rest(t, h)
	require.NoError(t, err)
	require.Len(t, results, 3)
	assert.Equal(t, []any{fleet.Skipped, 1}, []any{results["t2"].Status, results["t2"].Requeued})
	<-h.Done()
	assert.Equal(t, 1, projected(t, out)["t2"].Requeued)
}

// What runs is interrupted, and begins anew.
func TestRequeueWhatRuns(t *testing.T) {
	t.Parallel()
	all := tasks(1)
	h, events := begun(t, fleet.Job{Tasks: all, Options: backend(held()...), Attempts: 1})
	await(t, events, fleet.EventStarted, "t0")
	require.NoError(t, h.Requeue(t.Context(), "t0"))
	e := await(t, events, fleet.EventStarted, "t0")
	assert.Equal(t, []any{2, "fresh"}, []any{e.Attempt, e.Detail})
	require.NoError(t, h.CancelTask(t.Context(), "t0"))
	results, err := rest(t, h)
	require.NoError(t, err)
	assert.Equal(t, fleet.Canceled, results["t0"].Status)
	assert.Zero(t, results["t0"].Requeued, "it had no result")
	assert.Len(t, results["t0"].Attempts, 2)
}

// A job takes a requeue that comes together with the end of its last tasks, and does not end before it.
func TestRequeueAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		h, err := fleet.Start(t.Context(), fast(fleet.Job{
			Tasks: tasks(3), Out: t.TempDir(), Concurrency: 3,
			Options: private(t, backend(turn(scripted.Delay(time.Minute), scripted.Text("done")))),
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventFinished {
					<-held
				}
			},
		}))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute) // of the bubble: one task has ended, and the ends of the others wait
		again := make(chan error)
		go func() { again <- h.Requeue(t.Context(), "t1") }()
		synctest.Wait()
		close(held)
		requeued := <-again
		results, err := rest(t, h)
		require.NoError(t, err)
		require.Len(t, results, 3)
		require.NoError(t, requeued)
		assert.Equal(t, []any{fleet.Accepted, 1}, []any{results["t1"].Status, results["t1"].Requeued})
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	all := tasks(3)
	h, events := begun(t, fleet.Job{Tasks: all, Options: backend(held()...), Concurrency: 1})
	await(t, events, fleet.EventStarted, "t0")
	h.Pause()
	assert.True(t, h.Progress().Paused, "at once")
	await(t, events, fleet.EventPaused, "")
	require.NoError(t, h.CancelTask(t.Context(), "t0"))
	await(t, events, fleet.EventFinished, "t0")
	s := h.Snapshot()
	assert.True(t, s.Paused && s.Live && h.Progress().Paused)
	assert.Equal(t, []fleet.TaskState{fleet.TaskOver, fleet.TaskQueued, fleet.TaskQueued}, []fleet.TaskState{s.Tasks[0].State, s.Tasks[1].State, s.Tasks[2].State})
	assert.Equal(t, 1, s.Limit)
	h.Unpause()
	results, err := rest(t, h)
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t2"].Status)
}

// A job that does not run is amended in its journal, and a resume obeys.
func TestAmend(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	all := tasks(5)
	all[1].Verify = &fleet.Verify{Command: "test -e " + filepath.Join(out, "good")}
	all[2].After = []string{"t1"}
	job := fleet.Job{Tasks: all, Options: backend(held()...), Out: out, Concurrency: 2}
	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{}), journal.ErrMissing)
	require.NoFileExists(t, filepath.Join(out, journal.LockName))
	h, events := begun(t, job)
	await(t, events, fleet.EventFinished, "t4")
	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{Cancel: []string{"t0"}}), journal.ErrLocked)
	live, err := fleet.ReadJob(out)
	require.NoError(t, err, "while it runs")
	assert.Equal(t, os.Getpid(), live.PID)
	h.Cancel()
	_, err = rest(t, h)
	require.ErrorAs(t, err, new(*fleet.StoppedError))
	<-h.Done()

	s, err := fleet.ReadJob(out)
	require.NoError(t, err)
	require.Len(t, s.Tasks, 5)
	assert.False(t, s.Live)
	assert.Equal(t, map[fleet.Status]int{fleet.Rejected: 1, fleet.Skipped: 1, fleet.Accepted: 2}, s.ByStatus)
	assert.Equal(t, fleet.TaskQueued, s.Tasks[0].State)
	assert.Equal(t, fleet.Mode("resume"), s.Tasks[0].Next, "it would be resumed")

	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{Cancel: []string{"t0", "none"}}), fleet.ErrNoTask)
	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{Cancel: []string{"t4"}}), fleet.ErrTaskOver)
	require.NoError(t, os.WriteFile(filepath.Join(out, "good"), nil, 0o600))
	require.NoError(t, fleet.Amend(t.Context(), out, fleet.Amendment{Cancel: []string{"t0"}, Requeue: []string{"t1"}}))
	s, err = fleet.ReadJob(out)
	require.NoError(t, err)
	assert.Equal(t, fleet.Mode("fresh"), s.Tasks[1].Next)

	job.Resume = true
	results, err := collect(t, job)
	require.NoError(t, err)
	for id, want := range map[string]fleet.Status{"t0": fleet.Canceled, "t1": fleet.Accepted, "t2": fleet.Accepted, "t4": fleet.Accepted} {
		assert.Equal(t, want, results[id].Status, "%s: %s", id, results[id].Error)
	}
	assert.Equal(t, 1, results["t2"].Requeued, "it was skipped because of t1")
	assert.True(t, results["t4"].Earlier)
	assert.Len(t, projected(t, out), 5)
}

// The decision is durable when the call returns: a host that dies before the attempt has
// ended does not forget it.
func TestADecisionOutlivesTheHost(t *testing.T) {
	t.Parallel()
	out, copied := t.TempDir(), t.TempDir()
	all := tasks(2)
	all[1].Prompt = "do 0 again"
	job := fleet.Job{Tasks: all, Options: backend(held()...), Out: out, Concurrency: 2}
	h, events := begun(t, job)
	await(t, events, fleet.EventStarted, "t1")
	require.Eventually(t, func() bool {
		s, err := fleet.ReadJob(out)
		return err == nil && s.Tasks[0].Attempts == 1 && s.Tasks[1].Attempts == 1
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, h.CancelTask(t.Context(), "t0"))
	require.NoError(t, h.Requeue(t.Context(), "t1"))
	text, err := os.ReadFile(filepath.Join(out, journal.Name)) // what a host that is killed now leaves
	require.NoError(t, err)
	h.Kill()
	_, _ = rest(t, h)
	<-h.Done()
	require.NoError(t, os.WriteFile(filepath.Join(copied, journal.Name), text, 0o600))
	job.Resume, job.Out, job.Options = true, copied, backend(turn(scripted.Text("done")))
	var modes []string
	job.OnEvent = func(e fleet.Event) {
		if e.Kind == fleet.EventStarted {
			modes = append(modes, e.Task+" "+e.Detail)
		}
	}
	results, err := collect(t, job)
	require.NoError(t, err)
	assert.Equal(t, fleet.Canceled, results["t0"].Status)
	assert.Equal(t, fleet.Accepted, results["t1"].Status, results["t1"].Error)
	assert.Equal(t, []string{"t1 fresh"}, modes)
	require.NoError(t, context.Cause(t.Context()))
}
