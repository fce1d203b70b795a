package machine_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// law is what must hold when a life asks for an effect. The stage is as it was before.
type law struct {
	name  string
	holds func(s *stage, e machine.Effect) bool
}

// of is a law about one type of effects.
func of[E machine.Effect](name string, holds func(s *stage, e E) bool) law {
	return law{name, func(s *stage, e machine.Effect) bool {
		own, ok := e.(E)
		return !ok || holds(s, own)
	}}
}

// told is a law about one type of what the life tells the routing.
func told[I machine.Input](name string, holds func(s *stage, in I) bool) law {
	return of(name, func(s *stage, e machine.Tell) bool {
		in, ok := e.In.(I)
		return !ok || holds(s, in)
	})
}

// laws of a life.
var laws = []law{
	{"nothing follows the end", func(s *stage, _ machine.Effect) bool { return s.past["finish"] == 0 }},

	of("a start is asked for the next process", func(s *stage, e machine.AskStart) bool { return e.Gen == s.link.Gen+1 }),
	of("one start at a time", func(s *stage, _ machine.AskStart) bool { return s.open[toStart] == 0 && s.granted == 0 }),
	of("no start is asked for while the session closes", func(s *stage, _ machine.AskStart) bool { return s.past["close"] == 0 }),
	of("an outcome is that of a start", func(s *stage, e machine.StartOver) bool {
		return e.Gen == s.open[toStart] || e.Gen == s.granted
	}),
	of("a start that failed has an error", func(_ *stage, e machine.StartOver) bool { return (e.Outcome == machine.StartFailed) == (e.Err != nil) }),

	of("a process that is launched was admitted", func(s *stage, e machine.Launch) bool { return s.cfg.Admission == (s.granted == e.Gen) }),
	of("processes are numbered", func(s *stage, e machine.Launch) bool { return e.Gen == s.link.Gen+1 }),
	of("one process at a time", func(s *stage, e machine.Launch) bool { return e.Gen == 1 || s.link.Phase == machine.Gone }),
	of("a process that follows a death resumes", func(s *stage, e machine.Launch) bool { return s.idle || (e.Gen > 1) == (e.Resume != "") }),
	of("a process that follows another one resumes its session", func(s *stage, e machine.Launch) bool {
		return !s.idle || e.Resume == "" || e.Resume == "the session"
	}),
	of("messages are decided about before another process", func(s *stage, e machine.Launch) bool { return s.idle || s.verdicts == e.Gen-1 }),
	of("no process for a session that closes", func(s *stage, _ machine.Launch) bool { return s.past["close"] == 0 }),
	of("another process has something to do", func(s *stage, e machine.Launch) bool { return e.Gen == 1 || s.sum.Waiting }),
	of("restarts are bounded", func(s *stage, e machine.Launch) bool {
		return s.idle || e.Fresh || s.past["launch"] <= s.cfg.Recovery.Restarts
	}),
	of("a session that was stored is not begun anew", func(s *stage, e machine.Launch) bool { return s.idle || !e.Fresh || !s.cfg.Recovery.Stored }),

	of("the transcript is read of the process that died", func(s *stage, e machine.ReadHistory) bool {
		return e.Gen == s.link.Gen && e.SessionID == "the session"
	}),
	of("the user is asked about the process that died", func(s *stage, e machine.Ask) bool { return e.Gen == s.link.Gen && e.Death.Err != nil }),
	of("a delay is drawn for the process that died", func(s *stage, e machine.Draw) bool { return e.Gen == s.link.Gen }),
	of("only to begin a session that was never stored is no attempt", func(s *stage, e machine.Draw) bool {
		return e.Attempt > 0 || s.past["launch"] < 2
	}),

	of("a change of states is legal", func(_ *stage, e machine.Enter) bool { return machine.Legal(e.From, e.To) }),
	of("what the routing is told is numbered", func(s *stage, e machine.Tell) bool { return e.N == s.told+1 }),
	told("the routing parts with the process that died", func(s *stage, in machine.Lost) bool { return in.Gen == s.link.Gen && in.Reason != nil }),
	told("a verdict is about the process that died", func(s *stage, in machine.Verdict) bool { return in.Gen == s.link.Gen && in.Reason != nil }),
	told("a verdict goes on", func(_ *stage, in machine.Verdict) bool {
		return slices.Contains([]session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}, in.Policy)
	}),
	told("a rest is that of the process", func(s *stage, in machine.Rest) bool { return in.Gen == s.link.Gen }),

	of("a wish that the process goes has one outcome, which somebody has wished", func(s *stage, _ machine.PassivateOver) bool { return s.past["passivate"] > 0 }),
	of("a wish is granted when the process is gone", func(s *stage, e machine.PassivateOver) bool { return e.Err != nil || s.link.Phase == machine.Gone }),

	of("stdin is closed once the routing has denied what is open", func(s *stage, e machine.Climb) bool {
		return e.Stage >= machine.Killed || s.sum.Heard == s.told
	}),
	of("the ladder goes up, but that a close does not know what a passivation has done", func(s *stage, e machine.Climb) bool {
		return e.Stage > s.link.Stage || s.link.Why != ""
	}),
	of("a process is given up without actors alone", func(s *stage, _ machine.Abort) bool { return s.over }),
	of("the actors are stopped after the process", func(s *stage, _ machine.StopActors) bool { return s.link.Phase == machine.Gone }),
	of("the actors are stopped once", func(s *stage, _ machine.StopActors) bool { return s.past["stop"] == 0 }),
	of("the actors are stopped when what the agent wrote is handled", func(s *stage, _ machine.StopActors) bool {
		return s.sum.Drained || s.broken || s.over
	}),
	of("no process outlives the session", func(s *stage, _ machine.Finish) bool { return s.link.Phase == machine.Gone }),
	of("no actor outlives the session", func(s *stage, _ machine.Finish) bool { return s.over }),
	of("no start is left without an outcome", func(s *stage, _ machine.Finish) bool { return s.granted+s.open[toStart] == 0 }),
}

