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

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

var lives = machine.LifeConfig{
	Backend: "agent", InterruptGrace: 2 * time.Second, FlushGrace: time.Second, Consumer: time.Minute, AuthExpired: 41,
	Interrupt: &machine.Called{Subtype: "interrupt", Body: json.RawMessage(`{"subtype":"interrupt"}`), Own: true},
	Recovery:  machine.RecoveryConfig{Restarts: 4, Equal: 3, Window: time.Hour, ResetAfter: 10 * time.Second, Policy: session.RecoverContinue, Unknown: "no such session"},
}

// stage is what a life has around it: a routing that answers late, and a process.
type stage struct {
	*rand.Rand
	now      time.Time
	told     uint64 // the last input that the life sent
	heard    uint64 // the last one that the routing has confirmed
	sum      machine.Summary
	link     machine.Link
	parting  int  // the process that the routing is to let go of
	reading  int  // the process whose transcript is read
	asking   int  // the process about whose death the user is asked
	drawing  int  // the process whose successor's delay is drawn
	resting  int  // the process of which the routing is to say whether it is needed
	idle     bool // nobody needed the process that has gone
	asked    int  // how often the user wanted the process to go
	rested   int  // and how often it went, by whosever wish
	calm     bool // the session lives for long
	gated    bool // its processes have to be admitted
	starting int  // the process that is to be admitted
	granted  int  // the one that was
	judged   int  // starts that have come to an outcome, or were given up
	verdicts int  // the process whose messages were decided about last
	launched []time.Time
	fresh    int
	climbed  machine.Stage
	// climbedWhy is why, if not for a close.
	climbedWhy string
	drained    bool // as the life knows
	aborted    bool
	broken     bool // nothing is known of its output
	stopping   bool
	over       bool
	finished   int
	closing    int
	seen       []string
}

