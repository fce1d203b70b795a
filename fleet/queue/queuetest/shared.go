package queuetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// again is the queue as another program has it.
func (q Queue) again(t *testing.T) Queue {
	t.Helper()
	if q.Again != nil {
		q.Queue = q.Again(t)
	}
	return q
}

// both runs two functions at the same time, and waits for them.
func both(a, b func()) {
	var all sync.WaitGroup
	all.Go(a) //troupe:seam a test of a queue, which no simulation runs
	all.Go(b)
	all.Wait()
}

func outlives(t *testing.T, q Queue) {
	if q.Half == nil {
		t.Skip("time does not pass")
	}
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	for range 3 {
		q.Half()
		require.NoError(t, q.extend(t, l))
	}
	q.Half()
	_, err := q.Lease(t.Context(), "a", "w2")
	require.ErrorAs(t, err, new(*queue.LeasedError), "it was extended, and half of its time is over")
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`)))
}

// Either Finish is in time, and its result stays, or another worker has the task.
func finishAtTheEnd(t *testing.T, q Queue) {
	if q.Expire == nil {
		t.Skip("leases do not end by themselves")
	}
	other, w := q.again(t), watch(t, q)
	for i := range 200 {
		task := fmt.Sprint("t", i)
		offer(t, q, task)
		l := lease(t, q, task, "w1")
		var finished, leased error
		var next queue.Lease
		both(
			func() { finished = q.Finish(t.Context(), l, json.RawMessage(`{"by":"w1"}`)) },
			func() {
				time.Sleep(time.Duration(i%5) * 300 * time.Microsecond) //troupe:seam another moment each time
				q.Expire()
				next, leased = other.Lease(t.Context(), task, "w2")
			})
		switch {
		case finished == nil:
			require.Error(t, leased, "%s is over, and was leased", task)
			assert.JSONEq(t, `{"by":"w1"}`, string(w.until(t, task, queue.Over).Result))
		case errors.Is(finished, queue.ErrLeaseLost):
			require.NoError(t, leased, "nobody has %s", task)
			require.NoError(t, other.Finish(t.Context(), next, json.RawMessage(`{"by":"w2"}`)))
		default:
			require.NoError(t, finished)
		}
	}
}

func extendAndFinish(t *testing.T, q Queue) {
	for i := range 50 {
		task := fmt.Sprint("t", i)
		offer(t, q, task)
		l := lease(t, q, task, "w1")
		both(
			func() {
				if err := q.Extend(t.Context(), l)[0]; err != nil {
					assert.ErrorIs(t, err, queue.ErrLeaseLost)
				}
			},
			func() { assert.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`))) })
		_, err := q.Lease(t.Context(), task, "w2")
		require.ErrorIs(t, err, queue.ErrFinished)
	}
}

