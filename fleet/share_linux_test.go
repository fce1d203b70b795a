package fleet_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/sdk"
)

// A program whose lease is lost kills the process tree of its agent, with what no signal to
// the group reaches, before it does anything else: nothing is written, said or asked while a
// process of it lives.
func TestALostLeaseKillsTheTreeFirst(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	q := &tampered{Queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Hour})}
	const ttl = 12 * time.Second // the lease is extended after 4 s of it
	var stolen atomic.Bool
	journalAt := ""
	q.extend = func(context.Context, queue.Lease) error {
		if len(alive(t, dir)) < 2 { // until the agent is there, and what it has started
			return nil
		}
		journalAt = read(t, out, journal.Name)
		stolen.Store(true)
		return queue.ErrLeaseLost
	}
	q.lease = func(ctx context.Context, task, worker string) (queue.Lease, error) {
		if stolen.Load() {
			assert.Empty(t, alive(t, dir), "processes that live when the task is asked for again")
			return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "quick"}
		}
		l, err := q.Queue.Lease(ctx, task, worker)
		l.TTL = ttl
		return l, err
	}
	job := fleet.Job{
		Tasks: tasks(1), Out: out, Queue: q, Worker: "slow",
		Options: &sdk.Options{
			Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}),
			Env:     map[string]string{agentEnv: "1", slowEnv: "1", "HOME": filepath.Join(dir, "home"), "ANTHROPIC_API_KEY": "k", "TROUPE_TEST_DIR": dir},
		},
		OnEvent: func(e fleet.Event) {
			if !stolen.Load() {
				return
			}
			assert.Empty(t, alive(t, dir), "processes that live at the event %s", e.Kind)
			if e.Kind != fleet.EventEnded {
				return
			}
			assert.Contains(t, read(t, out, journal.Name), journalAt)
			l := queue.Lease{Task: "t0", Worker: "slow", Fence: 1}
			assert.NoError(t, q.Queue.Release(t.Context(), l)) // as if it had ended
			l, err := q.Queue.Lease(t.Context(), "t0", "quick")
			assert.NoError(t, err)
			assert.NoError(t, q.Queue.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"accepted","text":"quick","usage":{"usd":0,"turns":0,"wall":"0s"}}`)))
		},
	}
	p := together(t, job)[0]
	require.NoError(t, p.err)
	assert.True(t, stolen.Load())
	assert.Equal(t, "quick", p.results["t0"].Text)
	assert.EqualValues(t, 2, p.results["t0"].Fence)
	assert.Empty(t, alive(t, dir))
}
