package machine_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// TestWhatNeedsAProcess is what the routing says of a process that is to go.
func TestWhatNeedsAProcess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*bench)
		gen    int
		idle   time.Duration
		want   string
	}{
		"nothing":             {before: func(*bench) {}},
		"another process":     {before: func(*bench) {}, gen: 2, want: "its agent is not ready"},
		"a message":           {before: func(b *bench) { b.send("a") }, want: "a turn is open"},
		"a turn of the agent": {before: func(b *bench) { b.read(frame(`{"type":"system","subtype":"session_state_changed","state":"running"}`)) }, want: "a turn is open"},
		"a call": {
			before: func(b *bench) { b.step(machine.Called{ID: "c", Subtype: "mcp_status", Body: []byte(`{}`)}) },
			want:   "a call has no answer yet",
		},
		"a request": {
			before: func(b *bench) {
				b.read(frame(`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool"}}`))
			},
			want: "a request of the agent is open",
		},
		"a background task": {
			before: func(b *bench) { b.read(frame(`{"type":"system","subtype":"task_started","task_id":"t"}`)) },
			want:   "a background task runs",
		},
		"use a short time ago": {
			before: func(b *bench) { b.read(frame(`{"type":"keep_alive"}`)); b.now = b.now.Add(59 * time.Second) },
			idle:   time.Minute, want: "it was in use a short time ago",
		},
		"no use for long": {
			before: func(b *bench) { b.read(frame(`{"type":"keep_alive"}`)); b.now = b.now.Add(time.Minute) },
			idle:   time.Minute,
		},
		"a close": {before: func(b *bench) { b.step(machine.Closing{}) }, want: "it is closing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, true)
			b.ready()
			c.before(b)
			var got *machine.Rested
			for _, e := range b.step(machine.Rest{Gen: max(c.gen, 1), Idle: c.idle}) {
				if e, ok := e.(machine.Rested); ok {
					got = &e
				}
			}
			require.NotNil(t, got)
			assert.Equal(t, c.want, got.Busy)
			b.all = nil
			b.send("late")
			b.step(machine.Called{ID: "late", Subtype: "mcp_status", Body: []byte(`{}`)})
			if c.want != "" {
				return
			}
			assert.Empty(t, lines(b.all), "nothing reaches it any more")
			b.step(machine.Disconnected{})
			b.step(machine.OutputEnded{})
			b.step(machine.Lost{Gen: 1, Reason: io.EOF, Passive: true})
			assert.True(t, b.m.Snapshot().Told.Waiting)
			assert.Len(t, b.ready(), 2, "the next process gets it")
			assert.Empty(t, events[*session.Recovered](b.all), "nothing had died")
		})
	}
}

// TestWakeOfASessionThatWasNeverStored: an agent that has told its session's id, and has
// had no result, has stored nothing that another process could resume.
func TestWakeOfASessionThatWasNeverStored(t *testing.T) {
	t.Parallel()
	for name, resultAt := range map[string]time.Time{"no result": {}, "a result": time.Unix(9, 0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := machine.NewLife(machine.LifeConfig{})
			sum := machine.Summary{Gen: 1, Initialized: true, ResultAt: resultAt}
			told := func(heard uint64) machine.Changed {
				sum.Heard = heard
				s := sum
				return machine.Changed{Summary: &s}
			}
			var out []machine.Effect
			for _, in := range []machine.LifeInput{
				machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, told(0), machine.PassivateAsked{},
				told(1), machine.Rested{Gen: 1}, func() machine.LifeInput { sum.Flushed = true; return told(2) }(),
				func() machine.LifeInput { sum.Drained = true; return told(2) }(),
				machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone}}, told(3), machine.Parted{Gen: 1, SessionID: "told"},
				func() machine.LifeInput { sum.Waiting = true; return told(3) }(),
			} {
				out = l.Step(time.Unix(10, 0), in, out)
			}
			assert.Contains(t, out, machine.Effect(machine.PassivateOver{}))
			next, ok := out[len(out)-1].(machine.Launch)
			require.True(t, ok, "%#v", out)
			want := ""
			if !resultAt.IsZero() {
				want = "told"
			}
			assert.Equal(t, want, next.Resume)
		})
	}
}

// TestPassivateRightAfterAResult: the agent says some milliseconds later that it is done,
// and the wish waits for it, but not for another turn.
func TestPassivateRightAfterAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next machine.Summary
		want machine.Effect
	}{
		"it is done":             {machine.Summary{}, machine.Tell{Told: machine.Told{N: 2, In: machine.Rest{Gen: 1}}}},
		"not yet":                {machine.Summary{Running: true, Gates: 1}, nil},
		"a message came":         {machine.Summary{Running: true, Turns: 1}, machine.PassivateOver{Err: &session.PassivateError{Problem: "a turn is open"}}},
		"the agent began a turn": {machine.Summary{Running: true, OwnTurn: true}, machine.PassivateOver{Err: &session.PassivateError{Problem: "a turn is open"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := machine.NewLife(machine.LifeConfig{})
			var out []machine.Effect
			c.next.Gen, c.next.Initialized, c.next.Heard = 1, true, 1
			for _, in := range []machine.LifeInput{
				machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}},
				machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Running: true}}, machine.PassivateAsked{},
				machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Running: true, Heard: 1}},
				machine.Rested{Gen: 1, Busy: "a turn is open", Soon: true}, machine.Changed{Summary: &c.next},
			} {
				out = l.Step(time.Unix(10, 0), in, nil)
			}
			var got machine.Effect
			for _, e := range out {
				switch e.(type) {
				case machine.Tell, machine.PassivateOver:
					got = e
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestADeathAnswersTheWish: a process that dies before the routing has said whether it is
// needed does not leave the user waiting.
func TestADeathAnswersTheWish(t *testing.T) {
	t.Parallel()
	l := machine.NewLife(machine.LifeConfig{Recovery: machine.RecoveryConfig{Restarts: 1, Policy: session.RecoverContinue}})
	var out []machine.Effect
	for _, in := range []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}},
		machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true}}, machine.PassivateAsked{},
		machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Drained: true, Heard: 1}},
		machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone}},
	} {
		out = l.Step(time.Unix(10, 0), in, out)
	}
	assert.Contains(t, out, machine.Effect(machine.PassivateOver{Err: &session.PassivateError{Problem: "its agent has ended by itself"}}))
	assert.Equal(t, machine.Awake, l.Snapshot().Rest)
}
