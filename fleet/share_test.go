package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// tampered is a queue whose answers a test may change.
type tampered struct {
	queue.Queue
	extend func(ctx context.Context, l queue.Lease) error
	finish func(ctx context.Context, l queue.Lease, result json.RawMessage) error
	lease  func(ctx context.Context, task, worker string) (queue.Lease, error)
	watch  func(ctx context.Context) iter.Seq2[queue.Change, error]
}

func (q *tampered) Extend(ctx context.Context, all ...queue.Lease) []error {
	if q.extend == nil {
		return q.Queue.Extend(ctx, all...)
	}
	var errs []error
	for _, l := range all {
		errs = append(errs, q.extend(ctx, l))
	}
	return errs
}

func (q *tampered) Finish(ctx context.Context, l queue.Lease, result json.RawMessage) error {
	if q.finish != nil {
		return q.finish(ctx, l, result)
	}
	return q.Queue.Finish(ctx, l, result)
}

func (q *tampered) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	if q.lease != nil {
		return q.lease(ctx, task, worker)
	}
	return q.Queue.Lease(ctx, task, worker)
}

func (q *tampered) Watch(ctx context.Context) iter.Seq2[queue.Change, error] {
	if q.watch != nil {
		return q.watch(ctx)
	}
	return q.Queue.Watch(ctx)
}

// program is what one of several programs has seen of a job.
type program struct {
	results map[string]fleet.TaskResult
	err     error
}

// together runs the same job in several programs at the same time.
func together(t *testing.T, jobs ...fleet.Job) []program {
	t.Helper()
	all := make([]program, len(jobs))
	var wait sync.WaitGroup
	for i := range jobs {
		p := &all[i]
		p.results = map[string]fleet.TaskResult{}
		wait.Go(func() {
			for r, err := range fleet.Run(t.Context(), fast(jobs[i])) {
				if err != nil {
					p.err = err
					return
				}
				if _, twice := p.results[r.ID]; twice {
					p.err = errors.New("there are two results of " + r.ID)
					return
				}
				p.results[r.ID] = r
			}
		})
	}
	wait.Wait()
	return all
}

// Programs share the tasks of a job. Each task runs once, in one of them, and all have all
// results.
func TestProgramsShareAJob(t *testing.T) {
	t.Parallel()
	const size, programs = 30, 3
	all := tasks(size)
	all[20].After = []string{"t1", "t2"}
	all[20].Prompt = `sum of {{(index .Results "t1").Text}} and {{(index .Results "t2").Text}}`
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Minute})
	var jobs []fleet.Job
	var starts atomic.Int64
	var come sync.WaitGroup // each program has a task before any of them ends one
	come.Add(programs)
	for range programs {
		var once sync.Once
		jobs = append(jobs, fleet.Job{
			Tasks: all, Options: backend(), Out: t.TempDir(), Concurrency: 3, Queue: q,
			Before: func(context.Context, *fleet.Task) (fleet.Decision, error) {
				once.Do(come.Done)
				come.Wait()
				return fleet.Decision{}, nil
			},
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventStarted {
					starts.Add(1)
				}
			},
		})
	}
	seen := together(t, jobs...)
	assert.EqualValues(t, size, starts.Load(), "each task was started once")
	workers, fences := map[string]bool{}, map[uint64]bool{}
	for i, p := range seen {
		require.NoError(t, p.err)
		require.Len(t, p.results, size)
		assert.Len(t, lines(read(t, jobs[i].Out, "results.jsonl")), size)
		for id, r := range p.results {
			assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
			first := seen[0].results[id]
			assert.Equal(t, first.Worker, r.Worker)
			assert.Equal(t, first.Fence, r.Fence)
			assert.Equal(t, first.Text, r.Text)
			workers[r.Worker], fences[r.Fence] = true, true
		}
		assert.Contains(t, p.results["t20"].Text, "sum of ")
		assert.Contains(t, p.results["t20"].Text, "do 2", "the template has the results of all programs")
	}
	assert.Len(t, fences, size)
	assert.Len(t, workers, programs)

	jobs[1].Resume = true
	again := together(t, jobs[1])[0]
	require.NoError(t, again.err)
	assert.Len(t, again.results, size)
	assert.EqualValues(t, size, starts.Load(), "the results of others are in each journal")
}

