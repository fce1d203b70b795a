package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// A program that submits a job runs none of its tasks and has all results. One that works has the
// results of its tasks, and keeps nothing of others.
func TestShares(t *testing.T) {
	t.Parallel()
	const size = 12
	all := tasks(size)
	all[10].After = []string{"t0", "t1"}
	all[10].Prompt = `sum of {{(index .Results "t0").Text}} and {{(index .Results "t1").Text}}`
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Minute})
	var starts [3]atomic.Int64
	var jobs []fleet.Job
	for i, share := range []fleet.Share{fleet.ShareSubmit, fleet.ShareWork, fleet.ShareWork} {
		jobs = append(jobs, fleet.Job{
			Tasks: all, Options: backend(), Out: t.TempDir(), Concurrency: 2, Queue: q, Share: share, Worker: fmt.Sprint("w", i),
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventStarted {
					starts[i].Add(1)
				}
			},
		})
	}
	seen := together(t, jobs...)
	require.NoError(t, seen[0].err)
	require.Len(t, seen[0].results, size)
	assert.Zero(t, starts[0].Load(), "the submitter runs nothing")
	assert.Len(t, lines(read(t, jobs[0].Out, "results.jsonl")), size)
	assert.Contains(t, seen[0].results["t10"].Text, "do 1", "the template has what other programs have said")
	total := 0
	for i, p := range seen[1:] {
		require.NoError(t, p.err)
		job := jobs[i+1]
		total += len(p.results)
		assert.EqualValues(t, len(p.results), starts[i+1].Load())
		assert.Len(t, lines(read(t, job.Out, "results.jsonl")), len(p.results))
		for id, r := range p.results {
			assert.Equal(t, job.Worker, r.Worker)
			assert.Equal(t, r.Text, seen[0].results[id].Text)
		}
		text := read(t, job.Out, journal.Name)
		for id, r := range seen[0].results {
			assert.Equal(t, r.Worker == job.Worker, strings.Contains(text, fmt.Sprintf("%q", id)), "%s of %s in the journal of %s", id, r.Worker, job.Worker)
		}
		job.Resume = true
		again, err := collect(t, fast(job))
		require.NoError(t, err, "a resume finds nothing to do")
		assert.Len(t, again, len(p.results))
		assert.EqualValues(t, len(p.results), starts[i+1].Load())
	}
	assert.Equal(t, size, total, "each result is one worker's")

	jobs[1].Share = "other"
	require.ErrorContains(t, jobs[1].Validate(), "Share")
	jobs[1].Share, jobs[1].Queue = fleet.ShareWork, nil
	require.ErrorContains(t, jobs[1].Validate(), "Queue")
}

// A queue that was lost is made anew: results of the journals are offered to it, and no program
// runs their tasks again.
func TestResultsAreOfferedToANewQueue(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 20_000) // in a file of the first program
	all := tasks(3)
	all[1].Prompt = long
	job := fleet.Job{Tasks: all, Options: backend(), Out: t.TempDir(), Queue: queue.NewMemory(queue.MemoryConfig{}), Worker: "one", FailOn: fleet.Threshold{Count: 1}}
	first, err := collect(t, fast(job))
	require.NoError(t, err)
	require.Len(t, first, 3)
	require.NotEmpty(t, first["t1"].TextFile)

	job.Queue, job.Resume = queue.NewMemory(queue.MemoryConfig{}), true
	_, err = collect(t, fast(job))
	require.NoError(t, err)
	other := fleet.Job{
		Tasks: all, Options: backend(), Out: t.TempDir(), Queue: job.Queue, Worker: "two",
		OnEvent: func(e fleet.Event) { assert.NotEqual(t, fleet.EventStarted, e.Kind, "%s runs again", e.Task) },
	}
	second, err := collect(t, fast(other))
	require.NoError(t, err)
	for id, r := range first {
		assert.Equal(t, r.Text, second[id].Text)
		assert.Equal(t, r.Fence, second[id].Fence)
		assert.Equal(t, "one", second[id].Worker)
		assert.Equal(t, r.Status, second[id].Status)
	}
	_, err = job.Queue.Lease(context.Background(), "t0", "w")
	require.ErrorIs(t, err, queue.ErrFinished)
}

// The hashes of the program that has submitted a job hold for programs that would make others.
func TestHashesOfTheSubmitter(t *testing.T) {
	t.Parallel()
	q := queue.NewMemory(queue.MemoryConfig{})
	before, later := tasks(2), tasks(2)
	later[1].Tags = []string{"of a later version"}
	hashes := map[string]string{}
	for _, task := range before {
		var err error
		hashes[task.ID], err = task.Hash()
		require.NoError(t, err)
	}
	job := fleet.Job{Tasks: before, Options: backend(), Out: t.TempDir(), Queue: q}
	first, err := collect(t, fast(job))
	require.NoError(t, err)
	other := fleet.Job{Tasks: later, Options: backend(), Out: t.TempDir(), Queue: q}
	_, err = collect(t, fast(other))
	require.ErrorIs(t, err, fleet.ErrOtherTasks)
	other.Hashes, other.Out = hashes, t.TempDir()
	for range 2 { // and its journal has them
		second, err := collect(t, fast(other))
		require.NoError(t, err)
		assert.Equal(t, first["t1"].Fence, second["t1"].Fence)
		other.Resume = true
	}
}
