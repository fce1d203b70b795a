package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/session"
)

var lives = machine.LifeConfig{
	Backend: "agent", InterruptGrace: 2 * time.Second, FlushGrace: time.Second, Consumer: time.Minute, AuthExpired: 41,
	Interrupt: machine.Called{Subtype: "interrupt", Body: json.RawMessage(`{"subtype":"interrupt"}`), Own: true}, Restarts: 2,
}

// stage is what a life has around it: a routing that answers late, and a process.
type stage struct {
	*rand.Rand
	now      time.Time
	told     uint64 // the last input that the life sent
	heard    uint64 // the last one that the routing has confirmed
	sum      machine.Summary
	link     machine.Link
	parting  int // the process that the routing is to let go of
	climbed  machine.Stage
	aborted  bool
	broken   bool // nothing is known of its output
	stopping bool
	over     bool
	finished int
	closing  int
	seen     []string
}

// input draws what may happen next.
func (s *stage) input() machine.LifeInput {
	switch s.IntN(14) {
	case 0:
		if s.link.Gen > 0 && s.link.Phase < machine.Gone {
			s.link.Phase++
			s.link.Exit = session.ExitStatus{Code: s.IntN(42)}
			return machine.Linked{Link: s.link}
		}
	case 1:
		if s.IntN(4) == 0 {
			return machine.CloseAsked{}
		}
	case 2:
		if s.IntN(8) == 0 {
			return machine.Unusable{Err: &session.TimeoutError{What: "initialize", Limit: time.Second}, Stderr: "why"}
		}
	case 3:
		if s.IntN(8) == 0 {
			s.broken = true
			return machine.Broken{Err: errors.New("a bug")}
		}
	case 4:
		if s.stopping || s.IntN(12) == 0 {
			s.over = true
			if s.stopping {
				return machine.ActorsOver{}
			}
			return machine.ActorsOver{Err: errors.New("too many failures")}
		}
	case 5, 6:
		return machine.Tick{}
	case 7:
		if s.IntN(10) == 0 {
			s.sum.GatesOff = "system/init"
		}
	case 8:
		s.sum.Initialized, s.sum.SettingUp = true, s.IntN(4) == 0
	case 9:
		s.sum.InFlight = s.IntN(2) == 0
		s.sum.Running = s.sum.InFlight
	case 10:
		s.sum.Gates = s.IntN(2)
	case 11:
		if s.sum.Stalled = s.IntN(2) == 0; s.sum.Stalled {
			s.sum.StalledAt = s.now
		}
	case 12:
		if s.parting > 0 {
			return s.parted()
		}
	}
	return s.changed()
}

// parted is the answer to the wish that another process follows.
func (s *stage) parted() machine.LifeInput {
	gen := s.parting
	s.parting = 0
	return machine.Parted{Gen: gen, SessionID: "the session"}
}

// changed is a summary, which may be an old one.
func (s *stage) changed() machine.LifeInput {
	if s.heard < s.told && s.IntN(2) == 0 {
		s.heard++
	}
	s.sum.Heard, s.sum.Closing = s.heard, s.heard > 0
	s.sum.Flushed = s.sum.Flushed || s.heard > 1 && s.IntN(3) == 0
	s.sum.Drained = s.sum.Drained || s.link.Phase == machine.Gone
	sum := s.sum
	return machine.Changed{Summary: &sum}
}

// note follows the effects of a step, and holds them to what must hold.
func (s *stage) note(t *testing.T, out []machine.Effect) {
	t.Helper()
	for _, e := range out {
		require.Zero(t, s.finished, "nothing follows the end: %#v", e)
		switch e := e.(type) {
		case machine.Launch:
			require.Equal(t, s.link.Gen+1, e.Gen)
			require.True(t, e.Gen == 1 || s.link.Phase == machine.Gone, "one process at a time")
			require.Equal(t, e.Gen > 1, e.Resume != "")
			require.LessOrEqual(t, e.Gen, 1+lives.Restarts)
			require.Zero(t, s.closing, "no process for a session that closes")
			s.link = machine.Link{Gen: e.Gen}
			s.sum.Drained, s.sum.Initialized = false, false
		case machine.Enter:
			require.True(t, machine.Legal(e.From, e.To))
			s.seen = append(s.seen, e.To.String())
		case machine.Tell:
			require.Equal(t, s.told+1, e.N)
			s.told = e.N
			switch in := e.In.(type) {
			case machine.Lost:
				require.Equal(t, s.link.Gen, in.Gen)
				require.Error(t, in.Reason)
				s.parting = in.Gen
			case machine.Closing:
				s.closing++
			}
		case machine.Climb:
			if e.Stage < machine.Killed {
				require.Equal(t, s.told, s.sum.Heard, "stdin is closed once the routing has denied what is open")
			}
			require.Greater(t, e.Stage, s.climbed, "up")
			s.climbed = e.Stage
		case machine.Abort:
			require.True(t, s.over, "the actors are gone")
			s.aborted = true
		case machine.StopActors:
			require.Equal(t, machine.Gone, s.link.Phase)
			require.False(t, s.stopping)
			require.True(t, s.sum.Drained || s.broken || s.over, "what the agent wrote is handled")
			s.stopping = true
		case machine.Finish:
			require.Equal(t, machine.Gone, s.link.Phase, "no process is left")
			require.True(t, s.over, "nor an actor")
			s.finished++
		}
	}
}

