package supervisor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStrategiesAndClasses(t *testing.T) {
	t.Parallel()
	const (
		one  = supervisor.OneForOne
		all  = supervisor.OneForAll
		rest = supervisor.RestForOne
	)
	alone := []string{"start b#2"}
	group := []string{"stop c#1", "stop a#1", "start a#2", "start b#2", "start c#2"}
	tail := []string{"stop c#1", "start b#2", "start c#2"}
	for _, c := range []struct {
		strategy supervisor.Strategy
		class    supervisor.Class
		reason   error
		want     []string
	}{
		{one, supervisor.Permanent, errBoom, alone},
		{one, supervisor.Permanent, nil, alone},
		{one, supervisor.Transient, errBoom, alone},
		{one, supervisor.Transient, nil, nil},
		{one, supervisor.Temporary, errBoom, nil},
		{one, supervisor.Temporary, nil, nil},
		{all, supervisor.Permanent, errBoom, group},
		{all, supervisor.Permanent, nil, group},
		{all, supervisor.Transient, errBoom, group},
		{all, supervisor.Transient, nil, nil},
		{all, supervisor.Temporary, errBoom, nil},
		{all, supervisor.Temporary, nil, nil},
		{rest, supervisor.Permanent, errBoom, tail},
		{rest, supervisor.Permanent, nil, tail},
		{rest, supervisor.Transient, errBoom, tail},
		{rest, supervisor.Transient, nil, nil},
		{rest, supervisor.Temporary, errBoom, nil},
		{rest, supervisor.Temporary, nil, nil},
	} {
		t.Run(fmt.Sprintf("%v/%v/%v", c.strategy, c.class, c.reason), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, supervisor.Spec{Strategy: c.strategy, Backoff: atOnce, Children: abc(c.class)})
			require.Equal(t, []string{"start a#1", "start b#1", "start c#1"}, r.start())
			assert.Equal(t, c.want, r.obey(r.down("b", c.reason)))
			assert.Equal(t, c.reason, r.state("b").Reason)
		})
	}
}

// TestGroupRestartTakesClassesAsOTP: a temporary sibling is stopped and does not come
// back, a transient one that had ended normally does.
func TestGroupRestartTakesClassesAsOTP(t *testing.T) {
	t.Parallel()
	for _, strategy := range []supervisor.Strategy{supervisor.OneForAll, supervisor.RestForOne} {
		r := newRig(t, supervisor.Spec{Strategy: strategy, Backoff: atOnce, Children: []supervisor.Child{
			{Name: "a"},
			{Name: "b", Class: supervisor.Transient},
			{Name: "c", Class: supervisor.Temporary, Significant: true},
			{Name: "d", Class: supervisor.Transient, Significant: true},
		}})
		r.start()
		require.Empty(t, r.down("b", nil))
		assert.Equal(t, []string{"stop d#1", "stop c#1", "start a#2", "start b#2", "start d#2"},
			r.obey(r.down("a", errBoom)), "that siblings were stopped is not their end as significant children")
		assert.Equal(t, supervisor.StateStopped, r.state("c").State)
	}
}

func TestSignificantChild(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class  supervisor.Class
		reason error
		want   []string
	}{
		{supervisor.Transient, nil, []string{"stop c#1", "stop a#1", "stopped"}},
		{supervisor.Transient, errBoom, []string{"start b#2"}},
		{supervisor.Temporary, nil, []string{"stop c#1", "stop a#1", "stopped"}},
		{supervisor.Temporary, errBoom, []string{"stop c#1", "stop a#1", "stopped"}},
	} {
		r := newRig(t, supervisor.Spec{Backoff: atOnce, Children: []supervisor.Child{
			{Name: "a"}, {Name: "b", Class: c.class, Significant: true}, {Name: "c"},
		}})
		r.start()
		assert.Equal(t, c.want, r.obey(r.down("b", c.reason)), "%v %v", c.class, c.reason)
		if len(c.want) == 1 {
			continue
		}
		require.ErrorIs(t, r.last.Reason, supervisor.ErrSignificant)
		assert.Equal(t, c.reason != nil, errors.Is(r.last.Reason, errBoom))
		assert.ErrorContains(t, r.last.Reason, "b#1")
	}
}

