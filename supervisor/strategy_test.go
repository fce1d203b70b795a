package supervisor_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/supervisor"
)

// decider is a strategy of a user.
type decider func(supervisor.Failed, []supervisor.ChildState) supervisor.Decision

func (d decider) Decide(f supervisor.Failed, all []supervisor.ChildState) supervisor.Decision {
	return d(f, all)
}

func always(d supervisor.Decision) decider {
	return func(supervisor.Failed, []supervisor.ChildState) supervisor.Decision { return d }
}

// TestStandardStrategiesDecide: the strategies of OTP are strategies as a user would
// write them.
func TestStandardStrategiesDecide(t *testing.T) {
	t.Parallel()
	all := []supervisor.ChildState{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for s, want := range map[supervisor.Standard][]string{
		supervisor.OneForOne: {"b"}, supervisor.OneForAll: {"a", "b", "c"},
		supervisor.RestForOne: {"b", "c"}, supervisor.SimpleOneForOne: {"b"},
	} {
		assert.Equal(t, supervisor.Decision{Restart: want, Why: s.String()}, s.Decide(supervisor.Failed{Child: "b"}, all))
	}
}

// TestAStrategyOfTheUser restarts the children it names, in the order of the spec.
func TestAStrategyOfTheUser(t *testing.T) {
	t.Parallel()
	var asked supervisor.Failed
	var seen []supervisor.ChildState
	r := newRig(t, supervisor.Spec{Backoff: atOnce, Children: abc(supervisor.Permanent), Strategy: decider(
		func(f supervisor.Failed, all []supervisor.ChildState) supervisor.Decision {
			asked, seen = f, all
			return supervisor.Decision{Restart: []string{"c", "a"}, Why: "they share a file"}
		})})
	r.start()
	assert.Equal(t, []string{"stop c#1", "start a#2", "start c#2"}, r.obey(r.down("a", errBoom)))
	assert.Equal(t, supervisor.Failed{At: epoch, Child: "a", Incarnation: 1, Reason: errBoom}, asked)
	assert.Equal(t, supervisor.StateStopped, seen[0].State)
	assert.Contains(t, r.eventTexts(), "sup: restart of a, c in 0s: boom")
	for _, e := range r.events {
		if e, ok := e.(*supervisor.RestartScheduled); ok {
			assert.Equal(t, "they share a file", e.Why)
		}
	}
}

// TestAStrategyLeavesAChildDown, restarts others in its place, and the child comes back on request.
func TestAStrategyLeavesAChildDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Backoff: atOnce, Children: abc(supervisor.Transient),
		Strategy: always(supervisor.Decision{Restart: []string{"c"}, Why: "b is optional"}),
	})
	r.start()
	assert.Equal(t, []string{"stop c#1", "start c#2"}, r.obey(r.down("b", errBoom)))
	assert.Equal(t, supervisor.StateStopped, r.state("b").State)
	assert.Contains(t, r.eventTexts(), "sup: b#1 is not restarted (b is optional): boom")
	assert.Equal(t, []string{"stop c#2", "start b#2", "start c#3"}, r.obey(r.restart("b")))
}

// TestASignificantChildThatIsLeftDown ends the supervisor, as one that may not be restarted does.
func TestASignificantChildThatIsLeftDown(t *testing.T) {
	t.Parallel()
	children := abc(supervisor.Transient)
	children[1].Significant = true
	r := newRig(t, supervisor.Spec{Children: children, Strategy: always(supervisor.Decision{})})
	r.start()
	assert.Equal(t, []string{"stop c#1", "stop a#1", "stopped"}, r.obey(r.down("b", errBoom)))
	require.ErrorIs(t, r.last.Reason, supervisor.ErrSignificant)
	assert.ErrorIs(t, r.last.Reason, errBoom)
}

