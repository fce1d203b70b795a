package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// capped is an agent of which only so many may live at once.
type capped struct {
	agent.Program
	w    *world
	most int
}

func (p capped) Serve(l agent.Launch, port agent.Port) agent.Exit {
	living, _ := p.w.Agents()
	require.Less(p.w, living, p.most, "one agent more")
	return p.Program.Serve(l, port)
}

// crowd has more sessions than there may be processes, each with some turns and pauses,
// and returns how often one made room.
func crowd(w *world, sessions, most int) (madeRoom int64) {
	ctx := context.Background()
	var all []func()
	for n := range sessions {
		s := gated("count")
		s.Turns = append(s.Turns, scripted.Turn{Steps: scripted.Steps{scripted.Text("again")}})
		s.Default = scripted.Steps{scripted.Text("more")}
		if n == 0 {
			s.Misbehave.Die = &scripted.Die{Lines: 12, Signal: "KILL", Only: "fresh"}
		}
		spec := w.Gated(s)
		spec.ID = fmt.Sprint("s", n)
		spec.Options.MaxRestarts = 3
		spec.Program = capped{spec.Program, w, most}
		all = append(all, w.Task(func() {
			s, err := w.Open(ctx, spec)
			require.NoError(w, err)
			done := reading(w, s)
			for i := range 3 {
				require.NoError(w, say(s, fmt.Sprint("message ", i)))
				w.Pass(time.Duration(n+i) * 300 * time.Millisecond)
			}
			require.NoError(w, s.Close(ctx))
			done()
		}))
	}
	for _, wait := range all {
		wait()
	}
	stat := w.AdmissionStat()
	require.Zero(w, stat.Processes+stat.ProcessesQueued)
	w.Finish()
	w.FailClosed("crowd")
	return stat.MadeRoom
}

// TestIdleSessionsMakeRoom: in any order, with the death of any actor, there are never
// more processes than allowed, and every message has its result.
func TestIdleSessionsMakeRoom(t *testing.T) {
	t.Parallel()
	const sessions, most = 5, 2
	cfg := runtime.Config{Admission: runtime.Admission{MaxProcesses: most}}
	made, seeds := int64(0), sim.Seeds(t, 20, 10)
	for seed := range seeds {
		calm := newWorldWith(t, seed, cfg)
		made += crowd(calm, sessions, most)
		for i := range 3 {
			struck, n := false, int(seed*7919+uint64(i)*104729)%len(calm.Handled())
			made += crowd(newWorldWith(t, seed, cfg, strike(n, kernel.BeforeMessage, &struck)), sessions, most)
			assert.True(t, struck)
		}
	}
	assert.Greater(t, made, int64(5*seeds))
}

// TestTheIdlestMakesRoom: the session that is idle longest goes first.
func TestTheIdlestMakesRoom(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxProcesses: 3}})
	ctx := context.Background()
	var open []*runtime.Session
	add := func() {
		script := gated("count")
		script.Default = scripted.Steps{scripted.Text("more")}
		spec := w.Gated(script)
		spec.ID = fmt.Sprint("s", len(open))
		s, err := w.Open(ctx, spec)
		require.NoError(w, err)
		reading(w, s)
		open = append(open, s)
	}
	use := func(n int) {
		w.Pass(time.Second)
		require.NoError(w, say(open[n], "go"))
		w.Pass(time.Second)
	}
	asleep := func() (names []string) {
		for _, s := range open {
			if s.State() == session.StatePassivated {
				names = append(names, s.ID())
			}
		}
		return names
	}
	for range 3 {
		add()
	}
	for _, n := range []int{1, 0, 2} {
		use(n)
	}
	assert.Empty(t, asleep())
	add()
	assert.Equal(t, []string{"s1"}, asleep())
	use(0)
	use(1) // it wakes
	assert.Equal(t, []string{"s2"}, asleep())
	use(2)
	assert.Equal(t, []string{"s3"}, asleep())
	assert.Equal(t, int64(3), w.AdmissionStat().MadeRoom)
	for _, s := range open {
		require.NoError(w, s.Close(ctx))
	}
	w.Finish()
}