func TestStopsAreAwaitedAndHaveDeadlines(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Children: []supervisor.Child{
		{Name: "a", Shutdown: supervisor.Brutal, Kill: time.Second},
		{Name: "b", Shutdown: 2 * time.Second},
		{Name: "c"},
	}})
	r.start()
	reason := errors.New("enough")
	require.Equal(t, []string{"stop c#1", "timer 5s"}, r.stop(reason))
	assert.Empty(t, r.stop(errors.New("later")), "the first reason stands")
	require.Equal(t, []string{"stop b#1", "timer 2s"}, r.down("c", nil))
	assert.Equal(t, supervisor.StateStopping, r.state("b").State)
	assert.Empty(t, r.words(r.Timer(r.now, r.tokens[0])), "c's timer is of no interest any more")
	require.Equal(t, []string{"kill b#1", "timer 5s"}, r.fire(2*time.Second))
	require.Equal(t, []string{"kill a#1", "timer 1s"}, r.down("b", errBoom), "what a child says while it is stopped is no failure")
	require.Equal(t, []string{"stopped"}, r.fire(time.Second))
	assert.Equal(t, []string{"a"}, r.last.Stuck)
	assert.Equal(t, reason, r.last.Reason)
	assert.Nil(t, r.failure)
	assert.Equal(t, []string{
		"sup: a#1 started", "sup: b#1 started", "sup: c#1 started",
		"sup: stopping: enough",
		"sup: c#1 stopped", "sup: b#1 killed: it did not stop within 2s",
		"sup: b#1 stopped: boom", "sup: a#1 killed: it gets no time to stop",
		"sup: a#1 did not stop, not even when killed",
		"sup: stopped without a: enough",
	}, r.eventTexts())
}

func TestNothingComesAfterStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Children: []supervisor.Child{{Name: "a", Shutdown: supervisor.Brutal}}})
	r.start()
	r.stop(nil)
	require.Equal(t, []string{"stopped"}, r.fire(supervisor.DefaultKill))
	seen := len(r.events)
	assert.Empty(t, r.down("a", errBoom), "it ended after all")
	assert.Empty(t, r.restart("a"))
	assert.Empty(t, r.start())
	assert.Empty(t, r.stop(nil))
	for token := range supervisor.Token(5) {
		assert.Empty(t, r.Timer(r.now, token))
	}
	assert.Len(t, r.events, seen)
	assert.Equal(t, 2, r.Ignored())
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Children: abc(supervisor.Permanent)})
	assert.Equal(t, []string{"stopped"}, r.stop(nil))
	assert.Empty(t, r.start())
}

func TestSupervisorWithoutChildren(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{})
	assert.Empty(t, r.start())
	assert.Empty(t, r.Snapshot())
	assert.Equal(t, []string{"stopped"}, r.stop(nil))
}

func TestStuckChildNeverMeetsItsSuccessor(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Strategy: supervisor.OneForAll, Backoff: atOnce, Children: abc(supervisor.Permanent)})
	r.start()
	require.Equal(t, []string{"stop c#1", "timer 5s"}, r.down("b", errBoom))
	require.Equal(t, []string{"kill c#1", "timer 5s"}, r.fire(5*time.Second))
	require.Equal(t, []string{"stop a#1", "timer 5s"}, r.fire(5*time.Second), "the others are stopped all the same")
	assert.Equal(t, supervisor.StateStuck, r.state("c").State)
	require.Equal(t, []string{"escalate", "stopped"}, r.down("a", nil))
	assert.Equal(t, []string{"c"}, r.last.Stuck)
	require.ErrorIs(t, r.failure, supervisor.ErrStuck)
	require.ErrorIs(t, r.failure, errBoom, "the failure that began the restart")
	require.NotErrorIs(t, r.failure, supervisor.ErrIntensity)
	assert.EqualError(t, r.failure, "supervisor sup gave up: c#1: did not stop, not even when killed")
}

func TestStuckChildMayStillEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Children: abc(supervisor.Permanent)})
	r.start()
	r.stop(nil)
	r.fire(5 * time.Second)
	require.Equal(t, []string{"stop b#1", "timer 5s"}, r.fire(5*time.Second))
	require.Empty(t, r.down("c", nil))
	r.down("b", nil)
	require.Equal(t, []string{"stopped"}, r.down("a", nil))
	assert.Empty(t, r.last.Stuck)
}

func TestIntensityIsASlidingWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Backoff: atOnce, Intensity: supervisor.Intensity{Max: 2, Window: 10 * time.Second},
		Children: []supervisor.Child{{Name: "a"}, {Name: "b"}},
	})
	r.start()
	fail := func(at int, child string, want ...string) {
		t.Helper()
		r.now = epoch.Add(time.Duration(at) * time.Second)
		assert.Equal(t, want, r.down(child, fmt.Errorf("at %d", at)))
	}
	fail(0, "a", "start a#2")
	fail(5, "b", "start b#2")
	r.now = epoch.Add(10*time.Second + 1)
	assert.Equal(t, []string{"start a#3"}, r.down("a", nil), "the first failure has left the window")
	fail(15, "a", "stop b#2", "timer 5s")
	require.Equal(t, []string{"escalate", "stopped"}, r.down("b", errBoom))

	assert.Same(t, r.failure, r.last.Reason)
	require.ErrorIs(t, r.failure, supervisor.ErrIntensity)
	require.NotErrorIs(t, r.failure, errBoom, "b was asked to stop")
	assert.EqualError(t, r.failure, "supervisor sup gave up after 3 failures within 10s: a#3: at 15")
	assert.Equal(t, []supervisor.Failed{
		{At: epoch.Add(5 * time.Second), Child: "b", Incarnation: 1, Reason: errors.New("at 5")},
		{At: epoch.Add(10*time.Second + 1), Child: "a", Incarnation: 2},
	}, withPlainReasons(r.failure.Earlier), "a failure exactly one window old still counts")
	assert.Contains(t, r.eventTexts(), "sup: 3 failures within 10s, 2 allowed")
}

func withPlainReasons(failed []supervisor.Failed) []supervisor.Failed {
	for i, f := range failed {
		if f.Reason != nil {
			failed[i].Reason = errors.New(f.Reason.Error())
		}
	}
	return failed
}

func TestNeverRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Intensity: supervisor.Intensity{Max: -1}, Children: []supervisor.Child{{Name: "a"}}})
	r.start()
	require.Equal(t, []string{"escalate", "stopped"}, r.down("a", errBoom))
	require.ErrorIs(t, r.failure, supervisor.ErrIntensity)
	assert.EqualError(t, r.failure, "supervisor sup gave up, being told never to restart: a#1: boom")
}

func TestDefaultIntensity(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Backoff: atOnce, Children: []supervisor.Child{{Name: "a"}}})
	r.start()
	for n := range supervisor.DefaultMaxRestarts {
		r.now = r.now.Add(supervisor.DefaultWindow / supervisor.DefaultMaxRestarts)
		require.Equal(t, []string{fmt.Sprintf("start a#%d", n+2)}, r.down("a", errBoom))
	}
	assert.Equal(t, supervisor.DefaultMaxRestarts, r.state("a").Restarts)
	assert.Equal(t, []string{"escalate", "stopped"}, r.down("a", errBoom))
}

func TestBackoffIsWaitedOutAfterTheStops(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Strategy: supervisor.OneForAll, Backoff: supervisor.Backoff{Initial: time.Hour}, Children: abc(supervisor.Permanent),
	})
	r.start()
	require.Equal(t, []string{"stop c#1", "timer 5s"}, r.down("a", errBoom))
	assert.Equal(t, supervisor.ChildState{
		Name: "a", Incarnation: 1, State: supervisor.StateWaiting, Restarts: 1, Reason: errBoom, StartedAt: r.now, FailedAt: r.now,
	}, r.state("a"))
	began := r.now
	r.now = r.now.Add(time.Second)
	require.Equal(t, []string{"stop b#1", "timer 5s"}, r.down("c", nil))
	r.down("b", nil)
	delay := r.state("a").RestartAt.Sub(r.now)
	assert.Positive(t, delay)
	assert.LessOrEqual(t, delay, time.Hour)
	assert.Equal(t, &supervisor.RestartScheduled{
		Origin: supervisor.Origin{At: r.now, Supervisor: "sup"},
		Child:  "a", Reason: errBoom, Why: "one_for_all", Delay: delay, Children: []string{"a", "b", "c"},
	}, r.events[len(r.events)-1])
	assert.Equal(t, []string{"start a#2", "start b#2", "start c#2"}, r.fire(delay))
	assert.Zero(t, r.state("a").RestartAt)
	assert.Equal(t, []time.Time{r.now, began}, []time.Time{r.state("a").StartedAt, r.state("a").FailedAt}, "the next life, and the last failure")
}

