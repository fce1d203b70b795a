package fleet_test

import (
	"context"
	"encoding/json"
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

// slowNotes answers to the second note only once the task is leased again, when the lease of the note is over.
type slowNotes struct {
	*queue.Memory
	mu            sync.Mutex
	notes, leases int
	again         chan struct{}
}

func (q *slowNotes) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	l, err := q.Memory.Lease(ctx, task, worker)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leases++; q.leases == 2 {
		time.AfterFunc(time.Second, func() { close(q.again) })
	}
	return l, err
}

func (q *slowNotes) Note(ctx context.Context, l queue.Lease, note json.RawMessage) error {
	q.mu.Lock()
	q.notes++
	late := q.notes == 2
	q.mu.Unlock()
	if late {
		_ = q.Release(ctx, l)
		<-q.again
	}
	return q.Memory.Note(ctx, l, note)
}

// An attempt runs, although the answer to a note of the attempt before, whose lease was lost, comes only now.
func TestAnAnswerThatComesAfterTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &slowNotes{Memory: memory(), again: make(chan struct{})}
		all := tasks(1)
		all[0].Turns = []string{"more"}
		o := private(t, backend(when("interrupted", scripted.Text("done")), when("more", scripted.Delay(time.Hour)), when("do", scripted.Text("one"))))
		results, err := collect(t, fleet.Job{Tasks: all, Options: o, Out: t.TempDir(), Queue: q, Worker: "w"})
		require.NoError(t, err)
		r := results["t0"]
		assert.Equal(t, fleet.Accepted, r.Status, r.Error)
		assert.Len(t, r.Attempts, 2)
	})
}

// A program that comes to a job sees the calls of a task that was requeued and waits for a person elsewhere: the queue
// reports the task before the decision that has requeued it.
func TestApprovalsOfARequeuedTaskElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, all, ctx := memory(), tasks(1), t.Context()
		hash := hashes(t, all)["t0"]
		require.NoError(t, q.Offer(ctx, queue.Offer{Task: "t0", Hash: hash}))
		l, err := q.Lease(ctx, "t0", "other")
		require.NoError(t, err)
		require.NoError(t, q.Finish(ctx, l, json.RawMessage(`{"id":"t0","status":"rejected","family":"agent"}`)))
		require.NoError(t, q.Decide(ctx, queue.Decision{ID: "requeue.t0#1", Op: "requeue", Task: "t0#1", By: "me", At: time.Now()}))
		require.NoError(t, q.Offer(ctx, queue.Offer{Task: "t0#1", Hash: hash}))
		leave(t, q, "t0#1", 1, fleet.TaskNote{Worker: "other", Running: true, Approvals: []fleet.Approval{{ID: "abc", Task: "t0", Tool: "Bash"}}})
		h, err := fleet.Start(ctx, fleet.Job{Tasks: all, Options: private(t, backend()), Out: t.TempDir(), Queue: q, Worker: "sub", Share: fleet.ShareSubmit})
		require.NoError(t, err)
		synctest.Wait()
		assert.Len(t, h.Approvals(), 1)
		require.NoError(t, h.Decide(ctx, "abc", true, ""))
		h.Cancel()
		<-h.Done()
	})
}
