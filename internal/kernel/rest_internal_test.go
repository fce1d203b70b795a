package kernel

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNobodyRestsOverASystemMessage: a system message comes after an incarnation has
// looked for one, and its wake is taken by the look for messages. An incarnation that
// rested then would never stop, or never learn of the end of a child.
func TestNobodyRestsOverASystemMessage(t *testing.T) {
	t.Parallel()
	l := newLife(NewSystem(Config{}), "a#1", false)
	b := &inbox{}
	require.NoError(t, b.occupy(l))
	l.started, l.parked = true, false // it runs, and has found no system message
	l.PostSystemMessage(&actor.Stop{})
	require.False(t, b.more(), "a wake is no message")
	assert.False(t, l.rest(b))
	assert.True(t, b.in.CompareAndSwap(nil, nil), "no mark")
	l.signal(b)
	assert.True(t, l.rest(b))
}
