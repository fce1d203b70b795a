package user_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/session"
)

func TestOneConsumerAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.consume()
	_, err := r.Consume()
	require.ErrorIs(t, err, session.ErrBusy)
	r.read(assistant(1), assistant(2))
	_, err = first.Next(t.Context())
	require.NoError(t, err)

	first.Release()
	second := r.consume()
	first.Release() // again, and too late: the stream is the second's
	_, err = r.Consume()
	require.ErrorIs(t, err, session.ErrBusy)
	lines, err := r.drain(second, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{assistant(2)}, lines, "what was not read stays")
}

func TestNextWaitsForAMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.consume()
	var got string
	r.sched.Go(func() {
		e, err := c.Next(context.Background())
		assert.NoError(t, err)
		got = string(e.Frame.Raw)
	})
	require.NoError(t, r.sched.Run(100))
	require.Empty(t, got)
	r.read(assistant(1))
	require.NoError(t, r.sched.Run(100))
	assert.Equal(t, assistant(1), got)
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := r.consume().Next(ctx)
	require.ErrorIs(t, err, why)
}

func TestTheStreamEndsAfterWhatItHolds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct{ reason, want error }{
		"normal end": {nil, io.EOF},
		"failure":    {broken, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.read(assistant(1), assistant(2))
			consumer := r.consume()
			r.Terminate(c.reason)
			r.Terminate(errors.New("too late"))
			lines, err := r.drain(consumer, nil)
			assert.Equal(t, []string{assistant(1), assistant(2)}, lines)
			require.ErrorIs(t, err, c.want)
			_, err = consumer.Next(t.Context())
			require.ErrorIs(t, err, c.want, "and again")
			assert.Equal(t, c.reason, r.Reason())
			assert.True(t, r.Terminated())
			assert.True(t, isClosed(r.Done()))
		})
	}
}

func TestTheUsersCloseKeepsWhatNobodyHasRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 2}))
	r.read(assistant(1), assistant(2))
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	r.BeginClosing(true)
	assert.True(t, isClosed(wait))
	r.read(assistant(3), assistant(4))
	assert.True(t, r.mayRead(), "the close does not wait for a reader")
	r.Terminate(nil)
	first := r.consume()
	e, err := first.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, assistant(1), string(e.Frame.Raw))
	first.Release()
	lines, err := r.drain(r.consume(), nil)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{assistant(2), assistant(3), assistant(4)}, lines)
}

func TestTheUsersCloseKeepsNoMoreThanTheHardBound(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 2, Bytes: 100, HardBytes: 1000}))
	r.BeginClosing(true)
	n := 0
	for ; r.mayRead() && n < 100; n++ {
		r.read(assistant(n))
	}
	assert.Equal(t, 100, n, "the close does not wait for a reader")
	r.Terminate(nil)
	lines, err := r.drain(r.consume(), nil)
	require.ErrorIs(t, err, io.EOF)
	require.NotEmpty(t, lines)
	assert.Equal(t, assistant(0), lines[0], "the oldest are kept")
	var warned bool
	for _, e := range r.events {
		if w, ok := e.(*session.WarningIssued); ok {
			warned = true
			assert.Contains(t, w.Problem, fmt.Sprint(": ", n-len(lines)))
		}
	}
	assert.True(t, warned)
}

func TestAConsumerKeepsItsStreamThroughTheUsersClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.consume()
	r.read(assistant(1))
	r.BeginClosing(true)
	r.read(assistant(2))
	lines, err := r.drain(c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{assistant(1), assistant(2)}, lines)

	r.read(assistant(3))
	c.Release()
	lines, err = r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{assistant(3)}, lines, "the rest is for the next one")
}

func TestAFailedSessionKeepsWhatItLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(assistant(1))
	r.BeginClosing(false)
	r.read(assistant(2))
	r.Terminate(errors.New("broken"))
	first := r.consume()
	e, err := first.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, assistant(1), string(e.Frame.Raw))
	first.Release()
	lines, err := r.drain(r.consume(), nil)
	assert.Equal(t, []string{assistant(2)}, lines)
	assert.EqualError(t, err, "broken")
}

func TestNextOfATurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn, next := r.turn("a"), r.turn("b")
	r.read(assistant(1), resultOf("a"), assistant(2), resultOf("b"))

	c := r.consume()
	lines, err := r.drain(c, turn)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{assistant(1), resultOf("a")}, lines, "up to and with its result")
	lines, err = r.drain(c, next)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{assistant(2), resultOf("b")}, lines)
	lines, err = r.drain(c, turn)
	require.ErrorIs(t, err, io.EOF)
	assert.Empty(t, lines, "it is over")
}

func TestNextOfATurnThatEndsWithoutAResult(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn := r.turn("a")
	c := r.consume()
	var lines []string
	var end error
	r.sched.Go(func() {
		for end == nil {
			var e user.Delivery
			if e, end = c.NextOf(context.Background(), turn); end == nil {
				lines = append(lines, string(e.Frame.Raw))
			}
		}
	})
	require.NoError(t, r.sched.Run(100))
	require.NoError(t, end)
	r.read(lifecycle("a", "completed"))
	require.NoError(t, r.sched.Run(100))
	require.ErrorIs(t, end, io.EOF)
	assert.Empty(t, lines)
	lines, err := r.drain(c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{lifecycle("a", "completed")}, lines, "what says so is for whoever reads on")
}

func TestNextOfATurnThatTheSessionOutlivesNot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn := r.turn("a")
	r.read(assistant(1))
	broken := errors.New("broken")
	r.Terminate(broken)
	lines, err := r.drain(r.consume(), turn)
	assert.Equal(t, []string{assistant(1)}, lines)
	require.ErrorIs(t, err, io.EOF)
	_, err = turn.Result()
	require.ErrorIs(t, err, broken)
}

func TestEntriesNameTheTurnsTheyEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.turn("a"), r.turn("b")
	r.read(assistant(1), resultOf("a", "b"))
	c := r.consume()
	e, err := c.Next(t.Context())
	require.NoError(t, err)
	assert.Empty(t, e.Turns)
	e, err = c.Next(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []*user.Turn{a, b}, e.Turns)
}

// TestALongQueueKeepsItsOrder goes over the points where the queue gives up
// the part that was read.
func TestALongQueueKeepsItsOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.consume()
	wrote, read := 0, 0
	for _, step := range []struct{ write, read int }{{300, 290}, {300, 0}, {300, 500}, {2000, 1500}, {10, 600}, {5, 25}} {
		for range step.write {
			r.read(assistant(wrote))
			wrote++
		}
		for range step.read {
			e, err := c.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, assistant(read), string(e.Frame.Raw))
			read++
		}
	}
	assert.Equal(t, wrote, read)
	assert.Zero(t, r.Snapshot().Unread)
}

func TestATurnThatDidNotRunTakesNoMessagesOfTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn := r.turn("a")
	r.turn("b")
	r.read(assistant(1), lifecycle("a", "completed"), assistant(2))
	c := r.consume()
	lines, err := r.drain(c, turn)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{assistant(1)}, lines)
	lines, err = r.drain(c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{lifecycle("a", "completed"), assistant(2)}, lines)
}

// TestAWaitingConsumerIsWoken ends what a consumer waits for without a message.
func TestAWaitingConsumerIsWoken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(r *rig)
		want error
	}{
		"the turn was cancelled by an interrupt": {func(r *rig) {
			call := r.call("interrupt")
			r.read(success(call.ID, `{"cancelled":["a"]}`))
		}, io.EOF},
		"the session ended": {func(r *rig) { r.Terminate(nil) }, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			turn := r.turn("a")
			consumer := r.consume()
			var err error
			r.sched.Go(func() { _, err = consumer.NextOf(context.Background(), turn) })
			require.NoError(t, r.sched.Run(100))
			require.NoError(t, err)
			c.end(r)
			require.NoError(t, r.sched.Run(100))
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestNextIsWokenByTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	consumer := r.consume()
	broken := errors.New("broken")
	var err error
	r.sched.Go(func() { _, err = consumer.Next(context.Background()) })
	require.NoError(t, r.sched.Run(100))
	require.NoError(t, err)
	r.Terminate(broken)
	require.NoError(t, r.sched.Run(100))
	require.ErrorIs(t, err, broken)
}
