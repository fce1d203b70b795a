package link_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted are leases that note who has one.
type counted struct {
	held map[string]bool
	most int
	ever int
}

func (c *counted) Acquire(_ context.Context, id string) (func(), error) {
	c.held[id] = true
	c.ever++
	c.most = max(c.most, len(c.held))
	return func() { delete(c.held, id) }, nil
}

// TestAnAgentThatNamesManySessions has the lease of the last one: an agent says what it
// likes, and takes no file of the host's for each word.
func TestAnAgentThatNamesManySessions(t *testing.T) {
	t.Parallel()
	leases := &counted{held: make(map[string]bool)}
	r := newRig(t, func(_ *rig, s *setup) { s.link.Leases, s.link.SessionID = leases, "first" })
	r.up()
	require.Equal(t, map[string]bool{"first": true}, leases.held)
	r.Named("FIRST")
	for n := range 1000 {
		r.Named(fmt.Sprint("session ", n))
		if n%10 == 0 {
			r.settle()
		}
	}
	r.settle()
	require.Equal(t, map[string]bool{"session 999": true}, leases.held)
	require.LessOrEqual(t, leases.most, 2, "the next one before the last is given back")
	r.Named("first")
	r.Named("session 999")
	r.settle()
	require.Equal(t, map[string]bool{"session 999": true}, leases.held)
	r.Abort()
	r.ended()
	require.Empty(t, leases.held)
	r.Named("another")
	r.settle()
	require.Empty(t, leases.held, "no process is left that could be in it")
}
