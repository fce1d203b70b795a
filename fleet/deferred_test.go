package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

// deferred is a job of n tasks, each of which writes a file, reads it and is done. All that it keeps is
// below root.
func deferred(s *modeltest.Server, root, cwd string, n int) fleet.Job {
	return fast(fleet.Job{
		Deferred: true, Tasks: tasks(n), Out: filepath.Join(root, "out"),
		Options: &sdk.Options{
			Backend: embedded.New(embedded.Config{
				Model: batch.New(batch.Config{Model: s.Anthropic(model.Config{}), Dir: filepath.Join(root, "batches")}),
				Name:  "claude-sonnet-4-5", Dir: filepath.Join(root, "sessions"),
			}),
			Cwd: cwd, AllowedTools: []string{"Write(./**)", "Read(./**)"},
		},
	})
}

// writes is the model of such a job.
func writes(r *modeltest.Request) *modeltest.Answer {
	name := strings.ReplaceAll(r.Messages[0].Blocks[len(r.Messages[0].Blocks)-1].Text, " ", "-")
	switch len(r.Results()) + len(r.Messages)/2*10 {
	case 0:
		return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": name, "content": "by " + name}))
	case 11:
		return modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": name}))
	}
	return modeltest.Say(modeltest.Text("done: " + r.Last().Blocks[0].Text))
}

func bodies(s *modeltest.Server) map[string]int {
	times := map[string]int{}
	for _, r := range s.Requests() {
		times[string(r.Body)]++
	}
	return times
}

// The requests of all sessions share batches, and no session that waits is taken for one that stands still.
func TestADeferredJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, began := &modeltest.Server{Script: writes, BatchTakes: 20 * time.Hour}, time.Now()
		j := deferred(s, t.TempDir(), t.TempDir(), 12)
		var waits int
		j.OnEvent = func(e fleet.Event) {
			assert.NotEqual(t, fleet.EventWarning, e.Kind, e.Detail)
			waits++
		}
		all, err := collect(t, j)
		require.NoError(t, err)
		require.Len(t, all, 12)
		for id, r := range all {
			assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
			assert.Contains(t, r.Text, "by do-"+strings.TrimPrefix(id, "t"))
			assert.Len(t, r.Attempts, 1)
			price := model.DefaultProfiles().Model("claude-sonnet-4-5").Price
			assert.InDelta(t, 3*price.Cost(model.Usage{Input: 10, Output: 5})/2, r.Usage.USD, 1e-9, "half the price")
		}
		assert.Equal(t, 3, s.Batches())
		assert.Len(t, s.Requests(), 36)
		assert.Less(t, time.Since(began), 3*21*time.Hour)
	})
}

// A host that is killed at any time, and one that is stopped, leave the answers to the next one: each
// request is paid once, and each task is done once.
func TestADeferredJobIsResumed(t *testing.T) {
	t.Parallel()
	for i, at := range []time.Duration{10 * time.Second, 65 * time.Second, time.Hour, 125 * time.Minute, 26 * time.Hour} {
		for _, killed := range []bool{true, false} {
			if killed == (i%2 == 0) && testing.Short() {
				continue
			}
			t.Run(fmt.Sprint(at, killed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s, cwd := &modeltest.Server{Script: writes, BatchTakes: 2 * time.Hour}, t.TempDir()
					if at > 24*time.Hour { // a date changes between the lives
						s.BatchTakes = 23 * time.Hour
					}
					root := t.TempDir()
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					h, err := fleet.Start(ctx, deferred(s, root, cwd, 2))
					require.NoError(t, err)
					time.Sleep(at)
					synctest.Wait()
					left := root
					if killed { // what is there at this instant
						left = t.TempDir()
						require.NoError(t, os.CopyFS(left, os.DirFS(root)))
					}
					stop()
					for _, err := range h.Results(t.Context()) {
						_ = err
					}
					synctest.Wait()
					time.Sleep(90 * time.Minute)
					j := deferred(s, left, cwd, 2)
					j.Resume = true
					all, err := collect(t, j)
					require.NoError(t, err)
					for id, r := range all {
						assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
						assert.Contains(t, r.Text, "by do-"+strings.TrimPrefix(id, "t"))
					}
					require.Len(t, all, 2)
					for body, n := range bodies(s) {
						assert.Equal(t, 1, n, body)
						assert.NotContains(t, body, "You were interrupted")
						assert.NotContains(t, body, "[Request interrupted")
					}
					assert.Len(t, s.Requests(), 6)
				})
			})
		}
	}
}

func TestADeferredJobNeedsTheEmbeddedAgent(t *testing.T) {
	t.Parallel()
	j := fleet.Job{Deferred: true, Tasks: tasks(1), Options: backend()}
	assert.ErrorContains(t, j.Validate(), "is for the embedded agent")
	j = deferred(&modeltest.Server{}, t.TempDir(), t.TempDir(), 1)
	require.NoError(t, j.Validate())
	j.Options.Limits.Stall = time.Minute
	assert.ErrorContains(t, j.Validate(), "a session that waits for a batch says so every 10m0s at most")
}