// TestLives: whatever happens to a session in whatever order, it ends once, no process
// is left, and a life that is restored from JSON goes on alike.
func TestLives(t *testing.T) {
	t.Parallel()
	states := make(map[string]int)
	for seed := range seeds(t, 300) {
		s := &stage{Rand: rand.New(rand.NewPCG(seed, 2)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		a, b := machine.NewLife(lives), machine.NewLife(lives)
		var in machine.LifeInput = machine.Began{}
		for step := 0; s.finished == 0; step++ {
			require.Less(t, step, 10_000, "seed %d: it never ends: %+v", seed, a.Snapshot())
			s.now = s.now.Add(time.Duration(s.IntN(5)) * 400 * time.Millisecond)
			if s.IntN(5) == 0 {
				data, err := json.Marshal(b.Snapshot())
				require.NoError(t, err)
				var state machine.LifeState
				require.NoError(t, json.Unmarshal(data, &state))
				b = machine.RestoreLife(state, lives)
			}
			x, y := a.Step(s.now, in, nil), b.Step(s.now, in, nil)
			require.Equal(t, texts(x), texts(y), "seed %d step %d: %#v", seed, step, in)
			s.note(t, x)
			still := machine.RestoreLife(a.Snapshot(), lives)
			require.Empty(t, texts(still.Step(s.now, machine.Changed{Summary: a.Snapshot().Routing}, nil)),
				"seed %d step %d: what follows of what is known was done at once: %#v", seed, step, in)
			if in = s.input(); step > 200 {
				in = s.towardsTheEnd()
			}
		}
		require.Empty(t, a.Step(s.now, machine.CloseAsked{}, nil), "it is over")
		for _, state := range s.seen {
			states[state]++
		}
	}
	for _, state := range []string{"ready", "running", "awaiting_host", "awaiting_consumer", "recovering", "closed", "failed"} {
		assert.Positive(t, states[state], "no life was ever %s", state)
	}
}

// towardsTheEnd is what comes when the session is to end and everybody does their
// part.
func (s *stage) towardsTheEnd() machine.LifeInput {
	switch {
	case s.IntN(3) == 0:
		return machine.CloseAsked{}
	case s.stopping && !s.over:
		s.over = true
		return machine.ActorsOver{}
	case s.IntN(3) == 0:
		return machine.Tick{}
	case (s.climbed > 0 || s.aborted) && s.link.Phase < machine.Gone:
		s.link.Phase++
		return machine.Linked{Link: s.link}
	}
	if s.parting > 0 {
		return s.parted()
	}
	s.heard = s.told
	s.sum.Flushed = true
	return s.changed()
}

// TestWhyALifeEnds is what users read.
func TestWhyALifeEnds(t *testing.T) {
	t.Parallel()
	cfg := lives
	cfg.Restarts = 0
	up := []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, machine.Changed{Summary: &machine.Summary{Initialized: true}},
	}
	gone := func(l machine.Link, s machine.Summary) []machine.LifeInput {
		l.Gen, l.Phase, s.Drained = 1, machine.Gone, true
		return []machine.LifeInput{machine.Linked{Link: l}, machine.Changed{Summary: &s}, machine.ActorsOver{}}
	}
	for name, c := range map[string]struct {
		inputs []machine.LifeInput
		want   string // "" is a normal end
		state  session.State
	}{
		"the agent exits": {
			append(up, gone(machine.Link{Gen: 1, Exit: session.ExitStatus{Code: 3}, Stderr: "oh no"}, machine.Summary{Initialized: true})...),
			"oh no", session.StateFailed,
		},
		"its login has expired": {
			append(up, gone(machine.Link{Gen: 1, Exit: session.ExitStatus{Code: 41}}, machine.Summary{Initialized: true})...),
			"agent", session.StateFailed,
		},
		"it was never started": {
			[]machine.LifeInput{machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone, Err: machine.Fault{Err: errors.New("no such file")}}}, machine.Changed{Summary: &machine.Summary{Drained: true}}, machine.ActorsOver{}},
			"no such file", session.StateFailed,
		},
		"something of it is left": {
			append(append(up, machine.CloseAsked{}), gone(machine.Link{Gen: 1, Leftover: machine.Fault{Err: errors.New("a child")}}, machine.Summary{Initialized: true, Heard: 9})...),
			"a child", session.StateClosed,
		},
		"its actors fail": {
			append(append(up, machine.ActorsOver{Err: errors.New("too many")}), gone(machine.Link{}, machine.Summary{Initialized: true})[0]),
			"too many", session.StateFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := machine.NewLife(cfg)
			var out []machine.Effect
			for _, in := range c.inputs {
				out = l.Step(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), in, out)
			}
			end, ok := out[len(out)-1].(machine.Finish)
			require.True(t, ok, fmt.Sprint(texts(out)))
			require.ErrorContains(t, end.Reason, c.want)
			assert.Equal(t, c.state, l.Snapshot().Phase)
		})
	}
}

