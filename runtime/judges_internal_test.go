package runtime

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// someServer is a handler of which only the name is asked.
type someServer struct{ session.MCPHandler }

func (*someServer) Name() string { return "tools" }

func serverOf(b *breakers) *server {
	return (&starts{of: b}).Server(&someServer{}).(*server)
}

func someBreakers() *breakers {
	return newBreakers(Breakers{}, kernel.NewSystem(kernel.Config{}), func(session.Event) {})
}

// TestACallOfACalmServer takes no lock and no memory.
func TestACallOfACalmServer(t *testing.T) {
	t.Parallel()
	s := serverOf(someBreakers())
	id, err := s.Enter()
	require.NoError(t, err)
	s.Leave(id, "", true)
	s.of.mu.Lock()
	for _, answered := range []bool{true, false} {
		id, err := s.Enter()
		require.NoError(t, err)
		s.Leave(id, "", answered)
	}
	s.of.mu.Unlock()

	s.Leave(id, "it is gone", false)
	assert.False(t, s.last.Load().calm.Load())
	s.Leave(id, "", false) // that says nothing
	assert.Equal(t, 1, s.last.Load().Failures)
	s.Leave(id, "", true)
	assert.Equal(t, 0, s.last.Load().Failures)
	assert.True(t, s.last.Load().calm.Load())
}

// TestCallsThatFailAtOnce open the breaker for sessions that had found it calm, although
// they did not ask it. One of them that fails late is not the probe.
func TestCallsThatFailAtOnce(t *testing.T) {
	t.Parallel()
	a := serverOf(someBreakers())
	b := &server{of: a.of, key: a.key}
	for _, s := range []*server{a, b} {
		id, err := s.Enter()
		require.NoError(t, err)
		s.Leave(id, "", true)
	}
	late, err := b.Enter()
	require.NoError(t, err)
	for range defaultFailures {
		id, err := a.Enter()
		require.NoError(t, err)
		a.Leave(id, "it is gone", false)
	}
	_, err = b.Enter()
	require.ErrorAs(t, err, new(*session.BreakerOpenError))

	g := a.last.Load()
	g.NextProbe = a.of.clock.Now()
	probe, err := a.Enter()
	require.NoError(t, err)
	b.Leave(late, "it is gone, too", false)
	assert.Equal(t, session.BreakerHalfOpen, g.Phase)
	a.Leave(probe, "", true)
	assert.Equal(t, session.BreakerClosed, g.Phase)
}

// TestAForgottenBreaker is not asked any more by who knew it: another has its key.
func TestAForgottenBreaker(t *testing.T) {
	t.Parallel()
	a := serverOf(someBreakers())
	id, err := a.Enter()
	require.NoError(t, err)
	a.Leave(id, "", true)
	first := a.last.Load()
	for i := range minRoom {
		other := a.key
		other.name = fmt.Sprint("other", i)
		a.of.guard(other)
	}
	require.NotSame(t, first, a.of.guard(a.key))
	_, err = a.Enter()
	require.NoError(t, err)
	assert.Same(t, a.of.all[a.key], a.last.Load())
}

// BenchmarkServer is what the breaker costs a call of a tool.
func BenchmarkServer(b *testing.B) {
	s := serverOf(someBreakers())
	b.ReportAllocs()
	for b.Loop() {
		id, err := s.Enter()
		if err != nil {
			b.Fatal(err)
		}
		s.Leave(id, "", true)
	}
}
