package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// stdin is an agent's stdin that blocks and fails on request.
type stdin struct {
	exec    kernel.Executor
	mu      sync.Mutex
	got     bytes.Buffer
	writes  int
	closed  int
	blocked chan struct{}
	fail    error
	done    chan struct{} // if set, closed when stdin is
}

func (s *stdin) Write(p []byte) (int, error) {
	if s.blocked != nil {
		if err := s.exec.Await(context.Background(), s.blocked); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.fail != nil {
		return 0, s.fail
	}
	return s.got.Write(p)
}

func (s *stdin) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	if s.done != nil {
		close(s.done)
	}
	return nil
}

type writerRig struct {
	*writer
	sched   *sim.Scheduler
	in      *stdin
	pressed int
	failed  int
	taken   int64
}

func newWriterRig(t *testing.T) *writerRig {
	t.Helper()
	s := sim.New(1)
	r := &writerRig{sched: s, in: &stdin{exec: s}}
	r.writer = &writer{
		out:     r.in,
		pressed: func() { r.pressed++ },
		failed:  func() { r.failed++ },
		taken:   func(n int64) { r.taken += n },
	}
	t.Cleanup(s.Close)
	return r
}

// Write queues lines as the transport actor does, and says why they were dropped.
func (r *writerRig) Write(lines []byte, as machine.Class) error {
	if r.writer.Write(lines, as) {
		r.sched.Go(r.writer.run)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && r.ending {
		return io.ErrClosedPipe
	}
	return r.err
}

func (r *writerRig) CloseAfterFlush() {
	if r.writer.CloseAfterFlush() {
		r.sched.Go(r.writer.run)
	}
}

func (r *writerRig) Pending() bool { return r.busy.Load() }

func (r *writerRig) run(t *testing.T) {
	t.Helper()
	require.NoError(t, r.sched.Run(10_000))
}

func TestWritesAreQueuedAndWrittenTogether(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	for i := range 10 {
		require.NoError(t, r.Write(fmt.Appendf(nil, "%d\n", i), machine.FromHost))
	}
	assert.True(t, r.Pending())
	assert.Empty(t, r.in.got.String(), "never inline")
	r.run(t)
	assert.Equal(t, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", r.in.got.String())
	assert.Equal(t, 2, r.in.writes, "the first line goes at once, the others together")
	assert.Equal(t, 2, r.pressed)
	assert.False(t, r.Pending())
	require.NoError(t, r.Write([]byte("10\n"), machine.FromHost))
	r.run(t)
	assert.True(t, strings.HasSuffix(r.in.got.String(), "9\n10\n"))
	assert.Zero(t, r.in.closed)
	assert.Zero(t, r.taken, "not worth a word")
}

func TestABlockedStdinIsPending(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	require.NoError(t, r.Write([]byte("a\n"), machine.FromHost))
	r.run(t)
	assert.True(t, r.Pending())
	require.NoError(t, r.Write([]byte("b\n"), machine.FromHost), "nothing blocks but the task")
	r.CloseAfterFlush()
	r.run(t)
	assert.Zero(t, r.in.closed, "not before what is queued")
	require.ErrorIs(t, r.Write([]byte("c\n"), machine.FromHost), io.ErrClosedPipe)
	close(r.in.blocked)
	r.run(t)
	assert.Equal(t, "a\nb\n", r.in.got.String())
	assert.Equal(t, 1, r.in.closed)
	assert.False(t, r.Pending())
}

func TestClosingAnIdleWriter(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.CloseAfterFlush()
	r.run(t)
	assert.Equal(t, 1, r.in.closed)
	assert.Zero(t, r.in.writes)
	assert.Zero(t, r.pressed)
}

func TestWhatTheAgentHasTakenIsSaid(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	require.NoError(t, r.Write(make([]byte, takenStep-1), machine.FromHost))
	r.run(t)
	assert.Zero(t, r.taken, "not for each line")
	require.NoError(t, r.Write([]byte("\n"), machine.FromHost))
	r.run(t)
	assert.EqualValues(t, takenStep, r.taken)
	r.in.blocked = make(chan struct{})
	require.NoError(t, r.Write(make([]byte, 2*takenStep), machine.FromHost))
	r.run(t)
	assert.EqualValues(t, takenStep, r.taken, "not before it is written")
	close(r.in.blocked)
	r.run(t)
	assert.EqualValues(t, 3*takenStep, r.taken)
}

// TestAnswersThatAreNotTaken is what stops the reader, and what does not.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	blocked := make(chan struct{})
	r.in.blocked = blocked
	for range 3 {
		require.NoError(t, r.Write(make([]byte, answerBound), machine.FromHost))
		require.NoError(t, r.Write(make([]byte, smallLine), machine.FromHost))
		require.NoError(t, r.Write(make([]byte, smallLine+1), machine.Answer))
	}
	require.Nil(t, r.crammed(), "what the user makes does not count")
	for range answerBound / smallLine {
		require.Nil(t, r.crammed())
		require.NoError(t, r.Write(make([]byte, smallLine), machine.Answer))
		r.run(t) // the first is being written, which counts
	}
	require.Nil(t, r.crammed())
	require.NoError(t, r.Write([]byte("x"), machine.Denial))
	eased := r.crammed()
	require.NotNil(t, eased)
	assert.Equal(t, eased, r.crammed())
	queued := len(r.queue)
	require.NoError(t, r.Write([]byte("x"), machine.Again))
	assert.Len(t, r.queue, queued, "the agent has it before it, or reads nothing")
	require.NoError(t, r.Write([]byte("x"), machine.Answer))
	assert.Len(t, r.queue, queued+1, "what was read is answered")
	r.run(t)
	require.NotNil(t, r.crammed())
	close(blocked)
	r.run(t)
	assert.Nil(t, r.crammed())
	_, open := <-eased
	assert.False(t, open)
	assert.Zero(t, r.answers.Load())
}

func TestNobodyWaitsForAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(r *writerRig){
		"it has exited":      func(r *writerRig) { r.fail(errExited) },
		"it does not listen": func(r *writerRig) { r.in.fail = errors.New("broken pipe"); close(r.in.blocked) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newWriterRig(t)
			r.in.blocked = make(chan struct{})
			for range 2 {
				require.NoError(t, r.Write(make([]byte, answerBound), machine.Denial))
				r.run(t)
			}
			eased := r.crammed()
			require.NotNil(t, eased)
			gone(r)
			r.run(t)
			assert.Nil(t, r.crammed())
			_, open := <-eased
			assert.False(t, open)
			assert.Nil(t, r.queue, "what nobody will take is not kept")
			assert.Zero(t, r.answers.Load())
			if name == "it has exited" {
				close(r.in.blocked) // the write that was under way ends after all
				r.run(t)
				assert.Zero(t, r.answers.Load())
			}
		})
	}
}

