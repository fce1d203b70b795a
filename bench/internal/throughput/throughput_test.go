package throughput_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/throughput"
)

func TestMain(m *testing.M) {
	fast.Play()
	os.Exit(m.Run())
}

func TestJobsAreMeasured(t *testing.T) {
	t.Parallel()
	f, err := throughput.Jobs(t.Context(), throughput.Job{Tasks: 6, AtOnce: 3, Rounds: 3, Work: 5 * time.Millisecond})
	require.NoError(t, err)
	for _, all := range [][]float64{f.Bare, f.Plain, f.Kept} {
		require.Len(t, all, 3)
		for _, perSecond := range all {
			assert.Positive(t, perSecond)
			assert.Less(t, perSecond, 3/0.005, "no more than the work allows")
		}
	}
	require.NoError(t, f.Check(0, 0))
	require.NoError(t, f.Check(f.KeptOfBare, f.Keeping+1))
	require.ErrorContains(t, f.Check(f.KeptOfBare+0.1, 0), "tasks per second")
	f.Keeping = 0.5
	require.ErrorContains(t, f.Check(0, 0.02), "journal and events")
}

func TestACrowdIsMeasured(t *testing.T) {
	t.Parallel()
	f, err := throughput.Crowd(t.Context(), 20, 2*time.Second)
	require.NoError(t, err)
	assert.Equal(t, 40, f.Turns)
	assert.Positive(t, f.P50)
	assert.GreaterOrEqual(t, f.P99, f.P50)
	assert.GreaterOrEqual(t, f.Max, f.P99)
	_, err = throughput.Crowd(t.Context(), 1, time.Millisecond)
	require.ErrorContains(t, err, "no turn fits")
}
