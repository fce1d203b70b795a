package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// A lease is lost while the queue still works on its extension, and then extended after all.
// It is given back once nothing runs under it: the task goes on at once, not when the lease
// that nobody has has run out.
func TestALeaseThatIsExtendedTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &tampered{Queue: fleet.NewMemoryQueue(fleet.MemoryQueueConfig{TTL: 40 * time.Second})}
		extensions := 0
		q.extend = func(ctx context.Context, l fleet.Lease) (fleet.Lease, error) {
			if extensions++; extensions > 1 {
				return q.Queue.Extend(ctx, l)
			}
			time.Sleep(24 * time.Second) // since a third of its time: seven eighths are over, and all of it is not
			return q.Queue.Extend(context.WithoutCancel(ctx), l)
		}
		began := time.Now()
		var starts []time.Duration
		job := fast(fleet.Job{
			Tasks: tasks(1), Out: t.TempDir(), Queue: q, Worker: "one", Concurrency: 1,
			Options: private(t, &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Turns: []scripted.Turn{
				when("", scripted.Delay(50*time.Second), scripted.Text("done")),
			}}))}),
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventStarted {
					starts = append(starts, time.Since(began))
				}
			},
		})
		results, err := collect(t, job)
		require.NoError(t, err)
		assert.Equal(t, fleet.Accepted, results["t0"].Status)
		require.Len(t, starts, 2)
		assert.Less(t, starts[1], time.Minute, "the lease that was extended would run out after 77 s")
	})
}
