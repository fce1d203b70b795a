package ui

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// newTestHub is a hub on a clock of the test's. runs counts how often it has been started.
func newTestHub(t *testing.T) (h *hub, mock *clock.Mock, runs, ends *atomic.Int64) {
	t.Helper()
	mock, runs, ends = clock.NewMock(), new(atomic.Int64), new(atomic.Int64)
	mock.Set(time.Unix(1_800_000_000, 0))
	h = newHub(kernel.NewClock(mock), kernel.GoExecutor{}, func(ctx context.Context) {
		runs.Add(1)
		<-ctx.Done()
		ends.Add(1)
	})
	t.Cleanup(h.close)
	return h, mock, runs, ends
}

func (h *hub) numbers(n int) {
	for i := range n {
		h.publish("event", "", i)
	}
}

// texts is what a reader gets now.
func texts(t *testing.T, r *reader) (all []string, lost string) {
	t.Helper()
	frames, lost, _, ok := r.take(t.Context(), kernel.GoExecutor{})
	require.True(t, ok)
	for _, f := range frames {
		all = append(all, string(f.data))
	}
	return all, lost
}

func TestAReaderComesBack(t *testing.T) {
	t.Parallel()
	h, _, _, _ := newTestHub(t)
	first := &reader{}
	start, ok := h.join(first, 0)
	require.True(t, ok)
	h.numbers(3)
	all, _ := texts(t, first)
	assert.Equal(t, []string{"0", "1", "2"}, all)
	h.leave(first)
	h.numbers(2)
	for since, want := range map[int64][]string{start + 1: {"1", "2", "0", "1"}, start + 4: {"1"}} {
		again := &reader{}
		at, ok := h.join(again, since)
		require.True(t, ok)
		assert.Equal(t, since, at)
		all, lost := texts(t, again)
		assert.Equal(t, want, all)
		assert.Empty(t, lost)
		h.leave(again)
	}
	// Numbers that this hub has not given yet, and those that it no longer has.
	h.numbers(keptFrames)
	for _, since := range []int64{1, start, start + 4, start + keptFrames + 100} {
		again := &reader{}
		_, ok := h.join(again, since)
		require.True(t, ok)
		all, lost := texts(t, again)
		assert.Empty(t, all)
		assert.NotEmpty(t, lost, since)
		h.leave(again)
	}
	for _, since := range []int64{start + 5, start + 5 + keptFrames} { // the first that is whole, and the last
		again := &reader{}
		_, _ = h.join(again, since)
		h.publish("event", "", "next")
		all, lost := texts(t, again)
		assert.Empty(t, lost)
		if since == start+5 {
			assert.Len(t, all, keptFrames)
			all, lost = texts(t, again)
			assert.Empty(t, lost)
		}
		assert.Equal(t, []string{`"next"`}, all)
		h.leave(again)
	}
}

// TestAReaderFallsBehind loses what waits, once, and reads on from then.
func TestAReaderFallsBehind(t *testing.T) {
	t.Parallel()
	h, _, _, _ := newTestHub(t)
	slow, quick := &reader{}, &reader{}
	start, _ := h.join(slow, 0)
	_, _ = h.join(quick, 0)
	h.numbers(maxBehind)
	all, _ := texts(t, quick)
	assert.Len(t, all, maxBehind)
	h.numbers(5)
	assert.Empty(t, slow.queue, "bounded")
	frames, lost, at, ok := slow.take(t.Context(), kernel.GoExecutor{})
	assert.True(t, ok)
	assert.Empty(t, frames)
	assert.NotEmpty(t, lost)
	assert.Equal(t, start+maxBehind+5, at, "the number of the last frame that it has lost")
	h.publish("event", "", "on")
	all, lost = texts(t, slow)
	assert.Equal(t, []string{`"on"`}, all)
	assert.Empty(t, lost)
	all, _ = texts(t, quick)
	assert.Len(t, all, 6, "the other reader has lost nothing")
}

