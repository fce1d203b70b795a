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

// Queue is a queue to test, and how its leases end.
type Queue struct {
	queue.Queue
	// Expire lets so much time pass that every lease that is not extended meanwhile has ended.
	// nil: leases do not end by themselves, and what needs it is skipped.
	Expire func()
	// Half lets more than half of the time of a lease pass, and less than all of it. nil: what
	// needs it is skipped.
	Half func()
	// Again returns the queue as another program has it, one that opens it later. nil: the
	// programs share this one.
	Again func(t *testing.T) queue.Queue
	// Cut takes the network away from the queue until restore is called. nil: what needs it is
	// skipped.
	Cut func() (restore func())
	// Lacks names what the queue does not have yet: Note, Decide, Result (of an offer). The suite
	// checks that these calls say so, with an error that matches errors.ErrUnsupported.
	Lacks []string
}

// RunQueue tests the queues that open returns, each of which must be empty. A Watch
// without a change for 30 s fails.
func RunQueue(t *testing.T, open func(t *testing.T) Queue) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*testing.T, Queue)
	}{
		{"one worker has a task", exclusive},
		{"a task that was not offered", unknown},
		{"fences rise", fences},
		{"a second offer changes nothing", offers},
		{"an offer with another hash", otherHash},
		{"a task that is over", over},
		{"Finish again", finishAgain},
		{"a lease that was given back", released},
		{"a lease that is extended", extended},
		{"a lease that has ended", expired},
		{"an ended lease that nobody has taken", expiredFree},
		{"a forged lease", forged},
		{"results come back as they were", results},
		{"Watch begins with what is so", watchBegins},
		{"Watch tells that it is current", watchCurrent},
		{"Watch tells what changes", watchChanges},
		{"Watch tells that a lease has ended", watchExpiry},
		{"Watch ends", watchEnds},
		{"many workers", workers},
		{"a lease that is extended outlives its first time", outlives},
		{"Finish at the moment when the lease ends", finishAtTheEnd},
		{"Extend and Finish at the same time", extendAndFinish},
		{"two programs", programs},
		{"a program that comes later", comesLater},
		{"fences rise over programs", fencesOfAll},
		{"leases that end while many want them", wanted},
		{"many tasks at once", manyTasks},
		{"a large result", large},
		{"a Watch loop that is slow", slowWatch},
		{"no network", noNetwork},
		{"each of many leases that are extended outlives its first time", extendedTogether},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
	for _, c := range []struct {
		needs, name string
		run         func(*testing.T, Queue)
	}{
		{lackNote, "a note", notes},
		{lackNote, "a note outlives a lease that has ended", noteOutlives},
		{lackNote, "a note after the lease was given back, or has ended", noteLost},
		{lackNote, "Watch tells notes", watchNotes},
		{lackNote, "Note and Extend and Finish at the same time", noteAndFinish},
		{lackDecide, "a decision", decision},
		{lackDecide, "two decisions with one id", decidedTwice},
		{lackDecide, "many decisions", decisions},
		{lackResult, "a result is offered", offeredResult},
		{lackResult, "a result is offered while a worker has the task", offeredWhileLeased},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := open(t)
			if slices.Contains(q.Lacks, c.needs) {
				q.saysSo(t, c.needs)
				return
			}
			c.run(t, q)
		})
	}
}

func offer(t *testing.T, q Queue, tasks ...string) {
	t.Helper()
	for _, task := range tasks {
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: task, Hash: "h"}))
	}
}

func lease(t *testing.T, q Queue, task, worker string) queue.Lease {
	t.Helper()
	l, err := q.Lease(t.Context(), task, worker)
	require.NoError(t, err)
	require.Equal(t, task, l.Task)
	require.Equal(t, worker, l.Worker)
	require.NotZero(t, l.Fence)
	return l
}

func (q Queue) extend(t *testing.T, l queue.Lease) error {
	t.Helper()
	errs := q.Extend(t.Context(), l)
	require.Len(t, errs, 1)
	return errs[0]
}

// lost checks that a lease is good for nothing.
func lost(t *testing.T, q Queue, l queue.Lease) {
	t.Helper()
	require.ErrorIs(t, q.extend(t, l), queue.ErrLeaseLost, "Extend")
	require.ErrorIs(t, q.Release(t.Context(), l), queue.ErrLeaseLost, "Release")
	require.ErrorIs(t, q.Finish(t.Context(), l, json.RawMessage(`{"void":true}`)), queue.ErrLeaseLost, "Finish")
}