// TestRecentFailures counts those of the window, and no others.
func TestRecentFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Strategy: supervisor.OneForOne, Intensity: supervisor.Intensity{Max: 5, Window: time.Minute}, Children: abc(supervisor.Permanent),
	})
	r.start()
	recent := func() int {
		n, limit := r.Recent(r.now)
		assert.Equal(t, supervisor.Intensity{Max: 5, Window: time.Minute}, limit)
		return n
	}
	assert.Zero(t, recent())
	r.down("a", errBoom)
	r.now = r.now.Add(40 * time.Second)
	r.down("b", errBoom)
	assert.Equal(t, 2, recent(), "of all children")
	r.now = r.now.Add(40 * time.Second)
	assert.Equal(t, 1, recent(), "the first is too old")
	r.now = r.now.Add(time.Hour)
	assert.Zero(t, recent())
}

func TestFailuresDuringARestartJoinIt(t *testing.T) {
	t.Parallel()
	children := []supervisor.Child{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	t.Run("while siblings are stopped", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Strategy: supervisor.OneForAll, Backoff: atOnce, Children: children})
		r.start()
		require.Equal(t, []string{"stop d#1", "timer 5s"}, r.down("a", errBoom))
		require.Empty(t, r.down("b", errBoom), "not asked yet: a failure, and down already")
		require.Equal(t, []string{"stop c#1", "timer 5s"}, r.down("d", errBoom))
		require.Equal(t, []string{"start a#2", "start b#2", "start c#2", "start d#2"}, r.down("c", nil))
		assert.Equal(t, 1, r.state("b").Restarts)
		assert.Zero(t, r.state("d").Restarts)
		require.Equal(t, "start a#3", r.obey(r.down("a", errBoom))[3], "the third failure is the last allowed")
		assert.Equal(t, "escalate", r.obey(r.down("a", errBoom))[3])
	})
	t.Run("widening a restart that waits", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{
			Strategy: supervisor.RestForOne, Backoff: supervisor.Backoff{Initial: time.Hour}, Children: children,
		})
		r.start()
		r.obey(r.down("c", errBoom))
		at, stale := r.state("c").RestartAt, r.tokens[len(r.tokens)-1]
		require.False(t, at.IsZero())
		require.Equal(t, []string{"stop b#1", "timer 5s"}, r.down("a", errBoom))
		assert.Zero(t, r.state("c").RestartAt)
		r.down("b", nil)
		assert.False(t, r.state("c").RestartAt.Before(at), "c waits no less than before")
		assert.Equal(t, r.state("c").RestartAt, r.state("a").RestartAt)
		assert.Empty(t, r.Timer(r.now, stale))
		assert.Equal(t, []string{"start a#2", "start b#2", "start c#2", "start d#2"}, r.fire(2*time.Hour))
	})
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{
			Strategy: supervisor.OneForAll, Intensity: supervisor.Intensity{Max: 1}, Children: children,
		})
		r.start()
		r.down("a", errBoom)
		require.Empty(t, r.down("b", errBoom), "d is being stopped and is awaited")
		require.Equal(t, []string{"stop c#1", "timer 5s"}, r.down("d", nil))
		assert.Equal(t, []string{"escalate", "stopped"}, r.down("c", nil))
	})
}

func TestOneForOneRestartsAreIndependent(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Backoff: supervisor.Backoff{Initial: time.Hour}, Children: abc(supervisor.Permanent)})
	r.start()
	r.down("a", errBoom)
	r.down("b", errBoom)
	assert.Equal(t, []string{"start a#2"}, r.words(r.Timer(r.now, r.tokens[0])))
	assert.Equal(t, supervisor.StateWaiting, r.state("b").State)
	assert.Equal(t, []string{"start b#2"}, r.words(r.Timer(r.now, r.tokens[1])))
}

func TestFailedStartIsAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Strategy: supervisor.RestForOne, Backoff: atOnce, Children: abc(supervisor.Permanent)})
	r.start()
	assert.Equal(t, supervisor.StateStarting, r.state("a").State)
	r.ChildUp(r.now, "a", 1)
	assert.Equal(t, supervisor.StateRunning, r.state("a").State)
	assert.Equal(t, []string{"stop c#1", "start b#2", "start c#2"}, r.obey(r.down("b", errBoom)))
}

