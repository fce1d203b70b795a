package user_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestBudgetDefaults(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	b := user.NewBudget(0)
	require.NoError(t, b.Acquire(t.Context(), s, "a", user.DefaultBudget))
	require.NoError(t, b.Acquire(t.Context(), s, "a", 1), "one reader may overdraw it")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Acquire(ctx, s, "b", 1), context.Canceled)
	assert.EqualValues(t, user.DefaultBudget+1, b.Used())

	var none *user.Budget
	require.NoError(t, none.Acquire(t.Context(), s, "a", 1<<40))
	none.Release(1)
	none.Charge(1)
	none.Done("a")
	assert.Zero(t, none.Used())
}

func TestABudgetWaitsForRoom(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	b := user.NewBudget(100)
	require.NoError(t, b.Acquire(t.Context(), s, "a", 110))
	granted := time.Duration(-1)
	start := s.Now()
	s.Go(func() {
		assert.NoError(t, b.Acquire(context.Background(), s, "b", 50))
		granted = s.Now().Sub(start)
	})
	s.AfterFunc(time.Second, func() { b.Release(50) })
	s.AfterFunc(2*time.Second, func() { b.Charge(-10) })
	require.NoError(t, s.Run(100))
	assert.Equal(t, 2*time.Second, granted)
	assert.EqualValues(t, 100, b.Used())
}

func TestGrowingLinesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		s := sim.New(seed)
		b := user.NewBudget(4 << 20)
		done, most := 0, int64(0)
		for who := range 8 {
			s.Go(func() {
				held := int64(0)
				for held < 3<<20 {
					if !assert.NoError(t, b.Acquire(context.Background(), s, who, 1<<20)) {
						return
					}
					held += 1 << 20
					most = max(most, b.Used())
					rest(s, time.Millisecond)
				}
				b.Done(who)
				rest(s, 10*time.Millisecond) // until it is read
				b.Release(held)
				done++
			})
		}
		require.NoError(t, s.Run(10_000))
		require.Equal(t, 8, done, "seed %d", seed)
		require.Zero(t, b.Used())
		s.Close()
	}
}

func TestOneLineAtATimeOverdraws(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	b := user.NewBudget(100)
	require.NoError(t, b.Acquire(t.Context(), s, "a", 90))
	require.NoError(t, b.Acquire(t.Context(), s, "a", 90), "it overdraws")
	b.Done("b")
	b.Done("a")
	granted := 0
	for _, who := range []string{"a", "b"} {
		s.Go(func() {
			assert.NoError(t, b.Acquire(context.Background(), s, who, 50))
			granted++
		})
	}
	require.NoError(t, s.Run(100))
	require.Zero(t, granted, "the debt is not paid")
	b.Release(180)
	require.NoError(t, s.Run(100))
	assert.Equal(t, 2, granted)
	assert.EqualValues(t, 100, b.Used())
	s.Close()
}

// rest lets virtual time go by for the task that calls it.
func rest(s *sim.Scheduler, d time.Duration) {
	over := make(chan struct{})
	s.AfterFunc(d, func() { close(over) })
	_ = s.Await(context.Background(), over)
}

// large is a rig whose lines draw on a budget, which the reader has charged.
func large(t *testing.T, change ...func(*sideConfig)) (*rig, *user.Budget) {
	t.Helper()
	b := user.NewBudget(64 << 20)
	r := newRig(t, append(change, func(c *sideConfig) { c.Budget = b })...)
	require.Same(t, b, r.Budget())
	return r, b
}

// putLarge gives large lines to the inbox as the reader does.
func (r *rig) putLarge(lines ...string) {
	for _, line := range lines {
		r.Budget().Charge(int64(len(line)))
		r.read(line)
	}
}

func TestLargeLinesGiveTheirBudgetBack(t *testing.T) {
	t.Parallel()
	const size = 2 << 20
	content, partial := padded("assistant", size), padded("stream_event", size)
	control := padded("keep_alive", size)
	for name, c := range map[string]struct {
		change func(*sideConfig)
		use    func(r *rig)
	}{
		"when it is read": {nil, func(r *rig) {
			r.putLarge(content, partial)
			_, err := r.drain(r.consume(), nil)
			require.NoError(t, err)
		}},
		"when it was for us": {nil, func(r *rig) {
			r.putLarge(control)
		}},
		"when it is discarded": {func(c *sideConfig) { c.Discard = true }, func(r *rig) {
			r.putLarge(content)
		}},
		"when the session has ended": {nil, func(r *rig) {
			r.putLarge(content)
			r.BeginClosing(true)
			r.Terminate(nil)
			require.Zero(r.t, r.Budget().Used(), "although it can still be read")
			_, _ = r.drain(r.consume(), nil)
		}},
		"when a partial is dropped": {limits(session.Limits{Bytes: 1 << 20, HardBytes: 3 << 20}), func(r *rig) {
			r.putLarge(partial)
			require.EqualValues(r.t, size, r.Budget().Used())
			r.putLarge(content)
			require.Len(r.t, eventsOf[*session.MessagesDropped](r), 1)
			require.EqualValues(r.t, size, r.Budget().Used())
			_, err := r.drain(r.consume(), nil)
			require.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*sideConfig) {}
			}
			r, b := large(t, change)
			c.use(r)
			assert.Zero(t, b.Used())
			assert.Zero(t, r.Snapshot().UnreadBytes)
		})
	}
}

func TestASmallLineIsFree(t *testing.T) {
	t.Parallel()
	r, b := large(t)
	r.read(padded("assistant", machine.LargeLine))
	_, err := r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.Zero(t, b.Used(), "neither taken nor given")
}

func TestASessionThatEndedOwesNothing(t *testing.T) {
	t.Parallel()
	r, b := large(t)
	r.putLarge(padded("assistant", 2<<20))
	r.putLarge(padded("assistant", 3<<20))
	r.BeginClosing(false)
	broken := errors.New("broken")
	r.Terminate(broken)
	assert.Zero(t, b.Used(), "whether anybody ever reads it is not the runtime's business any more")
	lines, err := r.drain(r.consume(), nil)
	require.ErrorIs(t, err, broken)
	assert.Len(t, lines, 2, "it can still be read")
	assert.Zero(t, b.Used())
}

// TestOutputThatComesTooLate is what a reader puts that could not be ended with
// its link.
func TestOutputThatComesTooLate(t *testing.T) {
	t.Parallel()
	r, b := large(t)
	r.EndOfInput()
	r.TakeDue()
	r.Budget().Charge(2 << 20)
	assert.False(t, r.Put(r.frames(padded("assistant", 2<<20), assistant(1))))
	assert.False(t, r.PutSkipped(protocol.OversizeFrame([]byte(`{"type":"result"`), 1<<30, 1<<20)))
	assert.Zero(t, b.Used())
	assert.Zero(t, r.Snapshot().Unread)
	assert.True(t, r.Drained())
}

var errEnough = errors.New("enough")

func TestWaitingForABudgetEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	b := user.NewBudget(1)
	require.NoError(t, b.Acquire(t.Context(), s, "a", 2))
	ctx, cancel := context.WithCancelCause(t.Context())
	s.AfterFunc(time.Second, func() { cancel(errEnough) })
	require.ErrorIs(t, b.Acquire(ctx, s, "b", 1), errEnough)
	assert.EqualValues(t, 2, b.Used())
}
