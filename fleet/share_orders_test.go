package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/session"
)

// peers are programs that share a job, in a bubble.
type peers struct {
	t       *testing.T
	q       queue.Queue
	handles map[string]*fleet.Handle
	all     sync.WaitGroup

	mu      sync.Mutex
	starts  map[string][]string                    // of each task, by whom
	results map[string]map[string]fleet.TaskResult // by program, the last of each task
	errs    map[string]error
}

func newPeers(t *testing.T, q queue.Queue) *peers {
	t.Helper()
	return &peers{t: t, q: q, handles: map[string]*fleet.Handle{}, starts: map[string][]string{}, results: map[string]map[string]fleet.TaskResult{}, errs: map[string]error{}}
}

// join starts a program. Its agents take a minute for each turn.
func (p *peers) join(name string, share fleet.Share, tasks []fleet.Task, change ...func(*fleet.Job)) {
	p.t.Helper()
	job := fast(fleet.Job{
		Tasks: tasks, Out: p.t.TempDir(), Queue: p.q, Worker: name, Share: share, Concurrency: 1,
		Options: private(p.t, backend(turn(scripted.Delay(time.Minute), scripted.Text("done by "+name)))),
		OnEvent: func(e fleet.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.Kind == fleet.EventStarted {
				p.starts[e.Task] = append(p.starts[e.Task], name)
			}
		},
	})
	for _, c := range change {
		c(&job)
	}
	h, err := fleet.Start(p.t.Context(), job)
	require.NoError(p.t, err)
	p.mu.Lock()
	p.handles[name], p.results[name] = h, map[string]fleet.TaskResult{}
	p.mu.Unlock()
	p.all.Go(func() {
		for r, err := range h.Results(p.t.Context()) {
			p.mu.Lock()
			if err != nil {
				p.errs[name] = err
			} else {
				p.results[name][r.ID] = r
			}
			p.mu.Unlock()
		}
	})
	synctest.Wait()
}

func (p *peers) order(o fleet.Order) error { return fleet.Decide(p.t.Context(), p.q, o) }

func (p *peers) runs(task string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.starts[task])
}

// agree waits for the end, and checks that all programs have the same results.
func (p *peers) agree() map[string]fleet.TaskResult {
	p.t.Helper()
	p.all.Wait()
	require.Empty(p.t, p.errs)
	names := slices.Sorted(maps.Keys(p.results))
	first := p.results[names[0]]
	for _, name := range names[1:] {
		require.Len(p.t, p.results[name], len(first), name)
		for id, r := range p.results[name] {
			if r.Status == fleet.Skipped && first[id].Status == fleet.Skipped {
				continue // each program finds that out itself, and the queue keeps the first
			}
			for _, of := range []struct{ want, got any }{
				{first[id].Status, r.Status},
				{first[id].Fence, r.Fence},
				{first[id].Worker, r.Worker},
				{first[id].Text, r.Text},
				{first[id].Requeued, r.Requeued},
			} {
				assert.Equal(p.t, of.want, of.got, "%s of %s and %s", id, name, names[0])
			}
		}
	}
	return first
}

func memory() *queue.Memory { return queue.NewMemory(queue.MemoryConfig{TTL: time.Minute}) }

// An order to cancel a task ends it wherever it is: where it runs, in the queue, and before its
// program has come.
func TestOrdersCancelTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, all := memory(), tasks(4)
		all[3].After = []string{"t2"}
		p := newPeers(t, q)
		p.join("submitter", fleet.ShareSubmit, all)
		require.NoError(t, p.order(fleet.Order{Op: "cancel", Task: "t2", By: "me"}), "no program that works has come")
		p.join("one", fleet.ShareAll, all)
		p.join("two", fleet.ShareAll, all)
		running := p.handles["one"].Progress().Running
		require.Len(t, running, 1)
		require.NoError(t, p.handles["two"].CancelTask(t.Context(), running[0].ID), "another program has it")
		time.Sleep(10 * time.Second)
		require.NoError(t, p.order(fleet.Order{Op: "cancel", Task: running[0].ID}), "it is canceled already")
		got := p.agree()
		assert.Equal(t, fleet.Canceled, got["t2"].Status)
		assert.Equal(t, fleet.Skipped, got["t3"].Status)
		assert.Equal(t, fleet.Canceled, got[running[0].ID].Status)
		assert.Equal(t, "one", got[running[0].ID].Worker, "the program that had it")
		assert.Zero(t, p.runs("t2")+p.runs("t3"))
		var other string
		for _, id := range []string{"t0", "t1"} {
			if id != running[0].ID {
				other = id
			}
		}
		assert.Equal(t, fleet.Accepted, got[other].Status)
	})
}

