package simtests_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// One scenario, on the seeded scheduler, on the dispatcher of production, and with an
// agent that is a process.
func TestLevels(t *testing.T) {
	simtests.Levels(t, simtests.Config{Seeds: 10, AllFaults: true}, func(w *simtests.World) {
		w.Faults(simtests.SplitWrites(0.2), simtests.Noise(0.2), simtests.SlowCallback(1, "CanUseTool", 20*time.Millisecond))
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		var first error
		w.Go(func() { _, _, first = simtests.Ask(w.Context(), c, "refund order 7") })
		w.Run()
		require.NoError(w, first)
		require.Len(w, w.Effects(), 1)
		_, result, err := simtests.Ask(w.Context(), c, "and again")
		require.NoError(w, err)
		assert.Equal(w, "again", result.Result)
		require.NoError(w, c.Close(w.Context()))
		living, started := w.Agents()
		assert.Zero(w, living)
		assert.Equal(w, 1, started)
	})
}

// A process that is killed is resumed by another one, on each level.
func TestLevelsOfACrash(t *testing.T) {
	simtests.Levels(t, simtests.Config{Seeds: 10, AllFaults: true}, func(w *simtests.World) {
		script := refund()
		script.Resumed = []scripted.Turn{{Steps: scripted.Steps{scripted.Text("it was paid")}}, script.Turns[1]}
		c := w.Open(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 1}, script)
		w.Faults(simtests.CrashInTool(1).AtMost(1))
		_, result, err := simtests.Ask(w.Context(), c, "refund order 7")
		require.NoError(w, err)
		require.True(w, result.Recovered)
		require.Len(w, w.Effects(), 1, "the tool ran once")
		_, _, err = simtests.Ask(w.Context(), c, "and again")
		require.NoError(w, err)
		_, started := w.Agents()
		require.Equal(w, 2, started)
		require.NoError(w, c.Close(context.Background()))
	})
}

// The process table of the machine would differ between two runs of a seed.
func TestASimulatedWorldHasNoProcesses(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 1, Twice: 1}, func(w *simtests.World) {
		before := w.Elapsed()
		left, err := w.Runtime().SweepMarker(w.Context(), w.Runtime().NewMarker())
		require.NoError(w, err)
		require.Empty(w, left)
		require.Equal(w, before, w.Elapsed(), "a sweep of the machine scans twice, with a pause")
		_, err = w.Runtime().Spawner().Spawn(w.Context(), session.Command{Path: "/bin/true"})
		require.ErrorContains(w, err, "a simulated world has no processes")
	})
}
