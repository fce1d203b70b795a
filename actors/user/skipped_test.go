package user_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// requireSkipped requires that a turn has ended because its result was skipped.
func (r *rig) requireSkipped(turn *user.Turn) {
	r.t.Helper()
	require.True(r.t, isClosed(turn.Done()))
	_, err := turn.Result()
	require.ErrorIs(r.t, err, session.ErrResultSkipped)
}

func TestASkippedLineHasItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("u")
	r.read(assistant(1))
	r.PutSkipped(protocol.OversizeFrame([]byte(`{"type":"assistant","message":{`), 1<<30, 1<<20))
	r.read(assistant(2))
	lines, err := r.drain(r.consume(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{assistant(1), `{"type":"assistant","message":{`, assistant(2)}, lines)
	assert.Zero(t, r.Snapshot().Unread)
	assert.Zero(t, r.Snapshot().UnreadBytes)
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
