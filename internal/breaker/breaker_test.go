package breaker_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/session"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig steps a breaker, and keeps what it asked for.
type rig struct {
	*breaker.Breaker
	now     time.Time
	granted []uint64
	held    []uint64
	refused map[uint64]*session.BreakerOpenError
	events  []string
	timer   time.Time
}

func newRig(cfg breaker.Config) *rig {
	cfg.Kind, cfg.Name = session.BreakerAgent, "claude"
	return &rig{
		Breaker: breaker.New(cfg, rand.New(rand.NewPCG(1, 2))), now: start,
		refused: make(map[uint64]*session.BreakerOpenError),
	}
}

func (r *rig) step(in breaker.Input) {
	for _, e := range r.Step(r.now, in, nil) {
		switch e := e.(type) {
		case breaker.Grant:
			r.granted = append(r.granted, e.ID)
		case breaker.Hold:
			r.held = append(r.held, e.ID)
		case breaker.Refuse:
			r.refused[e.ID] = e.Err
		case breaker.SetTimer:
			r.timer = e.At
		case breaker.Emit:
			r.events = append(r.events, e.Event.String())
		}
	}
}

// ask asks for attempts that repeat one, or do not.
func (r *rig) ask(again bool, ids ...uint64) {
	for _, id := range ids {
		r.step(breaker.Ask{ID: id, Again: again, Patient: again})
	}
}

func (r *rig) fail(ids ...uint64) {
	for _, id := range ids {
		r.step(breaker.Done{ID: id, Failure: "exit code 1"})
	}
}

func (r *rig) succeed(ids ...uint64) {
	for _, id := range ids {
		r.step(breaker.Done{ID: id, Succeeded: "it started"})
	}
}

// pass lets the timer fire.
func (r *rig) pass(d time.Duration) {
	end := r.now.Add(d)
	for !r.timer.IsZero() && !r.timer.After(end) {
		r.now, r.timer = r.timer, time.Time{}
		r.step(breaker.Tick{})
	}
	r.now = end
}

func some() breaker.Config {
	return breaker.Config{Failures: 3, CoolDown: time.Second, MaxCoolDown: 8 * time.Second, Rate: 4}
}

func TestFailuresInARowOpenIt(t *testing.T) {
	t.Parallel()
	r := newRig(some())
	r.ask(false, 1, 2, 3, 4)
	require.Equal(t, []uint64{1, 2, 3, 4}, r.granted)
	r.fail(1, 2)
	r.succeed(3)
	require.Equal(t, session.BreakerClosed, r.Phase, "the success was between")
	r.pass(time.Second)
	r.ask(false, 5, 6, 7)
	r.fail(5, 6)
	require.Equal(t, session.BreakerClosed, r.Phase)
	r.fail(7)
	require.Equal(t, session.BreakerOpen, r.Phase)
	r.ask(false, 8)
	require.Contains(t, r.refused, uint64(8))
	err := r.refused[8]
	assert.Equal(t, r.NextProbe.Sub(r.now), err.RetryAfter)
	assert.Contains(t, err.Error(), "the breaker of agent claude is open since 2026-01-01T00:00:01Z (failures in a row: 3; next probe in ")
	assert.Contains(t, err.Error(), "); last failure: exit code 1")
	assert.GreaterOrEqual(t, err.RetryAfter, 500*time.Millisecond)
	assert.LessOrEqual(t, err.RetryAfter, time.Second)
	require.Len(t, r.events, 1)
}

func TestOneProbeDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome func(r *rig)
		phase   session.BreakerState
		probes  []uint64 // that follow at once
	}{
		"it fails":               {func(r *rig) { r.fail(10) }, session.BreakerOpen, nil},
		"it succeeds":            {func(r *rig) { r.succeed(10) }, session.BreakerClosed, []uint64{11, 12}},
		"it comes to no outcome": {func(r *rig) { r.step(breaker.Drop{ID: 10}) }, session.BreakerHalfOpen, []uint64{11}},
		"an earlier one fails":   {func(r *rig) { r.fail(4) }, session.BreakerHalfOpen, nil},
		"an earlier one succeeds, so nothing is wrong any more": {func(r *rig) { r.succeed(4) }, session.BreakerClosed, []uint64{11, 12}},
		"one that nobody asked for fails":                       {func(r *rig) { r.fail(0) }, session.BreakerOpen, nil},
		"nothing is heard of it for long":                       {func(r *rig) { r.pass(8 * time.Second) }, session.BreakerHalfOpen, []uint64{11}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(some())
			r.ask(false, 1, 2, 3, 4)
			r.fail(1, 2, 3)
			r.granted = nil
			r.ask(true, 10, 11, 12)
			require.Equal(t, []uint64{10, 11, 12}, r.held)
			require.Empty(t, r.granted)
			r.pass(time.Second)
			require.Equal(t, []uint64{10}, r.granted, "one probe")
			require.Equal(t, session.BreakerHalfOpen, r.Phase)
			r.ask(false, 20)
			require.Contains(t, r.refused, uint64(20))
			require.Zero(t, r.refused[20].RetryAfter)
			r.granted = nil
			c.outcome(r)
			assert.Equal(t, c.phase, r.Phase)
			assert.Equal(t, c.probes, r.granted)
		})
	}
}

func TestTheCoolDownGrows(t *testing.T) {
	t.Parallel()
	r := newRig(some())
	r.ask(false, 1, 2, 3)
	r.fail(1, 2, 3)
	for i, seconds := range []int{1, 2, 4, 8, 8, 8} {
		limit := time.Duration(seconds) * time.Second
		cool := r.NextProbe.Sub(r.now)
		assert.GreaterOrEqual(t, cool, limit/2, i)
		assert.LessOrEqual(t, cool, limit, i)
		r.pass(cool)
		r.ask(true, uint64(10+i))
		require.Equal(t, uint64(10+i), r.granted[len(r.granted)-1])
		r.fail(uint64(10 + i))
	}
	r.pass(8 * time.Second)
	r.ask(false, 50)
	r.succeed(50)
	require.Equal(t, session.BreakerClosed, r.Phase)
	r.pass(time.Second)
	r.ask(false, 51, 52, 53)
	r.fail(51, 52, 53)
	assert.LessOrEqual(t, r.NextProbe.Sub(r.now), time.Second, "it begins anew")
}

func TestTrustLiftsTheRateOfFirstAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(some())
	r.ask(false, 1, 2, 3, 4, 5, 6)
	require.Equal(t, []uint64{1, 2, 3, 4}, r.granted, "nothing is known of it")
	r.ask(true, 7)
	r.succeed(1, 2)
	require.Len(t, r.granted, 4)
	r.succeed(3)
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6}, r.granted, "it is trusted, and a repetition is not")
	r.ask(false, 8, 9)
	require.Equal(t, []uint64{8, 9}, r.granted[6:])
	r.pass(time.Second)
	require.Equal(t, []uint64{7}, r.granted[8:])
	r.fail(8)
	r.pass(time.Second)
	r.granted = nil
	r.ask(false, 30, 31, 32, 33, 34)
	require.Equal(t, []uint64{30, 31, 32, 33}, r.granted, "one failure, and it is not trusted")
}

func TestWhoWaitsIsRefusedWhenItOpens(t *testing.T) {
	t.Parallel()
	for _, hold := range []bool{false, true} {
		cfg := some()
		cfg.Hold = hold
		r := newRig(cfg)
		r.ask(false, 1, 2, 3, 4, 5)
		r.ask(true, 6)
		r.fail(1, 2, 3)
		require.Equal(t, session.BreakerOpen, r.Phase)
		_, refused := r.refused[5]
		assert.Equal(t, !hold, refused)
		assert.NotContains(t, r.refused, uint64(6))
		why, since, waits := r.Why(r.now, 6)
		require.True(t, waits)
		assert.Equal(t, start, since)
		assert.Contains(t, why, "the breaker of agent claude is open since")
		r.pass(time.Minute)
		assert.Equal(t, hold, slices.Contains(r.granted, 5))
		assert.Contains(t, r.granted, uint64(6))
		_, _, waits = r.Why(r.now, 6)
		assert.False(t, waits)
	}
}