// note holds an effect to the laws, and takes it in.
func (s *stage) note(t *testing.T, e machine.Effect) {
	t.Helper()
	for _, l := range laws {
		require.True(t, l.holds(s, e), "%s: %#v of %+v", l.name, e, s)
	}
	switch e := e.(type) {
	case machine.AskStart:
		s.open[toStart] = e.Gen
	case machine.StartOver:
		s.answered(toStart)
		s.granted = 0
		s.past["start over"]++
	case machine.Launch:
		switch {
		case s.idle: // a wake-up is not a restart
			s.past["wake"]++
		case e.Fresh:
			s.past["begin anew"]++
		default:
			s.past["launch"]++
		}
		s.idle, s.sum.Flushed, s.sum.Initialized = false, false, false
		s.link = machine.Link{Gen: e.Gen}
	case machine.ReadHistory:
		s.open[toRead] = e.Gen
	case machine.Ask:
		s.open[toDecide] = e.Gen
	case machine.Draw:
		s.open[toDraw] = e.Gen
	case machine.Enter:
		s.past[e.To.String()]++
	case machine.Tell:
		s.told = e.N
		switch in := e.In.(type) {
		case machine.Lost:
			s.open[toPart], s.idle = in.Gen, in.Passive
		case machine.Verdict:
			s.verdicts = in.Gen
		case machine.Closing:
			s.past["close"]++
		case machine.Rest:
			s.open[toRest] = in.Gen
		}
	case machine.Climb:
		s.link.Stage, s.link.Why = e.Stage, e.Why
	case machine.Abort:
		s.past["abort"]++
	case machine.StopActors:
		s.past["stop"]++
	case machine.Finish:
		s.past["finish"]++
	}
}

// TestLives: whatever happens to a session in whatever order, the laws hold, it ends, and
// a life that is restored from JSON goes on alike.
func TestLives(t *testing.T) {
	t.Parallel()
	all, most := make(map[string]int), 0
	for seed := range seeds(t, 300) {
		s := &stage{
			Rand: rand.New(rand.NewPCG(seed, 2)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), cfg: lives, calm: seed%3 > 0,
			open: make(map[question]int), past: make(map[string]int),
		}
		s.cfg.Recovery.Asks, s.cfg.Recovery.Stored, s.cfg.Recovery.Reads = seed%2 == 0, seed%4 < 2, seed%3 > 0
		s.cfg.PassivateAfter, s.cfg.Admission = time.Duration(seed%5)*time.Second, seed%7 < 4
		s.live(t, seed)
		most = max(most, s.past["launch"]+s.past["begin anew"])
		for what, n := range s.past {
			all[what] += n
		}
	}
	for _, what := range []string{
		"ready", "running", "awaiting_host", "awaiting_consumer", "recovering", "passivated", "closed", "failed", "begin anew", "wake", "start over",
	} {
		assert.Positive(t, all[what], "no life was ever so: %s", what)
	}
	assert.Greater(t, most, 3)
}

// live plays a session to its end.
func (s *stage) live(t *testing.T, seed uint64) {
	t.Helper()
	a, b := machine.NewLife(s.cfg), machine.NewLife(s.cfg)
	var in machine.LifeInput = machine.Began{}
	for step := 0; s.past["finish"] == 0; step++ {
		require.Less(t, step, 10_000, "seed %d: it never ends: %+v", seed, a.Snapshot())
		s.now = s.now.Add(time.Duration(s.IntN(5)) * 400 * time.Millisecond)
		if s.rarely(5) {
			data, err := json.Marshal(b.Snapshot())
			require.NoError(t, err)
			var state machine.LifeState
			require.NoError(t, json.Unmarshal(data, &state))
			b = machine.RestoreLife(state, s.cfg)
		}
		x, y := a.Step(s.now, in, nil), b.Step(s.now, in, nil)
		require.Equal(t, texts(x), texts(y), "seed %d step %d: %#v", seed, step, in)
		for _, e := range x {
			s.note(t, e)
			if tick, ok := e.(machine.SetTick); ok && in == (machine.Tick{}) {
				require.True(t, tick.At.After(s.now), "seed %d step %d: a timer for what is due and cannot be done", seed, step)
			}
		}
		still := machine.RestoreLife(a.Snapshot(), s.cfg)
		require.Empty(t, texts(still.Step(s.now, machine.Changed{Summary: a.Snapshot().Routing}, nil)),
			"seed %d step %d: what follows of what is known was done at once: %#v", seed, step, in)
		if step > 200 && !s.calm || step > 1000 {
			in = s.towardsTheEnd()
		} else {
			in = s.input()
		}
	}
	require.Empty(t, a.Step(s.now, machine.CloseAsked{}, nil), "it is over")
}