// TestAConsumerThatStandsStill ends the session after its limit, counted anew with
// each message that is read.
func TestAConsumerThatStandsStill(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := machine.NewLife(lives)
	for _, in := range []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, machine.Changed{Summary: &machine.Summary{Initialized: true}},
	} {
		l.Step(start, in, nil)
	}
	stalled := func(at time.Duration) machine.LifeInput {
		return machine.Changed{Summary: &machine.Summary{Initialized: true, Stalled: true, StalledAt: start.Add(at)}}
	}
	assert.Contains(t, l.Step(start, stalled(0), nil), machine.SetTick{At: start.Add(time.Minute)})
	assert.Empty(t, l.Step(start.Add(30*time.Second), stalled(30*time.Second), nil), "the timer may come early")
	assert.Equal(t, []machine.Effect{machine.SetTick{At: start.Add(90 * time.Second)}}, l.Step(start.Add(time.Minute), machine.Tick{}, nil))
	require.Equal(t, session.StateAwaitingConsumer, l.Snapshot().Phase)
	l.Step(start.Add(90*time.Second), machine.Tick{}, nil)
	assert.Equal(t, session.StateClosing, l.Snapshot().Phase)
	assert.ErrorIs(t, l.Snapshot().Reason.Err, session.ErrConsumerStalled)
}

// TestALifeWithAnotherProcess: it waits until the routing has let go of the process that
// died, and hears no more of that one.
func TestALifeWithAnotherProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := machine.NewLife(lives)
	step := func(in machine.LifeInput) []string { return texts(l.Step(now, in, nil)) }
	gone := func(gen int) machine.LifeInput {
		return machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone, Exit: session.ExitStatus{Code: 3}}}
	}
	up := func(gen int, heard uint64) {
		step(machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}})
		step(machine.Changed{Summary: &machine.Summary{Initialized: true, Heard: heard}})
		require.Equal(t, session.StateReady, l.Snapshot().Phase)
	}
	step(machine.Began{})
	up(1, 0)
	step(gone(1))
	require.Equal(t, session.StateReady, l.Snapshot().Phase, "its output is not handled yet")
	step(machine.Changed{Summary: &machine.Summary{Initialized: true, Drained: true}})
	require.Equal(t, session.StateRecovering, l.Snapshot().Phase)
	require.Empty(t, step(machine.Tick{}))
	require.Empty(t, step(machine.Changed{Summary: &machine.Summary{Drained: true, Heard: 1}}))
	require.Empty(t, step(machine.Parted{Gen: 7}), "of no process that there was")
	require.Len(t, step(machine.Parted{Gen: 1, SessionID: "s"}), 1)
	require.Equal(t, 2, l.Snapshot().Gen)
	require.Empty(t, step(gone(1)), "of the process before")
	require.Empty(t, step(machine.Parted{Gen: 1, SessionID: "s"}), "once")
	up(2, 1)
	expired := machine.Linked{Link: machine.Link{Gen: 2, Phase: machine.Gone, Exit: session.ExitStatus{Code: lives.AuthExpired}}}
	step(expired)
	step(machine.Changed{Summary: &machine.Summary{Initialized: true, Drained: true, Heard: 1}})
	require.Equal(t, session.StateClosing, l.Snapshot().Phase, "nothing to try again with")

	l = machine.NewLife(lives)
	step(machine.Began{})
	up(1, 0)
	step(gone(1))
	step(machine.Changed{Summary: &machine.Summary{Initialized: true, Drained: true, Changed: true}})
	require.Equal(t, session.StateClosing, l.Snapshot().Phase, "the options no longer say what it was")
}
