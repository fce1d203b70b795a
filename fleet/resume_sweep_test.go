package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// sweepless starts processes, and cannot end those of an earlier program.
type sweepless struct{ session.Spawner }

func (sweepless) SweepMarker(context.Context, string) ([]session.ProcInfo, error) {
	return []session.ProcInfo{{PID: 1}}, errors.New("operation not permitted")
}

// A job is not resumed as long as processes of its earlier host may live: nothing starts.
func TestProcessesOfAnEarlierHostThatStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spawner session.Spawner
		says    string
	}{
		"they cannot be ended": {sweepless{}, "could not be ended, 1 are left: operation not permitted"},
		"they cannot be found": {struct{ session.Spawner }{}, "the spawner of this runtime cannot find processes by a marker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := fleet.Job{Tasks: tasks(1), Options: backend(turn(scripted.Delay(time.Hour))), Out: t.TempDir()}
			h, err := fleet.Start(t.Context(), fast(job))
			require.NoError(t, err)
			h.Cancel()
			<-h.Done()
			rt, err := runtime.New(runtime.Config{Clock: kernel.Config{Spawner: c.spawner}.AsClock()})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
			job.Resume, job.Options = true, backend()
			job.Options.Runtime = rt
			h, events := begun(t, job)
			results, err := rest(t, h)
			<-h.Done()
			require.ErrorContains(t, err, c.says)
			require.ErrorAs(t, err, new(*fleet.StoppedError))
			assert.Empty(t, results)
			for range len(events) {
				assert.NotContains(t, []fleet.EventKind{fleet.EventStarted, fleet.EventSwept}, (<-events).Kind)
			}
		})
	}
}