// TestAStrategyEscalates with its reason, and the chain of the others.
func TestAStrategyEscalates(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{Backoff: atOnce, Children: abc(supervisor.Permanent), Strategy: decider(
		func(f supervisor.Failed, _ []supervisor.ChildState) supervisor.Decision {
			if errors.Is(f.Reason, io.EOF) {
				return supervisor.Decision{Escalate: true, Why: "the disk is gone"}
			}
			return supervisor.Decision{Restart: []string{f.Child}}
		})})
	r.start()
	r.down("a", errBoom)
	assert.Equal(t, []string{"stop c#1", "stop a#2", "escalate", "stopped"}, r.obey(r.down("b", io.EOF)))
	assert.EqualError(t, r.failure, "supervisor sup gave up (the disk is gone): b#1: EOF")
	require.ErrorIs(t, r.failure, io.EOF)
	require.ErrorIs(t, r.failure, errBoom, "the failure before it")
	assert.NotErrorIs(t, r.failure, supervisor.ErrIntensity)
	assert.Equal(t, "the disk is gone", r.failure.Why)
}

// TestBrokenStrategies: what cannot be carried out is an escalation that says so, never a
// child that silently stays away.
func TestBrokenStrategies(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]supervisor.Strategy{
		`it restarts "z", which is no child`:   always(supervisor.Decision{Restart: []string{"a", "z"}}),
		"it leaves a permanent child down":     always(supervisor.Decision{Restart: []string{"b"}}),
		`it both escalates and restarts ["a"]`: always(supervisor.Decision{Restart: []string{"a"}, Escalate: true}),
		"it panicked: I cannot decide":         decider(func(supervisor.Failed, []supervisor.ChildState) supervisor.Decision { panic("I cannot decide") }),
	} {
		r := newRig(t, supervisor.Spec{Children: abc(supervisor.Permanent), Strategy: s})
		r.start()
		assert.Equal(t, []string{"stop c#1", "stop b#1", "escalate", "stopped"}, r.obey(r.down("a", errBoom)), want)
		var broken *supervisor.StrategyError
		require.ErrorAs(t, r.failure, &broken)
		assert.Equal(t, want, broken.Problem)
		assert.Equal(t, broken.Panic != nil, broken.Stack != nil)
		assert.ErrorIs(t, r.failure, errBoom)
	}
}

// TestRestartsThatMeet: a restart that touches two others takes both, and keeps the longest delay.
func TestRestartsThatMeet(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Backoff: supervisor.Backoff{Initial: time.Hour, Max: time.Hour}, Children: abc(supervisor.Permanent),
		Strategy: decider(func(f supervisor.Failed, _ []supervisor.ChildState) supervisor.Decision {
			if f.Child == "c" {
				return supervisor.Decision{Restart: []string{"a", "b", "c"}}
			}
			return supervisor.Decision{Restart: []string{f.Child}}
		}),
	})
	r.start()
	r.down("a", errBoom)
	r.down("b", errBoom)
	longest := r.state("a").RestartAt
	if at := r.state("b").RestartAt; at.After(longest) {
		longest = at
	}
	r.down("c", errBoom)
	for _, c := range r.Snapshot() {
		assert.Equal(t, supervisor.StateWaiting, c.State)
		assert.False(t, c.RestartAt.Before(longest))
		assert.Equal(t, r.state("a").RestartAt, c.RestartAt, "they come back together")
	}
	assert.Equal(t, []string{"start a#2", "start b#2", "start c#2"}, r.fire(time.Hour))
}

