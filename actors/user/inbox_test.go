package user_test

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/session"
)

func TestPutTellsTheRouterOfWhatIsDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	assert.False(t, r.Put(nil))
	assert.False(t, r.Put(r.frames(assistant(1))), "messages are the user's")
	assert.True(t, r.Put(r.frames(permission("p"))))
	assert.True(t, r.Put(r.frames(assistant(2))), "until it was taken up")
	due := r.TakeDue()
	assert.True(t, due.Kinds[session.KindPermission])
	assert.True(t, due.Changed, "a gate is open")
	assert.Zero(t, r.TakeDue())
	assert.False(t, r.Put(r.frames(assistant(3))))
}

func TestContentKeepsItsOrderAroundControlFrames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.consume()
	r.read(assistant(1), assistant(2), permission("p"), assistant(3), `{"type":"keep_alive"}`, `{"type":"transcript_mirror"}`, `{"type":"never_heard_of"}`)
	lines, err := r.drain(c, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{assistant(1), assistant(2), assistant(3), `{"type":"never_heard_of"}`}, lines)
	assert.Equal(t, 1, r.Gates())
}

func TestDrainedIsTheEndOfInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(assistant(1))
	assert.False(t, r.Drained())
	r.TakeDue()
	r.EndOfInput()
	assert.True(t, r.Drained())
	assert.True(t, r.TakeDue().Changed)
	r.read(assistant(2))
	assert.Equal(t, 1, r.Snapshot().Unread, "the session did not wait for more")
}

func TestTheSoftBoundStopsTheReader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits session.Limits
		lines  []string
	}{
		"messages": {session.Limits{Messages: 3}, []string{assistant(1), assistant(2), assistant(3)}},
		"bytes":    {session.Limits{Bytes: 100}, []string{padded("assistant", 60), padded("stream_event", 40)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, limits(c.limits))
			last := len(c.lines) - 1
			r.read(c.lines[:last]...)
			require.True(t, r.mayRead(), "below the bound")
			r.read(c.lines[last])
			require.False(t, r.mayRead())
			assert.True(t, r.Snapshot().Stalled)
		})
	}
}

func TestReadingGivesCredit(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 4}))
	r.read(assistant(1), assistant(2), assistant(3), assistant(4))
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	c := r.consume()
	next := func() {
		t.Helper()
		_, err := c.Next(t.Context())
		require.NoError(t, err)
	}
	next()
	assert.False(t, isClosed(wait), "the reader is not woken for each message")
	next()
	assert.True(t, isClosed(wait), "at half the bound it goes on")
	assert.True(t, r.mayRead())
	assert.False(t, r.Snapshot().Stalled)
}

func TestAConsumerThatWaitsLetsTheReaderGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 1}))
	r.read(request("x", "elicitation"))
	require.True(t, r.mayRead(), "a request is no message")
	r.read(assistant(1))
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	lines, err := r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.Len(t, lines, 1)
	assert.True(t, isClosed(wait))
	assert.True(t, r.mayRead())
}

func TestAPendingCallLetsTheReaderGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 100, HardBytes: 400}))
	r.read(padded("assistant", 100))
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	call := r.call("interrupt")
	assert.True(t, isClosed(wait), "a stopped reader hears of the call")
	require.True(t, r.mayRead())
	settled := r.read(padded("assistant", 100), success(call.ID, `{}`))
	assert.Equal(t, []*user.Call{call}, settled)
	assert.False(t, r.mayRead(), "the soft bound counts again")
}

func TestAReaderUnderPressureGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 100, HardBytes: 400}))
	r.read(padded("assistant", 100))
	require.False(t, r.mayRead())
	assert.Nil(t, r.ReadWait(true), "the agent does not read, or is gone")
	r.read(padded("assistant", 300))
	assert.NotNil(t, r.ReadWait(true), "up to the hard bound")
}

