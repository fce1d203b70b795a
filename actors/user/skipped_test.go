package user_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// skip puts the heads of lines that were skipped, and sorts them.
func (r *rig) skip(heads ...string) {
	for _, head := range heads {
		r.PutSkipped(protocol.OversizeFrame([]byte(head), 1<<30, 1<<20))
	}
}

// requireSkipped requires that a turn has ended because its result was skipped.
func (r *rig) requireSkipped(turn *user.Turn) {
	r.t.Helper()
	require.True(r.t, isClosed(turn.Done()))
	_, err := turn.Result()
	require.ErrorIs(r.t, err, session.ErrResultSkipped)
}

func TestALineThatWasSkipped(t *testing.T) {
	t.Parallel()
	const idle = `{"type":"system","subtype":"session_state_changed","state":"idle"}`
	open := func(t *testing.T) (*rig, *user.Turn) {
		r := newRig(t)
		return r, r.turn("u")
	}
	t.Run("a result ends its turn", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		r.skip(`{"uuid":"x","type":"result","subtype":"success","result":"aaa`)
		r.requireSkipped(turn)
		assert.False(t, r.InFlight())
	})
	t.Run("an answer ends its call", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		call, other := r.call("set_model"), r.call("get_usage")
		r.skip(`{"type":"control_response","response":{"subtype":"success","request_id":"` + call.ID + `","response":{"a":"aaa`)
		require.True(t, isClosed(call.Done()))
		_, err := call.Answer()
		require.ErrorIs(t, err, session.ErrAnswerSkipped)
		assert.False(t, isClosed(other.Done()))
		assert.False(t, isClosed(turn.Done()))
		r.skip(`{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{"a":"aaa`)
	})
	t.Run("one that may be a result does, once the agent says it is idle", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		r.skip(`{"uuid":"x","result":"aaa`)
		r.read(lifecycle("u", "started"))
		assert.False(t, isClosed(turn.Done()))
		r.read(idle)
		r.requireSkipped(turn)
	})
	t.Run("one that cannot be does not", func(t *testing.T) {
		t.Parallel()
		for _, head := range []string{`{"type":"assistant","message":{`, `[{"type":"result"`, strings.Repeat("x", 256), ""} {
			r, turn := open(t)
			r.skip(head)
			r.read(lifecycle("u", "started"), idle)
			require.False(t, isClosed(turn.Done()), head)
		}
	})
	t.Run("a line before the result does not", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		r.skip(`{"uuid":"x","message":{`)
		r.read(resultOf("u"), idle)
		_, err := turn.Result()
		require.NoError(t, err)
	})
	t.Run("it has its place", func(t *testing.T) {
		t.Parallel()
		r, _ := open(t)
		r.read(assistant(1))
		r.PutSkipped(protocol.OversizeFrame([]byte(`{"type":"assistant","message":{`), 1<<30, 1<<20))
		r.read(assistant(2))
		lines, err := r.drain(r.consume(), nil)
		require.NoError(t, err)
		assert.Equal(t, []string{assistant(1), `{"type":"assistant","message":{`, assistant(2)}, lines)
		assert.Zero(t, r.Snapshot().Unread)
		assert.Zero(t, r.Snapshot().UnreadBytes)
	})
}

func TestPutSkippedTellsTheRouter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("a")
	r.TakeDue()
	assert.False(t, r.PutSkipped(protocol.OversizeFrame([]byte(`{`), 1<<30, 1<<20)))
	assert.True(t, r.PutSkipped(protocol.OversizeFrame([]byte(`{"type":"result","x":"`), 1<<30, 1<<20)), "a turn ends")
}

