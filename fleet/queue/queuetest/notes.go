package queuetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// The calls that a queue may lack, see Queue.Lacks.
const (
	lackNote   = "Note"
	lackDecide = "Decide"
	lackResult = "Result"
)

// saysSo checks that a call which the queue lacks returns the error for that.
func (q Queue) saysSo(t *testing.T, call string) {
	t.Helper()
	var err error
	switch call {
	case lackNote:
		offer(t, q, "a")
		err = q.Note(t.Context(), lease(t, q, "a", "w"), json.RawMessage(`{}`))
	case lackDecide:
		err = q.Decide(t.Context(), queue.Decision{ID: "d", Op: "pause"})
	case lackResult:
		err = q.Offer(t.Context(), queue.Offer{Task: "a", Hash: "h", Fence: 1, Result: json.RawMessage(`{}`)})
	}
	require.ErrorIs(t, err, errors.ErrUnsupported, call)
}

// One call extends the leases of a program: each for itself.
func extendedTogether(t *testing.T, q Queue) {
	assert.Empty(t, q.Extend(t.Context()), "no leases")
	offer(t, q, "a", "b", "c", "d")
	var all []queue.Lease
	for _, task := range []string{"a", "b", "c", "d"} {
		all = append(all, lease(t, q, task, "w1"))
	}
	require.NoError(t, q.Release(t.Context(), all[0]))
	require.NoError(t, q.Finish(t.Context(), all[2], json.RawMessage(`{}`)))
	if q.Half != nil {
		q.Half()
	}
	errs := q.Extend(t.Context(), all...)
	require.Len(t, errs, len(all))
	for i, lost := range []bool{true, false, true, false} {
		if lost {
			require.ErrorIs(t, errs[i], queue.ErrLeaseLost, all[i].Task)
		} else {
			require.NoError(t, errs[i], all[i].Task)
		}
	}
	if q.Half != nil {
		q.Half()
	}
	for _, i := range []int{1, 3} {
		require.NoError(t, q.Finish(t.Context(), all[i], json.RawMessage(`{}`)), "%s was extended, and half of its time is over", all[i].Task)
	}
}

func note(t *testing.T, q Queue, l queue.Lease, starts int, text string) {
	t.Helper()
	l.Starts = starts
	require.NoError(t, q.Note(t.Context(), l, json.RawMessage(text)))
}

func notes(t *testing.T, q Queue) {
	offer(t, q, "a", "b")
	l := lease(t, q, "a", "w1")
	assert.Zero(t, l.Starts)
	assert.Empty(t, l.Note, "there is no note yet")
	note(t, q, l, 1, `{"session":"s1"}`)
	require.NoError(t, q.extend(t, l), "the lease is as good as before")
	raw := json.RawMessage(`{"session":"ü\u0000","n":12345678901234567890}`)
	want := string(raw)
	l.Starts = 2
	require.NoError(t, q.Note(t.Context(), l, raw))
	clear(raw) // the queue keeps a copy
	require.NoError(t, q.Release(t.Context(), l))
	other := q.again(t)
	next := lease(t, other, "a", "w2")
	assert.Equal(t, 2, next.Starts)
	assert.Equal(t, want, string(next.Note), "the last one")
	require.NoError(t, other.Release(t.Context(), next))
	next = lease(t, q, "a", "w1")
	assert.Equal(t, 2, next.Starts, "a holder who writes no note leaves the one before")
	assert.Equal(t, want, string(next.Note))
	b := lease(t, q, "b", "w1")
	assert.Zero(t, b.Starts, "it is another task")
	assert.Empty(t, b.Note)
	note(t, q, next, 3, `{}`)
	require.NoError(t, q.Finish(t.Context(), next, json.RawMessage(`{"n":1}`)))
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, q, "a")))
}

func noteOutlives(t *testing.T, q Queue) {
	offer(t, q, "a")
	note(t, q, lease(t, q, "a", "w1"), 7, `{"usd":1.5}`)
	q.expire(t)
	l := lease(t, q.again(t), "a", "w2")
	assert.Equal(t, 7, l.Starts)
	assert.JSONEq(t, `{"usd":1.5}`, string(l.Note))
}

