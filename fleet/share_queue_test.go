package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"
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

// The queue is asked about results side by side: a slow one delays the tasks that it is asked
// about, and no others.
func TestASlowQueueIsAskedSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
		q.finish = func(ctx context.Context, l queue.Lease, result json.RawMessage) error {
			time.Sleep(100 * time.Millisecond)
			return q.Queue.Finish(ctx, l, result)
		}
		began := time.Now()
		results, err := collect(t, fast(fleet.Job{Tasks: tasks(40), Options: private(t, backend()), Out: t.TempDir(), Queue: q, Concurrency: 20}))
		require.NoError(t, err)
		assert.Len(t, results, 40)
		assert.Less(t, time.Since(began), time.Second, "40 calls of 100 ms, 20 at a time")
	})
}

// What a person decides while the queue is asked about a result waits for the answer.
func TestDecisionsWaitForTheQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide func(context.Context, *fleet.Handle) error
		check  func(*testing.T, error, []fleet.TaskResult)
	}{
		"a cancel comes too late": {
			func(ctx context.Context, h *fleet.Handle) error { return h.CancelTask(ctx, "t0") },
			func(t *testing.T, err error, all []fleet.TaskResult) {
				t.Helper()
				require.ErrorIs(t, err, fleet.ErrTaskOver)
				require.Len(t, all, 1)
				assert.Equal(t, fleet.Accepted, all[0].Status)
			},
		},
		"a requeue makes it void": {
			func(ctx context.Context, h *fleet.Handle) error { return h.Requeue(ctx, "t0") },
			func(t *testing.T, err error, all []fleet.TaskResult) {
				t.Helper()
				require.NoError(t, err)
				require.NotEmpty(t, all)
				assert.Equal(t, 1, all[len(all)-1].Requeued)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
				asked, goOn, first := make(chan struct{}), make(chan struct{}), true
				q.finish = func(ctx context.Context, l queue.Lease, result json.RawMessage) error {
					if first {
						first = false
						close(asked)
						<-goOn
					}
					return q.Queue.Finish(ctx, l, result)
				}
				h, err := fleet.Start(t.Context(), fast(fleet.Job{Tasks: tasks(1), Options: private(t, backend()), Out: t.TempDir(), Queue: q, Concurrency: 1}))
				require.NoError(t, err)
				<-asked
				decided := make(chan error, 1)
				go func() { decided <- c.decide(t.Context(), h) }()
				synctest.Wait()
				assert.Empty(t, decided, "the queue has not answered")
				assert.Zero(t, h.Progress().Finished, "a result that may be void is none")
				close(goOn)
				var all []fleet.TaskResult
				for r, err := range h.Results(t.Context()) {
					require.NoError(t, err)
					all = append(all, r)
				}
				c.check(t, <-decided, all)
			})
		})
	}
}

// A job whose queue has no network ends after a cancel, within its grace.
func TestCancelWithoutANetwork(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"lease", "finish"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
				asked := make(chan struct{})
				dead := func(ctx context.Context) error {
					close(asked)
					<-ctx.Done()
					return ctx.Err()
				}
				if call == "lease" {
					q.lease = func(ctx context.Context, _, _ string) (queue.Lease, error) { return queue.Lease{}, dead(ctx) }
				} else {
					q.finish = func(ctx context.Context, _ queue.Lease, _ json.RawMessage) error { return dead(ctx) }
				}
				h, err := fleet.Start(t.Context(), fast(fleet.Job{Tasks: tasks(1), Options: private(t, backend()), Out: t.TempDir(), Queue: q, QueueGrace: 3 * time.Second}))
				require.NoError(t, err)
				<-asked
				began := time.Now()
				h.Cancel()
				<-h.Done()
				assert.LessOrEqual(t, time.Since(began), 4*time.Second)
				var stopped *fleet.StoppedError
				for _, err := range h.Results(t.Context()) {
					require.ErrorAs(t, err, &stopped)
				}
				require.NotNil(t, stopped)
				assert.Equal(t, fleet.StopCanceled, stopped.Reason)
				assert.Equal(t, 1, stopped.Left)
			})
		})
	}
}

