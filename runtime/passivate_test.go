package runtime_test

import (
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
)

// TestTreeOfAPassivatedSession: it has no process, keeps its actors and its state, and
// continues where it was.
func TestTreeOfAPassivatedSession(t *testing.T) {
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
			assert.NotEmpty(t, tree.Actors)
			assert.False(t, tree.Partial)
			assert.Empty(t, tree.Waits)
			assert.Equal(t, session.StatePassivated, tree.State)
			assert.Equal(t, "ended, stdin closed", tree.Transport)
			assert.Zero(t, tree.Restarts, "waking up %d times is no restart", n)
			assert.Zero(t, tree.PID, "its process has ended")
			assert.Equal(t, "/work", tree.Dir)
			assert.Equal(t, id, tree.AgentSessionID)
			assert.Zero(t, s.PID())
			require.NoError(t, s.Passivate(t.Context()), "nothing is left to do")
			w.Pass(time.Minute)
			assert.Equal(t, []string{"one"}, texts(t, w.send(s, "go on")))
		}
		require.NoError(t, s.Passivate(t.Context()))
		w.Pass(time.Minute)
		require.NoError(t, s.Close(t.Context()))
		assert.Equal(t, session.StateClosed, s.State())
		assert.Zero(t, w.Tree(t.Context()).DeadLetters)
	}
}

// TestARouterAtWorkIsNotBroken: the actor of a session that is started again starts its
// router, which is in the middle of a step while the actor still starts.
func TestARouterAtWorkIsNotBroken(t *testing.T) {
	t.Parallel()
	w := inProduction(t)
	require.NoError(t, w.Shutdown(t.Context()))
	var kill, armed atomic.Bool
	crashed, stepping, started := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var steps, starts, crash sync.Once
	chaos := func(actor string, m any, at kernel.Moment) bool {
		_, began := m.(machine.Began)
		switch {
		case kill.Load() && at == kernel.BeforeMessage && strings.HasPrefix(actor, "s#"):
			kill.Store(false)
			return true
		case !armed.Load():
		case at == kernel.InStep && strings.HasPrefix(actor, "router#"):
			steps.Do(func() { close(stepping); <-started })
		case at == kernel.InStep && began: // its router runs, and it continues when that is in a step
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
	spec.Options.OnEvent = func(e session.EventRecord) {
		if _, ok := e.Event.(*session.Supervision); ok { // the router of before is gone, and the next one not there
			crash.Do(func() { armed.Store(true); close(crashed) })
		}
	}
	s := w.open(spec)
	texts(t, w.send(s, "go"))
	kill.Store(true)
	passivated := make(chan error, 1)
	go func() { passivated <- s.Passivate(t.Context()) }() // kills the actor, and is the first message of the next
	<-crashed
	turn := w.send(s, "go on")
	<-stepping
	// Whether the message came first is a matter of time: behind the passivation it wakes a
	// new process, which answers as the first one did.
	assert.Contains(t, [][]string{{"go on"}, {"one"}}, texts(t, turn))
	if err := <-passivated; err != nil {
		t.Log(err)
	}
	require.NoError(t, s.Close(t.Context()))
}