func exclusive(t *testing.T, q Queue) {
	offer(t, q, "a", "b")
	l := lease(t, q, "a", "w1")
	for _, worker := range []string{"w2", "w1"} { // a worker that has forgotten its lease waits, too
		_, err := q.Lease(t.Context(), "a", worker)
		var taken *queue.LeasedError
		require.ErrorAs(t, err, &taken)
		assert.Equal(t, "a", taken.Task)
		assert.Equal(t, "w1", taken.Worker)
		assert.LessOrEqual(t, taken.TTL, l.TTL, "the lease does not last longer than it can")
	}
	lease(t, q, "b", "w2")
}

func unknown(t *testing.T, q Queue) {
	offer(t, q, "a")
	_, err := q.Lease(t.Context(), "A", "w")
	require.ErrorIs(t, err, queue.ErrNotOffered)
	lost(t, q, queue.Lease{Task: "A", Worker: "w", Fence: 1})
}

func fences(t *testing.T, q Queue) {
	offer(t, q, "a", "b")
	last := uint64(0)
	for range 3 {
		for _, task := range []string{"a", "b"} {
			l := lease(t, q, task, "w")
			require.Greater(t, l.Fence, last, "over all tasks")
			last = l.Fence
			require.NoError(t, q.Release(t.Context(), l))
		}
	}
}

func offers(t *testing.T, q Queue) {
	offer(t, q, "leased", "over")
	l := lease(t, q, "leased", "w1")
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "over", "w1"), json.RawMessage(`{}`)))
	offer(t, q, "leased", "over", "over")
	_, err := q.Lease(t.Context(), "leased", "w2")
	require.ErrorAs(t, err, new(*queue.LeasedError))
	_, err = q.Lease(t.Context(), "over", "w2")
	require.ErrorIs(t, err, queue.ErrFinished)
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`)), "the lease is still good")
	require.NoError(t, q.Offer(t.Context()), "no tasks")
}

func otherHash(t *testing.T, q Queue) {
	offer(t, q, "a")
	require.ErrorIs(t, q.Offer(t.Context(), queue.Offer{Task: "a", Hash: "h2"}), queue.ErrOtherHash)
	lease(t, q, "a", "w")
}

func over(t *testing.T, q Queue) {
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"n":1}`)))
	_, err := q.Lease(t.Context(), "a", "w2")
	require.ErrorIs(t, err, queue.ErrFinished)
	require.ErrorIs(t, q.extend(t, l), queue.ErrLeaseLost)
	require.ErrorIs(t, q.Release(t.Context(), l), queue.ErrLeaseLost)
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, q, "a")))
}

// An answer that is lost on the way makes a worker ask again.
func finishAgain(t *testing.T, q Queue) {
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"n":1}`)))
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"n":2}`)))
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, q, "a")), "the first one counts")
	l.Fence++
	require.ErrorIs(t, q.Finish(t.Context(), l, json.RawMessage(`{"n":3}`)), queue.ErrLeaseLost)
}

func released(t *testing.T, q Queue) {
	offer(t, q, "a")
	old := lease(t, q, "a", "w1")
	require.NoError(t, q.Release(t.Context(), old))
	lost(t, q, old)
	l := lease(t, q, "a", "w2")
	lost(t, q, old)
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"by":"w2"}`)))
	require.ErrorIs(t, q.Finish(t.Context(), old, json.RawMessage(`{"by":"w1"}`)), queue.ErrLeaseLost)
	assert.JSONEq(t, `{"by":"w2"}`, string(resultOf(t, q, "a")))
}

func extended(t *testing.T, q Queue) {
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	for range 3 {
		require.NoError(t, q.extend(t, l))
	}
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`)))
}

func (q Queue) expire(t *testing.T) {
	t.Helper()
	if q.Expire == nil {
		t.Skip("leases do not end by themselves")
	}
	q.Expire()
}