// A task that is given back while its refusal is on the way is asked for at once, and not when
// the lease that is over would have ended.
func TestATaskThatIsGivenBackWhileItIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})}
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: "t0", Hash: hashes(t, tasks(1))["t0"]}))
		other, err := q.Queue.Lease(t.Context(), "t0", "other")
		require.NoError(t, err)
		q.watch = func(ctx context.Context) iter.Seq2[queue.Change, error] { // what is so at the beginning is not told
			return func(yield func(queue.Change, error) bool) {
				for c, err := range q.Queue.Watch(ctx) {
					if c.State != queue.Leased && !yield(c, err) {
						return
					}
				}
			}
		}
		first := true
		q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
			l, err := q.Queue.Lease(ctx, task, worker)
			if first {
				first = false
				assert.NoError(t, q.Queue.Release(ctx, other))
				time.Sleep(time.Second) // the answer takes longer than the news
			}
			return l, err
		}
		began := time.Now()
		results, err := collect(t, fast(fleet.Job{Tasks: tasks(1), Options: private(t, backend()), Out: t.TempDir(), Queue: q, Worker: "own"}))
		require.NoError(t, err)
		assert.Equal(t, "own", results["t0"].Worker)
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// A task that another program has is not asked for until that one has given it back.
func TestATaskThatAnotherProgramHasIsNotAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})}
		all := tasks(3)
		all[2].After = []string{"t0"} // the news are there before its turn
		for id, hash := range hashes(t, all) {
			require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: id, Hash: hash}))
		}
		other, err := q.Queue.Lease(t.Context(), "t2", "other")
		require.NoError(t, err)
		refused := 0
		q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
			l, err := q.Queue.Lease(ctx, task, worker)
			if errors.As(err, new(*queue.LeasedError)) {
				refused++
			}
			return l, err
		}
		time.AfterFunc(30*time.Second, func() { assert.NoError(t, q.Queue.Release(context.Background(), other)) })
		began := time.Now()
		results, err := collect(t, fast(fleet.Job{Tasks: all, Options: private(t, backend()), Out: t.TempDir(), Queue: q, Worker: "own"}))
		require.NoError(t, err)
		assert.Len(t, results, 3)
		assert.Zero(t, refused, "nobody asks for what another one has")
		assert.Less(t, time.Since(began), time.Minute, "and when it is free it is asked for at once")
	})
}

// hashes are those of tasks, as a job offers them.
func hashes(t *testing.T, all []fleet.Task) map[string]string {
	t.Helper()
	got := map[string]string{}
	_, err := collect(t, fast(fleet.Job{Tasks: all, Options: private(t, backend()), Queue: hashing{queue.NewMemory(queue.MemoryConfig{}), got}}))
	require.NoError(t, err)
	return got
}

type hashing struct {
	queue.Queue
	got map[string]string
}

func (h hashing) Offer(ctx context.Context, all ...queue.Offer) error {
	for _, o := range all {
		h.got[o.Task] = o.Hash
	}
	return h.Queue.Offer(ctx, all...)
}

// The clock of the queue is an hour ahead of the program's. A lease counts from when it was asked
// for: once it is lost its agent is dead in time.
func TestTheClockOfTheQueueIsAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 24 * time.Second
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: ttl, Clock: ahead{}})}
		q.extend = func(context.Context, queue.Lease) error { return errors.New("no network") }
		var began, ended time.Time
		var leases atomic.Int64
		q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
			if leases.Add(1) > 1 {
				return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "other", TTL: time.Hour}
			}
			began = time.Now()
			return q.Queue.Lease(ctx, task, worker)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		job := fast(fleet.Job{
			Tasks: tasks(1), Options: private(t, backend(turn(scripted.Delay(time.Hour)))), Out: t.TempDir(), Queue: q,
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventEnded {
					ended = time.Now()
				}
			},
		})
		for _, err := range fleet.Run(ctx, job) {
			require.Error(t, err)
		}
		assert.Greater(t, ended.Sub(began), ttl/2)
		assert.LessOrEqual(t, ended.Sub(began), ttl*7/8+100*time.Millisecond)
	})
}

// ahead is a clock that is an hour ahead.
type ahead struct{}

func (ahead) Now() time.Time { return time.Now().Add(time.Hour) }

func (ahead) AfterFunc(d time.Duration, fn func()) session.Timer { return time.AfterFunc(d, fn) }
