package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestTroubleOf(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]trouble{429: overloaded, 529: overloaded, 500: failing, 503: failing, 0: failing, 401: 0, 404: 0, 200: 0} {
		assert.Equal(t, want, troubleOf(status, ""), status)
	}
	for _, word := range []string{"overloaded", "overloaded_error", "rate_limit", "rate_limit_error"} {
		for status, want := range map[int]trouble{0: overloaded, 200: overloaded, 500: failing, 401: 0} {
			assert.Equal(t, want, troubleOf(status, word), "%d %s", status, word)
		}
	}
	assert.Equal(t, failing, troubleOf(0, "server_error"))
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
func planOf(r rules, n int) (*machine, []effect) {
	p := newMachine(r)
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
	require.Contains(t, out, effect(paced{runtime.AccountChange{At: noon, From: 2, To: 4, Why: "a round went well"}}))
	out = p.step(noon, pressed{"c", overloaded, 30 * time.Second}, nil)
	require.Contains(t, out, effect(paced{runtime.AccountChange{At: noon, From: 4, To: 2, Why: "the API is overloaded"}}))
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
	until := p.parked
	require.Contains(t, out, effect(parking{until, "spent"}))
	require.WithinRange(t, until, noon.Add(5*time.Hour), noon.Add(5*time.Hour+parkJitter))
	out = p.step(noon.Add(time.Minute), ended{"b", spent(5*time.Hour - time.Minute)}, nil)
	require.Empty(t, launched(out))
	require.Equal(t, until, p.parked, "the same wall")
	require.Empty(t, launched(p.step(noon.Add(time.Hour), ended{"c", outcome{status: Accepted}}, nil)))

	out = p.step(until, woken{}, nil)
	require.Len(t, launched(out), 1, "one finds out for all")
	probe := launched(out)[0]
	out = p.step(until, ended{probe, spent(time.Hour)}, nil)
	require.Empty(t, launched(out))
	require.WithinRange(t, p.parked, until.Add(time.Hour), until.Add(time.Hour+parkJitter))

	again := p.parked
	out = p.step(again, woken{}, nil)
	require.Len(t, launched(out), 1)
	probe = launched(out)[0]
	require.Empty(t, launched(p.step(again, worked{"nobody", again}, nil)))
	out = p.step(again, ended{probe, outcome{status: Crashed, retry: true, why: "exit"}}, nil)
	require.Len(t, launched(out), 1, "the next one finds out")
	out = p.step(again, worked{launched(out)[0], again}, nil)
	require.Len(t, launched(out), 2, "all go on")
	require.Contains(t, out, effect(unparked{}))
	require.True(t, p.parked.IsZero())

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

func TestTheDefaultAccount(t *testing.T) {
	t.Parallel()
	of := func(key, url string, b sdk.Backend) string {
		return accountOf(&sdk.Options{Backend: b, Env: map[string]string{"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": url, "HOME": "/home/" + key}})
	}
	one := of("k1", "", sdk.Claude(sdk.ClaudeConfig{}))
	assert.Regexp(t, `^claude-[0-9a-f]{8}$`, one)
	assert.Equal(t, one, of("k1", "", sdk.Claude(sdk.ClaudeConfig{Path: "/elsewhere"})))
	assert.NotEqual(t, one, of("k2", "", sdk.Claude(sdk.ClaudeConfig{})))
	assert.NotEqual(t, one, of("k1", "https://example.com", sdk.Claude(sdk.ClaudeConfig{})))
	assert.Regexp(t, `^qoder-`, of("k1", "", sdk.Qoder(sdk.QoderConfig{})))
	assert.NotEqual(t, of("k1", "", sdk.Qoder(sdk.QoderConfig{})), of("k2", "", sdk.Qoder(sdk.QoderConfig{})), "another home has another login")
	assert.Regexp(t, `^agent-`, of("k1", "", nil))
}

// The files are Linux's; where there are none nothing is known.
func TestFiguresOfTheMachine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"some avg10=92.31 avg60=13.28 avg300=5.60 total=1842344\nfull avg10=95.00 avg60=0.00 avg300=0.00 total=0\n": 92.31,
		"": 0, "some avg10=much avg60=1": 0,
	} {
		assert.InDelta(t, want, pressureIn(text), 1e-9, "%q", text)
	}
	for text, want := range map[string]int64{
		"usage_usec 97\nuser_usec 80\nsystem_usec 17\nnr_periods 9\nnr_throttled 4\nthrottled_usec 1500000\nnr_bursts 0\n": 1_500_000,
		"usage_usec 97\n": 0, "": 0, "throttled_usec many\n": 0,
	} {
		assert.Equal(t, want, throttledIn(text), "%q", text)
	}
}