func TestMessagesAreForTheirReaders(t *testing.T) {
	t.Parallel()
	h, _, _, _ := newTestHub(t)
	a, other := &reader{sessions: []string{"b", "a"}}, &reader{}
	start, _ := h.join(a, 0)
	_, _ = h.join(other, 0)
	assert.Equal(t, []string{"b", "a"}, h.watched())
	h.publish("message", "a", "of a")
	h.publish("message", "b", "of b")
	h.publish("message", "c", "of c")
	h.publish("tick", "", "tick")
	all, _ := texts(t, a)
	assert.Equal(t, []string{`"of a"`, `"of b"`, `"tick"`}, all)
	all, _ = texts(t, other)
	assert.Equal(t, []string{`"tick"`}, all)
	again := &reader{}
	_, _ = h.join(again, start)
	all, _ = texts(t, again)
	assert.Equal(t, []string{`"tick"`}, all, "also of those that are kept")
}

// TestTheHubRests is what a window costs that has no reader.
func TestTheHubRests(t *testing.T) {
	t.Parallel()
	h, mock, runs, ends := newTestHub(t)
	assert.Positive(t, h.publish("event", "", "an action"), "a number, and nothing else")
	assert.Empty(t, h.ring)
	enter := func() *reader {
		r := &reader{}
		_, ok := h.join(r, 0)
		require.True(t, ok)
		return r
	}
	wait := func(n *atomic.Int64, is int64) {
		t.Helper()
		require.Eventually(t, func() bool { return n.Load() == is }, 10*time.Second, time.Millisecond)
	}
	r := enter()
	wait(runs, 1)
	h.leave(r)
	mock.Add(linger - time.Second)
	r = enter() // in time
	mock.Add(linger)
	assert.Zero(t, ends.Load())
	h.numbers(1)
	h.leave(r)
	mock.Add(linger)
	wait(ends, 1)
	h.mu.Lock()
	assert.Nil(t, h.ring)
	h.mu.Unlock()
	last := h.seq
	h.leave(enter())
	wait(runs, 2)
	again := &reader{}
	_, _ = h.join(again, last-1)
	_, lost := texts(t, again)
	assert.NotEmpty(t, lost, "what was between is not known")
	h.close()
	assert.EqualValues(t, 2, ends.Load())
	_, _, _, ok := again.take(t.Context(), kernel.GoExecutor{})
	assert.False(t, ok)
	_, ok = h.join(&reader{}, 0)
	assert.False(t, ok)
}

func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	h, _, _, _ := newTestHub(t)
	for range maxReaders {
		_, ok := h.join(&reader{}, 0)
		require.True(t, ok)
	}
	_, ok := h.join(&reader{}, 0)
	assert.False(t, ok)
}

func TestALogoutEndsItsStreams(t *testing.T) {
	t.Parallel()
	h, _, _, _ := newTestHub(t)
	mine, other := &reader{login: &login{}}, &reader{login: &login{}}
	_, _ = h.join(mine, 0)
	_, _ = h.join(other, 0)
	h.drop(mine.login)
	_, _, _, ok := mine.take(t.Context(), kernel.GoExecutor{})
	assert.False(t, ok)
	h.numbers(1)
	all, _ := texts(t, other)
	assert.Len(t, all, 1)
}

// BenchmarkPublish is what a frame costs who makes it, with readers that read.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHub(kernel.NewClock(clock.New()), kernel.GoExecutor{}, func(ctx context.Context) { <-ctx.Done() })
			defer h.close()
			for range n {
				r := &reader{}
				_, _ = h.join(r, 0)
				go func() {
					for ok := true; ok; {
						_, _, _, ok = r.take(context.Background(), kernel.GoExecutor{})
					}
				}()
			}
			v := actorFrame{Session: "s", Name: "router#2", Incarnation: 2, State: "running"}
			b.ReportAllocs()
			for b.Loop() {
				h.publish("actor", "", v)
			}
		})
	}
}