// TestWhoIsNeededStays: a session whose process is needed makes room some seconds after
// that is over, also if no state of it changes then.
func TestWhoIsNeededStays(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxProcesses: 1}})
	ctx := context.Background()
	script := gated("count")
	script.Misbehave.AnswerDelay = 12 * time.Second
	spec := w.Gated(script)
	needed, err := w.Open(ctx, spec)
	require.NoError(w, err)
	call := w.Task(func() {
		require.NoError(w, needed.Call(ctx, protocol.MCPStatusRequest{}, nil, time.Minute))
	})
	w.Pass(time.Millisecond)
	began := w.Clock().Now()
	other := w.Gated(gated("count"))
	other.ID = "other"
	s, err := w.Open(ctx, other)
	require.NoError(w, err)
	assert.InDelta(t, 14.5, w.Clock().Now().Sub(began).Seconds(), 2.5)
	call()
	require.NoError(w, s.Close(ctx))
	require.NoError(w, needed.Close(ctx))
	w.Finish()
}

// TestAPlaceThatNobodyNeeds: what a passivated session should have done is given up while
// it waits for a place. It does not keep the place that it gets.
func TestAPlaceThatNobodyNeeds(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxProcesses: 1}})
	ctx := context.Background()
	open := func(id string, persist bool) *runtime.Session {
		spec := w.Gated(gated("count"))
		spec.ID, spec.Options.PersistSession = id, session.Some(persist)
		s, err := w.Open(ctx, spec)
		require.NoError(w, err)
		return s
	}
	asleep, stays := open("asleep", true), open("stays", false)
	require.Equal(w, session.StatePassivated, asleep.State())
	require.ErrorAs(w, asleep.Call(ctx, protocol.MCPStatusRequest{}, nil, time.Second), new(*session.TimeoutError))
	require.Equal(w, 1, w.AdmissionStat().ProcessesQueued)
	require.NoError(w, stays.Close(ctx))
	w.Pass(time.Second)
	require.Zero(w, w.AdmissionStat().Processes)
	next := open("next", false)
	for _, s := range []*runtime.Session{next, asleep} {
		require.NoError(w, s.Close(ctx))
	}
	w.Finish()
}

// TestSpawnersHaveTheirOwnPlaces: sessions of one spawner wait for each other, and for no
// others. One that waits says so, and continues as soon as there is room.
func TestSpawnersHaveTheirOwnPlaces(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, 1, runtime.Config{Admission: runtime.Admission{MaxProcesses: 1, MaxSpawned: 1}})
	ctx := context.Background()
	spec := func(id string, s session.Spawner) runtime.Spec {
		spec := w.Gated(gated("count"))
		spec.ID, spec.Options.PersistSession = id, session.Some(false) // it cannot make room
		if s != nil {
			spec.Program, spec.Options.Spawner = nil, s
		}
		return spec
	}
	spawner := func() session.Spawner {
		return &transport.InMemory{Clock: w.Clock(), Exec: w.Executor(), Program: w.Gated(gated("count")).Program}
	}
	one, other := spawner(), spawner()
	var open []*runtime.Session
	for _, spec := range []runtime.Spec{spec("local", nil), spec("one", one), spec("other", other)} {
		s, err := w.Open(ctx, spec)
		require.NoError(w, err)
		open = append(open, s)
	}
	second, err := w.Start(ctx, spec("second", one))
	require.NoError(w, err)
	ready := w.Task(func() { require.NoError(w, second.AwaitReady(ctx)) })
	w.Pass(time.Minute)
	stat := w.AdmissionStat()
	assert.Equal(t, []int{3, 1}, []int{stat.Processes, stat.ProcessesQueued})
	waits := fmt.Sprintf("%+v", w.Tree(ctx).Sessions)
	assert.Contains(t, waits, "place for the agent's process (Admission.MaxProcesses or MaxSpawned)")
	require.NoError(w, open[2].Close(ctx)) // of the other spawner
	w.Pass(time.Minute)
	assert.Equal(t, 1, w.AdmissionStat().ProcessesQueued)
	require.NoError(w, open[1].Close(ctx))
	ready()
	assert.Zero(t, w.AdmissionStat().MadeRoom)
	for _, s := range []*runtime.Session{open[0], second} {
		require.NoError(w, s.Close(ctx))
	}
	third, err := w.Open(ctx, spec("third", other)) // of a spawner that was forgotten
	require.NoError(w, err)
	require.NoError(w, third.Close(ctx))
	w.Finish()
}

