package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/protocol"
)

func TestALineThatWasSkipped(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*rig, *ledger.Turn) {
		r := newRig(t).ready()
		turn, err := r.OpenTurn(&protocol.UserMessage{Common: protocol.Common{UUID: "u"}})
		require.NoError(t, err)
		require.NoError(t, r.WriteCalls())
		return r, turn
	}
	t.Run("a result ends its turn", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		assert.True(t, r.Skipped([]byte(`{"uuid":"x","type":"result","subtype":"success","result":"aaa`)))
		_, err := turn.Result()
		require.ErrorIs(t, err, ledger.ErrResultSkipped)
		assert.False(t, r.InFlight())
	})
	t.Run("a line of any kind does, once the agent says it is idle", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		assert.False(t, r.Skipped([]byte(`{"uuid":"x","result":"aaa`)))
		r.read(`{"type":"command_lifecycle","command_uuid":"u","state":"started"}`)
		assert.False(t, isClosed(turn.Done()))
		r.read(`{"type":"system","subtype":"session_state_changed","state":"idle"}`)
		_, err := turn.Result()
		require.ErrorIs(t, err, ledger.ErrResultSkipped)
	})
	t.Run("a line before the result does not", func(t *testing.T) {
		t.Parallel()
		r, turn := open(t)
		assert.False(t, r.Skipped([]byte(`{"type":"assistant","message":{`)))
		r.read(`{"type":"result","subtype":"success","user_message_uuid":"u"}`)
		r.read(`{"type":"system","subtype":"session_state_changed","state":"idle"}`)
		_, err := turn.Result()
		require.NoError(t, err)
	})
	t.Run("a gate is denied", func(t *testing.T) {
		t.Parallel()
		r, _ := open(t)
		r.wrote()
		r.Skipped([]byte(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","input":{"a":"`))
		lines := r.wrote()
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0], `"behavior":"deny"`)
		assert.Zero(t, r.Gates())
		assert.Zero(t, r.Unanswered())
	})
}
