package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// leave is what a program does that is gone: it leases a task, and leaves a note.
func leave(t *testing.T, q queue.Queue, task string, starts int, note fleet.TaskNote) queue.Lease {
	t.Helper()
	l, err := q.Lease(t.Context(), task, note.Worker)
	require.NoError(t, err)
	text, err := json.Marshal(note)
	require.NoError(t, err)
	l.Starts = starts
	require.NoError(t, q.Note(t.Context(), l, text))
	return l
}

// Starts count over all programs, and so do the programs that a task takes with it.
func TestStartsOfAllPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		starts int
		left   fleet.TaskNote
		ends   bool // by the end of the lease
		status fleet.Status
		why    string
	}{
		"too many":                 {3, fleet.TaskNote{}, false, fleet.Quarantined, "it was started 3 times without an end"},
		"one more":                 {2, fleet.TaskNote{}, false, fleet.Accepted, ""},
		"most of them are free":    {9, fleet.TaskNote{Free: 7}, false, fleet.Accepted, ""},
		"the third program died":   {3, fleet.TaskNote{Running: true, Alone: true, Deaths: 2, Free: 2}, true, fleet.Quarantined, "the host died 3 times in a row while it ran, the last time while it ran alone"},
		"it was not alone":         {3, fleet.TaskNote{Running: true, Deaths: 2, Free: 2}, true, fleet.Accepted, ""},
		"two of them":              {2, fleet.TaskNote{Running: true, Alone: true, Deaths: 1, Free: 1}, true, fleet.Accepted, ""},
		"it has ended since":       {3, fleet.TaskNote{Alone: true, Free: 3}, false, fleet.Accepted, ""},
		"a note of another format": {0, fleet.TaskNote{Worker: "\x00"}, false, fleet.Accepted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := memory()
				require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: "t0", Hash: hashes(t, tasks(1))["t0"]}))
				c.left.Worker += "gone"
				l := leave(t, q, "t0", c.starts, c.left)
				if !c.ends {
					require.NoError(t, q.Release(t.Context(), l))
				}
				p := newPeers(t, q)
				p.join("one", fleet.ShareAll, tasks(1), func(j *fleet.Job) { j.MaxStarts = 3 })
				p.join("two", fleet.ShareSubmit, tasks(1))
				got := p.agree()["t0"]
				assert.Equal(t, c.status, got.Status, got.Error)
				assert.Equal(t, c.why, got.Error)
				assert.Equal(t, c.status == fleet.Accepted, p.runs("t0") == 1)
			})
		})
	}
}

// A task that kills its programs is started MaxStarts times in all, and not by each of them.
func TestATaskThatFailsInAllPrograms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory()
		p := newPeers(t, q)
		for i := range 3 { // each gives up after one start, and another one takes the task
			job := fast(fleet.Job{
				Tasks: tasks(1), Queue: q, Worker: fmt.Sprint("w", i), MaxStarts: 3, Concurrency: 1, Options: private(t, backend(turn(scripted.Delay(time.Hour)))),
				OnEvent: func(e fleet.Event) {
					if e.Kind == fleet.EventStarted {
						p.starts[e.Task] = append(p.starts[e.Task], "")
					}
				},
			})
			h, err := fleet.Start(t.Context(), job)
			require.NoError(t, err)
			time.Sleep(time.Minute)
			h.Cancel()
			for _, err := range h.Results(t.Context()) {
				require.ErrorAs(t, err, new(*fleet.StoppedError))
			}
		}
		p.join("last", fleet.ShareAll, tasks(1), func(j *fleet.Job) { j.MaxStarts = 3 })
		assert.Equal(t, fleet.Quarantined, p.agree()["t0"].Status)
		assert.Equal(t, 3, p.runs("t0"))
	})
}