// input draws what may happen next.
func (s *stage) input() machine.LifeInput {
	next := s.IntN(19)
	switch {
	case s.starting > 0 && s.IntN(4) == 0:
		return s.admitted()
	case s.calm && (next >= 1 && next <= 4 || next == 7) && !s.stopping && s.IntN(100) > 0:
		next = 0
	case s.calm && s.parting > 0:
		next = 12
	}
	switch next {
	case 14:
		if s.reading > 0 {
			return s.historyRead()
		}
		if s.asking > 0 {
			return s.decided()
		}
	case 15:
		if s.drawing > 0 {
			return s.drawn()
		}
	case 17:
		if s.IntN(4) == 0 {
			s.asked++
			return machine.PassivateAsked{}
		}
	case 18:
		if gen := s.resting; gen > 0 {
			s.resting = 0
			if s.IntN(3) == 0 {
				return machine.Rested{Gen: gen, Busy: "a turn is open", Soon: s.IntN(2) == 0, Active: s.now}
			}
			return machine.Rested{Gen: gen, Active: s.now}
		}
	case 16:
		s.sum.Waiting = s.IntN(2) == 0
	case 0:
		if s.link.Gen > 0 && s.link.Phase < machine.Gone {
			s.link.Phase++
			s.link.Exit = session.ExitStatus{Code: s.IntN(42)}
			if s.link.Phase == machine.Up {
				s.sum.Gen, s.sum.Drained = s.link.Gen, false
			}
			if s.sum.Failure = ""; s.IntN(2) == 0 {
				s.sum.Failure = "no such session"
			}
			if s.sum.ResultAt = (time.Time{}); s.IntN(2) == 0 {
				s.sum.ResultAt = s.now
			}
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
		if s.link.Gen <= 1 || s.IntN(6) == 0 { // the others die before as well
			s.sum.Initialized, s.sum.SettingUp = true, s.IntN(4) == 0
		}
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

// decided is what the user's function says, which may be nonsense.
func (s *stage) decided() machine.LifeInput {
	gen := s.asking
	s.asking = 0
	if s.IntN(12) == 0 {
		return machine.Decided{Gen: gen, Err: errors.New("it panicked")}
	}
	all := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport, session.RecoverReport, session.RecoverFail, ""}
	return machine.Decided{Gen: gen, Policy: all[s.IntN(len(all))]}
}

// admitted is the answer of those who limit the starts.
func (s *stage) admitted() machine.LifeInput {
	gen := s.starting
	s.starting = 0
	if gen == 1 && s.IntN(8) == 0 {
		return machine.Refused{Gen: gen, Err: &session.BreakerOpenError{Kind: session.BreakerAgent, Name: "agent"}}
	}
	s.granted = gen
	return machine.Granted{Gen: gen}
}

func (s *stage) drawn() machine.LifeInput {
	gen := s.drawing
	s.drawing = 0
	return machine.Drawn{Gen: gen, Delay: time.Duration(s.IntN(3)) * time.Second}
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
	s.sum.Drained = s.sum.Drained || s.link.Phase == machine.Gone && s.sum.Gen == s.link.Gen
	sum := s.sum
	s.drained = sum.Drained
	return machine.Changed{Summary: &sum}
}

// note follows the effects of a step, and holds them to what must hold.
func (s *stage) note(t *testing.T, out []machine.Effect) {
	t.Helper()
	for _, e := range out {
		require.Zero(t, s.finished, "nothing follows the end: %#v", e)
		switch e := e.(type) {
		case machine.AskStart:
			require.Equal(t, s.link.Gen+1, e.Gen)
			require.Zero(t, s.starting, "once")
			require.Zero(t, s.granted, "the last one has come to an outcome")
			require.Zero(t, s.closing)
			s.starting = e.Gen
		case machine.StartOver:
			require.Contains(t, []int{s.starting, s.granted}, e.Gen)
			require.Equal(t, e.Outcome == machine.StartFailed, e.Err != nil)
			s.starting, s.granted = 0, 0
			s.judged++
		case machine.Launch:
			require.Equal(t, s.gated, s.granted == e.Gen, "it was admitted")
			require.Equal(t, s.link.Gen+1, e.Gen)
			require.True(t, e.Gen == 1 || s.link.Phase == machine.Gone, "one process at a time")
			if s.idle {
				s.rested++
				require.Contains(t, []string{"", "the session"}, e.Resume)
			} else {
				require.Equal(t, e.Gen > 1, e.Resume != "")
				require.Equal(t, e.Gen-1, s.verdicts, "its messages were decided about")
			}
			require.Zero(t, s.closing, "no process for a session that closes")
			require.True(t, e.Gen == 1 || s.sum.Waiting, "there is something to do")
			switch {
			case s.idle: // that is no restart
			case e.Fresh:
				s.fresh++
			default:
				s.launched = append(s.launched, s.now)
			}
			s.idle, s.climbed, s.sum.Flushed = false, machine.Open, false
			s.link = machine.Link{Gen: e.Gen}
			s.sum.Initialized = false
		case machine.ReadHistory:
			require.Equal(t, s.link.Gen, e.Gen)
			require.Equal(t, "the session", e.SessionID)
			s.reading = e.Gen
		case machine.Ask:
			require.Equal(t, s.link.Gen, e.Gen)
			require.Error(t, e.Failure.Err)
			s.asking = e.Gen
		case machine.Draw:
			require.Equal(t, s.link.Gen, e.Gen)
			require.True(t, e.Attempt > 0 || len(s.launched) < 2, "only to begin a session that was never stored is no attempt")
			s.drawing = e.Gen
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
				s.parting, s.idle = in.Gen, in.Passive
			case machine.Verdict:
				require.Equal(t, s.link.Gen, in.Gen)
				require.Error(t, in.Reason)
				require.Contains(t, []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}, in.Policy)
				s.verdicts = in.Gen
			case machine.Closing:
				s.closing++
			case machine.Rest:
				require.Equal(t, s.link.Gen, in.Gen)
				s.resting = in.Gen
			}
		case machine.PassivateOver:
			require.Positive(t, s.asked)
			require.True(t, e.Err != nil || s.link.Phase == machine.Gone, "the process is gone")
		case machine.Climb:
			if e.Stage < machine.Killed {
				require.Equal(t, s.told, s.sum.Heard, "stdin is closed once the routing has denied what is open")
			}
			require.True(t, e.Stage > s.climbed || s.climbedWhy != "", "up; a close does not know what a passivation has done")
			s.climbed, s.climbedWhy = e.Stage, e.Why
		case machine.Abort:
			require.True(t, s.over, "the actors are gone")
			s.aborted = true
		case machine.StopActors:
			require.Equal(t, machine.Gone, s.link.Phase)
			require.False(t, s.stopping)
			require.True(t, s.drained || s.broken || s.over, "what the agent wrote is handled")
			s.stopping = true
		case machine.Finish:
			require.Equal(t, machine.Gone, s.link.Phase, "no process is left")
			require.True(t, s.over, "nor an actor")
			s.finished++
		}
	}
}

