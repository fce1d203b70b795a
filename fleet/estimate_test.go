package fleet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

func ran(usd float64, wall time.Duration) fleet.TaskResult {
	return fleet.TaskResult{Status: fleet.Accepted, Attempts: make([]fleet.Attempt, 1), Usage: fleet.Usage{USD: usd, Wall: fleet.Duration(wall)}}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	e := fleet.NewEstimate(100, []fleet.TaskResult{ran(1, time.Minute), ran(3, 3*time.Minute), {Status: fleet.Skipped}})
	assert.Equal(t, 2, e.Samples, "what never ran is no sample")
	assert.Equal(t, 2, e.Accepted)
	assert.InDelta(t, 198, e.USD.Total, 1e-9, "97 tasks of $2 and the $4 of the samples; the skipped task costs nothing")
	// mean 2, deviation sqrt(2), 97 others: 6.314 * sqrt(2 * 97 * (1 + 97/2))
	half := 6.314 * math.Sqrt(2*97*(1+97/2.0))
	assert.InDelta(t, 198+half, e.USD.High, 1e-6)
	assert.InDelta(t, 4, e.USD.Low, 1e-9, "not below what is spent already")
	assert.Equal(t, []float64{1, 3}, []float64{e.USD.Least, e.USD.Most})
	likely, _, _ := e.Elapsed(4)
	assert.InDelta(t, 198*60/4.0, likely.Seconds(), 1e-3)
	likely, _, _ = e.Elapsed(1000)
	assert.Equal(t, 3*time.Minute, likely, "never shorter than the longest task")

	one := fleet.NewEstimate(10, []fleet.TaskResult{ran(2, time.Second)})
	assert.Equal(t, fleet.Projection{Total: 20, Low: 20, High: 20, Least: 2, Most: 2}, one.USD)
	all := fleet.NewEstimate(2, []fleet.TaskResult{ran(1, 0), ran(5, 0)})
	assert.Equal(t, fleet.Projection{Total: 6, Low: 6, High: 6, Least: 1, Most: 5}, all.USD, "all of them are known")
	assert.Equal(t, fleet.Estimate{Tasks: 10}, fleet.NewEstimate(10, nil))
}

// The interval has the total in about nine of ten cases, also with few samples.
func TestEstimateInterval(t *testing.T) {
	t.Parallel()
	for _, samples := range []int{3, 10, 40} {
		t.Run(fmt.Sprint(samples), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, uint64(samples)))
			const size = 200
			rounds, near := 4000, 0.02
			if testing.Short() {
				rounds, near = 800, 0.04
			}
			inside := 0
			for range rounds {
				all := make([]fleet.TaskResult, size)
				total := 0.0
				for i := range all {
					usd := 5 + rnd.NormFloat64()
					total += usd
					all[i] = ran(usd, 0)
				}
				if p := fleet.NewEstimate(size, all[:samples]).USD; p.Low <= total && total <= p.High {
					inside++
				}
			}
			assert.InDelta(t, 0.9, float64(inside)/float64(rounds), near)
		})
	}
}

// A sample runs some tasks; the others, and the samples' results, are there for a resume.
func TestSample(t *testing.T) {
	t.Parallel()
	out, all := t.TempDir(), tasks(10)
	all[5].After = []string{"t0"}
	job := fleet.Job{Tasks: all, Options: backend(), Out: out, Sample: 3}
	ids := func(results map[string]fleet.TaskResult) []string {
		var ids []string
		for id, r := range results {
			assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	stopped := func(err error, left int) {
		t.Helper()
		var s *fleet.StoppedError
		require.ErrorAs(t, err, &s)
		assert.Equal(t, fleet.StopSample, s.Reason)
		assert.Equal(t, left, s.Left)
	}

	results, err := collect(t, job)
	stopped(err, 7)
	assert.Equal(t, []string{"t1", "t4", "t8"}, ids(results), "spread evenly, without a task that comes after another")
	assert.Contains(t, read(t, out, fleet.SummaryFile), `"left": 7`)

	_, err = collect(t, job)
	require.ErrorIs(t, err, journal.ErrExists)
	job.Resume, job.Sample = true, 5
	results, err = collect(t, job)
	stopped(err, 5)
	assert.Len(t, results, 5, "those of the first sample count")
	earlier := 0
	for _, r := range results {
		assert.Len(t, r.Attempts, 1)
		if r.Earlier {
			earlier++
		}
	}
	assert.Equal(t, 3, earlier)

	other := job
	other.Tasks = slices.Clone(all[:9])
	_, err = collect(t, other)
	require.ErrorIs(t, err, fleet.ErrOtherTasks, "a sample is one of the whole set")

	job.Sample = 0
	results, err = collect(t, job)
	require.NoError(t, err)
	require.Len(t, ids(results), 10)
	for _, r := range results {
		assert.Len(t, r.Attempts, 1, "no task ran twice")
	}
	job.Sample = 2
	results, err = collect(t, job)
	require.NoError(t, err, "there is nothing left")
	assert.Len(t, results, 10)
}

func TestSampleMistakes(t *testing.T) {
	t.Parallel()
	job := fleet.Job{Tasks: tasks(1), Options: backend(), Sample: -1}
	require.ErrorContains(t, job.Validate(), "Sample: is negative")
	job.Tasks, job.Sample = nil, 1
	job.Out = filepath.Join(t.TempDir(), "out")
	for _, err := range fleet.Stream(t.Context(), job, func(func(fleet.Task, error) bool) {}) {
		require.ErrorContains(t, err, "no use with Stream")
	}
	_, err := os.Stat(job.Out)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is made")
}
