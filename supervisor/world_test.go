package supervisor_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/supervisor"
)

// manner is how a child answers the wish that it end.
type manner int

const (
	obedient manner = iota // ends when asked to
	deaf                   // ends when killed
	immortal               // never ends
)

// world is a tiny interpreter of actions. It plays the children and the
// timers, and checks each action against what OTP promises.
type world struct {
	t     require.TestingT
	spec  supervisor.Spec // with explicit limits
	s     *supervisor.Supervisor
	now   time.Time
	kids  []*kid
	byKid map[string]int
	trace []string

	timers   []alarm // pending, in the order they were set
	fired    []supervisor.Token
	failures []time.Time // that count
	giveUp   bool        // an IntensityExceeded must come, or came
	stuck    bool
	ending   bool
	escalate bool
	over     bool
	ignored  int
	free     bool // the strategy is none of OTP's, and promises no order among siblings
}

type kid struct {
	supervisor.Child
	manner               manner
	last                 int // incarnation
	alive, asked, killed bool
	stuck                bool
	startedInThisBatch   bool
}

type alarm struct {
	token supervisor.Token
	at    time.Time
}

func newWorld(t require.TestingT, spec supervisor.Spec, manners []manner, seed uint64) *world {
	w := &world{t: t, spec: spec, now: epoch, byKid: map[string]int{}}
	for i, c := range spec.Children {
		w.kids = append(w.kids, &kid{Child: c, manner: manners[i]})
		w.byKid[c.Name] = i
	}
	s, err := supervisor.New(spec, seeded(seed), w.observe)
	require.NoError(t, err)
	w.s = s
	return w
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, w.now.Sub(epoch).String()+" "+fmt.Sprintf(format, args...))
}

// observe checks the events against a model of the intensity, and the delays.
func (w *world) observe(e supervisor.Event) {
	w.note("event %v", e)
	require.Equal(w.t, w.now, e.When())
	require.False(w.t, w.over, "an event after Stopped")
	switch e := e.(type) {
	case *supervisor.ChildFailed:
		k := w.kids[w.byKid[e.Child]]
		counts := k.Class == supervisor.Permanent || k.Class == supervisor.Transient && e.Reason != nil
		if w.ending || !counts {
			return
		}
		w.failures = append(w.failures, w.now)
		recent := 0
		for _, at := range w.failures {
			if w.now.Sub(at) <= w.spec.Intensity.Window {
				recent++
			}
		}
		w.giveUp = recent > w.spec.Intensity.Max
	case *supervisor.IntensityExceeded:
		require.True(w.t, w.giveUp, "within the intensity")
		require.False(w.t, w.ending)
	case *supervisor.Stopping:
		require.False(w.t, w.ending, "stopping twice")
		w.ending = true
	case *supervisor.RestartScheduled:
		require.False(w.t, w.giveUp || w.ending)
		require.GreaterOrEqual(w.t, e.Delay, time.Duration(0))
		require.LessOrEqual(w.t, e.Delay, w.spec.Backoff.Max)
		require.NotEmpty(w.t, e.Children)
	case *supervisor.ChildStuck:
		k := w.kids[w.byKid[e.Child]]
		require.True(w.t, k.alive && k.killed)
		k.stuck = true
		w.stuck = w.stuck || !w.ending
	}
}

// carryOut takes the actions of one input.
func (w *world) carryOut(actions []supervisor.Action) {
	for _, k := range w.kids {
		k.startedInThisBatch = false
	}
	for _, a := range actions {
		w.note("action %s", word(a))
		require.False(w.t, w.over, "an action after Stopped: %v", a)
		require.True(w.t, !w.escalate || word(a) == "stopped", "%v after Escalate", a)
		switch a := a.(type) {
		case *supervisor.StartChild:
			w.start(a)
		case *supervisor.StopChild:
			w.stop(a.Name, a.Incarnation)
		case *supervisor.KillChild:
			w.kill(a)
		case *supervisor.SetTimer:
			require.Positive(w.t, a.After)
			w.timers = append(w.timers, alarm{a.Token, w.now.Add(a.After)})
		case *supervisor.Escalate:
			w.escalate = true
			require.True(w.t, w.giveUp || w.stuck)
			require.Equal(w.t, w.giveUp, errors.Is(a.Reason, supervisor.ErrIntensity))
			require.LessOrEqual(w.t, len(a.Reason.Earlier), max(w.spec.Intensity.Max, 0))
		case *supervisor.Stopped:
			w.stopped(a)
		}
	}
	if w.giveUp || w.stuck {
		require.True(w.t, w.ending, "it should have given up")
	}
	w.compareSnapshot()
}

func (w *world) start(a *supervisor.StartChild) {
	i := w.byKid[a.Name]
	k := w.kids[i]
	require.False(w.t, k.alive, "two live incarnations of %s", a.Name)
	require.False(w.t, w.ending, "a start while ending")
	require.Equal(w.t, k.last+1, a.Incarnation)
	require.False(w.t, k.Class == supervisor.Temporary && k.last > 0, "a temporary child came back")
	for j, other := range w.kids {
		if w.free || w.spec.Strategy == supervisor.OneForOne || j == i {
			continue
		}
		if j > i {
			require.False(w.t, other.alive, "%s starts after its successor %s", a.Name, other.Name)
		} else if w.spec.Strategy == supervisor.OneForAll {
			require.True(w.t, !other.alive || other.startedInThisBatch, "%s was not restarted with %s", other.Name, a.Name)
		}
	}
	*k = kid{Child: k.Child, manner: k.manner, last: a.Incarnation, alive: true, startedInThisBatch: true}
}

