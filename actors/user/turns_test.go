package user_test

import (
	"context"
	"encoding/json"
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

func TestResultsFindTheirTurns(t *testing.T) {
	t.Parallel()
	const singular = `{"type":"result","subtype":"success","is_error":false,"user_message_uuid":"b"}`
	const agents = `{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}`
	for name, c := range map[string]struct {
		result string
		ended  string
	}{
		"by uuid":                          {resultOf("b"), "b"},
		"by one uuid":                      {singular, "b"},
		"two lines in one turn":            {resultOf("a", "c"), "ac"},
		"of messages nobody knows":         {resultOf("x"), ""},
		"by order":                         {plainResult, "a"},
		"of a turn that the agent started": {agents, ""},
		"an error result":                  {`{"type":"result","subtype":"error_during_execution","is_error":true}`, "a"},
		"one that does not decode":         {`{"type":"result","subtype":7,"is_error":"maybe"}`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			turns := []*user.Turn{r.turn("a"), r.turn("b"), r.turn("c")}
			r.read(assistant(1), c.result)
			ended := ""
			for _, turn := range turns {
				if isClosed(turn.Done()) {
					r.requireEnded(nil, turn)
					ended += turn.UUID
				}
			}
			assert.Equal(t, c.ended, ended)
			assert.Equal(t, 3-len(ended), r.Snapshot().OpenTurns)
			lines, err := r.drain(r.consume(), nil)
			require.NoError(t, err)
			assert.Equal(t, []string{assistant(1), c.result}, lines, "the user sees every result")
		})
	}
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

func TestTheAgentMayRunAMessageNever(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states []string
		ended  bool
	}{
		"a uuid it knew":          {[]string{"completed"}, true},
		"cancelled in its queue":  {[]string{"queued", "cancelled"}, true},
		"thrown away":             {[]string{"queued", "discarded"}, true},
		"refused":                 {[]string{"refused"}, true},
		"queued":                  {[]string{"queued"}, false},
		"started":                 {[]string{"queued", "started"}, false},
		"its result comes later":  {[]string{"queued", "started", "completed"}, false},
		"interrupted":             {[]string{"queued", "started", "cancelled"}, false},
		"a state of a later year": {[]string{"deferred"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			turn, other := r.turn("a"), r.turn("b")
			for _, state := range c.states {
				r.read(lifecycle("a", state))
			}
			r.read(lifecycle("x", "completed"), `{"type":"command_lifecycle","command_uuid":7}`)
			r.requireOpen(other)
			if !c.ended {
				r.requireOpen(turn)
				return
			}
			r.requireEnded(session.ErrNotRun, turn)
			r.read(plainResult)
			r.requireEnded(nil, other)
		})
	}
}

// qodercli says of a turn that fails: queued, cancelled, and then the result.
func TestATurnThatBeganHasAResultThoughItIsCancelled(t *testing.T) {
	t.Parallel()
	const init = `{"type":"system","subtype":"init","session_id":"s"}`
	r := newRig(t, func(c *sideConfig) { c.ResultAfterCancelled = true })
	r.read(init) // of no turn
	turn, other := r.turn("a"), r.turn("b")
	r.read(lifecycle("a", "queued"), lifecycle("b", "queued"), init, lifecycle("b", "cancelled"))
	r.requireEnded(session.ErrNotRun, other)
	r.read(lifecycle("a", "cancelled"))
	r.requireOpen(turn)
	r.read(plainResult)
	r.requireEnded(nil, turn)

	r = newRig(t) // another agent
	turn = r.turn("a")
	r.read(init, lifecycle("a", "cancelled"))
	r.requireEnded(session.ErrNotRun, turn)

	r = newRig(t, func(c *sideConfig) { c.ResultAfterCancelled = true }) // one that says when it starts
	turn, other = r.turn("a"), r.turn("b")
	r.read(lifecycle("a", "started"), init, resultOf("a"), init, lifecycle("b", "cancelled"))
	r.requireEnded(nil, turn)
	r.requireEnded(session.ErrNotRun, other)
}

func TestAnInterruptsReceiptEndsWhatItTookAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	running, queued, kept := r.turn("a"), r.turn("b"), r.turn("c")
	call, err := r.Call("interrupt", json.RawMessage(`{"subtype":"interrupt","cancel_queued":true}`), 0)
	require.NoError(t, err)
	r.read(success(call.ID, `{"still_queued":["c"],"cancelled":["b","nobody"]}`))
	r.requireEnded(session.ErrNotRun, queued)
	r.requireOpen(running, kept)
	r.read(resultOf("a"))
	r.requireEnded(nil, running)
}

func TestOnlyInterruptsCancelTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn := r.turn("a")
	for _, response := range []string{`{"cancelled":["a"]}`, `{"cancelled":["a",3]}`, `{"cancelled":true}`} {
		call, err := r.Call("cancel_async_message", json.RawMessage(`{"subtype":"cancel_async_message"}`), 0)
		require.NoError(t, err)
		r.read(success(call.ID, response))
	}
	call, err := r.Call("interrupt", json.RawMessage(`{"subtype":"interrupt"}`), 0)
	require.NoError(t, err)
	r.read(success(call.ID, `{"cancelled":true}`))
	r.requireOpen(turn)
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

func TestADeadTransportTakesNoMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.SetOutlet(nil)
	turn, err := r.Send(context.Background(), userMessage("a"))
	require.NoError(t, err)
	assert.Empty(t, r.wrote())
	assert.False(t, r.InFlight())
	r.requireOpen(turn) // the session decides
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

// The turn of an agent that cannot be used has that for its end, whatever the
// interrupt that follows makes of it.
func TestATurnOfAnAgentThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	wrong := errors.New("another age")
	r := newRig(t, func(c *sideConfig) { c.Rules.(*stubRules).checkVersion = func(string) error { return wrong } })
	turn := r.turn("a")
	r.read(`{"type":"system","subtype":"init","protocol_version":"9.0","session_id":"s"}`,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"user_message_uuids":["a"],"session_id":"s"}`)
	r.requireEnded(wrong, turn)
}
