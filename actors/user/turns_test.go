package user_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func lifecycle(uuid, state string) string {
	return fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q,"uuid":"00000000-0000-4000-8000-00000000000f"}`, uuid, state)
}

func (r *rig) requireEnded(want error, turns ...*user.Turn) {
	r.t.Helper()
	for _, turn := range turns {
		require.True(r.t, isClosed(turn.Done()), turn.UUID)
		result, err := turn.Result()
		if want == nil {
			require.NoError(r.t, err)
			require.NotNil(r.t, result)
			continue
		}
		require.ErrorIs(r.t, err, want)
		require.Nil(r.t, result)
	}
}

func (r *rig) requireOpen(turns ...*user.Turn) {
	r.t.Helper()
	for _, turn := range turns {
		require.False(r.t, isClosed(turn.Done()), turn.UUID)
	}
}

func TestEveryMessageHasAUUIDOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := userMessage("")
	first, err := r.Send(context.Background(), m)
	require.NoError(t, err)
	assert.Len(t, first.UUID, 36)
	assert.Empty(t, m.UUID, "the caller's message is left alone")
	assert.Equal(t, []string{`{"type":"user","uuid":"` + first.UUID + `"}`}, r.wrote())
	second, err := r.Send(context.Background(), m)
	require.NoError(t, err)
	assert.NotEqual(t, first.UUID, second.UUID)

	_, err = r.Send(context.Background(), userMessage(first.UUID))
	require.ErrorContains(t, err, first.UUID)
}

func TestResultsByOrderPassTurnsThatWereNotWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.fill()
	queued := r.turn(fills + "100000")
	written := r.turn("a")
	r.read(plainResult, plainResult, plainResult)
	r.requireOpen(queued, written) // neither finds room
	r.Taken(filled)
	r.read(plainResult)
	r.requireEnded(nil, queued)
	r.requireOpen(written)
}

func TestMessagesAreWrittenOnceAndInOrder(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	r.wrote()
	first := r.turn("first")
	assert.True(t, r.Running(), "from the moment it is taken")
	assert.False(t, r.InFlight(), "the agent has nothing yet")
	r.read(success("troupe-1", `{}`))
	assert.Equal(t, []string{`{"type":"user","uuid":"first"}`}, r.wrote())
	assert.True(t, r.InFlight())

	r.fill()
	r.turn("a")
	r.turn(fills + "100000")
	r.turn("c")
	assert.Equal(t, []string{`{"type":"user","uuid":"a"}`}, r.wrote(), "nothing overtakes what finds no room")
	r.Taken(filled)
	lines := r.wrote()
	require.Len(t, lines, 2)
	assert.Len(t, lines[0], 100000)
	assert.JSONEq(t, `{"type":"user","uuid":"c"}`, lines[1])
	r.requireOpen(first)
}

func TestAMessageThatCannotBeWrittenEnds(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	r := newRig(t, func(c *sideConfig) {
		c.UserLine = func(m *protocol.UserMessage) ([]byte, error) {
			switch m.UUID {
			case "bad":
				return nil, odd
			case "large":
				return make([]byte, 32<<20+1), nil
			}
			return encodeUser(m)
		}
	})
	_, err := r.Send(context.Background(), userMessage("bad"))
	require.ErrorIs(t, err, odd)
	require.ErrorContains(t, err, "encode user message bad")
	large, err := r.Send(context.Background(), userMessage("large"))
	require.NoError(t, err)
	good, err := r.Send(context.Background(), userMessage("good"))
	require.NoError(t, err)
	r.requireEnded(session.ErrTooLarge, large)
	r.requireOpen(good)
	assert.Equal(t, []string{`{"type":"user","uuid":"good"}`}, r.wrote())
}

func TestTheEndOfTheSessionEndsItsTurns(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, c := range map[string]struct{ reason, want error }{
		"normal end": {nil, session.ErrClosed},
		"failure":    {broken, broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			written := r.turn("a")
			queued, err := r.Send(context.Background(), userMessage("b"))
			require.NoError(t, err)
			r.BeginClosing(c.reason == nil)
			_, err = r.Send(context.Background(), userMessage("c"))
			require.ErrorIs(t, err, session.ErrClosed)
			assert.Equal(t, c.reason != nil, strings.Contains(err.Error(), "the agent is gone"), "it says why before it is over: %v", err)
			r.requireOpen(written)
			r.Terminate(c.reason)
			r.requireEnded(c.want, written, queued)
			_, err = r.Send(context.Background(), userMessage("d"))
			require.ErrorIs(t, err, session.ErrClosed)
			if c.reason != nil {
				require.ErrorIs(t, err, broken, "and says why")
			}
		})
	}
}

// TestRoomForMessages has more senders than there is room for: each message that
// ends lets in one.
func TestRoomForMessages(t *testing.T) {
	t.Parallel()
	const room, senders = 256, 600
	r := newRig(t)
	admitted := 0
	for i := range senders {
		r.sched.Go(func() {
			_, err := r.Send(context.Background(), userMessage(fmt.Sprint(i)))
			assert.NoError(t, err)
			admitted++
		})
	}
	require.NoError(t, r.sched.Run(100_000))
	require.Equal(t, room, admitted)
	require.Equal(t, room, r.Snapshot().OpenTurns)

	ctx, cancel := context.WithCancelCause(t.Context())
	full := errors.New("still full")
	cancel(full)
	_, err := r.Send(ctx, userMessage("late"))
	require.ErrorIs(t, err, full)

	for range 3 {
		r.read(plainResult)
		require.NoError(t, r.sched.Run(100_000))
	}
	require.Equal(t, room+3, admitted)
	require.Equal(t, room, r.Snapshot().OpenTurns)
	for admitted < senders || r.Snapshot().OpenTurns > 0 {
		r.read(plainResult)
		require.NoError(t, r.sched.Run(100_000))
	}
}

func TestASessionThatEndsTurnsWaitingMessagesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 256 {
		r.turn(fmt.Sprint(i))
	}
	var end error
	r.sched.Go(func() { _, end = r.Send(context.Background(), userMessage("late")) })
	require.NoError(t, r.sched.Run(100))
	require.NoError(t, end)
	r.Terminate(nil)
	require.NoError(t, r.sched.Run(100))
	require.ErrorIs(t, end, session.ErrClosed)
}

func TestRefusedTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 256 {
		r.turn(fmt.Sprint(i))
	}
	var refused error
	r.sched.Go(func() { _, refused = r.Send(context.Background(), userMessage("late")) })
	require.NoError(t, r.sched.Run(100))
	require.NoError(t, refused)
	r.RefuseTurns()
	require.NoError(t, r.sched.Run(100))
	require.ErrorIs(t, refused, session.ErrDraining, "it waits for no room any more")
	_, err := r.Send(t.Context(), userMessage("later"))
	require.ErrorIs(t, err, session.ErrDraining)
	require.Equal(t, 256, r.Snapshot().OpenTurns, "the others go on")
	r.Terminate(nil)
	_, err = r.Send(t.Context(), userMessage("latest"))
	require.ErrorIs(t, err, session.ErrClosed)
}

func TestNothingIsWrittenAfterClose(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	queued, err := r.Send(context.Background(), userMessage("a"))
	require.NoError(t, err)
	r.call("set_model")
	r.wrote()
	r.BeginClosing(true)
	r.read(success("troupe-1", `{}`))
	r.Interrupt("own")
	lines := r.wrote()
	require.Len(t, lines, 1, "a turn would run into the end of stdin")
	assert.Equal(t, "own", frame(t, lines[0]).RequestID)
	r.Terminate(nil)
	r.requireEnded(session.ErrClosed, queued)
}

func TestOfAResultOnlyItsFailureIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["` + strings.Repeat("x", 1<<20) + `"],"session_id":"s"}`)
	assert.Contains(t, r.LastFailure(), "error_during_execution: x")
	assert.Less(t, len(r.LastFailure()), 1<<10)
	r.read(plainResult)
	assert.Empty(t, r.LastFailure())
}