func expired(t *testing.T, q Queue) {
	offer(t, q, "a")
	old := lease(t, q, "a", "w1")
	require.True(t, q.Expire == nil || old.TTL > 0, "a lease that ends says when")
	q.expire(t)
	l := lease(t, q, "a", "w2")
	require.Greater(t, l.Fence, old.Fence)
	lost(t, q, old)
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{"by":"w2"}`)))
	assert.JSONEq(t, `{"by":"w2"}`, string(resultOf(t, q, "a")))
}

func expiredFree(t *testing.T, q Queue) {
	offer(t, q, "a")
	old := lease(t, q, "a", "w1")
	q.expire(t)
	lost(t, q, old)
	lease(t, q, "a", "w1")
}

func forged(t *testing.T, q Queue) {
	offer(t, q, "a", "b")
	l := lease(t, q, "a", "w1")
	for _, fence := range []uint64{0, l.Fence - 1, l.Fence + 1} {
		f := l
		f.Fence = fence
		lost(t, q, f)
	}
	l.Task = "b"
	lost(t, q, l)
}

func results(t *testing.T, q Queue) {
	for i, result := range []string{`{}`, `{"text":"ü\u0000\n\\"}`, `{"n":12345678901234567890,"x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`, `{"text":"` + strings.Repeat("x", 1<<20) + `"}`} {
		task := fmt.Sprintf("A.b_c-%d#1", i)
		offer(t, q, task)
		raw := json.RawMessage(result)
		require.NoError(t, q.Finish(t.Context(), lease(t, q, task, "w"), raw))
		clear(raw) // the queue keeps a copy
		assert.Equal(t, result, string(resultOf(t, q, task)))
	}
}

// watching is a loop over Watch.
type watching struct {
	changes chan queue.Change
	ended   chan error
	stop    context.CancelFunc
	last    string // note
}

const patience = 30 * time.Second

func watch(t *testing.T, q Queue) *watching {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watching{changes: make(chan queue.Change, 1000), ended: make(chan error, 1), stop: stop}
	go func() { //troupe:seam a test of a queue, which no simulation runs
		var failed error
		for c, err := range q.Watch(ctx) {
			if err != nil {
				failed = err
				break
			}
			w.changes <- c
		}
		w.ended <- failed
	}()
	t.Cleanup(stop)
	return w
}

// until returns the first change of a task that is so.
func (w *watching) until(t *testing.T, task string, state queue.State) queue.Change {
	t.Helper()
	return w.next(t, fmt.Sprintf("task %s is %s", task, state), func(c queue.Change) bool { return c.Task == task && c.State == state })
}

// next returns the first change that is one of those.
func (w *watching) next(t *testing.T, what string, is func(queue.Change) bool) queue.Change {
	t.Helper()
	limit := time.NewTimer(patience) //troupe:seam a test of a queue, which no simulation runs
	defer limit.Stop()
	for {
		//troupe:select each of them ends the test or is looked at in the next round
		select {
		case c := <-w.changes:
			if is(c) {
				return c
			}
		case err := <-w.ended:
			require.FailNow(t, "Watch has ended", "%v", err)
		case <-limit.C:
			require.FailNow(t, "Watch does not tell it", what)
		}
	}
}

func resultOf(t *testing.T, q Queue, task string) json.RawMessage {
	t.Helper()
	w := watch(t, q)
	defer w.stop()
	return w.until(t, task, queue.Over).Result
}

func watchBegins(t *testing.T, q Queue) {
	offer(t, q, "free", "leased", "over")
	l := lease(t, q, "leased", "w1")
	done := lease(t, q, "over", "w2")
	require.NoError(t, q.Finish(t.Context(), done, json.RawMessage(`{"n":1}`)))
	for range 2 { // each loop has all of it
		w := watch(t, q)
		assert.Empty(t, w.until(t, "free", queue.Free).Worker)
		w = watch(t, q)
		c := w.until(t, "leased", queue.Leased)
		assert.Equal(t, "w1", c.Worker)
		assert.Equal(t, l.Fence, c.Fence)
		w = watch(t, q)
		c = w.until(t, "over", queue.Over)
		assert.Equal(t, "w2", c.Worker)
		assert.Equal(t, done.Fence, c.Fence)
		assert.JSONEq(t, `{"n":1}`, string(c.Result))
	}
}