func (s *stage) historyRead() machine.LifeInput {
	gen := s.reading
	s.reading = 0
	known := s.IntN(4) > 0
	return machine.HistoryRead{Gen: gen, History: machine.History{Known: known, Missing: known && s.IntN(2) == 0}}
}

// TestLives: whatever happens to a session in whatever order, it ends once, no process
// is left, and a life that is restored from JSON goes on alike.
func TestLives(t *testing.T) {
	t.Parallel()
	states, generations, begun, rested, judged := make(map[string]int), 0, 0, 0, 0
	for seed := range seeds(t, 300) {
		s := &stage{Rand: rand.New(rand.NewPCG(seed, 2)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), calm: seed%3 > 0}
		lives := lives
		lives.Recovery.Asks, lives.Recovery.Stored = seed%2 == 0, seed%4 < 2
		lives.Recovery.Reads = seed%3 > 0
		lives.PassivateAfter = time.Duration(seed%5) * time.Second
		s.gated = seed%7 < 4
		lives.Admission = s.gated
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
			for _, e := range x {
				if tick, ok := e.(machine.SetTick); ok && in == (machine.Tick{}) {
					require.True(t, tick.At.After(s.now), "seed %d step %d: a timer for what is due and cannot be done", seed, step)
				}
			}
			still := machine.RestoreLife(a.Snapshot(), lives)
			require.Empty(t, texts(still.Step(s.now, machine.Changed{Summary: a.Snapshot().Routing}, nil)),
				"seed %d step %d: what follows of what is known was done at once: %#v", seed, step, in)
			if step > 200 && !s.calm || step > 1000 {
				in = s.towardsTheEnd()
			} else {
				in = s.input()
			}
		}
		require.Empty(t, a.Step(s.now, machine.CloseAsked{}, nil), "it is over")
		require.Zero(t, s.granted+s.starting, "seed %d: a start without an outcome", seed)
		judged += s.judged
		require.LessOrEqual(t, len(s.launched), 1+lives.Recovery.Restarts, "seed %d", seed)
		rested += s.rested
		require.True(t, s.fresh == 0 || !lives.Recovery.Stored, "a session that was stored is not begun anew")
		generations = max(generations, len(s.launched)+s.fresh)
		begun += s.fresh
		for _, state := range s.seen {
			states[state]++
		}
	}
	for _, state := range []string{"ready", "running", "awaiting_host", "awaiting_consumer", "recovering", "passivated", "closed", "failed"} {
		assert.Positive(t, states[state], "no life was ever %s", state)
	}
	assert.Greater(t, generations, 3)
	assert.Positive(t, begun)
	assert.Positive(t, rested)
	assert.Positive(t, judged)
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
		if s.link.Phase++; s.link.Phase == machine.Up {
			s.sum.Gen, s.sum.Drained = s.link.Gen, false
		}
		return machine.Linked{Link: s.link}
	}
	switch {
	case s.parting > 0:
		return s.parted()
	case s.reading > 0:
		return s.historyRead()
	case s.asking > 0:
		return s.decided()
	case s.drawing > 0:
		return s.drawn()
	}
	s.heard = s.told
	s.sum.Flushed = true
	return s.changed()
}

// TestWhyALifeEnds is what users read.
func TestWhyALifeEnds(t *testing.T) {
	t.Parallel()
	cfg := lives
	cfg.Recovery.Restarts = 0
	up := []machine.LifeInput{
		machine.Began{}, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, machine.Changed{Summary: &machine.Summary{Initialized: true}},
	}
	gone := func(l machine.Link, s machine.Summary) []machine.LifeInput {
		l.Gen, l.Phase, s.Gen, s.Drained = 1, machine.Gone, 1, true
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
	reads := machine.Changed{Summary: &machine.Summary{Initialized: true, Running: true}}
	assert.NotContains(t, l.Step(start.Add(30*time.Second), reads, nil), machine.SetTick{}, "nor is it stopped while the agent works")
	require.Equal(t, session.StateRunning, l.Snapshot().Phase)
	l.Step(start.Add(30*time.Second), stalled(30*time.Second), nil)
	assert.Equal(t, []machine.Effect{machine.SetTick{At: start.Add(90 * time.Second)}}, l.Step(start.Add(time.Minute), machine.Tick{}, nil))
	require.Equal(t, session.StateAwaitingConsumer, l.Snapshot().Phase)
	l.Step(start.Add(90*time.Second), machine.Tick{}, nil)
	assert.Equal(t, session.StateClosing, l.Snapshot().Phase)
	assert.ErrorIs(t, l.Snapshot().Reason.Err, session.ErrConsumerStalled)
}

// up is a process that is ready, of the life of a test.
func up(l *machine.Life, now time.Time, gen int) {
	l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}}, nil)
	l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: gen, Initialized: true, Heard: l.Snapshot().Sent}}, nil)
}