// A canceled task whose program is gone is canceled once its lease has ended.
func TestAnOrderAboutATaskOfADeadProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := memory()
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: "t0", Hash: hashes(t, tasks(1))["t0"]}))
		_, err := q.Lease(t.Context(), "t0", "dead")
		require.NoError(t, err)
		p, began := newPeers(t, q), time.Now()
		p.join("one", fleet.ShareAll, tasks(1))
		p.join("two", fleet.ShareSubmit, tasks(1))
		require.NoError(t, p.handles["one"].CancelTask(t.Context(), "t0"))
		got := p.agree()
		assert.Equal(t, fleet.Canceled, got["t0"].Status)
		assert.Zero(t, p.runs("t0"))
		assert.Less(t, time.Since(began), 65*time.Second)
	})
}

// A task that is requeued begins anew in one of the programs, and all of them have its new result;
// so have tasks that were skipped because of it.
func TestOrdersRequeueTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, all := memory(), tasks(3)
		all[1].After = []string{"t0"}
		all[0].Priority = 1
		p := newPeers(t, q)
		p.join("one", fleet.ShareAll, all)
		p.join("two", fleet.ShareAll, all)
		p.join("worker", fleet.ShareWork, all, func(j *fleet.Job) { j.Concurrency = 1 })
		require.NoError(t, p.order(fleet.Order{Op: "cancel", Task: "t0"}))
		time.Sleep(time.Second)
		require.ErrorIs(t, p.order(fleet.Order{Op: "cancel", Task: "t1"}), fleet.ErrTaskOver, "it was skipped")
		both := make(chan error, 2)
		for range 2 { // two persons at the same time
			go func() { both <- p.order(fleet.Order{Op: "requeue", Task: "t0"}) }()
		}
		require.NoError(t, errors.Join(<-both, <-both))
		p.all.Wait()
		require.Empty(t, p.errs)
		delete(p.results, "worker")
		p.join("late", fleet.ShareAll, all)
		got := p.agree()
		for _, id := range []string{"t0", "t1", "t2"} {
			assert.Equal(t, fleet.Accepted, got[id].Status, id)
		}
		assert.NotZero(t, got["t0"].Requeued)
		assert.Equal(t, 1, got["t1"].Requeued)
		assert.Zero(t, got["t2"].Requeued)
	})
}

// A task that runs is requeued, too: its program begins anew, or another one does.
func TestAnOrderRequeuesATaskThatRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeers(t, memory())
		p.join("one", fleet.ShareAll, tasks(1))
		p.join("two", fleet.ShareAll, tasks(1))
		time.Sleep(30 * time.Second)
		require.NoError(t, p.handles["one"].Requeue(t.Context(), "t0"))
		got := p.agree()
		assert.Equal(t, fleet.Accepted, got["t0"].Status)
		assert.Equal(t, 1, got["t0"].Requeued)
		assert.Equal(t, 2, p.runs("t0"))
	})
}

// A pause holds for all programs, also for those that come later, until an order resumes the job.
func TestOrdersPauseAndRetune(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, all := memory(), tasks(6)
		p := newPeers(t, q)
		p.join("submitter", fleet.ShareSubmit, all)
		for _, op := range []string{"pause", "resume", "pause"} {
			require.NoError(t, p.order(fleet.Order{Op: op}))
		}
		p.join("one", fleet.ShareAll, all)
		require.NoError(t, p.order(fleet.Order{Op: "retune", N: 3}))
		time.Sleep(time.Hour)
		for i := range all {
			require.Zero(t, p.runs(all[i].ID), "the job is paused")
		}
		assert.True(t, p.handles["one"].Snapshot().Paused)
		p.handles["one"].Unpause() // it is not this program's pause
		time.Sleep(time.Hour)
		require.Empty(t, p.handles["one"].Progress().Running)
		require.NoError(t, p.order(fleet.Order{Op: "resume"}))
		synctest.Wait()
		assert.Len(t, p.handles["one"].Progress().Running, 3)
		p.agree()
	})
}

// Orders that make no sense, or come too late, have errors.
func TestOrdersThatAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeers(t, memory())
		p.join("one", fleet.ShareAll, tasks(2))
		time.Sleep(90 * time.Second)
		p.mu.Lock()
		ended := slices.Collect(maps.Keys(p.results["one"]))
		p.mu.Unlock()
		require.Len(t, ended, 1)
		over := ended[0]
		require.ErrorIs(t, p.order(fleet.Order{Op: "cancel", Task: over}), fleet.ErrTaskOver)
		require.ErrorIs(t, p.handles["one"].CancelTask(t.Context(), over), fleet.ErrTaskOver)
		for _, op := range []string{"cancel", "requeue"} {
			require.ErrorIs(t, p.order(fleet.Order{Op: op, Task: "other"}), fleet.ErrNoTask)
		}
		require.ErrorIs(t, p.handles["one"].Requeue(t.Context(), "other"), fleet.ErrNoTask)
		require.ErrorIs(t, p.order(fleet.Order{Op: "allow", Approval: "x"}), fleet.ErrNoApproval)
		require.ErrorIs(t, p.handles["one"].Decide(t.Context(), "x", true, ""), fleet.ErrNoApproval)
		for _, o := range []fleet.Order{{}, {Op: "drain"}, {Op: "retune"}, {Op: "retune", N: -1}} {
			require.ErrorAs(t, p.order(o), new(*session.ConfigError), "%+v", o)
		}
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no time"))
		require.ErrorContains(t, fleet.Decide(gone, p.q, fleet.Order{Op: "pause"}), "no time")
		p.agree()
		require.ErrorIs(t, p.handles["one"].CancelTask(t.Context(), over), fleet.ErrJobOver)
	})
}