func noteLost(t *testing.T, q Queue) {
	offer(t, q, "a")
	unnoted := func(l queue.Lease, why string) {
		t.Helper()
		l.Starts = 9
		require.ErrorIs(t, q.Note(t.Context(), l, json.RawMessage(`{"void":true}`)), queue.ErrLeaseLost, why)
	}
	unnoted(queue.Lease{Task: "b", Worker: "w", Fence: 1}, "the task is not known")
	unnoted(queue.Lease{Task: "a", Worker: "w", Fence: 1}, "the task is free")
	old := lease(t, q, "a", "w1")
	note(t, q, old, 1, `{"by":"w1"}`)
	forged := old
	forged.Fence++
	unnoted(forged, "it is no lease")
	require.NoError(t, q.Release(t.Context(), old))
	unnoted(old, "it was given back")
	l := lease(t, q, "a", "w2")
	unnoted(old, "another worker has the task")
	assert.Equal(t, 1, l.Starts)
	assert.JSONEq(t, `{"by":"w1"}`, string(l.Note))
	if q.Expire != nil {
		q.Expire()
		unnoted(l, "it has ended")
		l = lease(t, q, "a", "w3")
		assert.Equal(t, 1, l.Starts)
	}
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`)))
	unnoted(l, "the task is over")
}

func watchNotes(t *testing.T, q Queue) {
	other := q.again(t)
	offer(t, q, "a")
	w := watch(t, other)
	l := lease(t, q, "a", "w1")
	w.until(t, "a", queue.Leased)
	note(t, q, l, 1, `{"turn":1}`)
	assert.JSONEq(t, `{"turn":1}`, string(w.noted(t, "a").Note))
	note(t, q, l, 1, `{"turn":2}`)
	c := w.noted(t, "a")
	assert.JSONEq(t, `{"turn":2}`, string(c.Note))
	assert.Equal(t, l.Fence, c.Fence)
	assert.Equal(t, "w1", c.Worker)
	late := watch(t, other)
	assert.JSONEq(t, `{"turn":2}`, string(late.noted(t, "a").Note), "a loop that begins later has it, too")
	require.NoError(t, q.Release(t.Context(), l))
	assert.JSONEq(t, `{"turn":2}`, string(w.until(t, "a", queue.Free).Note), "it outlives the lease")
}

// noted returns the next change of a task that is leased and has another note than the last one.
func (w *watching) noted(t *testing.T, task string) queue.Change {
	t.Helper()
	for {
		c := w.until(t, task, queue.Leased)
		if text := string(c.Note); text != "" && text != w.last {
			w.last = text
			return c
		}
	}
}

func noteAndFinish(t *testing.T, q Queue) {
	for i := range 50 {
		task := fmt.Sprint("t", i)
		offer(t, q, task)
		l := lease(t, q, task, "w1")
		both(
			func() {
				both(
					func() {
						if err := q.Note(t.Context(), l, json.RawMessage(`{}`)); err != nil {
							assert.ErrorIs(t, err, queue.ErrLeaseLost)
						}
					},
					func() {
						if err := q.Extend(t.Context(), l)[0]; err != nil {
							assert.ErrorIs(t, err, queue.ErrLeaseLost)
						}
					})
			},
			func() { assert.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`))) })
		_, err := q.Lease(t.Context(), task, "w2")
		require.ErrorIs(t, err, queue.ErrFinished)
	}
}

// decided returns the next decision.
func (w *watching) decided(t *testing.T) queue.Decision {
	t.Helper()
	return *w.next(t, "a decision", func(c queue.Change) bool { return c.Decision != nil }).Decision
}

func decide(t *testing.T, q Queue, id string) queue.Decision {
	t.Helper()
	d := queue.Decision{ID: id, Op: "cancel", Task: "a", Arg: "ü\n", By: "u@h", At: time.Unix(1e9, 123456789).In(time.FixedZone("", 3600))}
	require.NoError(t, q.Decide(t.Context(), d))
	return d
}

// same checks a decision that has come over the network.
func same(t *testing.T, want, got queue.Decision) {
	t.Helper()
	assert.True(t, want.At.Equal(got.At), "%v, %v", want.At, got.At)
	want.At, got.At = time.Time{}, time.Time{}
	assert.Equal(t, want, got)
}