// TestALifeWithAnotherProcess: it waits until the routing has let go of the process that
// died, until the delay has passed and until there is something to do, and hears no more
// of that process.
func TestALifeWithAnotherProcess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := machine.NewLife(lives)
	step := func(in machine.LifeInput) []string { return texts(l.Step(now, in, nil)) }
	gone := func(gen int) machine.LifeInput {
		return machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone, Exit: session.ExitStatus{Code: 3}}}
	}
	step(machine.Began{})
	up(l, now, 1)
	require.Equal(t, session.StateReady, l.Snapshot().Phase)
	step(gone(1))
	require.Equal(t, session.StateReady, l.Snapshot().Phase, "its output is not handled yet")
	step(machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Drained: true}})
	require.Equal(t, session.StateRecovering, l.Snapshot().Phase)
	require.Empty(t, step(machine.Tick{}))
	require.Empty(t, step(machine.Changed{Summary: &machine.Summary{Gen: 1, Drained: true, Waiting: true, Heard: 1}}))
	require.Empty(t, step(machine.Parted{Gen: 7}), "of no process that there was")
	require.Len(t, step(machine.Parted{Gen: 1, SessionID: "s"}), 2, "a verdict, and a draw")
	require.Empty(t, step(machine.Parted{Gen: 1, SessionID: "s"}), "once")
	require.Empty(t, step(machine.Drawn{Gen: 7}))
	require.Len(t, step(machine.Drawn{Gen: 1, Delay: time.Second}), 1, "an event")
	require.Equal(t, []string{fmt.Sprintf("%T %+v", machine.SetTick{}, machine.SetTick{At: now.Add(time.Second)})},
		step(machine.Changed{Summary: &machine.Summary{Gen: 1, Drained: true, Waiting: true, Heard: 2}}))
	now = now.Add(time.Second)
	require.Equal(t, []string{fmt.Sprintf("%T %+v", machine.Launch{}, machine.Launch{Gen: 2, Resume: "s"})}, step(machine.Tick{}))
	require.Empty(t, step(gone(1)), "of the process before")
	up(l, now, 2)
	require.Equal(t, session.StateReady, l.Snapshot().Phase)
	step(machine.Linked{Link: machine.Link{Gen: 2, Phase: machine.Gone, Exit: session.ExitStatus{Code: lives.AuthExpired}}})
	step(machine.Changed{Summary: &machine.Summary{Gen: 2, Initialized: true, Drained: true, Heard: 2}})
	require.Equal(t, session.StateClosing, l.Snapshot().Phase, "nothing to try again with")
}

// die has the present process of a life die, after it was ready, and parts with it.
func die(l *machine.Life, now time.Time, exit session.ExitStatus, sum machine.Summary) []machine.Effect {
	gen := l.Snapshot().Gen
	sum.Gen, sum.Drained, sum.Heard = gen, true, l.Snapshot().Sent
	out := l.Step(now, machine.Changed{Summary: &sum}, nil)
	out = l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone, Exit: exit}}, out)
	return l.Step(now, machine.Parted{Gen: gen, SessionID: "s"}, out)
}

// relaunch has the next process of a life start.
func relaunch(l *machine.Life, now time.Time) (next *machine.Launch) {
	gen := l.Snapshot().Gen
	out := l.Step(now, machine.Drawn{Gen: gen}, nil)
	for _, e := range l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: gen, Drained: true, Waiting: true, Heard: l.Snapshot().Sent}}, out) {
		if e, ok := e.(machine.Launch); ok {
			next = &e
		}
	}
	return next
}

