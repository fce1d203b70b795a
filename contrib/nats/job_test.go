package troupenats

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

func program(t *testing.T, connect servers, name string, tasks []fleet.Task) fleet.Job {
	t.Helper()
	nc := connect(t, newNetwork())
	cfg := Config{Job: name, TTL: 10 * time.Second, silence: time.Second}
	files, err := OpenFiles(t.Context(), nc, cfg)
	require.NoError(t, err)
	return fleet.Job{
		Tasks: tasks, Out: t.TempDir(), Concurrency: 3, Files: files,
		Queue:   opened(t, nc, cfg),
		Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true}), scripted.WithHistory(&scripted.MemoryHistory{}))},
	}
}

// Two programs share a job: each task runs once, in one of them, and both have all results. One
// that comes when all is over has them, too.
func TestTwoProgramsShareAJob(t *testing.T) {
	t.Parallel()
	connect, name := single(t), job()
	var tasks []fleet.Task
	for i := range 24 {
		tasks = append(tasks, fleet.Task{ID: fmt.Sprint("t.", i), Prompt: fmt.Sprint("do ", i)})
	}
	tasks[20].After = []string{"t.1", "t.2"}
	tasks[20].Prompt = `sum of {{(index .Results "t.1").Text}} and {{(index .Results "t.2").Text}}`
	var starts atomic.Int64
	seen := make([]map[string]fleet.TaskResult, 3)
	run := func(i int) {
		j := program(t, connect, name, tasks)
		j.OnEvent = func(e fleet.Event) {
			if e.Kind == fleet.EventStarted {
				starts.Add(1)
			}
		}
		seen[i] = map[string]fleet.TaskResult{}
		for r, err := range fleet.Run(t.Context(), j) {
			if !assert.NoError(t, err) {
				return
			}
			assert.NotContains(t, seen[i], r.ID, "one result each")
			seen[i][r.ID] = r
		}
		text, err := os.ReadFile(filepath.Join(j.Out, "results.jsonl"))
		assert.NoError(t, err)
		assert.Equal(t, len(tasks), strings.Count(string(text), "\n"))
	}
	var both sync.WaitGroup
	both.Go(func() { run(0) })
	both.Go(func() { run(1) })
	both.Wait()
	run(2)
	assert.EqualValues(t, len(tasks), starts.Load(), "each task was started once")
	fences, workers := map[uint64]bool{}, map[string]bool{}
	for _, task := range tasks {
		r := seen[0][task.ID]
		assert.Equal(t, fleet.Accepted, r.Status, task.ID)
		assert.NotEmpty(t, r.Text)
		for _, other := range seen[1:] {
			assert.Equal(t, r.Text, other[task.ID].Text)
			assert.Equal(t, r.Fence, other[task.ID].Fence)
			assert.Equal(t, r.Worker, other[task.ID].Worker)
		}
		fences[r.Fence], workers[r.Worker] = true, true
	}
	assert.Len(t, fences, len(tasks))
	t.Logf("workers: %v", workers)
}

// A job whose stream is deleted stops, and can be resumed.
func TestADeletedStreamStopsTheJob(t *testing.T) {
	t.Parallel()
	connect, name := single(t), job()
	j := program(t, connect, name, []fleet.Task{{ID: "t", Prompt: "do"}})
	j.Options.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: []scripted.Step{scripted.Delay(time.Hour)}}), scripted.WithHistory(&scripted.MemoryHistory{}))
	started := make(chan struct{})
	var once sync.Once
	j.OnEvent = func(e fleet.Event) {
		if e.Kind == fleet.EventStarted {
			once.Do(func() { close(started) })
		}
	}
	within, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	removed := make(chan error, 1)
	go func() {
		<-started
		removed <- Remove(within, connect(t, newNetwork()), name)
	}()
	var err error
	for _, err = range fleet.Run(within, j) {
		continue
	}
	require.NoError(t, within.Err(), "it has stopped by itself")
	require.NoError(t, <-removed)
	var stopped *fleet.StoppedError
	require.ErrorAs(t, err, &stopped)
	assert.Equal(t, fleet.StopQueue, stopped.Reason)
	require.ErrorIs(t, err, ErrGone)
}