// The tasks of a program that ends are run by the others, and those that it was running, too.
func TestAProgramLeaves(t *testing.T) {
	t.Parallel()
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})
	slow := fleet.Job{
		Tasks: tasks(6), Options: backend(turn(scripted.Delay(time.Hour))), Out: t.TempDir(), Concurrency: 2, Queue: q,
	}
	running := make(chan string, 6)
	slow.OnEvent = func(e fleet.Event) {
		if e.Kind == fleet.EventStarted {
			running <- e.Task
		}
	}
	h, err := fleet.Start(t.Context(), slow)
	require.NoError(t, err)
	first, second := <-running, <-running
	quick := fleet.Job{Tasks: tasks(6), Options: backend(), Out: t.TempDir(), Queue: q}
	over := make(chan program)
	go func() { over <- together(t, quick)[0] }()
	for r, err := range h.Results(t.Context()) { // the other program's
		require.NoError(t, err)
		assert.NotContains(t, []string{first, second}, r.ID)
		if h.Progress().Finished == 4 {
			break
		}
	}
	h.Cancel()
	<-h.Done()
	p := <-over
	require.NoError(t, p.err, "it does not wait for the end of the leases")
	assert.Len(t, p.results, 6)
	slow.Resume, slow.OnEvent = true, nil
	p = together(t, slow)[0]
	require.NoError(t, p.err)
	require.Len(t, p.results, 6, "the program that comes back has all results and runs nothing")
	for id, r := range p.results {
		assert.Equal(t, fleet.Accepted, r.Status, id)
	}
}