// TestWhatADeathDoes, by the state in which the agent dies, the way in which it dies and
// the policy.
func TestWhatADeathDoes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	working := map[string]machine.Summary{
		"ready":             {Initialized: true},
		"running":           {Initialized: true, Running: true, InFlight: true},
		"awaiting_host":     {Initialized: true, Running: true, InFlight: true, Gates: 1},
		"awaiting_consumer": {Initialized: true, Running: true, InFlight: true, Stalled: true, StalledAt: start},
	}
	deaths := map[string]struct {
		exit      session.ExitStatus
		link      machine.Link
		changed   bool
		permanent bool
	}{
		"killed":      {exit: session.ExitStatus{Code: -1, Signal: "SIGKILL"}},
		"exit 0":      {},
		"exit 1":      {exit: session.ExitStatus{Code: 1}},
		"no login":    {exit: session.ExitStatus{Code: 41}, permanent: true},
		"given up":    {exit: session.ExitStatus{Code: 1}, link: machine.Link{Err: machine.Fault{Err: errors.New("broken")}}, permanent: true},
		"left":        {exit: session.ExitStatus{Code: 1}, link: machine.Link{Leftover: machine.Fault{Err: errors.New("a child")}}, permanent: true},
		"other model": {exit: session.ExitStatus{Code: 1}, changed: true, permanent: true},
	}
	policies := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport, session.RecoverFail, "", "odd"}
	for state, sum := range working {
		for death, d := range deaths {
			for _, policy := range policies {
				for _, asks := range []bool{false, true} {
					if !asks && !policy.Known() {
						continue
					}
					name := fmt.Sprintf("%s, %s, %q, asked: %v", state, death, policy, asks)
					cfg := lives
					cfg.Recovery.Policy, cfg.Recovery.Asks = policy, asks
					l := machine.NewLife(cfg)
					l.Step(start, machine.Began{}, nil)
					up(l, start, 1)
					s := sum
					s.Gen, s.Changed = 1, d.changed
					l.Step(start, machine.Changed{Summary: &s}, nil)
					require.Equal(t, state, l.Snapshot().Phase.String(), name)
					s.Drained = true
					l.Step(start, machine.Changed{Summary: &s}, nil)
					d.link.Gen, d.link.Phase, d.link.Exit = 1, machine.Gone, d.exit
					l.Step(start, machine.Linked{Link: d.link}, nil)
					if d.permanent {
						require.Equal(t, session.StateClosing, l.Snapshot().Phase, name)
						require.Error(t, l.Snapshot().Reason.Err, name)
						continue
					}
					require.Equal(t, session.StateRecovering, l.Snapshot().Phase, name)
					out := l.Step(start, machine.Parted{Gen: 1, SessionID: "s"}, nil)
					if asks {
						ask, ok := out[0].(machine.Ask)
						require.True(t, ok, name)
						require.Equal(t, state, ask.Failure.State.String(), name)
						out = l.Step(start, machine.Decided{Gen: 1, Policy: policy}, nil)
					}
					_, wrong := errors.AsType[*session.RecoveryError](l.Snapshot().Reason.Err)
					require.Equal(t, !policy.Known(), wrong, name)
					switch policy {
					case session.RecoverContinue, session.RecoverRerun, session.RecoverReport:
						tell, ok := out[0].(machine.Tell)
						require.True(t, ok, name)
						require.Equal(t, policy, tell.In.(machine.Verdict).Policy, name)
						require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, start), name)
					default:
						require.Equal(t, session.StateClosing, l.Snapshot().Phase, name)
						require.ErrorAs(t, l.Snapshot().Reason.Err, new(*session.ExitError), name)
					}
				}
			}
		}
	}
}