func TestASkippedRequestIsDenied(t *testing.T) {
	t.Parallel()
	for head, want := range map[string]string{
		`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","input":{"a":"`:             `"behavior":"deny"`,
		`{"request":{"a":{"subtype":"x"},"subtype":"can_use_tool"},"type":"control_request","request_id":"p","x":"`: `"behavior":"deny"`,
		`{"type":"control_request","request_id":"p","request":{"input":{"subtype":"can_use_tool","b":"`:             `longer than a line`,
		`{"type":"control_request","request_id":"p\"","x":"`:                                                        `"p\""`,
	} {
		r := newRig(t)
		r.skip(head)
		lines := r.wrote()
		require.Len(t, lines, 1, head)
		assert.Contains(t, lines[0], want)
		assert.Zero(t, r.Gates())
		assert.Zero(t, r.Unanswered())
	}
	r := newRig(t)
	r.skip(`{"type":"control_request","x":{"request_id":"p"},"y":"`, `{"type":"control_request","request":{"request_id":"p","x":"`)
	assert.Empty(t, r.wrote(), "whose it is does not show")
}

func TestASkippedRequestUnderAKnownID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	head := permission("p")[:100]
	q := r.ask("p")
	r.skip(head)
	assert.Len(t, r.wrote(), 2, "what it asks does not show, so the one that is open is denied with it")
	assert.False(t, r.Answer(q, []byte(allow), ""))
	r.skip(head)
	require.Len(t, r.wrote(), 1)
	assert.Zero(t, r.Gates())
	assert.Zero(t, r.Unanswered())
}

func TestASkippedResultWaitsForWhatCameBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.turn("a"), r.turn("b")
	r.read(resultOf("a"), assistant(1))
	r.PutSkipped(protocol.OversizeFrame([]byte(`{"type":"result","subtype":"success"`), 1<<30, 1<<20))
	r.read(assistant(2))
	_, err := a.Result()
	require.NoError(t, err)
	r.requireSkipped(b)
	lines, _ := r.drain(r.consume(), b)
	assert.Equal(t, []string{assistant(1), `{"type":"result","subtype":"success"`}, lines, "what came between the two results, and no more")
}

func TestASkippedLineIsKnownByItsOwnType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	turn := r.turn("a")
	r.skip(
		`{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"type":"result","x":"`+strings.Repeat("y", 50),
		`{"message":{"type":"result"},"x":"`,
		`{"x":"\"type\":\"result\"","y":"`,
	)
	assert.False(t, isClosed(turn.Done()))
	r.skip(`{"x":"\"type\":\"assistant\"","type" : "result","y":"`)
	r.requireSkipped(turn)
}

// A result that came before the agent can have read a message is of no turn.
func TestAResultBeforeAnyMessageWasWritten(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	turn, err := r.Send(context.Background(), userMessage("a"))
	require.NoError(t, err)
	r.read(plainResult, success("troupe-1", `{}`))
	assert.False(t, isClosed(turn.Done()))
	r.read(plainResult)
	assert.True(t, isClosed(turn.Done()))
}

func TestAResultThatCannotBeRead(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for line, text := range map[string]string{ // "": the turn fails
		`{"type":"result","subtype":"success","result":"a\qb","uuid":"x"}`:       `a\qb`,
		`{"type":"result","subtype":"success","result":"fine","x":` + deep + `}`: "fine",
		`{"type":"result","subtype":"success","result":"\u00e9","usage":01}`:     "\u00e9",
		`{"type":"result","subtype":"success","result":01}`:                      "",
		`{"type":"result","subtype":"success","result":` + deep + `}`:            "",
		`{"type":"result","subtype":"success","result":5}`:                       "",
		`{"type":"result","subtype":"success","usage":01}`:                       "",
	} {
		r := newRig(t)
		turn := r.turn("a")
		r.read(line)
		got, err := turn.Result()
		lines, _ := r.drain(r.consume(), turn)
		assert.Equal(t, []string{line}, lines, "it is a message of the turn")
		if text == "" {
			var lost *protocol.UnreadableResultError
			require.ErrorAs(t, err, &lost, "%.80s", line)
			continue
		}
		require.NoError(t, err, "%.80s", line)
		assert.Equal(t, text, got.Result)
		assert.NotEmpty(t, eventsOf[*session.NoiseLine](r))
	}
	r := newRig(t)
	turn := r.turn("a")
	r.read(`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["x"],"result":01,"user_message_uuid":"a"}`)
	got, err := turn.Result()
	require.NoError(t, err)
	assert.True(t, got.Failed())
	assert.Equal(t, "x", got.Text())
	assert.Equal(t, "a", got.UserMessageUUID)
}