func TestABreakerThatIsOff(t *testing.T) {
	t.Parallel()
	r := newRig(breaker.Config{})
	for id := uint64(1); id < 100; id++ {
		r.ask(id%2 == 0, id)
		r.fail(id)
	}
	assert.Len(t, r.granted, 99)
	assert.Empty(t, r.events)
}

// TestAnyOrderOfThings draws what may happen, and watches what always holds.
func TestAnyOrderOfThings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := breaker.Config{
			Failures: rapid.IntRange(0, 4).Draw(t, "failures"), CoolDown: time.Second, MaxCoolDown: 5 * time.Second,
			Rate: rapid.IntRange(0, 5).Draw(t, "rate"), Hold: rapid.Bool().Draw(t, "hold"),
		}
		r := newRig(cfg)
		var next uint64
		again, patient := make(map[uint64]bool), make(map[uint64]bool)
		var asked, flying []uint64
		grants := make(map[uint64]time.Time)
		var limited []time.Time // grants that keep to the rate
		see := func() {
			for _, id := range r.granted {
				require.NotContains(t, grants, id, "granted twice")
				require.NotContains(t, r.refused, id, "granted and refused")
				grants[id] = r.now
				flying = append(flying, id)
				if again[id] {
					limited = append(limited, r.now)
				}
			}
			r.granted = nil
			for id, err := range r.refused {
				require.False(t, patient[id], "it waits")
				require.False(t, cfg.Hold)
				require.Error(t, err)
			}
			asked = slices.DeleteFunc(asked, func(id uint64) bool {
				_, refused := r.refused[id]
				_, granted := grants[id]
				return refused || granted
			})
			held := len(r.Held)
			require.Len(t, asked, held, "what is neither granted nor refused is held")
			if held > 0 {
				require.False(t, r.timer.IsZero() && !(r.Phase == session.BreakerHalfOpen && r.Probe == 0), "somebody waits without a timer")
			}
			if cfg.Rate > 0 {
				for i := cfg.Rate; i < len(limited); i++ {
					require.GreaterOrEqual(t, limited[i].Sub(limited[i-cfg.Rate]), time.Second, "more than the rate")
				}
			}
			if cfg.Failures == 0 {
				require.Equal(t, session.BreakerClosed, r.Phase)
			}
		}
		pick := func(from *[]uint64) uint64 {
			i := rapid.IntRange(0, len(*from)-1).Draw(t, "which")
			id := (*from)[i]
			*from = slices.Delete(*from, i, i+1)
			return id
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				next++
				again[next] = rapid.Bool().Draw(t, "again")
				patient[next] = rapid.Bool().Draw(t, "patient")
				asked = append(asked, next)
				r.step(breaker.Ask{ID: next, Again: again[next], Patient: patient[next]})
			case 2:
				if len(flying) > 0 {
					r.fail(pick(&flying))
				}
			case 3:
				if len(flying) > 0 {
					r.succeed(pick(&flying))
				}
			case 4:
				if len(flying) > 0 {
					r.step(breaker.Drop{ID: pick(&flying)})
				}
			case 5:
				if len(asked) > 0 {
					r.step(breaker.Drop{ID: pick(&asked)})
				}
			case 6:
				step := time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
				end := r.now.Add(step)
				for !r.timer.IsZero() && !r.timer.After(end) {
					r.now, r.timer = r.timer, time.Time{}
					r.step(breaker.Tick{})
					see()
				}
				r.now = end
			}
			see()
		}
		// Once everything succeeds, nobody waits for long.
		for range 10_000 {
			for len(flying) > 0 {
				r.succeed(pick(&flying))
				see()
			}
			if len(r.Held) == 0 {
				return
			}
			require.False(t, r.timer.IsZero(), "somebody waits for nothing")
			r.now, r.timer = r.timer, time.Time{}
			r.step(breaker.Tick{})
			see()
		}
		t.Fatal("it does not end")
	})
}