// The usage of tasks that other programs run counts for the budget, and once.
func TestUsageOfOtherPrograms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory()
		all := tasks(3)
		for id, hash := range hashes(t, all) {
			require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: id, Hash: hash}))
		}
		l := leave(t, q, "t2", 1, fleet.TaskNote{Worker: "other", Usage: fleet.Usage{USD: 2}, Running: true})
		done := &scripted.Result{Subtype: "success", Cost: 2}
		job := fast(fleet.Job{Tasks: all, Queue: q, Worker: "one", Concurrency: 1, Budget: &fleet.Budget{USD: 5}, Options: private(t, backend(turn(scripted.Text("x"), done)))})
		h, err := fleet.Start(t.Context(), job)
		require.NoError(t, err)
		synctest.Wait()
		// Two tasks and the note are 6.
		var stopped *fleet.StoppedError
		n := 0
		for _, err := range h.Results(t.Context()) {
			if err != nil {
				require.ErrorAs(t, err, &stopped)
				continue
			}
			n++
		}
		require.NotNil(t, stopped)
		assert.Equal(t, fleet.StopBudget, stopped.Reason)
		assert.Equal(t, 2, n)
		assert.InDelta(t, 6, h.Progress().Usage.USD, 0.01)

		job.Budget, job.Worker = nil, "two"
		h, err = fleet.Start(t.Context(), job)
		require.NoError(t, err)
		synctest.Wait()
		assert.InDelta(t, 6, h.Progress().Usage.USD, 0.01)
		require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"id":"t2","status":"accepted","usage":{"usd":3,"turns":1,"wall":"0s"}}`)))
		for _, err := range h.Results(t.Context()) {
			require.NoError(t, err)
		}
		assert.InDelta(t, 7, h.Progress().Usage.USD, 0.01, "the result has what the note had")
	})
}

// The budget of a task counts what other programs have used for it.
func TestUsageOfATaskThatMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory()
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: "t0", Hash: hashes(t, tasks(1))["t0"]}))
		require.NoError(t, q.Release(t.Context(), leave(t, q, "t0", 1, fleet.TaskNote{Worker: "other", Usage: fleet.Usage{USD: 2, Turns: 3}})))
		p := newPeers(t, q)
		p.join("one", fleet.ShareAll, tasks(1), func(j *fleet.Job) { j.TaskBudget = &fleet.Budget{USD: 2} })
		got := p.agree()["t0"]
		assert.Equal(t, fleet.OverBudget, got.Status, got.Error)
		assert.InDelta(t, 2, got.Usage.USD, 1e-9)
		assert.InDelta(t, 2, p.handles["one"].Progress().Usage.USD, 0.01)
	})
}

// Each start and each turn is noted, and the end of an attempt before the lease is given back.
func TestNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, all := memory(), tasks(1)
		all[0].Turns = []string{"more", "and more"}
		var notes []fleet.TaskNote
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			for c, err := range q.Watch(ctx) {
				if !assert.NoError(t, err) {
					return
				}
				var n fleet.TaskNote
				if len(c.Note) > 0 && json.Unmarshal(c.Note, &n) == nil && (len(notes) == 0 || notes[len(notes)-1].Turns != n.Turns || notes[len(notes)-1].Running != n.Running) {
					notes = append(notes, n)
				}
			}
		}()
		job := fast(fleet.Job{Tasks: all, Queue: q, Worker: "one", Options: private(t, backend(
			when("and more", scripted.Delay(time.Hour)),
			turn(scripted.Delay(time.Minute), scripted.Text("x"), &scripted.Result{Subtype: "success", Cost: 1}),
		))})
		h, err := fleet.Start(t.Context(), job)
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		h.Cancel()
		<-h.Done()
		synctest.Wait()
		require.Len(t, notes, 4)
		for i, want := range []fleet.TaskNote{{Running: true, Alone: true}, {Running: true, Alone: true, Turns: 1}, {Running: true, Alone: true, Turns: 2}, {Turns: 2}} {
			got := notes[i]
			assert.Equal(t, "one", got.Worker)
			assert.NotEmpty(t, got.Host)
			assert.Equal(t, "scripted", got.Agent)
			assert.NotEmpty(t, got.Session)
			assert.Equal(t, []any{want.Running, want.Alone, want.Turns}, []any{got.Running, got.Alone, got.Turns}, "%d", i)
			assert.InDelta(t, min(want.Turns, 1), got.Usage.USD, 0.01, "the agent reports what its session has cost")
		}
		l, err := q.Lease(t.Context(), "t0", "two")
		require.NoError(t, err)
		assert.Equal(t, 1, l.Starts)
	})
}

// counting counts the calls of Extend.
type counting struct {
	queue.Queue
	mu    sync.Mutex
	calls []int // leases of each
}

func (c *counting) Extend(ctx context.Context, all ...queue.Lease) []error {
	c.mu.Lock()
	c.calls = append(c.calls, len(all))
	c.mu.Unlock()
	return c.Queue.Extend(ctx, all...)
}

// The leases of a program are extended together, also those that began at other moments.
func TestLeasesAreExtendedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &counting{Queue: memory()}
		all := tasks(8)
		for i := range all {
			all[i].NotBefore = time.Now().Add(time.Duration(i) * time.Second)
		}
		p := newPeers(t, q)
		p.join("one", fleet.ShareAll, all, func(j *fleet.Job) {
			j.Concurrency, j.Options = 8, private(t, backend(turn(scripted.Delay(10*time.Minute), scripted.Text("x"))))
		})
		p.agree()
		assert.InDelta(t, 30, len(q.calls), 2, "three times a minute, in ten minutes")
		assert.Equal(t, 8, q.calls[1])
	})
}

// A call that waits for a person in one program is answered in another one, or by none of them.
func TestApprovalsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]time.Duration{"at once": time.Hour, "later": -1} {
		for _, byOrder := range []bool{false, true} {
			t.Run(fmt.Sprint(name, byOrder), func(t *testing.T) {
				t.Parallel()
				q := memory()
				submitter, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(), Queue: q, Worker: "submitter", Share: fleet.ShareSubmit})
				worker, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(deploying()...), Out: t.TempDir(), Queue: q, Worker: "worker", Approvals: &fleet.Approvals{Hold: hold}})
				a := asks(t, submitter)
				assert.Equal(t, []any{"t0", "Bash", "Now I deploy."}, []any{a.Task, a.Tool, a.Said})
				if byOrder {
					require.NoError(t, fleet.Decide(t.Context(), q, fleet.Order{Op: "allow", Approval: a.ID}))
					require.ErrorIs(t, fleet.Decide(t.Context(), q, fleet.Order{Op: "deny", Approval: a.ID}), fleet.ErrNoApproval)
				} else {
					require.NoError(t, submitter.Decide(t.Context(), a.ID, true, ""))
				}
				require.ErrorIs(t, submitter.Decide(t.Context(), a.ID, false, ""), fleet.ErrNoApproval, "an answer works once")
				results, err := rest(t, worker)
				require.NoError(t, err)
				assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
				assert.Equal(t, "end", results["t0"].Text)
				all, err := rest(t, submitter)
				require.NoError(t, err)
				assert.Equal(t, "end", all["t0"].Text)
			})
		}
	}
}