// A lease that is lost, or that cannot be extended in time, ends the attempt. The result that
// counts is the other program's.
func TestALostLease(t *testing.T) {
	t.Parallel()
	for name, extend := range map[string]func(context.Context, queue.Lease) error{
		"it is lost": func(context.Context, queue.Lease) error { return queue.ErrLeaseLost },
		"no answer": func(ctx context.Context, _ queue.Lease) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"errors": func(context.Context, queue.Lease) error {
			return errors.New("no network")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &tampered{Queue: memory(), extend: extend}
				var events []string
				var ended atomic.Bool
				job := fleet.Job{
					Tasks: tasks(1), Options: private(t, backend(turn(scripted.Delay(time.Hour)))), Out: t.TempDir(), Queue: q, Worker: "slow",
					OnEvent: func(e fleet.Event) {
						if events = append(events, string(e.Kind)); e.Kind != fleet.EventEnded {
							return
						}
						ended.Store(true)
						go func() { // another program, as soon as it can
							for {
								l, err := q.Queue.Lease(t.Context(), "t0", "quick")
								if err == nil {
									assert.NoError(t, q.Queue.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"accepted","text":"quick","usage":{"usd":3,"turns":1,"wall":"1s"}}`)))
									return
								}
								time.Sleep(time.Second)
							}
						}()
					},
				}
				q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
					if ended.Load() { // the other one is quicker
						return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "quick"}
					}
					return q.Queue.Lease(ctx, task, worker)
				}
				p := together(t, job)[0]
				require.NoError(t, p.err)
				r := p.results["t0"]
				assert.Equal(t, "quick", r.Text)
				assert.Equal(t, "quick", r.Worker)
				assert.EqualValues(t, 2, r.Fence)
				assert.Equal(t, []string{"started", "ended", "finished"}, events)
				assert.InDelta(t, 3, r.Usage.USD, 1e-9)
			})
		})
	}
}

// A lease that is lost in the moment of Finish is lost like any other: the result is void, and
// the job goes on with what another program makes of the task, or does it again.
func TestALeaseThatIsLostAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]struct {
		err   error
		quick bool // another program is quicker
	}{
		"another program has the task":      {queue.ErrLeaseLost, true},
		"another program has finished":      {fmt.Errorf("task t0: %w", queue.ErrFinished), true},
		"the lease has ended, nobody wants": {queue.ErrLeaseLost, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})}
			var events []string
			job := fleet.Job{Tasks: tasks(2), Options: backend(), Out: t.TempDir(), Queue: q, Worker: "slow", Concurrency: 1, OnEvent: func(e fleet.Event) {
				events = append(events, fmt.Sprint(e.Kind, " ", e.Task))
			}}
			job.Tasks[1].After = []string{"t0"}
			job.Tasks[1].Prompt = `{{(index .Results "t0").Worker}}`
			once := true
			q.finish = func(ctx context.Context, l queue.Lease, result json.RawMessage) error {
				if !once {
					return q.Queue.Finish(ctx, l, result)
				}
				once = false
				assert.NoError(t, q.Queue.Release(ctx, l))
				if lost.quick {
					l, err := q.Queue.Lease(ctx, "t0", "quick")
					assert.NoError(t, err)
					assert.NoError(t, q.Queue.Finish(ctx, l, json.RawMessage(`{"id":"t0","status":"accepted","text":"quick","usage":{"usd":0,"turns":0,"wall":"0s"}}`)))
				}
				return lost.err
			}
			p := together(t, job)[0]
			require.NoError(t, p.err)
			require.Len(t, p.results, 2)
			r := p.results["t0"]
			assert.Equal(t, fleet.Accepted, r.Status)
			assert.EqualValues(t, 2, r.Fence)
			if lost.quick {
				assert.Equal(t, "quick", r.Worker)
				// The attempt has ended without another one to follow if Watch had the result first.
				events = slices.DeleteFunc(events, func(e string) bool { return e == "ended t0" })
				assert.Equal(t, []string{"started t0", "finished t0", "started t1", "finished t1"}, events)
			} else {
				assert.Equal(t, "slow", r.Worker)
				assert.Equal(t, []string{"started t0", "ended t0", "started t0", "finished t0", "started t1", "finished t1"}, events)
				require.Len(t, r.Attempts, 2)
				assert.Equal(t, fleet.Interrupted, r.Attempts[0].Status)
				assert.Equal(t, queue.ErrLeaseLost.Error(), r.Attempts[0].Error)
			}
			assert.Contains(t, p.results["t1"].Text, r.Worker, "what comes after it waits for the result that counts")
			job.Resume = true
			p = together(t, job)[0]
			require.NoError(t, p.err)
			assert.Equal(t, r.Worker, p.results["t0"].Worker, "nothing of the void result is in the journal")
		})
	}
}

// A result that the queue has and the journal has not is the queue's: the task does not run
// again. The job says that it has failed, also with its last result.
func TestTheJournalFallsBehindTheQueue(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n, " tasks"), func(t *testing.T) {
			t.Parallel()
			q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
			job := fleet.Job{Tasks: tasks(n), Options: backend(), Out: t.TempDir(), Queue: q, Worker: "w", Concurrency: 1}
			starts := 0
			job.OnEvent = func(e fleet.Event) {
				if e.Kind == fleet.EventStarted {
					starts++
				}
			}
			q.finish = func(ctx context.Context, l queue.Lease, result json.RawMessage) error {
				return errors.Join(q.Queue.Finish(ctx, l, result), errors.New("the answer is lost"))
			}
			p := together(t, job)[0]
			var stopped *fleet.StoppedError
			require.ErrorAs(t, p.err, &stopped)
			assert.Equal(t, fleet.StopQueue, stopped.Reason)
			assert.Equal(t, n, stopped.Left, "what is not in the journal has not happened")
			assert.Empty(t, p.results)
			q.finish = nil
			job.Resume = true
			p = together(t, job)[0]
			require.NoError(t, p.err)
			assert.Len(t, p.results, n)
			assert.Equal(t, n, starts, "each task once")
		})
	}
}

// Long answers and transcripts go through the store, where there is one.
func TestPayloadsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a long answer ", 10_000)
	answer := turn(&scripted.Result{Text: &long, Structured: map[string]any{"long": long}})
	for name, store := range map[string]queue.Files{"in the queue": nil, "in the store": queue.DirFiles(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queue.NewMemory(queue.MemoryConfig{})
			job := func(worker string) fleet.Job {
				return fleet.Job{Tasks: tasks(1), Options: backend(answer), Out: t.TempDir(), Queue: q, Files: store, Worker: worker}
			}
			first, second := job("first"), job("second")
			require.NoError(t, together(t, first)[0].err)
			for range 2 { // the second time from the journal
				p := together(t, second)[0]
				require.NoError(t, p.err)
				r := p.results["t0"]
				assert.Equal(t, long, r.Text)
				assert.JSONEq(t, `{"long":"`+long+`"}`, string(r.Structured))
				assert.Equal(t, "attempts/t0/1/structured.json", r.StructuredFile)
				for _, line := range lines(read(t, second.Out, "journal.jsonl")) {
					assert.Less(t, len(line), len(long), "it is not in the journal")
				}
				assert.Equal(t, "first", r.Worker)
				assert.NotEmpty(t, r.TextFile, "the journal has the name")
				second.Resume = true
				if store == nil {
					continue
				}
				f, err := store.Get(t.Context(), fmt.Sprintf("%d/%s", r.Fence, r.Transcript))
				require.NoError(t, err)
				require.NoError(t, f.Close())
			}
			page := read(t, second.Out, "report.html")
			assert.Equal(t, store != nil, strings.Contains(page, "application/octet-stream"), "the transcript is in the report")
		})
	}
}

// Each result has the fence of its lease, and a later process has higher ones.
func TestFencesOfAJobAlone(t *testing.T) {
	t.Parallel()
	job := fleet.Job{Tasks: tasks(3), Options: backend(), Out: t.TempDir(), Sample: 2, Verify: &fleet.Verify{Command: "echo fence $TROUPE_FENCE"}}
	results, err := collect(t, job)
	require.ErrorAs(t, err, new(*fleet.StoppedError))
	last := uint64(0)
	for _, r := range results {
		assert.Equal(t, fmt.Sprintf("fence %d", r.Fence), strings.TrimSpace(r.Verdict.Output), "the task knows it")
		last = max(last, r.Fence)
		assert.Empty(t, r.Worker)
	}
	assert.EqualValues(t, 2, last)
	job.Resume, job.Sample = true, 0
	results, err = collect(t, job)
	require.NoError(t, err)
	assert.EqualValues(t, 3, max(results["t0"].Fence, results["t1"].Fence, results["t2"].Fence))
}

func TestQueueMistakes(t *testing.T) {
	t.Parallel()
	q := queue.NewMemory(queue.MemoryConfig{})
	_, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Files: queue.DirFiles(t.TempDir())})
	require.ErrorContains(t, err, "have no use without Queue")
	for _, err := range fleet.Stream(t.Context(), fleet.Job{Options: backend(), Queue: q}, func(func(fleet.Task, error) bool) {}) {
		require.ErrorContains(t, err, "each program must know all tasks")
	}
	_, err = collect(t, fleet.Job{Tasks: tasks(2), Options: backend(), Queue: q})
	require.NoError(t, err)
	other := tasks(2)
	other[1].Prompt = "something else"
	_, err = collect(t, fleet.Job{Tasks: other, Options: backend(), Queue: q})
	require.ErrorIs(t, err, fleet.ErrOtherTasks)
	down := &tampered{Queue: q, watch: func(context.Context) iter.Seq2[queue.Change, error] {
		return func(yield func(queue.Change, error) bool) { yield(queue.Change{}, errors.New("no network")) }
	}}
	_, err = collect(t, fleet.Job{Tasks: tasks(2), Options: backend(turn(scripted.Delay(time.Hour))), Queue: down, Out: filepath.Join(t.TempDir(), "out")})
	var stopped *fleet.StoppedError
	require.ErrorAs(t, err, &stopped)
	assert.Equal(t, fleet.StopQueue, stopped.Reason)
}

// A start that is refused is none: neither the limit of starts nor the results know of it.
func TestARefusedStart(t *testing.T) {
	t.Parallel()
	q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
	var asked atomic.Int64
	q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
		if asked.Add(1) == 1 {
			return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "other", TTL: 1}
		}
		return q.Queue.Lease(ctx, task, worker)
	}
	p := together(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: t.TempDir(), Queue: q, MaxStarts: 1})[0]
	require.NoError(t, p.err)
	r := p.results["t0"]
	assert.Equal(t, fleet.Accepted, r.Status, r.Error)
	assert.Len(t, r.Attempts, 1)
	assert.EqualValues(t, 2, asked.Load())
}

// A result of another program ends the attempt here, before the lease is found lost.
func TestAResultOfAnotherProgramEndsTheAttempt(t *testing.T) {
	t.Parallel()
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})
	var granted atomic.Pointer[queue.Lease]
	watched := &tampered{Queue: q, lease: func(ctx context.Context, task, worker string) (queue.Lease, error) {
		l, err := q.Lease(ctx, task, worker)
		granted.Store(&l)
		return l, err
	}}
	job := fleet.Job{Tasks: tasks(1), Options: backend(turn(scripted.Delay(time.Hour))), Out: t.TempDir(), Queue: watched, OnEvent: func(e fleet.Event) {
		if e.Kind != fleet.EventStarted {
			return
		}
		assert.NoError(t, q.Release(t.Context(), *granted.Load()))
		l, err := q.Lease(t.Context(), "t0", "quick")
		assert.NoError(t, err)
		assert.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"rejected","text":"quick","usage":{"usd":0,"turns":0,"wall":"0s"}}`)))
	}}
	p := together(t, job)[0]
	require.NoError(t, p.err)
	assert.Equal(t, fleet.Rejected, p.results["t0"].Status)
	assert.Equal(t, "quick", p.results["t0"].Worker)
}