func TestPastTheHardBoundPartialsGoOldestFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: 6000}))
	call, err := r.Call("interrupt", json.RawMessage(`{"subtype":"interrupt"}`), 0)
	require.NoError(t, err)
	var want []string
	for i := range 4 {
		content, partial := padded("assistant", 400+i), padded("stream_event", 600+i)
		want = append(want, content)
		if i > 1 { // two are enough: 3/4 of the bound are free then
			want = append(want, partial)
		}
		require.True(t, r.mayRead())
		r.read(content, partial)
	}
	require.True(t, r.mayRead())
	r.read(assistant(4))
	want = append(want, assistant(4))

	assert.Equal(t, []*session.MessagesDropped{{Count: 2, Bytes: 1201}}, eventsOf[*session.MessagesDropped](r), "one event")
	assert.False(t, isClosed(call.Done()))
	lines, err := r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.Equal(t, want, lines, "nothing but partials is missing, and the order holds")
	assert.Zero(t, r.Snapshot().UnreadBytes)
	assert.Zero(t, r.Snapshot().Unread)
}

func TestCallsFailWhenTheHardBoundIsFullOfMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: 4000}))
	first, err := r.Call("interrupt", json.RawMessage(`{"subtype":"interrupt"}`), 0)
	require.NoError(t, err)
	second, err := r.Call("set_model", json.RawMessage(`{"subtype":"set_model"}`), 0)
	require.NoError(t, err)
	r.wrote()
	for range 4 {
		require.True(t, r.mayRead())
		r.read(padded("assistant", 1000))
	}
	require.False(t, r.mayRead(), "now the consumer is needed")
	for _, call := range []*user.Call{first, second} {
		require.True(t, isClosed(call.Done()))
		_, err = call.Answer()
		require.ErrorIs(t, err, session.ErrConsumerStalled)
		assert.ErrorContains(t, err, call.Subtype)
	}
	assert.Equal(t, []string{cancelRequest(first.ID), cancelRequest(second.ID)}, r.wrote(), "the agent hears of it, in order")
	assert.Empty(t, eventsOf[*session.MessagesDropped](r))

	_, err = r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.True(t, r.mayRead(), "the session lives")
}

func TestDiscardHoldsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 2, Bytes: 100}), func(c *sideConfig) { c.Discard = true })
	turn := r.turn("u")
	for range 100 {
		r.read(padded("assistant", 90), padded("stream_event", 90))
		require.True(t, r.mayRead())
	}
	assert.Zero(t, r.Snapshot().UnreadBytes)
	r.read(resultOf("u"))
	assert.True(t, isClosed(turn.Done()), "results still end their turns")
	lines, err := r.drain(r.consume(), turn)
	assert.Empty(t, lines)
	assert.ErrorContains(t, err, "EOF")
}

func TestAReaderThatIsPressed(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 1}))
	r.read(assistant(1))
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	assert.Nil(t, r.ReadWait(true), "both sides would wait for each other")
	assert.True(t, isClosed(wait))
}

func TestALargeLineFailsNoCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	call := r.call("set_model")
	r.read(padded("assistant", 9<<20)) // above the hard bound, but it has a budget of its own
	assert.True(t, r.mayRead())
	assert.True(t, r.mayRead())
	assert.False(t, isClosed(call.Done()))
}

func TestClosingIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: 4000}))
	c := r.consume()
	r.BeginClosing(true)
	for i := range 1000 {
		if typ := []string{"stream_event", "assistant"}[min(i/900, 1)]; r.mayRead() {
			r.read(padded(typ, 1000))
		}
		require.LessOrEqual(t, r.Snapshot().UnreadBytes, int64(5000))
	}
	assert.False(t, r.mayRead())
	assert.NotNil(t, r.ReadWait(true))
	c.Release()
	assert.True(t, r.mayRead(), "what nobody reads is dropped")
}

// TestTheEndIsReadWhateverIsUnread: the answer to the interrupt of a close, and
// the end itself, lie behind what nobody reads.
func TestTheEndIsReadWhateverIsUnread(t *testing.T) {
	t.Parallel()
	for _, abandon := range []bool{true, false} {
		r := newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: 4000}))
		r.consume()
		r.read(padded("assistant", 1000))
		wait := r.ReadWait(false)
		require.NotNil(t, wait)
		r.BeginClosing(abandon)
		require.True(t, isClosed(wait))
		require.True(t, r.mayRead(), "abandoned %v", abandon)
		r.read(padded("assistant", 1000))
		assert.EqualValues(t, 2000, r.Snapshot().UnreadBytes, "a consumer keeps what it is reading")
	}
}