func (w *world) stop(name string, incarnation int) {
	i := w.byKid[name]
	k := w.kids[i]
	require.Equal(w.t, k.last, incarnation)
	require.True(w.t, k.alive && !k.asked, "stopping %s", name)
	k.asked = true
	if (w.free || w.spec.Strategy == supervisor.OneForOne) && !w.ending {
		return
	}
	for j, other := range w.kids {
		if j == i || !other.alive || other.stuck {
			continue
		}
		require.False(w.t, other.asked, "%s and %s are stopped at once", name, other.Name)
		require.Less(w.t, j, i, "%s is stopped before its successor %s", name, other.Name)
	}
}

func (w *world) kill(a *supervisor.KillChild) {
	k := w.kids[w.byKid[a.Name]]
	if k.Shutdown == supervisor.Brutal {
		w.stop(a.Name, a.Incarnation)
	}
	require.Equal(w.t, k.last, a.Incarnation)
	require.True(w.t, k.alive && k.asked && !k.killed, "killing %s", a.Name)
	k.killed = true
}

func (w *world) stopped(a *supervisor.Stopped) {
	w.over = true
	require.Equal(w.t, w.escalate, w.giveUp || w.stuck)
	var stuck []string
	for _, k := range w.kids {
		require.Equal(w.t, k.stuck && k.alive, k.alive, "%s is alive", k.Name)
		if k.alive {
			stuck = append(stuck, k.Name)
		}
	}
	require.Equal(w.t, stuck, a.Stuck)
}

func (w *world) compareSnapshot() {
	for i, c := range w.s.Snapshot() {
		k := w.kids[i]
		require.Equal(w.t, k.Name, c.Name)
		require.Equal(w.t, k.last, c.Incarnation)
		switch {
		case !k.alive:
			require.Contains(w.t, []supervisor.State{supervisor.StateStopped, supervisor.StateWaiting}, c.State)
			require.False(w.t, w.ending && c.State == supervisor.StateWaiting)
		case k.stuck:
			require.Equal(w.t, supervisor.StateStuck, c.State)
		case k.asked:
			require.Equal(w.t, supervisor.StateStopping, c.State)
		default:
			require.Contains(w.t, []supervisor.State{supervisor.StateStarting, supervisor.StateRunning}, c.State)
		}
		require.True(w.t, c.RestartAt.IsZero() || c.State == supervisor.StateWaiting && !c.RestartAt.Before(w.now))
	}
	require.Equal(w.t, w.ignored, w.s.Ignored())
}

// The inputs.

func (w *world) begin() {
	w.note("start")
	w.carryOut(w.s.Start(w.now))
	for _, k := range w.kids {
		require.Equal(w.t, 1, k.last)
	}
}

// end ends a child, by itself or as asked.
func (w *world) end(i int, reason error) {
	k := w.kids[i]
	w.note("%s#%d ends: %v", k.Name, k.last, reason)
	if !k.alive || w.over {
		w.ignored++
	}
	k.alive = k.alive && w.over // the last snapshot stands
	w.carryOut(w.s.ChildDown(w.now, k.Name, k.last, reason))
}

func (w *world) up(i int) {
	if k := w.kids[i]; k.alive && !w.over {
		w.s.ChildUp(w.now, k.Name, k.last)
		w.carryOut(nil)
	}
}

func (w *world) stale(i int) {
	w.ignored++
	actions := w.s.ChildDown(w.now, w.kids[i].Name, w.kids[i].last-1, errBoom)
	require.Empty(w.t, actions)
	w.carryOut(nil)
}

func (w *world) restart(i int) {
	w.note("restart %s", w.kids[i].Name)
	if w.ending || w.kids[i].Class == supervisor.Temporary {
		w.ignored++
	}
	w.carryOut(w.s.RestartChild(w.now, w.kids[i].Name, errBoom))
}

func (w *world) halt() {
	w.note("stop")
	w.carryOut(w.s.Stop(w.now, nil))
}

// pass lets time pass and fires the timers that are due, the earliest first.
func (w *world) pass(d time.Duration) {
	until := w.now.Add(d)
	for {
		next := -1
		for i, t := range w.timers {
			if !t.at.After(until) && (next < 0 || t.at.Before(w.timers[next].at)) {
				next = i
			}
		}
		if next < 0 {
			w.now = until
			return
		}
		t := w.timers[next]
		w.timers = slices.Delete(w.timers, next, next+1)
		w.fired = append(w.fired, t.token)
		w.now = t.at
		w.note("timer %d", t.token)
		w.carryOut(w.s.Timer(w.now, t.token))
	}
}

// refire fires a timer that fired before.
func (w *world) refire(n int) {
	if len(w.fired) > 0 {
		require.Empty(w.t, w.s.Timer(w.now, w.fired[n%len(w.fired)]))
		w.carryOut(nil)
	}
}

// comply makes every child that was asked to end do so, by its manner, and
// reports whether there was one.
func (w *world) comply() bool {
	found := false
	for i, k := range w.kids {
		if !w.over && k.alive && (k.asked && k.manner == obedient || k.killed && k.manner <= deaf) {
			w.end(i, nil)
			found = true
		}
	}
	return found
}
