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

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
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
	failed  []error
	room    int
}

func newWriterRig(t *testing.T) *writerRig {
	t.Helper()
	s := sim.New(1)
	r := &writerRig{sched: s, in: &stdin{exec: s}}
	r.writer = &writer{
		exec: s, out: r.in,
		pressed: func() { r.pressed++ },
		failed:  func(err error) { r.failed = append(r.failed, err) },
		room:    func() { r.room++ },
	}
	t.Cleanup(s.Close)
	return r
}

func (r *writerRig) run(t *testing.T) {
	t.Helper()
	require.NoError(t, r.sched.Run(10_000))
}

func TestWritesAreQueuedAndWrittenTogether(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	for i := range 10 {
		require.NoError(t, r.Write(fmt.Appendf(nil, "%d\n", i), ledger.FromHost))
	}
	assert.True(t, r.Pending())
	assert.Empty(t, r.in.got.String(), "never inline")
	r.run(t)
	assert.Equal(t, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", r.in.got.String())
	assert.Equal(t, 1, r.in.writes)
	assert.Equal(t, 1, r.pressed)
	assert.False(t, r.Pending())
	require.NoError(t, r.Write([]byte("10\n"), ledger.FromHost))
	r.run(t)
	assert.True(t, strings.HasSuffix(r.in.got.String(), "9\n10\n"))
	assert.Zero(t, r.in.closed)
	assert.Zero(t, r.room)
}

func TestABlockedStdinIsPending(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	require.NoError(t, r.Write([]byte("a\n"), ledger.FromHost))
	r.run(t)
	assert.True(t, r.Pending())
	require.NoError(t, r.Write([]byte("b\n"), ledger.FromHost), "nothing blocks but the task")
	r.CloseAfterFlush()
	r.run(t)
	assert.Zero(t, r.in.closed, "not before what is queued")
	require.ErrorIs(t, r.Write([]byte("c\n"), ledger.FromHost), io.ErrClosedPipe)
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

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	require.ErrorIs(t, r.Write(make([]byte, writeBound+1), ledger.FromHost), session.ErrTooLarge, "however empty the queue")
	half := make([]byte, writeBound/2)
	require.NoError(t, r.Write(half, ledger.FromHost))
	r.run(t) // the first half is being written
	require.NoError(t, r.Write(half, ledger.FromHost))
	require.NoError(t, r.Write(half, ledger.FromHost), "the bound is of the queue")
	require.ErrorIs(t, r.Write(make([]byte, smallLine+1), ledger.FromHost), session.ErrNoRoom)
	for range 100 {
		require.NoError(t, r.Write(make([]byte, smallLine), ledger.FromHost), "a small line always finds room")
	}
	assert.Zero(t, r.room)
	close(r.in.blocked)
	r.run(t)
	assert.Equal(t, 1, r.room, "whoever was refused is told, once")
	assert.Equal(t, 3*len(half)+100*smallLine, r.in.got.Len())
	require.NoError(t, r.Write(make([]byte, writeBound), ledger.FromHost))
}

func TestWhatBecomesOfALineWithoutRoom(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	require.NoError(t, r.Write([]byte("\n"), ledger.FromHost))
	r.run(t)
	require.NoError(t, r.Write(make([]byte, writeBound), ledger.FromHost))
	for _, c := range []struct {
		name  string
		as    ledger.Class
		size  int
		want  error
		waits bool // somebody is told when there is room
	}{
		{"a message", ledger.FromHost, smallLine + 1, session.ErrNoRoom, true},
		{"a small message", ledger.FromHost, smallLine, nil, false},
		{"a message of any size", ledger.FromHost, writeBound + 1, session.ErrTooLarge, false},
		{"an answer", ledger.Answer, smallLine + 1, session.ErrNoRoom, true},
		{"a small answer", ledger.Answer, smallLine, nil, false},
		{"an answer of any size", ledger.Answer, writeBound + 1, session.ErrTooLarge, false},
		{"a small answer, again", ledger.Again, smallLine, nil, false},
		{"a denial", ledger.Denial, smallLine + 1, nil, false},
		{"a denial of any size", ledger.Denial, writeBound + 1, nil, false},
	} {
		r.refused = false
		require.ErrorIs(t, r.Write(make([]byte, c.size), c.as), c.want, c.name)
		assert.Equal(t, c.waits, r.refused, c.name)
	}
}

// TestAnswersThatAreNotTaken is what stops the reader, and what does not.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	blocked := make(chan struct{})
	r.in.blocked = blocked
	for range 3 {
		require.NoError(t, r.Write(make([]byte, answerBound), ledger.FromHost))
		require.NoError(t, r.Write(make([]byte, smallLine), ledger.FromHost))
		require.NoError(t, r.Write(make([]byte, smallLine+1), ledger.Answer))
	}
	require.Nil(t, r.crammed(), "what the user makes does not count")
	for range answerBound / smallLine {
		require.Nil(t, r.crammed())
		require.NoError(t, r.Write(make([]byte, smallLine), ledger.Answer))
		r.run(t) // the first is being written, which counts
	}
	require.Nil(t, r.crammed())
	require.NoError(t, r.Write([]byte("x"), ledger.Denial))
	eased := r.crammed()
	require.NotNil(t, eased)
	assert.Equal(t, eased, r.crammed())
	require.ErrorIs(t, r.Write([]byte("x"), ledger.Again), session.ErrNoRoom, "the agent has it before it, or reads nothing")
	require.NoError(t, r.Write([]byte("x"), ledger.Answer), "what was read is answered")
	r.run(t)
	require.NotNil(t, r.crammed())
	close(blocked)
	r.run(t)
	assert.Nil(t, r.crammed())
	_, open := <-eased
	assert.False(t, open)
	assert.Zero(t, r.answers)
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
				require.NoError(t, r.Write(make([]byte, answerBound), ledger.Denial))
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
			assert.Zero(t, r.answers)
			if name == "it has exited" {
				close(r.in.blocked) // the write that was under way ends after all
				r.run(t)
				assert.Zero(t, r.answers)
			}
		})
	}
}