// TestHowOftenALifeRecovers: restarts count within the window, equal deaths without a
// result are permanent, and a healthy process begins the backoff anew.
func TestHowOftenALifeRecovers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type deathOf struct {
		after  time.Duration // that the process was ready
		code   int
		result bool
	}
	config := lives
	attempts := func(deaths ...deathOf) (all []int, end error) {
		l, now := machine.NewLife(config), at
		l.Step(now, machine.Began{}, nil)
		for i, d := range deaths {
			up(l, now, i+1)
			now = now.Add(d.after)
			sum := machine.Summary{Initialized: true}
			if d.result {
				sum.ResultAt = now
			}
			for _, e := range die(l, now, session.ExitStatus{Code: d.code}, sum) {
				if e, ok := e.(machine.Draw); ok {
					all = append(all, e.Attempt)
				}
			}
			if end = l.Snapshot().Reason.Err; end != nil {
				return all, end
			}
			require.NotNil(t, relaunch(l, now))
		}
		return all, nil
	}
	all, end := attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1})
	require.Equal(t, []int{1, 2}, all)
	require.ErrorContains(t, end, "alike 3 times")
	all, end = attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1}, deathOf{code: 2})
	require.Equal(t, []int{1, 2, 3, 4}, all)
	require.ErrorContains(t, end, "more than 4 times within 1h0m0s (MaxRestarts, RestartWindow)")
	all, end = attempts(deathOf{code: 1, result: true}, deathOf{code: 1, result: true}, deathOf{code: 1, result: true}, deathOf{code: 1})
	require.NoError(t, end, "with results between")
	require.Equal(t, []int{1, 2, 3, 4}, all)
	all, end = attempts(deathOf{code: 1}, deathOf{code: 2, after: 9 * time.Second}, deathOf{code: 1, after: 10 * time.Second}, deathOf{code: 2})
	require.NoError(t, end)
	require.Equal(t, []int{1, 2, 1, 2}, all)
	all, end = attempts(deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1}, deathOf{code: 2}, deathOf{code: 1, after: time.Hour + 1}, deathOf{code: 2})
	require.NoError(t, end, "the window has passed")
	require.Equal(t, []int{1, 2, 3, 4, 1, 2}, all)
	config.Recovery.Equal = 1
	_, end = attempts(deathOf{code: 1})
	require.ErrorContains(t, end, "alike 1 times")
	config.Recovery.Equal, config.Recovery.Restarts = 0, 6
	all, end = attempts(deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1}, deathOf{code: 1})
	require.NoError(t, end, "no number of them is too many")
	require.Equal(t, []int{1, 2, 3, 4, 5, 6}, all)
}

// TestASessionThatTheAgentDoesNotFind is begun under the same id, unless it had been
// stored.
func TestASessionThatTheAgentDoesNotFind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, stored := range []bool{false, true} {
		l := machine.NewLife(lives)
		l.Step(now, machine.Began{}, nil)
		up(l, now, 1)
		first := machine.Summary{Initialized: true}
		if stored {
			first.ResultAt = now
		}
		die(l, now, session.ExitStatus{Code: 1}, first)
		require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, now))
		l.Step(now, machine.Linked{Link: machine.Link{Gen: 2, Phase: machine.Up}}, nil)
		die(l, now, session.ExitStatus{Code: 1}, machine.Summary{Failure: "error: no such session: s"})
		if stored {
			require.ErrorContains(t, l.Snapshot().Reason.Err, "does not find its session")
			continue
		}
		require.Equal(t, &machine.Launch{Gen: 3, Resume: "s", Fresh: true}, relaunch(l, now))
		require.Len(t, l.Snapshot().Deaths.Restarts, 1, "it is no restart")

		// One that was to begin the session and says the same has died like any other: an
		// agent that says nothing else is not started without end.
		lost := machine.Summary{Failure: "error: no such session: s"}
		gen := 3
		for ; !l.Snapshot().Phase.Terminal() && l.Snapshot().Close == machine.NotClosing; gen++ {
			require.Less(t, gen, 20, "started without end")
			l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Up}}, nil)
			die(l, now, session.ExitStatus{Code: 1}, lost)
			if l.Snapshot().Close == machine.NotClosing {
				relaunch(l, now)
			}
		}
		require.ErrorContains(t, l.Snapshot().Reason.Err, "no recovery")
	}
}

// TestAnIdleSessionHasNoTimer: that of the start is given back once the session is ready.
func TestAnIdleSessionHasNoTimer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		passivate time.Duration
		want      machine.Effect
	}{
		"":                     {0, machine.SetTick{}},
		"a timer for its rest": {time.Second, machine.SetTick{At: now.Add(time.Second)}},
		"a later one":          {time.Hour, nil}, // the early one sets it
	} {
		cfg := lives
		cfg.Start, cfg.PassivateAfter = time.Minute, c.passivate
		l := machine.NewLife(cfg)
		require.Contains(t, l.Step(now, machine.Began{}, nil), machine.SetTick{At: now.Add(time.Minute)})
		out := l.Step(now, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Up}}, nil)
		out = l.Step(now, machine.Changed{Summary: &machine.Summary{Initialized: true, Heard: l.Snapshot().Sent}}, out)
		var got machine.Effect
		for _, e := range out {
			if tick, ok := e.(machine.SetTick); ok {
				assert.Nil(t, got)
				got = tick
			}
		}
		assert.Equal(t, c.want, got, name)
		require.Equal(t, session.StateReady, l.Snapshot().Phase)
		if name == "" {
			assert.NotContains(t, l.Step(now, machine.Changed{Summary: &machine.Summary{Initialized: true, Running: true}}, nil), machine.SetTick{})
		}
	}
}