// A loop is current once: after all that was so when it began.
func watchCurrent(t *testing.T, q Queue) {
	first := watch(t, q)
	first.next(t, "current", isCurrent)
	offer(t, q, "a", "over")
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "over", "w1"), json.RawMessage(`{}`)))
	if !slices.Contains(q.Lacks, lackDecide) {
		require.NoError(t, q.Decide(t.Context(), queue.Decision{ID: "d", Op: "pause"}))
	}
	late, seen := watch(t, q.again(t)), map[string]bool{}
	late.next(t, "current", func(c queue.Change) bool {
		if seen[c.Task] = true; c.Decision != nil {
			seen["d"] = true
		}
		return isCurrent(c)
	})
	assert.True(t, seen["a"], "a task")
	assert.True(t, seen["over"], "a result")
	assert.True(t, seen["d"] || slices.Contains(q.Lacks, lackDecide), "a decision")
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "a", "w1"), json.RawMessage(`{}`)))
	for _, w := range []*watching{first, late} {
		w.next(t, "a is over", func(c queue.Change) bool {
			assert.False(t, isCurrent(c), "twice")
			return c.Task == "a" && c.State == queue.Over
		})
	}
}

func isCurrent(c queue.Change) bool { return c.State == queue.Current }

func watchChanges(t *testing.T, q Queue) {
	w, other := watch(t, q), watch(t, q)
	offer(t, q, "a")
	for _, w := range []*watching{w, other} {
		w.until(t, "a", queue.Free)
	}
	l := lease(t, q, "a", "w1")
	for _, w := range []*watching{w, other} {
		assert.Equal(t, l.Fence, w.until(t, "a", queue.Leased).Fence)
	}
	require.NoError(t, q.Release(t.Context(), l))
	w.until(t, "a", queue.Free)
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "a", "w2"), json.RawMessage(`{"n":2}`)))
	for _, w := range []*watching{w, other} {
		c := w.until(t, "a", queue.Over)
		assert.Equal(t, "w2", c.Worker)
		assert.JSONEq(t, `{"n":2}`, string(c.Result))
	}
}

func watchExpiry(t *testing.T, q Queue) {
	offer(t, q, "a")
	lease(t, q, "a", "w1")
	w := watch(t, q)
	w.until(t, "a", queue.Leased)
	q.expire(t)
	w.until(t, "a", queue.Free)
}

func watchEnds(t *testing.T, q Queue) {
	offer(t, q, "a", "b")
	w := watch(t, q)
	w.until(t, "b", queue.Free)
	w.stop()
	limit := time.NewTimer(patience) //troupe:seam a test of a queue, which no simulation runs
	defer limit.Stop()
	//troupe:select an end in the last instant may count or not
	select {
	case err := <-w.ended:
		require.NoError(t, err, "the end of the context is no error")
	case <-limit.C:
		require.FailNow(t, "Watch does not end with its context")
	}
	n := 0
	for _, err := range q.Watch(t.Context()) { // the loop may end early
		require.NoError(t, err)
		n++
		break
	}
	assert.Equal(t, 1, n)
	offer(t, q, "c")
}

// Each task has one result, also if several workers ask for it at the same time.
func workers(t *testing.T, q Queue) {
	const tasks, crew = 40, 8
	var names []string
	for i := range tasks {
		names = append(names, fmt.Sprint("t", i))
	}
	offer(t, q, names...)
	var mu sync.Mutex
	var wrong []error
	by, last := map[string]int{}, map[uint64]string{}
	var all sync.WaitGroup
	for i := range crew {
		all.Go(func() { //troupe:seam a test of a queue, which no simulation runs
			for _, task := range names {
				l, err := q.Lease(t.Context(), task, fmt.Sprint("w", i))
				var taken *queue.LeasedError
				if errors.As(err, &taken) || errors.Is(err, queue.ErrFinished) {
					continue
				}
				if err == nil {
					err = q.Finish(t.Context(), l, json.RawMessage(fmt.Sprintf(`{"by":%d}`, i)))
				}
				mu.Lock()
				if err != nil {
					wrong = append(wrong, err)
				}
				if first, twice := last[l.Fence]; twice {
					wrong = append(wrong, fmt.Errorf("fence %d is that of %s and of %s", l.Fence, first, task))
				}
				by[task]++
				last[l.Fence] = task
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Empty(t, wrong)
	assert.Len(t, by, tasks)
	for _, task := range names {
		assert.Equal(t, 1, by[task], task)
	}
}
