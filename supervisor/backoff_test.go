package supervisor_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/supervisor"
)

// highest is a source that always draws the largest number, lowest the least.
type highest struct{}

func (highest) Uint64() uint64       { return math.MaxUint64 }
func (highest) Int64N(n int64) int64 { return n - 1 }

type lowest struct{}

func (lowest) Uint64() uint64     { return 0 }
func (lowest) Int64N(int64) int64 { return 0 }

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		backoff supervisor.Backoff
		want    []time.Duration // for attempts 0, 1, 2, …
	}{
		"default":        {supervisor.Backoff{}, []time.Duration{0, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms, 30 * s, 30 * s}},
		"capped":         {supervisor.Backoff{Initial: s, Max: 5 * s, Factor: 3}, []time.Duration{0, s, 3 * s, 5 * s, 5 * s}},
		"constant":       {supervisor.Backoff{Initial: s, Factor: 1}, []time.Duration{0, s, s, s}},
		"immediate":      {supervisor.Backoff{Initial: s, Max: 3 * s, Immediate: true}, []time.Duration{0, 0, s, 2 * s, 3 * s}},
		"none":           {supervisor.Backoff{Initial: supervisor.NoBackoff}, []time.Duration{0, 0, 0}},
		"long beginning": {supervisor.Backoff{Initial: time.Minute}, []time.Duration{0, time.Minute, time.Minute}},
		"longest":        {supervisor.Backoff{Initial: math.MaxInt64, Max: math.MaxInt64}, []time.Duration{0, math.MaxInt64 - 1}},
	} {
		for attempt, want := range c.want {
			assert.Equal(t, want, c.backoff.Delay(attempt, highest{}), "%s, attempt %d", name, attempt)
			assert.Zero(t, c.backoff.Delay(attempt, lowest{}), "%s: jitter is full", name)
		}
		assert.Equal(t, c.want[len(c.want)-1], c.backoff.Delay(math.MaxInt, highest{}), "%s", name)
		assert.Zero(t, c.backoff.Delay(math.MinInt, highest{}), "%s", name)
	}
}

func TestBackoffStaysWithinItsCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := supervisor.Backoff{
			Initial:    time.Duration(rapid.Int64Range(-1, math.MaxInt64).Draw(t, "initial")),
			Max:        time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
			Factor:     rapid.Float64Range(1, math.MaxFloat64).Draw(t, "factor"),
			Immediate:  rapid.Bool().Draw(t, "immediate"),
			ResetAfter: time.Second,
		}
		attempt := rapid.Int().Draw(t, "attempt")
		seed := rapid.Uint64().Draw(t, "seed")
		d := b.Delay(attempt, seeded(seed))
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, b.Max)
		require.Equal(t, d, b.Delay(attempt, seeded(seed)))
		if attempt < math.MaxInt {
			require.LessOrEqual(t, b.Delay(attempt, highest{}), b.Delay(attempt+1, highest{}), "bounds never shrink")
		}
	})
}

func TestBackoffStateResetsAfterAHealthyPeriod(t *testing.T) {
	t.Parallel()
	const s = time.Second
	state := supervisor.BackoffState{Backoff: supervisor.Backoff{Initial: s, ResetAfter: 10 * s}}
	now := epoch
	next := func() time.Duration { return state.Next(highest{}) }
	assert.Equal(t, s, next())
	assert.Equal(t, 2*s, next())

	state.Up(now)
	state.Down(now.Add(10*s - 1))
	assert.Equal(t, 4*s, next(), "not healthy for long enough")
	state.Down(now.Add(time.Hour))
	assert.Equal(t, 8*s, next(), "it was down all the time")

	state.Up(now)
	state.Up(now.Add(5 * s))
	state.Down(now.Add(14 * s))
	assert.Equal(t, 16*s, next(), "up anew begins the period anew")

	state.Up(now)
	state.Down(now.Add(10 * s))
	assert.Zero(t, state.Attempts())
	assert.Equal(t, s, next())
	assert.Equal(t, 1, state.Attempts())
	state.Reset()
	assert.Equal(t, s, next())
}