func TestRestartOnPurpose(t *testing.T) {
	t.Parallel()
	t.Run("it stops the child, and counts for nothing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{
			Strategy: supervisor.RestForOne, Intensity: supervisor.Intensity{Max: -1}, Children: abc(supervisor.Permanent),
		})
		r.start()
		for n := range 10 {
			assert.Equal(t, []string{
				fmt.Sprintf("stop c#%d", n+1), fmt.Sprintf("stop b#%d", n+1), fmt.Sprintf("start b#%d", n+2), fmt.Sprintf("start c#%d", n+2),
			}, r.obey(r.restart("b")))
		}
		assert.Zero(t, r.state("b").Restarts)
		assert.Contains(t, r.eventTexts(), "sup: restart of b, c in 0s: on purpose")
	})
	t.Run("it cuts a wait short", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Backoff: supervisor.Backoff{Initial: time.Hour}, Children: abc(supervisor.Permanent)})
		r.start()
		r.down("b", errBoom)
		assert.Equal(t, []string{"start b#2"}, r.restart("b"))
		assert.Empty(t, r.fire(time.Hour), "the timer of the wait is stale")
	})
	t.Run("it brings a transient child back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Children: abc(supervisor.Transient)})
		r.start()
		r.down("b", nil)
		assert.Equal(t, []string{"start b#2"}, r.restart("b"))
	})
	t.Run("it leaves the unknown and the temporary alone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Children: abc(supervisor.Temporary)})
		assert.Empty(t, r.restart("a"), "not started yet")
		r.start()
		assert.Empty(t, r.restart("b"))
		assert.Empty(t, r.restart("x"))
		assert.Equal(t, 3, r.Ignored())
	})
}

func TestStartChildAddsAChildAfterTheOthers(t *testing.T) {
	t.Parallel()
	add := func(r *rig, name string) []string {
		actions, err := r.StartChild(r.now, supervisor.Child{Name: name})
		require.NoError(t, err)
		return r.words(actions)
	}
	r := newRig(t, supervisor.Spec{Strategy: supervisor.RestForOne, Backoff: atOnce, Children: abc(supervisor.Permanent)})
	assert.Empty(t, add(r, "d"), "not started yet")
	r.start()
	assert.Equal(t, []string{"start d#1"}, add(r, "d"))
	assert.Empty(t, add(r, "d"), "the name is taken")
	assert.Equal(t, 2, r.Ignored())
	assert.Equal(t, []string{"stop d#1", "stop c#1", "start b#2", "start c#2", "start d#2"}, r.obey(r.down("b", errBoom)))
	r.down("d", errBoom)
	assert.Equal(t, 1, r.state("d").Restarts)
	_, err := r.StartChild(r.now, supervisor.Child{})
	var mistake *supervisor.SpecError
	require.ErrorAs(t, err, &mistake)
	assert.Equal(t, []string{"stop d#3", "stop c#2", "stop b#2", "stop a#1", "stopped"}, r.obey(r.stop(nil)))
	assert.Empty(t, add(r, "e"), "it has ended")
}

func TestStopDuringARestart(t *testing.T) {
	t.Parallel()
	spec := supervisor.Spec{Strategy: supervisor.OneForAll, Backoff: supervisor.Backoff{Initial: time.Hour}, Children: abc(supervisor.Permanent)}
	t.Run("while it stops", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, spec)
		r.start()
		r.down("b", errBoom)
		assert.Empty(t, r.stop(nil), "c is being stopped already")
		assert.Equal(t, []string{"stop a#1", "timer 5s"}, r.down("c", nil))
		assert.Equal(t, []string{"stopped"}, r.down("a", errBoom))
	})
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, spec)
		r.start()
		r.obey(r.down("b", errBoom))
		assert.Equal(t, supervisor.StateWaiting, r.state("c").State)
		assert.Equal(t, []string{"stopped"}, r.stop(nil))
		assert.Equal(t, supervisor.StateStopped, r.state("c").State)
		assert.Empty(t, r.fire(time.Hour))
	})
	t.Run("while it gives up", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Intensity: supervisor.Intensity{Max: -1}, Children: abc(supervisor.Permanent)})
		r.start()
		r.down("b", errBoom)
		assert.Empty(t, r.stop(nil))
		r.down("c", nil)
		assert.Equal(t, []string{"escalate", "stopped"}, r.down("a", nil))
	})
	t.Run("while two are restarted on purpose", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, supervisor.Spec{Children: abc(supervisor.Permanent)})
		r.start()
		r.restart("a")
		r.restart("b")
		assert.Empty(t, r.stop(nil))
		assert.Empty(t, r.down("a", nil), "b is still awaited")
		assert.Equal(t, []string{"stop c#1", "timer 5s"}, r.down("b", nil))
		assert.Equal(t, []string{"stopped"}, r.down("c", nil))
	})
}

func TestStaleNewsAreIgnoredAndCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Backoff: atOnce, Children: abc(supervisor.Transient)})
	r.start()
	r.down("a", errBoom)
	assert.Empty(t, r.ChildDown(r.now, "a", 1, errBoom), "an earlier incarnation")
	assert.Empty(t, r.ChildDown(r.now, "a", 3, errBoom), "a later one")
	assert.Empty(t, r.ChildDown(r.now, "x", 1, errBoom), "nobody")
	assert.Equal(t, 3, r.Ignored())
	r.down("b", nil)
	assert.Empty(t, r.down("b", errBoom), "down already")
	r.ChildUp(r.now, "a", 1)
	assert.Equal(t, 5, r.Ignored())
	assert.Equal(t, supervisor.StateStarting, r.state("a").State)
	assert.Empty(t, r.Timer(r.now, 0))
	assert.Empty(t, r.Timer(r.now, 99))
}

func TestEachIncarnationIsAskedBeforeItIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Children: []supervisor.Child{{Name: "a"}}})
	r.start()
	for n := range 3 {
		require.Equal(t, []string{fmt.Sprintf("stop a#%d", n+1), "timer 5s"}, r.restart("a"))
		require.Equal(t, []string{fmt.Sprintf("kill a#%d", n+1), "timer 5s"}, r.fire(5*time.Second))
		require.Equal(t, []string{fmt.Sprintf("start a#%d", n+2)}, r.down("a", nil))
	}
}

func TestTemporaryChildDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Strategy: supervisor.OneForAll, Backoff: supervisor.Backoff{Initial: time.Hour}, Children: abc(supervisor.Temporary),
	})
	r.start()
	r.obey(r.down("a", errBoom))
	assert.Equal(t, supervisor.StateWaiting, r.state("c").State)
	assert.Equal(t, supervisor.StateStopped, r.state("b").State)
	assert.Zero(t, r.state("b").RestartAt)
}

func TestHealthyPeriodBeginsWhenAChildIsUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Backoff:  supervisor.Backoff{Initial: time.Hour, Immediate: true, ResetAfter: time.Minute},
		Children: []supervisor.Child{{Name: "a"}},
	})
	r.start()
	require.Equal(t, []string{"start a#2"}, r.down("a", errBoom))
	r.now = r.now.Add(time.Hour) // a slow start
	r.ChildUp(r.now, "a", 2)
	r.now = r.now.Add(time.Minute - 1)
	r.down("a", errBoom)
	assert.Equal(t, supervisor.StateWaiting, r.state("a").State, "not healthy for long enough")
}

func TestBackoffOfAChildIsItsOwnAndResets(t *testing.T) {
	t.Parallel()
	// With Immediate only a second attempt in a row has a delay.
	r := newRig(t, supervisor.Spec{
		Strategy: supervisor.OneForAll, Intensity: supervisor.Intensity{Max: 100},
		Backoff:  supervisor.Backoff{Initial: time.Hour, Max: time.Hour, Immediate: true, ResetAfter: time.Minute},
		Children: []supervisor.Child{{Name: "a"}, {Name: "b"}},
	})
	r.start()
	waits := func(child string) bool {
		t.Helper()
		r.obey(r.down(child, errBoom))
		if r.state(child).State != supervisor.StateWaiting {
			return false
		}
		r.fire(time.Hour)
		return true
	}
	assert.False(t, waits("a"))
	assert.False(t, waits("b"), "b's first")
	assert.True(t, waits("a"), "a's second")
	r.now = r.now.Add(time.Minute)
	assert.False(t, waits("a"), "healthy for a minute")
	assert.False(t, waits("b"), "healthy until it was stopped with a")
	assert.True(t, waits("b"))
}
