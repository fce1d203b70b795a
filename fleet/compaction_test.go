package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

// A task that is requeued after the journal was compacted keeps the workspace and the transcript of its attempts.
func TestRequeueAfterACompaction(t *testing.T) {
	t.Parallel()
	from, out, long := t.TempDir(), t.TempDir(), strings.Repeat("x", 60<<10)
	all := tasks(75) // each has its text in the journal twice, until it is compacted
	all[0].Workspace = &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from}
	job := fleet.Job{Tasks: all, Options: backend(turn(&scripted.Result{Text: &long})), Out: out, Concurrency: 4}
	_, err := collect(t, job)
	require.NoError(t, err)
	work := filepath.Join(out, "workspaces", "t0", "1", "work of the agent")
	require.NoError(t, os.WriteFile(work, nil, 0o600))
	before, err := os.Stat(filepath.Join(out, "journal.jsonl"))
	require.NoError(t, err)
	job.Resume = true
	_, err = collect(t, job)
	require.NoError(t, err)
	after, err := os.Stat(filepath.Join(out, "journal.jsonl"))
	require.NoError(t, err)
	require.Less(t, after.Size(), before.Size(), "it was compacted")
	s, err := fleet.ReadJob(out)
	require.NoError(t, err)
	assert.Equal(t, 1, s.Tasks[0].Attempts)

	require.NoError(t, fleet.Amend(t.Context(), out, fleet.Amendment{Requeue: []string{"t0"}}))
	results, err := collect(t, job)
	require.NoError(t, err)
	r := results["t0"]
	assert.FileExists(t, work)
	assert.Equal(t, filepath.Join(out, "workspaces", "t0", "2"), r.Workspace)
	assert.Equal(t, "transcripts/t0.2.jsonl", r.Transcript)
	require.Len(t, r.Attempts, 2)
	assert.Equal(t, []int{1, 2}, []int{r.Attempts[0].Number, r.Attempts[1].Number})
}
