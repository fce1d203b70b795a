package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
)

// TestTheHostsOwnInterruptIsNoFailure: an agent need not say that it was interrupted, and
// an interrupt excuses no turn but the one that ran.
func TestTheHostsOwnInterruptIsNoFailure(t *testing.T) {
	t.Parallel()
	failed := func(id string) protocol.Frame {
		return frame(`{"type":"result","subtype":"error_during_execution","is_error":true,"user_message_uuids":[%q]}`, id)
	}
	interrupt := machine.Called{ID: "i", Subtype: "interrupt", Body: []byte(`{"subtype":"interrupt"}`)}
	for name, c := range map[string]struct {
		before func(*bench)
		id     string // of the message whose turn fails
		want   string
	}{
		"of the turn that runs": {func(b *bench) { b.send("a"); b.step(interrupt) }, "a", ""},
		"without one":           {func(b *bench) { b.send("a") }, "a", "error_during_execution"},
		"of the turn before": {func(b *bench) {
			b.send("a")
			b.step(interrupt)
			b.read(failed("a"))
			b.send("b")
		}, "b", "error_during_execution"},
		"while nothing ran": {func(b *bench) { b.step(interrupt); b.send("a") }, "a", "error_during_execution"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, true)
			b.ready()
			c.before(b)
			b.read(failed(c.id))
			said := b.m.Snapshot().Told
			require.NotNil(t, said)
			assert.Equal(t, c.want, said.Failure)
		})
	}
}

// TestInventory is what a stop compares.
func TestInventory(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	assert.Equal(t, machine.Inventory{}, b.m.Inventory())
	b.send("a")
	b.send("b")
	b.read(frame(`{"type":"system","subtype":"task_started","task_id":"t","description":"npm"}`))
	all := b.m.Inventory()
	assert.Equal(t, "a", all.Running)
	assert.Equal(t, []string{"b"}, all.Queued)
	require.Len(t, all.Tasks, 1)
	b.read(frame(`{"type":"result","subtype":"success","user_message_uuids":["a"]}`))
	assert.Equal(t, "b", b.m.Inventory().Running)
}

// TestACloseWaitsForTheTurnThatATaskStarts: agents start a turn when a background task has
// ended. It is not to see the end of stdin: the host could not answer its hooks any more.
func TestACloseWaitsForTheTurnThatATaskStarts(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const second = time.Second
	type moment struct {
		at   time.Duration
		sum  machine.Summary // that changes; a zero one with tick: the timer
		tick bool
		want string // what the life does
	}
	ended := machine.Summary{QuietUntil: start.Add(second)}
	task, turn, idle := machine.Summary{Tasks: 1}, machine.Summary{InFlight: true, Running: true}, machine.Summary{}
	for name, c := range map[string]struct {
		before machine.Summary // when the user closes it
		failed bool            // it is not the user
		mute   bool            // the agent knows no interrupt
		then   []moment
		stage  machine.Stage // of the climb, if there is one
	}{
		"no turn follows":                                 {before: task, then: []moment{{0, ended, false, ""}, {second, idle, false, "Flush"}}},
		"one follows":                                     {before: task, then: []moment{{0, ended, false, ""}, {0, turn, false, "Serve interrupt"}, {0, idle, false, "Flush"}}},
		"one follows, with a task":                        {before: task, then: []moment{{0, ended, false, ""}, {0, turn, false, "Serve interrupt"}, {0, ended, false, ""}, {second, idle, false, "Flush"}}},
		"one follows, and goes on":                        {before: task, then: []moment{{0, ended, false, ""}, {second, turn, false, "Serve interrupt"}, {2 * second, idle, true, "Serve"}}, stage: machine.Terminated},
		"the grace is over before":                        {before: task, then: []moment{{1500 * time.Millisecond, machine.Summary{QuietUntil: start.Add(2500 * time.Millisecond)}, false, ""}, {2 * second, idle, true, "Flush"}}},
		"a task has just ended":                           {before: ended, then: []moment{{0, turn, false, "Serve interrupt"}, {0, idle, false, "Flush"}}},
		"a task had ended":                                {before: ended, then: []moment{{second, idle, false, "Flush"}}},
		"the session fails":                               {before: ended, failed: true, stage: machine.Terminated},
		"it fails with nothing left":                      {failed: true, stage: machine.ClosedStdin},
		"an agent that cannot be interrupted, and a turn": {before: turn, mute: true, stage: machine.ClosedStdin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := lives
			if c.mute {
				cfg.Interrupt = nil
			}
			l := machine.NewLife(cfg)
			now := start
			changed := func(s machine.Summary) machine.LifeInput {
				s.Gen, s.Initialized, s.Heard = 1, true, l.Snapshot().Sent
				return machine.Changed{Summary: &s}
			}
			l.Step(now, machine.Began{}, nil)
			up(l, now, 1)
			l.Step(now, changed(c.before), nil)
			if c.failed {
				l.Step(now, machine.Unusable{Err: errors.New("it failed")}, nil)
			} else {
				l.Step(now, machine.CloseAsked{}, nil)
			}
			does := inputs(l.Step(now, changed(c.before), nil))
			if !c.failed && !c.mute && c.before.Busy() {
				require.Equal(t, "Serve interrupt", does)
			}
			last := c.before
			for _, m := range c.then {
				l.Step(now, changed(last), nil) // it has heard everything
				now = start.Add(m.at)
				in := machine.LifeInput(machine.Tick{})
				if !m.tick {
					in, last = changed(m.sum), m.sum
				}
				require.Equal(t, m.want, inputs(l.Step(now, in, nil)), "at %v, after %+v", m.at, last)
			}
			if c.stage != 0 {
				require.Equal(t, machine.Denying, l.Snapshot().Close)
				out := l.Step(now, changed(last), nil)
				assert.Contains(t, out, machine.Climb{Gen: 1, Stage: c.stage})
			}
		})
	}
}

// inputs are what a life gives the routing to do.
func inputs(out []machine.Effect) string {
	var all []string
	for _, e := range out {
		tell, ok := e.(machine.Tell)
		if !ok {
			continue
		}
		name := strings.TrimPrefix(fmt.Sprintf("%T", tell.In), "machine.")
		if c, is := tell.In.(machine.Called); is {
			name = c.Subtype
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}