// TestADeadSessionMakesRoom: a session whose agent has died, and which needs none, does not
// keep its place from others.
func TestADeadSessionMakesRoom(t *testing.T) {
	t.Parallel()
	cfg := simtests.Config{Seeds: 20, AllFaults: true, Runtime: func(uint64) runtime.Config {
		return runtime.Config{Admission: runtime.Admission{MaxProcesses: 1}}
	}}
	simtests.Explore(t, cfg, func(w *simtests.World) {
		w.Faults(simtests.CrashWaiting(1, 10*time.Minute))
		script := &scripted.Script{Default: scripted.Steps{scripted.Text("more")}}
		first := w.Open(&sdk.Options{MaxRestarts: 1}, script)
		_, _, err := w.Ask(first, "hello")
		require.NoError(w, err)
		w.Sleep(time.Hour)
		require.Equal(w, session.StateRecovering, first.State())
		second := w.Open(&sdk.Options{}, script)
		for _, c := range []*sdk.Client{second, first} {
			_, _, err = w.Ask(c, "again")
			require.NoError(w, err)
		}
	})
}

// mortal is an agent that can be killed, and kept from starting again.
type mortal struct {
	agent.Program
	broken bool
	port   agent.Port
}

func (m *mortal) Serve(l agent.Launch, port agent.Port) agent.Exit {
	if m.broken {
		return agent.Exit{Code: 1}
	}
	m.port = port
	return m.Program.Serve(l, port)
}

// TestADeadSessionWhoseWishIsOver: a session that recovers asks for a start, and its call has
// timed out when the breaker grants it. It does not keep the place that it does not use.
func TestADeadSessionWhoseWishIsOver(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, 1, runtime.Config{
		Admission: runtime.Admission{MaxProcesses: 1},
		Breakers:  runtime.Breakers{Agent: runtime.BreakerPolicy{Failures: 1, CoolDown: 10 * time.Minute, MaxCoolDown: 10 * time.Minute}},
	})
	ctx := context.Background()
	spec := w.Gated(&scripted.Script{Default: scripted.Steps{scripted.Text("hello")}})
	m := &mortal{Program: spec.Program}
	spec.ID, spec.Program, spec.Options.MaxRestarts = "first", m, 10
	first, err := w.Open(ctx, spec)
	require.NoError(w, err)
	reading(w, first)
	require.NoError(w, say(first, "hello"))
	m.broken = true
	m.port.(agent.Signaller).Signal(agent.ErrTerminated)
	w.Pass(time.Minute)
	require.Equal(w, session.StateRecovering, first.State())
	require.ErrorAs(w, first.Call(ctx, protocol.MCPStatusRequest{}, nil, time.Minute), new(*session.TimeoutError))
	m.broken = false
	w.Pass(time.Hour)
	require.Equal(w, session.StateRecovering, first.State())
	other := w.Gated(gated("count"))
	other.ID = "other"
	within, cancel := context.WithCancel(ctx)
	giveUp := w.Sched.AfterFunc(time.Hour, cancel)
	s, err := w.Open(within, other)
	require.NoError(w, err)
	giveUp.Stop()
	require.NoError(w, s.Close(ctx))
	require.NoError(w, say(first, "again")) // it asks for a place once more
	require.NoError(w, first.Close(ctx))
	w.Finish()
}

// TestADeadSessionThatIsNeeded keeps its place though another session waits for one: the turn
// whose agent died continues first.
func TestADeadSessionThatIsNeeded(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 10, 20) {
		w := newWorldWith(t, seed, runtime.Config{Admission: runtime.Admission{MaxProcesses: 1}})
		ctx := context.Background()
		var steps scripted.Steps
		for range 9 {
			steps = append(steps, scripted.Delay(time.Second), scripted.Text("on"))
		}
		script := &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Text("hello")}}}, Default: steps}
		script.Misbehave.Die = &scripted.Die{Lines: 9, Signal: "KILL", Only: "fresh"}
		spec := w.Gated(script)
		recovered := 0
		spec.Options.MaxRestarts = 3
		spec.Options.OnEvent = func(r session.EventRecord) {
			if _, ok := r.Event.(*session.Recovered); ok {
				recovered++
			}
		}
		dies, err := w.Open(ctx, spec)
		require.NoError(w, err)
		reading(w, dies)
		require.NoError(w, say(dies, "hello"))
		var order []string
		turn := w.Task(func() {
			require.NoError(w, say(dies, "go"))
			order = append(order, "the turn")
		})
		w.Pass(time.Second) // a session without a turn gives its place away
		other := w.Gated(gated("count"))
		other.ID = "other"
		waits := w.Task(func() {
			s, err := w.Open(ctx, other)
			require.NoError(w, err)
			order = append(order, "the other session")
			require.NoError(w, s.Close(ctx))
		})
		turn()
		waits()
		require.Equal(w, []string{"the turn", "the other session"}, order)
		require.Equal(w, 1, recovered)
		require.NoError(w, dies.Close(ctx))
		w.Finish()
	}
}
