package fleet

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
)

// crashes is a job whose disk remembers all operations, and how many of them there were when
// each task was over.
type crashes struct {
	job  Job
	disk *journaltest.Disk
	over map[string]int
	text map[string]string
	ran  string // a file in which each run of Job.OnAccept has a line
}

func newCrashes(t *testing.T) *crashes {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context()))) })
	yes, text, long, history := true, "overloaded", strings.Repeat("x", maxInline+1), &scripted.MemoryHistory{}
	overload := &scripted.Result{Text: &text, IsError: &yes, APIErrorStatus: 529}
	var mu sync.Mutex
	failed := false
	c := &crashes{disk: &journaltest.Disk{}, over: map[string]int{}, text: map[string]string{}, ran: filepath.Join(t.TempDir(), "ran")}
	c.job = Job{
		Out: t.TempDir(), FS: c.disk, Concurrency: 2, Backoff: supervisor.Backoff{Initial: time.Millisecond, Max: time.Millisecond}, MaxStarts: 100,
		Options: &sdk.Options{Runtime: rt, Cwd: t.TempDir()}, OnAccept: "echo $TROUPE_TASK >>" + c.ran,
		Tasks: []Task{
			{ID: "plain", Prompt: "go"},
			{ID: "retried", Prompt: "go"},
			{ID: "long", Prompt: "go"}, // its answer is in a file
			{ID: "turns", Prompt: "go", Turns: []string{"on"}},
			{ID: "last", Prompt: "{{len .Results}}", After: []string{"plain", "long"}, Verify: &Verify{Check: func(context.Context, Candidate) (Verdict, error) { return Verdict{OK: true}, nil }}},
		},
		Configure: func(_ context.Context, task *Task, o *sdk.Options) error {
			steps := scripted.Steps{scripted.Text("done")}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case task.ID == "long":
				steps = scripted.Steps{&scripted.Result{Text: &long}} // not streamed, which takes longer
			case task.ID == "retried" && !failed:
				failed, steps = true, scripted.Steps{overload}
			}
			o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}), scripted.WithHistory(history))
			return nil
		},
		OnEvent: func(e Event) {
			if e.Kind == EventFinished {
				c.over[e.Task], c.text[e.Task] = c.disk.Ops(), e.Result.Text
			}
		},
	}
	return c
}

// legal replays what a crash has left.
func (c *crashes) legal(t *testing.T, n int, after *journaltest.Disk) {
	t.Helper()
	_, all, err := journal.Read(after)
	if errors.Is(err, journal.ErrMissing) {
		all, err = nil, nil
	}
	require.NoError(t, err, "after operation %d", n)
	r := &records{fs: after, store: &dirStore{fs: after}}
	h, err := r.replay(all)
	require.NoError(t, err, "after operation %d", n)
	small, err := r.replay(compact(all))
	require.NoError(t, err, "after operation %d", n)
	results, began := map[string]int{}, map[string]int{}
	for i := range all {
		if all[i].Kind == kindAccepting {
			began[all[i].Task]++
			require.Equal(t, 1, results[all[i].Task], "after operation %d: %s is accepted before its command begins", n, all[i].Task)
		}
		if all[i].Kind == kindResult {
			results[all[i].Task]++
		}
	}
	for id, at := range c.over {
		require.False(t, at <= n && results[id] == 0, "after operation %d the result of %s is lost", n, id)
	}
	for id, k := range h.tasks {
		require.LessOrEqual(t, results[id], 1, "after operation %d: results of %s", n, id)
		require.Equal(t, k.result, small.tasks[id].result, "%s after a compaction", id)
		require.Equal(t, []int{k.starts, k.base}, []int{small.tasks[id].starts, small.tasks[id].base}, "starts of %s after a compaction", id)
		if k.result == nil {
			require.Equal(t, k, small.tasks[id], "%s after a compaction", id)
			require.LessOrEqual(t, k.starts, 2, id)
			continue
		}
		require.Equal(t, Accepted, k.result.Status)
		require.LessOrEqual(t, began[id], 1, "after operation %d: commands of %s", n, id)
		require.Equal(t, began[id] == 0, k.result.OnAccept.State == onAcceptPending, "after operation %d: %s", n, id)
		require.Equal(t, c.text[id], k.result.Text, id)
		f, err := after.Read(k.result.Transcript)
		require.NoError(t, err, "after operation %d a record names a transcript that is not there", n)
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Contains(t, string(text), `"type":"result"`, "after operation %d", n)
		require.True(t, strings.HasSuffix(string(text), "}\n"), "after operation %d a transcript is not whole", n)
	}
}

// goesOn resumes the job on what a crash has left.
func (c *crashes) goesOn(t *testing.T, n int, after *journaltest.Disk) {
	t.Helper()
	job := c.job
	job.FS, job.OnEvent = after, nil
	_, records, err := journal.Read(after)
	job.Resume = err == nil
	began := map[string]int{}
	for i := range records {
		if records[i].Kind == kindAccepting {
			began[records[i].Task] = 1
		}
	}
	require.NoError(t, os.WriteFile(c.ran, nil, 0o600))
	all := map[string]TaskResult{}
	for r, err := range Run(t.Context(), job) {
		require.NoError(t, err, "after operation %d", n)
		require.NotContains(t, all, r.ID, "after operation %d", n)
		all[r.ID] = r
	}
	require.Len(t, all, len(job.Tasks), "after operation %d", n)
	ran, err := os.ReadFile(c.ran)
	require.NoError(t, err)
	for id, r := range all {
		require.Equal(t, 1-began[id], strings.Count(string(ran), id+"\n"), "after operation %d: runs of the command of %s", n, id)
		require.Equal(t, c.text[id], r.Text, "after operation %d", n)
		require.False(t, c.over[id] <= n && !r.Earlier, "after operation %d %s was run again", n, id)
	}
}

// After each operation of a real job, a crash may lose any part of what was not synced. What
// is left has no task with two results and no result lost that was told, the files that it
// names are whole, and the job goes on to its end.
func TestReplayAfterEveryCrash(t *testing.T) {
	t.Parallel()
	c := newCrashes(t)
	for r, err := range Run(t.Context(), c.job) {
		require.NoError(t, err)
		require.True(t, r.OK(), "%s: %s", r.ID, r.Error)
	}
	require.Len(t, c.over, len(c.job.Tasks))
	each := 4
	if sim.Raced() {
		each = 16
	}
	for n := 0; n <= c.disk.Ops(); n++ {
		for loss := range 5 {
			after := c.disk.Crash(n, func(i int) int {
				if loss < 3 {
					return loss // nothing, half, all of it is there
				}
				return (i + loss) % 3
			})
			c.legal(t, n, after)
			if n%each == 0 && loss == n/each%5 { // a resume takes longer
				c.goesOn(t, n, after)
			}
		}
	}
	assert.Less(t, c.disk.Ops(), 400, "files are written in large pieces")
}
