package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func lifecycle(uuid, state string) string {
	return fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q,"uuid":"00000000-0000-4000-8000-00000000000f"}`, uuid, state)
}

func (r *rig) requireEnded(want error, turns ...*ledger.Turn) {
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

func (r *rig) requireOpen(turns ...*ledger.Turn) {
	r.t.Helper()
	for _, turn := range turns {
		require.False(r.t, isClosed(turn.Done()), turn.UUID)
	}
}

func TestEveryMessageHasAUUIDOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	m := userMessage("")
	first, err := r.OpenTurn(m)
	require.NoError(t, err)
	assert.Len(t, first.UUID, 36)
	assert.Empty(t, m.UUID, "the caller's message is left alone")
	assert.Equal(t, first.UUID, first.Message.UUID)
	second, err := r.OpenTurn(m)
	require.NoError(t, err)
	assert.NotEqual(t, first.UUID, second.UUID)

	_, err = r.OpenTurn(userMessage(first.UUID))
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
			r := newRig(t).ready()
			turns := []*ledger.Turn{r.turn("a"), r.turn("b"), r.turn("c")}
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
	r := newRig(t).ready()
	written := r.turn("a")
	r.requireEnded(nil, func() *ledger.Turn { r.read(plainResult); return written }())
	queued, err := r.OpenTurn(userMessage("b"))
	require.NoError(t, err)
	r.read(plainResult)
	r.requireOpen(queued)
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
			r := newRig(t).ready()
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
	r := newRig(t, func(c *ledger.Config) { c.ResultAfterCancelled = true }).ready()
	r.read(init) // of no turn
	turn, other := r.turn("a"), r.turn("b")
	r.read(lifecycle("a", "queued"), lifecycle("b", "queued"), init, lifecycle("b", "cancelled"))
	r.requireEnded(session.ErrNotRun, other)
	r.read(lifecycle("a", "cancelled"))
	r.requireOpen(turn)
	r.read(plainResult)
	r.requireEnded(nil, turn)

	r = newRig(t).ready() // another agent
	turn = r.turn("a")
	r.read(init, lifecycle("a", "cancelled"))
	r.requireEnded(session.ErrNotRun, turn)

	r = newRig(t, func(c *ledger.Config) { c.ResultAfterCancelled = true }).ready() // one that says when it starts
	turn, other = r.turn("a"), r.turn("b")
	r.read(lifecycle("a", "started"), init, resultOf("a"), init, lifecycle("b", "cancelled"))
	r.requireEnded(nil, turn)
	r.requireEnded(session.ErrNotRun, other)
}

func TestAnInterruptsReceiptEndsWhatItTookAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	running, queued, kept := r.turn("a"), r.turn("b"), r.turn("c")
	call, err := r.OpenCall("interrupt", json.RawMessage(`{"subtype":"interrupt","cancel_queued":true}`))
	require.NoError(t, err)
	r.read(success(call.ID, `{"still_queued":["c"],"cancelled":["b","nobody"]}`))
	r.requireEnded(session.ErrNotRun, queued)
	r.requireOpen(running, kept)
	r.read(resultOf("a"))
	r.requireEnded(nil, running)
}

func TestOnlyInterruptsCancelTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	turn := r.turn("a")
	for _, response := range []string{`{"cancelled":["a"]}`, `{"cancelled":["a",3]}`, `{"cancelled":true}`} {
		call, err := r.OpenCall("cancel_async_message", json.RawMessage(`{"subtype":"cancel_async_message"}`))
		require.NoError(t, err)
		r.read(success(call.ID, response))
	}
	call, err := r.OpenCall("interrupt", json.RawMessage(`{"subtype":"interrupt"}`))
	require.NoError(t, err)
	r.read(success(call.ID, `{"cancelled":true}`))
	r.requireOpen(turn)
}

func TestMessagesAreWrittenOnceAndInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	for _, id := range []string{"a", "b", "c"} {
		_, err := r.OpenTurn(userMessage(id))
		require.NoError(t, err)
	}
	assert.True(t, r.Running(), "from the moment it is taken")
	assert.False(t, r.InFlight(), "the agent has nothing yet")
	full := true
	r.out.fail = func(line string) error {
		if full && line == `{"type":"user","uuid":"b"}`+"\n" {
			return session.ErrNoRoom
		}
		return nil
	}
	require.ErrorIs(t, r.WriteTurns(encodeUser), session.ErrNoRoom)
	assert.Equal(t, []string{`{"type":"user","uuid":"a"}`}, r.wrote(), "nothing overtakes what finds no room")
	assert.True(t, r.InFlight())
	full = false
	require.NoError(t, r.WriteTurns(encodeUser))
	require.NoError(t, r.WriteTurns(encodeUser))
	assert.Equal(t, []string{`{"type":"user","uuid":"b"}`, `{"type":"user","uuid":"c"}`}, r.wrote())
}

func TestAMessageThatCannotBeWrittenEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	odd := errors.New("odd")
	bad, err := r.OpenTurn(userMessage("bad"))
	require.NoError(t, err)
	large, err := r.OpenTurn(userMessage("large"))
	require.NoError(t, err)
	good, err := r.OpenTurn(userMessage("good"))
	require.NoError(t, err)
	r.out.fail = func(line string) error {
		if line == `{"type":"user","uuid":"large"}`+"\n" {
			return session.ErrTooLarge
		}
		return nil
	}
	require.NoError(t, r.WriteTurns(func(m *protocol.UserMessage) ([]byte, error) {
		if m.UUID == "bad" {
			return nil, odd
		}
		return encodeUser(m)
	}))
	r.requireEnded(odd, bad)
	r.requireEnded(session.ErrTooLarge, large)
	r.requireOpen(good)
	assert.Equal(t, []string{`{"type":"user","uuid":"good"}`}, r.wrote())
}

func TestADeadTransportTakesNoMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	_, err := r.OpenTurn(userMessage("a"))
	require.NoError(t, err)
	gone := errors.New("gone")
	r.out.fail = func(string) error { return gone }
	err = r.WriteTurns(encodeUser)
	require.ErrorIs(t, err, session.ErrTransportClosed)
	require.ErrorIs(t, err, gone, "with the cause")
	assert.True(t, r.Connected())
	r.SetOutlet(nil)
	require.ErrorIs(t, r.WriteTurns(encodeUser), session.ErrTransportClosed)
	assert.False(t, r.Connected())
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
			r := newRig(t).ready()
			written := r.turn("a")
			queued, err := r.OpenTurn(userMessage("b"))
			require.NoError(t, err)
			r.BeginClosing(c.reason == nil)
			_, err = r.OpenTurn(userMessage("c"))
			require.ErrorIs(t, err, session.ErrClosed)
			r.requireOpen(written)
			r.Terminate(c.reason)
			r.requireEnded(c.want, written, queued)
			_, err = r.OpenTurn(userMessage("d"))
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
	r := newRig(t).ready()
	admitted := 0
	for i := range senders {
		r.sched.Go(func() {
			_, err := r.AdmitTurn(context.Background(), userMessage(fmt.Sprint(i)))
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
	_, err := r.AdmitTurn(ctx, userMessage("late"))
	require.ErrorIs(t, err, full)

	require.NoError(t, r.WriteTurns(encodeUser))
	for range 3 {
		r.read(plainResult)
		require.NoError(t, r.sched.Run(100_000))
	}
	require.Equal(t, room+3, admitted)
	require.Equal(t, room, r.Snapshot().OpenTurns)
	require.NoError(t, r.WriteTurns(encodeUser))
	for admitted < senders || r.Snapshot().OpenTurns > 0 {
		r.read(plainResult)
		require.NoError(t, r.sched.Run(100_000))
		require.NoError(t, r.WriteTurns(encodeUser))
	}
}

func TestASessionThatEndsTurnsWaitingMessagesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	for i := range 256 {
		r.turn(fmt.Sprint(i))
	}
	var end error
	r.sched.Go(func() { _, end = r.AdmitTurn(context.Background(), userMessage("late")) })
	require.NoError(t, r.sched.Run(100))
	require.NoError(t, end)
	r.Terminate(nil)
	require.NoError(t, r.sched.Run(100))
	require.ErrorIs(t, end, session.ErrClosed)
}

func TestNothingIsWrittenAfterClose(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
	queued, err := r.OpenTurn(userMessage("a"))
	require.NoError(t, err)
	r.call("set_model")
	r.BeginClosing(true)
	interrupt := r.call("interrupt", ledger.First())
	require.NoError(t, r.WriteTurns(encodeUser))
	require.NoError(t, r.WriteCalls())
	lines := r.wrote()
	require.Len(t, lines, 1, "a turn would run into the end of stdin")
	assert.Equal(t, interrupt.ID, frame(t, lines[0]).RequestID)
	r.Terminate(nil)
	r.requireEnded(session.ErrClosed, queued)
}

func TestOfAResultOnlyItsFailureIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t).ready()
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
	r := newRig(t, func(c *ledger.Config) { c.CheckVersion = func(string) error { return wrong } }).ready()
	turn := r.turn("a")
	r.read(`{"type":"system","subtype":"init","protocol_version":"9.0","session_id":"s"}`,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"user_message_uuids":["a"],"session_id":"s"}`)
	r.requireEnded(wrong, turn)
}
