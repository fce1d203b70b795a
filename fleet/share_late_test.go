package fleet_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/sdk"
)

// A lease is lost while the queue still works on its extension, and then extended after all.
// It is given back once nothing runs under it: the task goes on at once, not when the lease
// that nobody has has run out.
func TestALeaseThatIsExtendedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: 40 * time.Second})}
		extensions := 0
		q.extend = func(ctx context.Context, l queue.Lease) error {
			if extensions++; extensions > 1 {
				return q.Queue.Extend(ctx, l)[0]
			}
			time.Sleep(24 * time.Second) // since a third of its time: seven eighths are over, and all of it is not
			return q.Queue.Extend(context.WithoutCancel(ctx), l)[0]
		}
		began := time.Now()
		var starts []time.Duration
		job := fast(fleet.Job{
			Tasks: tasks(1), Out: t.TempDir(), Queue: q, Worker: "one", Concurrency: 1,
			Options: private(t, &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{
				when("", scripted.Delay(50*time.Second), scripted.Text("done")),
			}}))}),
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventStarted {
					starts = append(starts, time.Since(began))
				}
			},
		})
		results, err := collect(t, job)
		require.NoError(t, err)
		assert.Equal(t, fleet.Accepted, results["t0"].Status)
		require.Len(t, starts, 2)
		assert.Less(t, starts[1], time.Minute, "the lease that was extended would run out after 77 s")
	})
}

// The queue tells of the result of another program while this one gives its own, which the
// queue does not take. The job has not missed it.
func TestAResultThatComesDuringTheOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{})}
		heard := make(chan struct{})
		q.watch = func(ctx context.Context) iter.Seq2[queue.Change, error] {
			return func(yield func(queue.Change, error) bool) {
				for c, err := range q.Queue.Watch(ctx) {
					if !yield(c, err) {
						return
					}
					if c.State == queue.Over {
						close(heard)
					}
				}
			}
		}
		q.finish = func(ctx context.Context, l queue.Lease, _ json.RawMessage) error {
			assert.NoError(t, q.Queue.Release(ctx, l))
			l, err := q.Queue.Lease(ctx, "t0", "quick")
			assert.NoError(t, err)
			assert.NoError(t, q.Queue.Finish(ctx, l, json.RawMessage(`{"id":"t0","status":"accepted","text":"quick","usage":{"usd":0,"turns":0,"wall":"0s"}}`)))
			<-heard
			return queue.ErrLeaseLost
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		h, err := fleet.Start(ctx, fast(fleet.Job{Tasks: tasks(1), Out: t.TempDir(), Queue: q, Worker: "slow", Options: private(t, backend())}))
		require.NoError(t, err)
		var got []string
		for r, err := range h.Results(t.Context()) {
			require.NoError(t, err)
			got = append(got, r.Worker+" "+r.Text)
		}
		assert.Equal(t, []string{"quick quick"}, got)
	})
}

// slowFiles takes longer than a lease lasts, once.
type slowFiles struct {
	queue.Files
	late bool
}

func (s *slowFiles) Put(ctx context.Context, name string, r io.Reader) error {
	if strings.HasSuffix(name, "/text.txt") && !s.late {
		s.late = true
		time.Sleep(time.Minute)
	}
	return s.Files.Put(ctx, name, r)
}

// A lease that is lost while the answer goes to the store is lost: the result does not count,
// and the task runs again.
func TestALeaseThatIsLostWhileTheAnswerIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: 40 * time.Second})}
		q.extend = func(context.Context, queue.Lease) error { return queue.ErrLeaseLost }
		long := strings.Repeat("a long answer ", 10_000)
		job := fast(fleet.Job{
			Tasks: tasks(1), Out: t.TempDir(), Queue: q, Files: &slowFiles{Files: queue.DirFiles(t.TempDir())}, Worker: "one",
			Options: private(t, backend(turn(&scripted.Result{Text: &long}))),
		})
		results, err := collect(t, job)
		require.NoError(t, err)
		assert.EqualValues(t, 2, results["t0"].Fence)
		over := 0
		for c, err := range q.Queue.Watch(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, queue.Over, c.State)
			assert.EqualValues(t, 2, c.Fence, "the queue has the same result")
			over++
			break
		}
		assert.Equal(t, 1, over)
	})
}
