package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// The actor panics in the middle of a step. Its machine is not to be trusted any more: the job
// ends with an error, those who ask get an answer, nothing runs any more, and a resume goes on from
// the journal.
func TestTheActorDiesInAStep(t *testing.T) {
	t.Parallel()
	for at := int64(1); at < 30; at += 4 {
		var n atomic.Int64
		cfg := kernel.Config{Chaos: func(name string, m any, when kernel.Moment) bool {
			_, known := m.(input) // before the tasks are known there is nothing to resume
			return strings.HasPrefix(name, "job#") && when == kernel.InStep && known && n.Add(1) == at
		}}
		rt, err := runtime.New(runtime.Config{Clock: cfg.AsClock()})
		require.NoError(t, err)
		c := newCrashes(t)
		c.job.Options.Runtime = rt
		h, err := Start(t.Context(), c.job)
		require.NoError(t, err)
		got := map[string]bool{}
		for r, failed := range h.Results(t.Context()) {
			if err = failed; err == nil {
				got[r.ID] = true
			}
		}
		<-h.Done()
		if n.Load() < at {
			require.NoError(t, err)
			require.Len(t, got, len(c.job.Tasks))
			break
		}
		var stopped *StoppedError
		require.ErrorAs(t, err, &stopped, "step %d", at)
		assert.Equal(t, stopError, stopped.Reason)
		assert.Equal(t, stopError, h.Progress().Stop.Reason)
		assert.Equal(t, stopError, h.Snapshot().Stop.Reason)
		assert.Empty(t, h.Approvals())
		require.ErrorIs(t, h.CancelTask(t.Context(), "plain"), ErrJobOver)
		require.ErrorIs(t, h.Decide(t.Context(), "x", true, ""), ErrNoApproval)
		log, err := journal.Open(journal.Config{FS: c.disk, Clock: rt.Clock(), Executor: rt.Executor()}, journal.Header{})
		require.NoError(t, err, "the journal is closed")
		require.NoError(t, log.Close())
		require.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context())))
		next, err := runtime.New(runtime.Config{})
		require.NoError(t, err)
		c.job.Options.Runtime, c.job.Resume = next, true
		for r, err := range Run(t.Context(), c.job) {
			require.NoError(t, err)
			assert.True(t, r.Earlier || !got[r.ID], "%s ran again", r.ID)
			got[r.ID] = true
		}
		require.Len(t, got, len(c.job.Tasks))
		require.NoError(t, next.Shutdown(context.WithoutCancel(t.Context())))
	}
}

// unextended is a queue that extends no lease, and gives a task once.
type unextended struct {
	*queue.Memory
	leases atomic.Int64
}

func (*unextended) Extend(_ context.Context, all ...queue.Lease) []error {
	return slices.Repeat([]error{errors.New("no network")}, len(all))
}

func (u *unextended) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	if u.leases.Add(1) > 1 {
		return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "other", TTL: time.Hour}
	}
	return u.Memory.Lease(ctx, task, worker)
}

// The deadline of a lease kills the attempt by itself: the actor dies at the same moment, and is
// started again later.
func TestADeadlineWithoutAnActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 24 * time.Second
		var died atomic.Bool
		cfg := kernel.Config{Chaos: func(_ string, m any, when kernel.Moment) bool {
			_, is := m.(lapsed)
			return is && when == kernel.BeforeMessage && died.CompareAndSwap(false, true)
		}}
		rt, err := runtime.New(runtime.Config{Clock: cfg.AsClock()})
		require.NoError(t, err)
		defer func() { require.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context()))) }()
		began, killed := time.Now(), time.Duration(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		job := Job{
			Tasks: []Task{{ID: "a", Prompt: "go"}}, Options: &sdk.Options{Runtime: rt, Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{scripted.Text("done")}}))},
			Queue: &unextended{Memory: queue.NewMemory(queue.MemoryConfig{TTL: ttl})},
			Verify: &Verify{Check: func(ctx context.Context, _ Candidate) (Verdict, error) {
				<-ctx.Done()
				killed = time.Since(began)
				return Verdict{}, ctx.Err()
			}},
		}
		for _, err := range Run(ctx, job) {
			require.Error(t, err)
		}
		require.True(t, died.Load())
		assert.Equal(t, ttl*7/8, killed)
	})
}

// panics is a file system with a bug.
type panics struct{ journal.FS }

func (p panics) Mkdir(name string) error {
	if strings.HasPrefix(name, attemptsDir+"/long") { // for the answer that is in a file
		panic("a bug")
	}
	return p.FS.Mkdir(name)
}

// The carrier panics in the middle of a batch: the job ends with an error, and does not wait for
// what was left of the batch.
func TestTheCarrierPanics(t *testing.T) {
	t.Parallel()
	c := newCrashes(t)
	c.job.FS = panics{c.disk}
	h, err := Start(t.Context(), c.job)
	require.NoError(t, err)
	for _, err = range h.Results(t.Context()) { // the last one counts
	}
	require.ErrorContains(t, err, "a bug")
	require.ErrorAs(t, err, new(*StoppedError))
	<-h.Done()
	assert.Equal(t, stopError, h.Snapshot().Stop.Reason)
}
