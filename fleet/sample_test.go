package fleet_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

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
	assert.Contains(t, read(t, out, "summary.json"), `"left": 7`)

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
