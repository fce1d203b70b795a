package runtime_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestASessionThatSleeps has no actor, says so, and goes on where it was.
func TestASessionThatSleeps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := inSim(t, seed)
		spec := w.spec(turns(scripted.Steps{scripted.Text("one")}))
		spec.Options.Cwd = "/work"
		s := w.open(spec)
		assert.Equal(t, []string{"one"}, texts(t, w.send(s, "go")))
		id := s.AgentSessionID()
		for n := range 2 {
			require.NoError(t, s.Passivate(t.Context()))
			w.Pass(time.Minute)
			tree := s.Tree(t.Context())
			assert.Empty(t, tree.Actors)
			assert.NotNil(t, tree.Actors)
			assert.False(t, tree.Partial)
			assert.Empty(t, tree.Waits)
			assert.Equal(t, session.StatePassivated, tree.State)
			assert.Equal(t, "ended, stdin closed", tree.Transport)
			assert.Zero(t, tree.Restarts, "waking up %d times is no restart", n)
			assert.Zero(t, tree.PID, "its process has ended")
			assert.Equal(t, "/work", tree.Dir)
			assert.Equal(t, id, tree.AgentSessionID)
			assert.Zero(t, s.PID())
			require.NoError(t, s.Passivate(t.Context()), "that wakes it for nothing")
			w.Pass(time.Minute)
			assert.Empty(t, s.Tree(t.Context()).Actors)
			assert.Equal(t, []string{"one"}, texts(t, w.send(s, "go on")))
			assert.NotEmpty(t, s.Tree(t.Context()).Actors)
		}
		require.NoError(t, s.Passivate(t.Context()))
		w.Pass(time.Minute)
		require.NoError(t, s.Close(t.Context()))
		assert.Equal(t, session.StateClosed, s.State())
		assert.Zero(t, w.Tree(t.Context()).DeadLetters)
	}
}

// TestWhoDoesNotSleep: a session that has children of the user's own, and one whose actors
// have failed, keep their actors while they have no process.
func TestWhoDoesNotSleep(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	own, _ := session.NewChild(supervisor.Child{Name: "own"}, func() session.Behavior[string] { return session.Behavior[string]{} })
	spec.Options.Children = []*session.Child{own}
	s := w.open(spec)
	require.NoError(t, s.Passivate(t.Context()))
	w.Pass(time.Minute)
	assert.NotEmpty(t, s.Tree(t.Context()).Actors)
	require.NoError(t, s.Close(t.Context()))

	armed := false
	w = inSim(t, 1, func(c *kernel.Config) {
		c.Chaos = func(actor string, _ any, at kernel.Moment) bool {
			kill := armed && at == kernel.BeforeMessage && strings.HasPrefix(actor, "router#")
			armed = armed && !kill
			return kill
		}
	})
	s = w.open(w.spec(turns(scripted.Steps{scripted.Text("one")})))
	armed = true
	texts(t, w.send(s, "go"))
	require.False(t, armed)
	require.NoError(t, s.Passivate(t.Context()))
	w.Pass(time.Minute)
	assert.NotEmpty(t, s.Tree(t.Context()).Actors)
	require.NoError(t, s.Close(t.Context()))
}

// TestTheBellThatIsLost: the fleet's actor dies of the message that wakes a session, and
// finds the session all the same.
func TestTheBellThatIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		killed := 0
		w := inSim(t, seed, func(c *kernel.Config) {
			c.Chaos = func(actor string, m any, at kernel.Moment) bool {
				kill := at == kernel.BeforeMessage && strings.HasSuffix(fmt.Sprintf("%T", m), "sessionRoused")
				if kill {
					killed++
				}
				return kill
			}
		})
		s := w.open(w.spec(turns(scripted.Steps{scripted.Text("one")})))
		texts(t, w.send(s, "go"))
		require.NoError(t, s.Passivate(t.Context()))
		w.Pass(time.Minute)
		assert.Equal(t, []string{"one"}, texts(t, w.send(s, "go on")))
		require.NoError(t, s.Close(t.Context()))
		assert.Positive(t, killed)
	}
}

// TestARouterAtWorkIsNotBroken: the actor of a session that wakes starts its router, which is
// in the middle of a step while the actor still starts.
func TestARouterAtWorkIsNotBroken(t *testing.T) {
	t.Parallel()
	w := inProduction(t)
	require.NoError(t, w.Shutdown(t.Context()))
	var armed atomic.Bool
	stepping, started := make(chan struct{}), make(chan struct{})
	var steps, starts sync.Once
	chaos := func(actor string, m any, at kernel.Moment) bool {
		_, began := m.(machine.Began)
		switch {
		case !armed.Load():
		case at == kernel.InStep && strings.HasPrefix(actor, "router#"):
			steps.Do(func() { close(stepping); <-started })
		case at == kernel.InStep && began: // its router runs, and it goes on when that is in a step
			<-stepping
		case at == kernel.BeforeMessage && strings.HasPrefix(actor, "s#"):
			starts.Do(func() { close(started) })
		}
		return false
	}
	rt, err := runtime.New(runtime.Config{Clock: kernel.Config{Clock: kernel.NewClock(nil), Chaos: chaos}.AsClock()})
	require.NoError(t, err)
	w.Runtime = rt
	spec := w.spec(turns(scripted.Steps{scripted.Text("one")}))
	spec.ID = "s"
	s := w.open(spec)
	texts(t, w.send(s, "go"))
	require.NoError(t, s.Passivate(t.Context()))
	require.Eventually(t, func() bool { return len(s.Tree(t.Context()).Actors) == 0 }, 10*time.Second, time.Millisecond)
	armed.Store(true)
	turn := w.send(s, "go on")
	<-stepping
	_ = s.Passivate(t.Context()) // a message for the actor: it has started
	assert.Equal(t, []string{"one"}, texts(t, turn))
	require.NoError(t, s.Close(t.Context()))
}