// One of them knows nothing yet of what the other one does.
func programs(t *testing.T, q Queue) {
	other := q.again(t)
	offer(t, q, "a", "b")
	offer(t, other, "a", "b")
	l := lease(t, q, "a", "w1")
	_, err := other.Lease(t.Context(), "a", "w2")
	var taken *queue.LeasedError
	require.ErrorAs(t, err, &taken)
	assert.Equal(t, "w1", taken.Worker)
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"by":"w1"}`)))
	_, err = other.Lease(t.Context(), "a", "w2")
	require.ErrorIs(t, err, queue.ErrFinished)
	assert.JSONEq(t, `{"by":"w1"}`, string(resultOf(t, other, "a")))
	require.ErrorIs(t, other.Offer(t.Context(), queue.Offer{Task: "b", Hash: "h2"}), queue.ErrOtherHash)
}

func comesLater(t *testing.T, q Queue) {
	offer(t, q, "free", "leased", "over")
	l := lease(t, q, "leased", "w1")
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "over", "w1"), json.RawMessage(`{"n":1}`)))
	late := q.again(t)
	w := watch(t, late)
	w.until(t, "free", queue.Free)
	w = watch(t, late)
	assert.Equal(t, l.Fence, w.until(t, "leased", queue.Leased).Fence)
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, late, "over")))
	lease(t, late, "free", "w2")
}

func fencesOfAll(t *testing.T, q Queue) {
	last := uint64(0)
	for i := range 5 {
		task := fmt.Sprint("t", i)
		offer(t, q, task)
		l := lease(t, q, task, "w1")
		require.Greater(t, l.Fence, last)
		require.NoError(t, q.Release(t.Context(), l))
		next := lease(t, q.again(t), task, "w2")
		require.Greater(t, next.Fence, l.Fence)
		last = next.Fence
	}
}

// Leases end while workers want the tasks: no task is two workers', and each has one result.
func wanted(t *testing.T, q Queue) {
	if q.Expire == nil {
		t.Skip("leases do not end by themselves")
	}
	const tasks, crew = 20, 8
	var names []string
	for i := range tasks {
		names = append(names, fmt.Sprint("t", i))
	}
	offer(t, q, names...)
	for _, task := range names {
		lease(t, q, task, "gone")
	}
	q.Expire()
	var mu sync.Mutex
	got := map[string][]string{}
	var all sync.WaitGroup
	for i := range crew {
		mine := q.again(t)
		all.Go(func() { //troupe:seam a test of a queue, which no simulation runs
			for _, task := range names {
				if l, err := mine.Lease(t.Context(), task, fmt.Sprint("w", i)); err == nil {
					assert.NoError(t, mine.Finish(t.Context(), l, json.RawMessage(`{}`)))
					mu.Lock()
					got[task] = append(got[task], l.Worker)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	require.Len(t, got, tasks)
	for task, by := range got { //troupe:maporder each by itself
		assert.Len(t, by, 1, task)
	}
}

func manyTasks(t *testing.T, q Queue) {
	const n = 5000
	all := make([]queue.Offer, n)
	for i := range all {
		all[i] = queue.Offer{Task: fmt.Sprint("t", i), Hash: "h"}
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) //troupe:seam a test of a queue, which no simulation runs
	defer stop()
	require.NoError(t, q.Offer(ctx, all...), "%d tasks in 5 s", n)
	lease(t, q.again(t), all[n-1].Task, "w")
}

func large(t *testing.T, q Queue) {
	offer(t, q, "a")
	result := `{"text":"` + strings.Repeat("x", 8<<20) + `"}`
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "a", "w"), json.RawMessage(result)))
	assert.Len(t, resultOf(t, q.again(t), "a"), len(result))
}

// A loop that is slower than what happens loses no result.
func slowWatch(t *testing.T, q Queue) {
	const n = 100
	slow := make(chan struct{})
	seen := map[string]int{}
	begun, ended := make(chan struct{}), make(chan error, 1)
	ctx, stop := context.WithTimeout(t.Context(), 2*patience) //troupe:seam a test of a queue, which no simulation runs
	defer stop()
	offer(t, q, "first")
	other := q.again(t)
	go func() { //troupe:seam a test of a queue, which no simulation runs
		first := true
		for c, err := range other.Watch(ctx) {
			if err != nil {
				ended <- err
				return
			}
			if first {
				first = false
				close(begun)
				<-slow
			}
			if c.State == queue.Over {
				seen[c.Task]++
			}
			if len(seen) == n {
				break
			}
		}
		ended <- ctx.Err()
	}()
	<-begun
	for i := range n {
		task := fmt.Sprint("t", i)
		offer(t, q, task)
		require.NoError(t, q.Finish(t.Context(), lease(t, q, task, "w"), json.RawMessage(`{}`)))
	}
	close(slow)
	require.NoError(t, <-ended, "%d of %d results are seen", len(seen), n)
}

// Calls while there is no network end with their context, and work when there is one again.
func noNetwork(t *testing.T, q Queue) {
	if q.Cut == nil {
		t.Skip("the network cannot be cut")
	}
	offer(t, q, "a", "b")
	l := lease(t, q, "a", "w")
	restore := q.Cut()
	for name, call := range map[string]func(context.Context) error{ //troupe:maporder each by itself
		"Offer":    func(ctx context.Context) error { return q.Offer(ctx, queue.Offer{Task: "c", Hash: "h"}) },
		"Lease":    func(ctx context.Context) error { _, err := q.Lease(ctx, "b", "w"); return err },
		"Extend":   func(ctx context.Context) error { return q.Extend(ctx, l)[0] },
		"Finish":   func(ctx context.Context) error { return q.Finish(ctx, l, json.RawMessage(`{}`)) },
		"Release":  func(ctx context.Context) error { return q.Release(ctx, l) },
		lackNote:   func(ctx context.Context) error { return q.Note(ctx, l, json.RawMessage(`{}`)) },
		lackDecide: func(ctx context.Context) error { return q.Decide(ctx, queue.Decision{ID: "d", Op: "pause"}) },
	} {
		if slices.Contains(q.Lacks, name) {
			continue
		}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond) //troupe:seam a test of a queue, which no simulation runs
		answer := make(chan error, 1)
		go func() { answer <- call(ctx) }() //troupe:seam a test of a queue, which no simulation runs
		late := time.NewTimer(5 * time.Second)
		var err error
		//troupe:select an answer in the last moment may count or not
		select {
		case err = <-answer:
		case <-late.C:
			require.FailNow(t, "the call does not end with its context", name)
		}
		late.Stop()
		stop()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.NotErrorIs(t, err, queue.ErrLeaseLost, "%s: nobody has said so", name)
	}
	restored := make(chan struct{})
	var finished error
	go func() { //troupe:seam a test of a queue, which no simulation runs
		defer close(restored)
		finished = q.Finish(t.Context(), l, json.RawMessage(`{"n":1}`))
	}()
	restore()
	<-restored
	if errors.Is(finished, queue.ErrLeaseLost) { // a call that was given up may have landed
		return
	}
	require.NoError(t, finished)
	assert.NotEmpty(t, resultOf(t, q, "a"))
}