// TestWhoLeavesTheLoopWhileClosing breaks out of it: what is there stays, and the
// close does not wait until somebody makes room for the rest.
func TestWhoLeavesTheLoopWhileClosing(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 4, Bytes: 1000, HardBytes: 4000}))
	c := r.consume()
	r.BeginClosing(true)
	for range 4 {
		r.read(padded("assistant", 1000))
	}
	wait := r.ReadWait(false)
	require.NotNil(t, wait)
	c.Release()
	assert.True(t, isClosed(wait), "the reader goes on")
	for range 20 {
		require.True(t, r.mayRead())
		r.read(padded("assistant", 1000))
	}
	assert.Equal(t, 4, r.Snapshot().Unread)
	r.Terminate(nil)
	lines, err := r.drain(r.consume(), nil)
	require.ErrorIs(t, err, io.EOF)
	assert.Len(t, lines, 4)
}

func TestAStalledConsumerIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 1, Consumer: time.Hour}))
	assert.Zero(t, r.StalledFor())
	r.read(assistant(1))
	require.False(t, r.mayRead())
	pass(t, r.sched, time.Minute)
	require.False(t, r.mayRead(), "asking again does not begin anew")
	assert.Equal(t, time.Minute, r.StalledFor())
	assert.Equal(t, []session.Wait{{What: "consumer", Age: time.Minute, Limit: time.Hour, Since: r.sched.Now().Add(-time.Minute)}}, r.Snapshot().Waits)
	r.call("interrupt")
	require.True(t, r.mayRead())
	assert.Zero(t, r.StalledFor(), "the reader goes on")
	assert.False(t, r.Snapshot().Stalled)
}

func TestAConsumerThatIsSlowIsNotStalled(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Messages: 10}))
	for i := range 10 {
		r.read(assistant(i))
	}
	require.False(t, r.mayRead())
	c := r.consume()
	for range 4 { // more are needed for the reader to go on
		pass(t, r.sched, time.Minute)
		assert.Equal(t, time.Minute, r.StalledFor())
		_, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Zero(t, r.StalledFor(), "somebody reads")
		assert.True(t, r.Snapshot().Stalled)
	}
}

func TestPartialsThatWereReadNoLongerCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, limits(session.Limits{Bytes: 1000, HardBytes: 4000}))
	c := r.consume()
	for range 3 {
		r.read(padded("stream_event", 900))
		lines, err := r.drain(c, nil)
		require.NoError(t, err)
		require.Len(t, lines, 1)
	}
	for range 4 {
		require.Nil(t, r.ReadWait(true))
		r.read(padded("assistant", 1000))
	}
	assert.NotNil(t, r.ReadWait(true))
}

// TestAMessageTakesMoreThanItsBytes floods with the smallest messages there are.
func TestAMessageTakesMoreThanItsBytes(t *testing.T) {
	t.Parallel()
	const line, hard = `{"type":"x"}`, 64 << 10
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, limits(session.Limits{Messages: 10, HardBytes: hard}))
		call := r.call("interrupt")
		for range hard / 256 {
			if r.mayRead() {
				r.read(line)
			}
		}
		assert.True(t, isClosed(call.Done()))
		assert.InDelta(t, hard/(256+len(line)), r.Snapshot().Unread, 1)
	})
	t.Run("partial messages", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, limits(session.Limits{Messages: 10, HardBytes: hard}))
		call := r.call("interrupt")
		const partial = `{"type":"stream_event"}`
		for range hard / 128 {
			require.True(t, r.mayRead(), "they give way")
			r.read(partial)
			require.LessOrEqual(t, r.Snapshot().Unread, hard/(256+len(partial))+1)
		}
		assert.False(t, isClosed(call.Done()))
		assert.NotEmpty(t, eventsOf[*session.MessagesDropped](r))
	})
}
