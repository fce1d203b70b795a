package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/fleet/journal"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// round ends as many attempts well as may run.
func (p *pacer) round(now time.Time) {
	for range p.limit {
		p.well(now, p.epoch, true)
	}
}

func limitsOf(all []PaceChange) (limits []int) {
	for _, c := range all {
		limits = append(limits, c.To)
	}
	return limits
}

func TestAPaceDoublesUntilTheFirstOverload(t *testing.T) {
	t.Parallel()
	p, now := newPacer(Pace{Ceiling: 40}), noon
	for range 3 {
		p.round(now)
	}
	old := p.epoch
	for range 5 { // attempts of one overload, and their retries
		p.pressed(now, old, overloaded, 0)
	}
	p.round(now)
	p.pressed(now.Add(episode-1), old, overloaded, 0)
	p.pressed(now.Add(episode), old, overloaded, 0) // a long attempt
	assert.Equal(t, []int{4, 8, 16, 8, 9, 4}, limitsOf(p.changes))
	for range 50 {
		p.round(now)
	}
	assert.Equal(t, 40, p.limit)
	for range 10 {
		p.pressed(now, p.epoch, overloaded, 0)
	}
	assert.Equal(t, 1, p.limit)
}

func TestWhatHoldsAPace(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(p *pacer){
		"5xx":                           func(p *pacer) { p.pressed(noon, p.epoch, failing, 0) },
		"a starved machine":             func(p *pacer) { p.starved = true },
		"a start before the last cut":   func(p *pacer) { p.epoch++; p.well(noon, p.epoch-1, true); p.epoch-- },
		"fewer attempts than there may": func(p *pacer) { p.well(noon, p.epoch, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPacer(Pace{Start: 3})
			p.well(noon, 0, true)
			p.well(noon, 0, true)
			hold(p)
			if name != "a starved machine" {
				require.Equal(t, 3, p.limit)
				return
			}
			p.well(noon, 0, true)
			assert.Equal(t, 3, p.limit)
			p.starved = false
			p.well(noon, 0, true)
			assert.Equal(t, 6, p.limit)
		})
	}
	p := newPacer(Pace{Start: 3})
	p.well(noon, 0, true)
	p.pressed(noon, 0, failing, 0)
	p.well(noon, 0, true)
	p.well(noon, 0, true)
	assert.Equal(t, 3, p.limit, "the round begins anew")
	p.well(noon, 0, true)
	assert.Equal(t, 6, p.limit)
}

func TestAPaceByHand(t *testing.T) {
	t.Parallel()
	p := newPacer(Pace{Floor: 2, Start: 2, Ceiling: 8})
	p.fix(noon, 12)
	assert.Equal(t, 12, p.limit)
	p.fix(noon, 0)
	assert.Equal(t, 0, p.limit, "a pause")
	p.well(noon, p.epoch, true)
	p.pressed(noon, p.epoch, overloaded, 0)
	assert.Equal(t, 0, p.limit, "nothing undoes it")
	assert.Equal(t, []string{"2 -> 12: set by hand", "12 -> 0: set by hand"}, []string{p.changes[0].String(), p.changes[1].String()})
}

// Whatever happens, a pace stays within its bounds, and its history says how it came there.
func TestAPaceKeepsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		floor := rapid.IntRange(1, 4).Draw(t, "floor")
		p, now := newPacer(Pace{Floor: floor, Ceiling: floor + rapid.IntRange(4, 20).Draw(t, "more")}), noon
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			epoch := max(p.epoch-rapid.IntRange(0, 1).Draw(t, "old"), 0)
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				p.pressed(now, epoch, overloaded, 0)
			} else {
				p.well(now, epoch, true)
			}
			require.GreaterOrEqual(t, p.limit, p.Floor)
			require.LessOrEqual(t, p.limit, p.Ceiling)
		}
		at := 2
		if floor > 2 {
			at = floor
		}
		for _, c := range p.changes {
			require.Equal(t, at, c.From)
			at = c.To
		}
		require.Equal(t, p.limit, at)
	})
}

func TestTroubleOf(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]trouble{429: overloaded, 529: overloaded, 500: failing, 503: failing, 0: failing, 401: 0, 404: 0, 200: 0} {
		assert.Equal(t, want, troubleOf(status), status)
	}
}

func TestAStarvedMachine(t *testing.T) {
	t.Parallel()
	g := gauge{due: noon}
	assert.False(t, g.sample(noon, 50, 7_000_000), "what was throttled before is not this job's")
	g.due = noon.Add(time.Second)
	assert.True(t, g.sample(g.due, 50, 7_300_000), "throttled for 0.3 s of 1")
	g.due = g.due.Add(time.Second)
	assert.False(t, g.sample(g.due.Add(starvedLag+1), 50, 7_300_000), "a timer was late: still")
	assert.Equal(t, time.Second+starvedLag+1, g.starved(g.due.Add(starvedLag+1)))
	g.due = g.due.Add(time.Second)
	assert.True(t, g.sample(g.due, 50, 7_300_000), "not any more")
	assert.Equal(t, 2*time.Second, g.starved(g.due.Add(time.Hour)))
	assert.True(t, g.sample(g.due, 95, 7_300_000), "somebody always waits")
}

