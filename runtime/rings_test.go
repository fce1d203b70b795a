package runtime_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

// measured are the values without those of intervals in which nothing was measured.
func measured(all runtime.HistoryValues) (some []float64) {
	for _, v := range all {
		if !math.IsNaN(v) {
			some = append(some, v)
		}
	}
	return some
}

func total(all runtime.HistoryValues) (sum float64) {
	for _, v := range measured(all) {
		sum += v
	}
	return sum
}

// TestHistory measures a turn that costs, a wait for a person, and a restart.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	script := turns(
		scripted.Steps{scripted.Delay(time.Minute), scripted.Text("a"), &scripted.Result{Cost: 0.5}},
		scripted.Steps{gate()}, scripted.Steps{scripted.Text("b"), &scripted.Exit{Code: 9}},
	)
	script.Resumed = []scripted.Turn{{Steps: scripted.Steps{scripted.Text("c")}}}
	spec := w.spec(script)
	spec.Options.MaxRestarts = 1
	spec.Options.PermissionTimeout = time.Hour
	answer := make(chan struct{})
	spec.Options.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		if err := w.Executor().Await(ctx, answer); err != nil {
			return protocol.PermissionResult{}, err
		}
		return allow(ctx, r)
	}
	none := w.History(15 * time.Minute)
	assert.Len(t, none.Series.Running, 90)
	assert.Empty(t, measured(none.Series.Running), "nothing was measured")
	w.KeepHistory()
	w.KeepHistory()
	s := w.open(spec)
	_, err := w.send(s, "1").Result(t.Context())
	require.NoError(t, err)
	w.Pass(time.Minute)
	h := w.History(15 * time.Minute)
	assert.Equal(t, int64(10_000), h.StepMS)
	assert.InDelta(t, 12, len(measured(h.Series.Running)), 1, "a sample each 10 s of two minutes")
	assert.InDelta(t, 6, total(h.Series.Running), 1, "a minute of work")
	assert.InDelta(t, 6, total(h.Series.Turns), 1e-9, "one turn in 10 s")
	assert.InDelta(t, 0.5*360, total(h.Series.USD), 1)
	assert.Positive(t, total(h.Series.Tokens))
	assert.Zero(t, total(h.Series.Gates))
	if rss := measured(h.Series.RSS); len(rss) > 0 {
		assert.Zero(t, rss[0], "an agent in memory has no process")
	}

	second := w.send(s, "2")
	w.Pass(5 * time.Minute)
	close(answer)
	_, err = second.Result(t.Context())
	require.NoError(t, err)
	_, err = w.send(s, "3").Result(t.Context())
	require.NoError(t, err)
	w.Pass(time.Minute)
	h = w.History(3 * time.Hour)
	assert.Len(t, h.Series.Gates, 180)
	assert.Equal(t, int64(60_000), h.StepMS)
	assert.InDelta(t, 5, total(h.Series.Gates), 1, "five minutes")
	assert.InDelta(t, 1, total(h.Series.Restarts), 1e-9)
	assert.InDelta(t, 3, total(h.Series.Turns), 0.5, "a minute's rates add up to the number")
	day := w.History(24 * time.Hour)
	assert.Len(t, day.Series.Gates, 144)
	assert.InDelta(t, 1, total(day.Series.Restarts), 1e-9)

	// Older values than those of the window go, and intervals without a sample are null.
	w.Pass(20 * time.Minute)
	h = w.History(15 * time.Minute)
	assert.Zero(t, total(h.Series.Restarts))
	assert.InDelta(t, 90, len(measured(h.Series.Running)), 1)
	raw, err := json.Marshal(w.History(24 * time.Hour))
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"running":[null,null`)
	var again runtime.History
	require.NoError(t, json.Unmarshal(raw, &again))
	assert.InDelta(t, total(day.Series.Restarts), total(again.Series.Restarts), 1e-9)
	assert.Len(t, again.Series.Running, 144)
}