func decision(t *testing.T, q Queue) {
	other := q.again(t)
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	w := watch(t, other)
	w.until(t, "a", queue.Leased)
	d := decide(t, q, "A.b_c-1#2")
	same(t, d, w.decided(t))
	require.NoError(t, other.Decide(t.Context(), d), "the same one again")
	next := decide(t, other, "d2")
	same(t, next, w.decided(t))
	late := watch(t, q.again(t))
	same(t, d, late.decided(t))
	same(t, next, late.decided(t))
	require.NoError(t, q.Finish(t.Context(), l, json.RawMessage(`{}`)), "a decision is none of the queue's matters")
}

// The first decision with an ID counts, for all programs.
func decidedTwice(t *testing.T, q Queue) {
	const crew = 6
	var all sync.WaitGroup
	errs := make([]error, crew)
	for i := range crew {
		mine := q.again(t)
		all.Go(func() { //troupe:seam a test of a queue, which no simulation runs
			errs[i] = mine.Decide(t.Context(), queue.Decision{ID: "answer", Op: "allow", Arg: strconv.Itoa(i), At: time.Unix(1e9, 0)})
		})
	}
	all.Wait()
	first := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, first, "two of them count")
			first = i
			continue
		}
		require.ErrorIs(t, err, queue.ErrDecided)
	}
	require.NotEqual(t, -1, first, "none of them counts")
	for _, handle := range []Queue{q, q.again(t)} {
		assert.Equal(t, strconv.Itoa(first), watch(t, handle).decided(t).Arg)
	}
	require.NoError(t, q.Decide(t.Context(), queue.Decision{ID: "answer", Op: "allow", Arg: strconv.Itoa(first), At: time.Unix(1e9, 0)}))
}

// All decisions come to all programs, in one order.
func decisions(t *testing.T, q Queue) {
	const n = 30
	other := q.again(t)
	offer(t, q, "a")
	early := watch(t, other)
	early.until(t, "a", queue.Free)
	both(
		func() {
			for i := range n {
				assert.NoError(t, q.Decide(t.Context(), queue.Decision{ID: fmt.Sprint("x", i), Op: "pause"}))
			}
		},
		func() {
			for i := range n {
				assert.NoError(t, other.Decide(t.Context(), queue.Decision{ID: fmt.Sprint("y", i), Op: "resume"}))
			}
		})
	var orders [2][]string
	for i, w := range []*watching{early, watch(t, q)} {
		for range 2 * n {
			orders[i] = append(orders[i], w.decided(t).ID)
		}
	}
	assert.Equal(t, orders[0], orders[1])
}

func offeredResult(t *testing.T, q Queue) {
	offer(t, q, "free", "over")
	require.NoError(t, q.Finish(t.Context(), lease(t, q, "over", "w1"), json.RawMessage(`{"n":1}`)))
	w := watch(t, q.again(t))
	raw := json.RawMessage(`{"n":2}`)
	for _, task := range []string{"free", "over", "new"} {
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: task, Hash: "h", Fence: 41, Result: raw}))
	}
	clear(raw) // the queue keeps a copy
	for _, task := range []string{"free", "new"} {
		c := w.until(t, task, queue.Over)
		assert.JSONEq(t, `{"n":2}`, string(c.Result))
		assert.EqualValues(t, 41, c.Fence)
		assert.Empty(t, c.Worker)
	}
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, q, "over")), "the first one counts")
	for _, task := range []string{"free", "over", "new"} {
		_, err := q.Lease(t.Context(), task, "w2")
		require.ErrorIs(t, err, queue.ErrFinished)
		offer(t, q, task) // by a program that does not know the result
		require.NoError(t, q.Offer(t.Context(), queue.Offer{Task: task, Hash: "h", Fence: 43, Result: json.RawMessage(`{"n":3}`)}))
	}
	assert.JSONEq(t, `{"n":2}`, string(resultOf(t, q, "new")))
	require.ErrorIs(t, q.Offer(t.Context(), queue.Offer{Task: "new", Hash: "h2", Fence: 41, Result: json.RawMessage(`{}`)}), queue.ErrOtherHash)
}

// The result of a journal is the one that a reader has had: an attempt that runs is void.
func offeredWhileLeased(t *testing.T, q Queue) {
	offer(t, q, "a")
	l := lease(t, q, "a", "w1")
	require.NoError(t, q.again(t).Offer(t.Context(), queue.Offer{Task: "a", Hash: "h", Fence: l.Fence, Result: json.RawMessage(`{"n":1}`)}))
	lost(t, q, l)
	assert.JSONEq(t, `{"n":1}`, string(resultOf(t, q, "a")))
}