// planOf is a plan of tasks without dependencies.
func planOf(r rules, n int) (*plan, []effect) {
	p := newPlan(r)
	in := added{last: true}
	for i := range n {
		in.specs = append(in.specs, spec{id: string(rune('a' + i)), order: i})
	}
	return p, p.step(noon, in, nil)
}

func launched(all []effect) (ids []string) {
	for _, e := range all {
		if l, ok := e.(launch); ok {
			ids = append(ids, l.id)
		}
	}
	return ids
}

func TestAPlanKeepsPace(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.pace = &Pace{}
	p, out := planOf(r, 20)
	require.Equal(t, []string{"a", "b"}, launched(out))
	require.Equal(t, []string{"c"}, launched(p.step(noon, ended{"a", outcome{status: Accepted}}, nil)))
	out = p.step(noon, ended{"b", outcome{status: Rejected, why: "no"}}, nil)
	require.Equal(t, []string{"d", "e", "f"}, launched(out), "the API does well, whatever the verifier says")
	require.Contains(t, out, effect(paced{PaceChange{noon, 2, 4, "a round went well"}}))
	out = p.step(noon, pressed{"c", overloaded, 30 * time.Second}, nil)
	require.Contains(t, out, effect(paced{PaceChange{noon, 4, 2, "the API is overloaded"}}))
	require.Contains(t, out, effect(setAlarm{noon.Add(30 * time.Second)}))
	require.Empty(t, launched(p.step(noon, pressed{"d", overloaded, 0}, nil)))
	require.Equal(t, 2, p.limit(), "the same overload")
	for _, id := range []string{"c", "d"} {
		require.Empty(t, launched(p.step(noon, ended{id, outcome{status: Accepted}}, nil)))
	}
	out = p.step(noon, ended{"e", outcome{status: Accepted}}, nil)
	require.Empty(t, launched(out), "the API has asked for 30 s")
	require.Equal(t, []string{"g"}, launched(p.step(noon.Add(30*time.Second), woken{}, nil)))
	require.Equal(t, 2, p.limit(), "they began before the overload")
	require.Equal(t, []string{"h", "i"}, launched(p.step(noon.Add(time.Minute), retuned{4}, nil)))
}

func TestAPlanParks(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.park = maxPark
	spent := func(wait time.Duration) outcome {
		return outcome{status: UsageLimit, stops: StopUsageLimit, why: "spent", after: wait, session: "s", space: "/work"}
	}
	p, _ := planOf(r, 6)
	out := p.step(noon, ended{"a", spent(5 * time.Hour)}, nil)
	require.Empty(t, launched(out))
	until := p.parked.until
	require.Contains(t, out, effect(parking{until, "spent"}))
	require.WithinRange(t, until, noon.Add(5*time.Hour), noon.Add(5*time.Hour+parkJitter))
	out = p.step(noon.Add(time.Minute), ended{"b", spent(5*time.Hour - time.Minute)}, nil)
	require.Empty(t, launched(out))
	require.Equal(t, until, p.parked.until, "the same wall")
	require.Empty(t, launched(p.step(noon.Add(time.Hour), ended{"c", outcome{status: Accepted}}, nil)))

	out = p.step(until, woken{}, nil)
	require.Len(t, launched(out), 1, "one finds out for all")
	probe := launched(out)[0]
	out = p.step(until, ended{probe, spent(time.Hour)}, nil)
	require.Empty(t, launched(out))
	require.WithinRange(t, p.parked.until, until.Add(time.Hour), until.Add(time.Hour+parkJitter))

	again := p.parked.until
	out = p.step(again, woken{}, nil)
	require.Len(t, launched(out), 1)
	probe = launched(out)[0]
	require.Empty(t, launched(p.step(again, worked{"nobody"}, nil)))
	out = p.step(again, ended{probe, outcome{status: Crashed, retry: true, why: "exit"}}, nil)
	require.Len(t, launched(out), 1, "the next one finds out")
	out = p.step(again, worked{launched(out)[0]}, nil)
	require.Len(t, launched(out), 2, "all go on")
	require.Contains(t, out, effect(unparked{}))
	require.Zero(t, p.parked)

	for name, wait := range map[string]time.Duration{"no word of the reset": 0, "too long": maxPark + 1} {
		p, _ := planOf(r, 6)
		p.step(noon, ended{"a", spent(wait)}, nil)
		require.NotNil(t, p.stopped, name)
		require.Equal(t, StopUsageLimit, p.stopped.Reason)
	}
}

func TestCompactionKeepsTheWait(t *testing.T) {
	t.Parallel()
	all := []journal.Record{{Kind: kindHost}, {Kind: kindAdmitted, Task: "a"}, {Kind: kindParked}, {Kind: kindTurn, Task: "a"}, {Kind: kindResult, Task: "a"}}
	var kinds []string
	for _, r := range compact(all) {
		kinds = append(kinds, r.Kind)
	}
	assert.Equal(t, []string{kindHost, kindAdmitted, kindParked, kindResult}, kinds)
}
