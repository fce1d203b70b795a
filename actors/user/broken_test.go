package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestAStepThatPanics: nothing that is known after it is trusted, nothing is answered,
// and whoever waits gets the reason.
func TestAStepThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *sideConfig) {
		c.Rules.(*stubRules).deny = func(session.Kind, protocol.Frame, string) ([]byte, string) { panic("a bug") }
	})
	turn, call, q := r.turn("a"), r.call("set_model"), r.ask("p")
	ctx, cancel := context.WithCancelCause(t.Context())
	require.True(t, r.Scope(q, cancel))
	r.wrote()
	require.NoError(t, r.Broken())

	r.FailTaken(session.KindPermission, "gone")
	var bug *session.PanicError
	require.ErrorAs(t, r.Broken(), &bug)
	assert.Equal(t, "a bug", bug.Value)
	assert.Contains(t, string(bug.Stack), "Denial")
	assert.True(t, r.TakeDue().Changed)

	r.Answer(q, json.RawMessage(allow), "")
	r.read(permission("second"), resultOf("a"))
	assert.Empty(t, r.wrote(), "no gate opens")
	assert.Empty(t, r.Take(session.KindPermission))
	assert.True(t, r.Drained(), "nobody waits for the rest")
	assert.False(t, isClosed(turn.Done()))

	over := errors.New("over")
	r.Terminate(over)
	r.requireEnded(over, turn)
	_, err := call.Answer()
	require.ErrorIs(t, err, over)
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	_, err = r.drain(r.consume(), nil)
	require.ErrorIs(t, err, over)
}

func TestInitializeThatPanics(t *testing.T) {
	t.Parallel()
	r := newRaw(t, func(c *sideConfig) { c.Rules = panics{c.Rules.(*stubRules)} })
	var bug *session.PanicError
	require.ErrorAs(t, r.Broken(), &bug)
	assert.Empty(t, r.wrote())
}

type panics struct{ *stubRules }

func (panics) Initialize(int) ([]byte, error) { panic("a bug") }
