package simtests_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	loops "github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/model"
	batches "github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// deferred is a job whose model answers in batches. Its hosts are killed or stopped one after the other,
// and the next one has the files as they were then.
type deferred struct {
	*simtests.World
	at    *endpoint
	tasks []fleet.Task
	disk  *journaltest.Disk // the journal's
	root  string            // of sessions and the record of batches
	hosts int
	done  map[string]fleet.TaskResult
}

// taskOf is the task of a session.
func taskOf(r *modeltest.Request) string {
	first := r.Messages[0].Blocks
	return first[len(first)-1].Text
}

// readsOnce is a model that reads the file of its task, and says whose task it was.
func readsOnce(r *modeltest.Request) *modeltest.Answer {
	name := taskOf(r)
	if len(r.Results()) == 0 {
		return modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": name + ".txt"}))
	}
	return modeltest.Say(modeltest.Text("done: " + name))
}

func newDeferred(w *simtests.World) *deferred {
	d := &deferred{World: w, disk: &journaltest.Disk{}, root: filepath.Join(w.Dir(), "root-0"), done: map[string]fleet.TaskResult{}}
	d.at = newEndpoint(w, readsOnce)
	d.at.hopeless, d.at.calm = false, true
	require.NoError(w, os.MkdirAll(filepath.Join(w.Dir(), "work"), 0o700))
	require.NoError(w, os.MkdirAll(d.root, 0o700))
	for i := range 1 + w.Rand().IntN(4) {
		name := fmt.Sprint("task-", i)
		require.NoError(w, os.WriteFile(filepath.Join(w.Dir(), "work", name+".txt"), []byte("of "+name+"\n"), 0o600))
		d.tasks = append(d.tasks, fleet.Task{ID: name, Prompt: name})
	}
	return d
}

// host runs the job until it ends, or the host is killed.
func (d *deferred) host(doomed bool) {
	d.hosts++
	ctx, die := context.WithCancelCause(d.Context())
	defer die(nil)
	h := &way{endpoint: d.at, steps: -1, die: die}
	left, root := d.disk, d.root
	h.onDeath = func() { // what is there at this instant
		d.root = filepath.Join(d.Dir(), fmt.Sprint("root-", d.hosts))
		require.NoError(d, os.CopyFS(d.root, os.DirFS(root)))
		d.disk = left.Crash(left.Ops(), func(int) int { return 2 })
	}
	after := time.Duration(d.Rand().IntN(10*60)) * time.Minute
	switch {
	case doomed && d.Rand().IntN(3) == 0: // it is stopped in order
		defer d.Runtime().Clock().AfterFunc(after, func() { die(errHostDied) }).Stop()
	case doomed:
		h.steps = 1 + d.Rand().IntN(25)
		defer d.Runtime().Clock().AfterFunc(after, h.dies).Stop()
	}
	left.Fail = func(journaltest.Op) error {
		if h.dead {
			return errHostDied
		}
		return nil
	}
	_, missing := left.Read(journal.Name)
	handle, err := fleet.Start(ctx, fleet.Job{
		Deferred: true, Tasks: d.tasks, Out: "out", FS: left, Resume: missing == nil, Backoff: supervisor.Backoff{Initial: time.Second, Max: time.Minute}, Attempts: 8, MaxStarts: 100,
		Options: &sdk.Options{
			Runtime: d.Runtime(), Cwd: filepath.Join(d.Dir(), "work"), SystemPrompt: sdk.PromptText("You read."), AllowedTools: []string{"Read(./**)"},
			Backend: loops.New(loops.Config{
				Model: batches.New(batches.Config{Model: h.client(), Dir: filepath.Join(root, "batches"), Clock: d.Runtime().Clock(), Exec: d.Runtime().Executor()}),
				Name:  "claude-sonnet-4-5", Dir: filepath.Join(root, "sessions"), Profiles: model.DefaultProfiles(),
			}),
		},
	})
	if h.dead {
		return
	}
	require.NoError(d, err)
	for result, err := range handle.Results(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				d.Errorf("lost: the job has ended with %v", err)
			}
			break
		}
		d.done[result.ID] = result
	}
	die(nil)
	for _, err := range handle.Results(d.Context()) { // until it has stopped
		if err != nil {
			break
		}
	}
}

func aDeferredJob(w *simtests.World) {
	d := newDeferred(w)
	for range w.Rand().IntN(4) {
		if d.host(true); len(d.done) == len(d.tasks) {
			break
		}
	}
	w.Sometimes("hosts have died", d.hosts > 0)
	d.host(false)
	for _, t := range d.tasks {
		r, there := d.done[t.ID]
		switch {
		case !there:
			w.Errorf("lost: %s has no result", t.ID)
		case r.Status != fleet.Accepted:
			w.Errorf("lost: %s is %s: %s", t.ID, r.Status, r.Error)
		case r.Text != "done: "+t.ID:
			w.Errorf("answered: %s has the result %q", t.ID, r.Text)
		}
	}
	w.Run()
	d.at.judge(func(r *modeltest.Request) string { return fmt.Sprint(taskOf(r), " ", len(r.Results())) }, func(*modeltest.Request) int { return 1 })
}

// Hosts of a job with half-price batches are killed at any request, or killed or stopped at any time: each task gets
// its result, and each request is paid once.
func TestADeferredJobWhoseHostsDie(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 4, Twice: 1}, aDeferredJob)
}

// TestPlantedBugsOfDeferredJobs is for tools/simmutate.
func TestPlantedBugsOfDeferredJobs(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 4, Twice: -1, Shrink: -1, DoNotKeep: true}, aDeferredJob)
}