func TestAFailingWrite(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	broken := errors.New("broken pipe")
	r.in.fail = broken
	require.NoError(t, r.Write([]byte("a\n"), ledger.FromHost))
	r.run(t)
	require.ErrorIs(t, r.Write([]byte("b\n"), ledger.FromHost), broken)
	assert.Equal(t, []error{broken}, r.failed)
	assert.Equal(t, 1, r.in.writes)
	assert.False(t, r.Pending())
	assert.Zero(t, r.in.closed)
	r.CloseAfterFlush()
	r.run(t)
	assert.Equal(t, 1, r.in.closed)
	assert.Len(t, r.failed, 1)
}

func TestAWriteThatFailsWhileMoreIsQueued(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.in.blocked = make(chan struct{})
	r.in.fail = errors.New("broken pipe")
	require.NoError(t, r.Write([]byte("a\n"), ledger.FromHost))
	r.run(t)
	require.NoError(t, r.Write([]byte("b\n"), ledger.FromHost))
	require.NoError(t, r.Write(make([]byte, writeBound-2), ledger.FromHost))
	require.ErrorIs(t, r.Write(make([]byte, smallLine+1), ledger.FromHost), session.ErrNoRoom)
	close(r.in.blocked)
	r.run(t)
	assert.Equal(t, 1, r.in.writes, "nothing more is tried")
	assert.Len(t, r.failed, 1)
	assert.Equal(t, 1, r.room, "whoever waits learns that it is over")
	assert.False(t, r.Pending())
}

func TestAWriterThatIsToldOfTheExit(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	r.fail(errExited)
	r.fail(errors.New("later"))
	require.ErrorIs(t, r.Write([]byte("a\n"), ledger.FromHost), errExited)
	r.run(t)
	assert.Zero(t, r.in.writes)
	assert.Empty(t, r.failed, "that is for writes")
}

// TestManyWriters writes from many goroutines: each line arrives whole, and the
// lines of one goroutine in order.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	in := &stdin{exec: kernel.GoExecutor{}, done: make(chan struct{})}
	w := &writer{exec: kernel.GoExecutor{}, out: in, pressed: func() {}, failed: func(error) {}, room: func() {}}
	const writers, lines = 8, 500
	var wg sync.WaitGroup
	for id := range writers {
		wg.Go(func() {
			for i := range lines {
				assert.NoError(t, w.Write(fmt.Appendf(nil, "%d %d %s\n", id, i, strings.Repeat("x", i%300)), ledger.FromHost))
			}
		})
	}
	wg.Wait()
	w.CloseAfterFlush()
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

func TestATaskWritesByItself(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	require.True(t, r.Claim())
	require.False(t, r.Claim(), "one at a time")
	require.NoError(t, r.Write([]byte("a\n"), ledger.FromHost))
	require.NoError(t, r.Write([]byte("b\n"), ledger.FromHost))
	require.NoError(t, r.sched.Run(100))
	require.Empty(t, r.in.got.String(), "no other task writes what was claimed")
	r.sched.Go(r.Flush)
	require.NoError(t, r.sched.Run(100))
	assert.Equal(t, "a\nb\n", r.in.got.String())
	assert.False(t, r.Pending())
	require.NoError(t, r.Write([]byte("c\n"), ledger.FromHost))
	require.NoError(t, r.sched.Run(100))
	assert.Equal(t, "a\nb\nc\n", r.in.got.String(), "then everything is as before")
}

// Whoever found no room is told as soon as there is some, not when nothing is
// queued any more.
func TestRoomIsToldWhileMoreIsQueued(t *testing.T) {
	t.Parallel()
	r := newWriterRig(t)
	first := make(chan struct{})
	r.in.blocked = first
	require.NoError(t, r.Write([]byte("a\n"), ledger.FromHost))
	r.run(t) // it waits in stdin
	r.mu.Lock()
	r.refused = true
	r.mu.Unlock()
	require.NoError(t, r.Write([]byte("b\n"), ledger.FromHost))
	second := make(chan struct{})
	r.in.blocked = second
	close(first)
	r.run(t)
	assert.Equal(t, 1, r.room, "b is still on its way")
	close(second)
	r.run(t)
	assert.Equal(t, "a\nb\n", r.in.got.String())
}