func TestAFailingWrite(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	broken := errors.New("broken pipe")
	r.in.fail = broken
	require.NoError(t, r.Write([]byte("a\n"), machine.FromHost))
	r.run(t)
	require.ErrorIs(t, r.Write([]byte("b\n"), machine.FromHost), broken)
	assert.Equal(t, 1, r.failed)
	assert.Equal(t, 1, r.in.writes)
	assert.False(t, r.Pending())
	assert.Zero(t, r.in.closed)
	r.CloseAfterFlush()
	r.run(t)
	assert.Equal(t, 1, r.in.closed)
	assert.Equal(t, 1, r.failed)
}

func TestAWriteThatFailsWhileMoreIsQueued(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	r.in.fail = errors.New("broken pipe")
	require.NoError(t, r.Write([]byte("a\n"), machine.FromHost))
	r.run(t)
	require.NoError(t, r.Write([]byte("b\n"), machine.FromHost))
	close(r.in.blocked)
	r.run(t)
	assert.Equal(t, 1, r.in.writes, "nothing more is tried")
	assert.Equal(t, 1, r.failed)
	assert.Zero(t, r.taken)
	assert.False(t, r.Pending())
}

func TestAWriterThatIsToldOfTheExit(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.fail(errExited)
	r.fail(errors.New("later"))
	require.ErrorIs(t, r.Write([]byte("a\n"), machine.FromHost), errExited)
	r.run(t)
	assert.Zero(t, r.in.writes)
	assert.Zero(t, r.failed, "that is for writes")
}

// TestManyWriters writes from many goroutines: each line arrives whole, and the
// lines of one goroutine in order.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	in := &stdin{exec: kernel.GoExecutor{}, done: make(chan struct{})}
	w := &writer{out: in, pressed: func() {}, failed: func() {}, taken: func(int64) {}}
	write := func(start bool) {
		if start {
			w.run()
		}
	}
	const writers, lines = 8, 500
	var wg sync.WaitGroup
	for id := range writers {
		wg.Go(func() {
			for i := range lines {
				write(w.Write(fmt.Appendf(nil, "%d %d %s\n", id, i, strings.Repeat("x", i%300)), machine.FromHost))
			}
		})
	}
	wg.Wait()
	write(w.CloseAfterFlush())
	<-in.done
	next := make([]int, writers)
	for _, line := range strings.Split(strings.TrimSuffix(in.got.String(), "\n"), "\n") {
		var id, i int
		var pad string
		_, _ = fmt.Sscanf(line, "%d %d %s", &id, &i, &pad)
		require.Equal(t, next[id], i)
		require.Len(t, pad, i%300)
		next[id]++
	}
	for _, n := range next {
		assert.Equal(t, lines, n)
	}
}

// A line that is dropped takes no room: the routing has counted it.
func TestWhatIsDroppedCountsAsTaken(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	blocked := make(chan struct{})
	r.in.blocked = blocked
	require.NoError(t, r.Write(make([]byte, answerBound+1), machine.Denial))
	require.NoError(t, r.Write(make([]byte, 2*takenStep), machine.Again))
	close(blocked)
	r.run(t)
	assert.Equal(t, answerBound+1, r.in.got.Len())
	assert.EqualValues(t, answerBound+1+2*takenStep, r.taken)
}

// What is taken is said while more is queued: somebody may wait for that room.
func TestWhatIsTakenIsSaidWhileMoreIsQueued(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	first := make(chan struct{})
	r.in.blocked = first
	require.NoError(t, r.Write(make([]byte, takenStep), machine.FromHost))
	r.run(t) // it waits in stdin
	require.NoError(t, r.Write([]byte("b\n"), machine.FromHost))
	second := make(chan struct{})
	r.in.blocked = second
	close(first)
	r.run(t)
	assert.EqualValues(t, takenStep, r.taken, "b is still on its way")
	close(second)
	r.run(t)
	assert.Equal(t, takenStep+len("b\n"), r.in.got.Len())
}