// A decision of a later version is left out with a warning.
func TestADecisionOfALaterVersion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeers(t, memory())
		require.NoError(t, p.q.Decide(t.Context(), queue.Decision{ID: "x", Op: "move", Task: "t0", By: "v9"}))
		warned := 0
		p.join("one", fleet.ShareAll, tasks(1), func(j *fleet.Job) {
			j.OnEvent = func(e fleet.Event) {
				if e.Kind == fleet.EventWarning {
					warned++
					assert.Contains(t, e.Detail, `"move"`)
				}
			}
		})
		assert.Equal(t, fleet.Accepted, p.agree()["t0"].Status)
		assert.Equal(t, 1, warned)
	})
}

// An order to cancel the job cancels what has no result, also in a program that comes later; a task that was
// requeued after it runs.
func TestAnOrderCancelsTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := tasks(5)
		p := newPeers(t, memory())
		p.join("submitter", fleet.ShareSubmit, all)
		p.join("one", fleet.ShareAll, all, func(j *fleet.Job) {
			j.Options = private(t, backend(turn(scripted.Delay(10*time.Minute), scripted.Text("one"))))
		})
		synctest.Wait()
		running := p.handles["one"].Progress().Running
		require.Len(t, running, 1)
		require.NoError(t, p.order(fleet.Order{Op: "requeue", Task: "t4"}), "before")
		require.NoError(t, p.order(fleet.Order{Op: "cancel", By: "mira"}))
		require.NoError(t, p.order(fleet.Order{Op: "cancel", By: "ben"}), "twice")
		require.NoError(t, p.order(fleet.Order{Op: "requeue", Task: "t3"}), "after")
		p.join("late", fleet.ShareAll, all)
		got := p.agree()
		require.Len(t, got, len(all))
		for id, r := range got {
			want := fleet.Canceled
			if id == "t3" {
				want = fleet.Accepted
			}
			assert.Equal(t, want, r.Status, id)
		}
		assert.Equal(t, 1, p.runs(running[0].ID))
	})
}

// TestAnOrderAllowsAnotherInput gives the agent the input of a person.
func TestAnOrderAllowsAnotherInput(t *testing.T) {
	t.Parallel()
	q := memory()
	says := when("do", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "deploy"}, Result: "deployed ${input}"}, scripted.Text("end"))
	out := t.TempDir()
	worker, _ := begun(t, fleet.Job{Tasks: tasks(1), Options: backend(says), Out: out, Queue: q, Worker: "worker", Approvals: &fleet.Approvals{Hold: time.Hour}})
	a := asks(t, worker)
	for _, o := range []fleet.Order{
		{Op: "allow", Approval: a.ID, Input: json.RawMessage(`[]`)}, {Op: "deny", Approval: a.ID, Input: json.RawMessage(`{}`)}, {Op: "pause", Input: json.RawMessage(`{}`)},
	} {
		require.ErrorAs(t, fleet.Decide(t.Context(), q, o), new(*session.ConfigError), "%+v", o)
	}
	allow := fleet.Order{Op: "allow", Approval: a.ID, Input: json.RawMessage(`{"command":"deploy --dry"}`), By: "mira"}
	var err error
	require.Eventually(t, func() bool { // the queue learns of the call a little later
		err = fleet.Decide(t.Context(), q, allow)
		return !errors.Is(err, fleet.ErrNoApproval)
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, err)
	results, err := rest(t, worker)
	require.NoError(t, err)
	require.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
	assert.Contains(t, read(t, out, results["t0"].Transcript), `deployed {\"command\":\"deploy --dry\"`)
}

// TestALaterRequeueOutlivesTheCancel also in a program to which both orders come at once, when it has
// nothing else to do: it does not end between them.
func TestALaterRequeueOutlivesTheCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := tasks(3)
		p := newPeers(t, memory())
		ordered := make(chan struct{})
		p.join("submitter", fleet.ShareSubmit, all, func(j *fleet.Job) {
			j.OnEvent = func(e fleet.Event) {
				if e.Kind == fleet.EventFinished {
					<-ordered
				}
			}
		})
		synctest.Wait()
		require.NoError(t, p.order(fleet.Order{Op: "cancel"}))
		synctest.Wait()
		require.NoError(t, p.order(fleet.Order{Op: "requeue", Task: "t1"}))
		synctest.Wait()
		close(ordered)
		synctest.Wait()
		p.join("late", fleet.ShareAll, all)
		got := p.agree()
		assert.Equal(t, []fleet.Status{fleet.Canceled, fleet.Accepted, fleet.Canceled}, []fleet.Status{got["t0"].Status, got["t1"].Status, got["t2"].Status})
	})
}