// TestStartDeadline: a child that does not come up is killed, and that is a failure.
func TestStartDeadline(t *testing.T) {
	t.Parallel()
	spec := supervisor.Spec{Backoff: atOnce, Children: []supervisor.Child{{Name: "a", Start: time.Second, Kill: time.Minute}}}
	r := newRig(t, spec)
	assert.Equal(t, []string{"start a#1", "timer 1s"}, r.start())
	assert.Equal(t, []string{"kill a#1", "timer 1m0s"}, r.fire(time.Second))
	r.ChildUp(r.now, "a", 1) // too late
	assert.Equal(t, []string{"start a#2", "timer 1s"}, r.down("a", nil))
	require.ErrorIs(t, r.state("a").Reason, supervisor.ErrStart)
	assert.Equal(t, []string{
		"sup: a#1 started", "sup: a#1 killed: it did not start within 1s", "sup: a#1 failed: did not start in time (1s)",
		"sup: restart of a in 0s: did not start in time (1s)", "sup: a#2 started", "sup: restarted a",
	}, r.eventTexts())

	r.ChildUp(r.now, "a", 2)
	assert.Empty(t, r.fire(time.Second), "it is up")
	assert.Equal(t, supervisor.StateRunning, r.state("a").State)

	stuck := newRig(t, spec)
	stuck.start()
	stuck.fire(time.Second)
	assert.Equal(t, []string{"escalate", "stopped"}, stuck.fire(time.Minute))
	assert.ErrorIs(t, stuck.failure, supervisor.ErrStuck)
}

// TestChildBackoff: a child's own delay goes before that of the spec.
func TestChildBackoff(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Backoff:  supervisor.Backoff{Initial: time.Hour, Max: time.Hour},
		Children: []supervisor.Child{{Name: "a"}, {Name: "b", Backoff: atOnce}},
	})
	r.start()
	assert.Equal(t, []string{"start b#2"}, r.down("b", errBoom))
	r.down("a", errBoom)
	assert.Equal(t, supervisor.StateWaiting, r.state("a").State)
}

// TestSimpleOneForOne: children are made from one template, and forgotten when they are over.
func TestSimpleOneForOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, supervisor.Spec{
		Strategy: supervisor.SimpleOneForOne, Backoff: atOnce,
		Template: supervisor.Child{Class: supervisor.Transient, Shutdown: time.Second},
	})
	assert.Empty(t, r.start())
	for _, name := range []string{"a", "b"} {
		actions, err := r.StartChild(r.now, supervisor.Child{Name: name})
		require.NoError(t, err)
		assert.Equal(t, []string{"start " + name + "#1"}, r.words(actions))
	}
	assert.Equal(t, []string{"start a#2"}, r.down("a", errBoom))
	assert.Empty(t, r.down("b", nil))
	require.Len(t, r.Snapshot(), 1, "b is over")
	assert.Equal(t, supervisor.Transient, r.state("a").Class)

	_, err := r.StartChild(r.now, supervisor.Child{Name: "c", Class: supervisor.Temporary})
	require.ErrorContains(t, err, "not made of the template")
	_, err = r.StartChild(r.now, supervisor.Child{})
	require.ErrorContains(t, err, "is empty")

	actions, err := r.StartChild(r.now, supervisor.Child{Name: "b"})
	require.NoError(t, err)
	assert.Equal(t, []string{"start b#1"}, r.words(actions), "the name is free again")
	assert.Equal(t, []string{"stop b#1", "timer 1s"}, r.stop(nil))
}

// TestAnyStrategyKeepsThePromises: whatever a strategy answers, no child has two lives, and
// a stop comes to its end.
func TestAnyStrategyKeepsThePromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec, manners := drawSpec(t)
		answers := rapid.SliceOfN(rapid.IntRange(0, 1<<len(spec.Children)-1), 1, 20).Draw(t, "answers")
		spec.Intensity.Max = 1000
		spec.Strategy = decider(func(f supervisor.Failed, all []supervisor.ChildState) supervisor.Decision {
			set := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			d := supervisor.Decision{}
			for i, c := range all {
				if set&(1<<i) != 0 || c.Name == f.Child {
					d.Restart = append(d.Restart, c.Name)
				}
			}
			return d
		})
		w := newWorld(t, spec, manners, rapid.Uint64().Draw(t, "seed"))
		w.free = true
		play(w, drawOps(t, len(spec.Children)))
		w.halt()
		for range 2 * len(w.kids) {
			w.comply()
			w.pass(supervisor.DefaultShutdown + supervisor.DefaultKill)
		}
		w.comply()
		require.True(t, w.over, "it did not come to Stopped")
	})
}
