package user_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
)

// TestTheFirstTurnHasWhatCameBefore: the agent writes its init before the first
// message, and whoever reads the first turn may look before the router has placed it.
func TestTheFirstTurnHasWhatCameBefore(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	t.Cleanup(s.Close)
	seed := uint64(1)
	l := user.New(user.Config{
		Clock: s, Rand: kernel.NewRand(&seed), Exec: s,
		UserLine: func(*protocol.UserMessage) ([]byte, error) { return nil, nil },
		Router:   func(machine.Input, bool) {},
	})
	init, err := protocol.ParseFrame([]byte(`{"type":"system","subtype":"init"}`))
	require.NoError(t, err)
	l.Apply(machine.Deliver{Entries: []machine.Delivery{{Frame: init}}})
	turn, err := l.Send(context.Background(), &protocol.UserMessage{})
	require.NoError(t, err)
	c, err := l.Consume()
	require.NoError(t, err)
	defer c.Release()
	var got user.Delivery
	read := false
	s.Go(func() {
		var err error
		got, err = c.NextOf(t.Context(), turn)
		read = assert.NoError(t, err)
	})
	require.NoError(t, s.Run(100))
	require.False(t, read, "the router has not placed the turn")
	l.Apply(machine.Moved{ID: turn.UUID, Starts: 0, State: machine.TurnQueued})
	require.NoError(t, s.Run(100))
	require.True(t, read)
	assert.Equal(t, "init", got.Frame.Subtype)
}
