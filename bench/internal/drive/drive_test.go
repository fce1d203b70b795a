package drive_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

func TestMain(m *testing.M) {
	fast.Play() // where it is an agent of this very test
	os.Exit(m.Run())
}

// Not parallel: they read the figures of the whole process.

func TestEveryModeReportsItsFigures(t *testing.T) {
	for mode, messages := range map[string]int64{
		measure.Stream: 32, measure.Hook: 2, measure.Perm: 2, measure.MCP: 2, measure.Idle: 2,
	} {
		t.Run(mode, func(t *testing.T) {
			line, err := drive.Run(t.Context(), drive.Job{Backend: fast.Program{}, Mode: mode, N: 30, Sessions: 3})
			require.NoError(t, err)
			assert.Equal(t, 3*messages, line.Messages)
			assert.Equal(t, []any{mode, 30, 3}, []any{line.Mode, line.N, line.Sessions})
			assert.Positive(t, line.WallMillis)
			assert.Equal(t, mode != measure.Idle, line.CLINanos > 0)
		})
	}
}

func TestNoCallbackRunsOnTheReader(t *testing.T) {
	require.NoError(t, drive.Probe(t.Context(), drive.Job{Backend: fast.Program{}}))
}

func TestACrowdLeavesNothing(t *testing.T) {
	figures, err := drive.Many(t.Context(), drive.Job{Backend: fast.Program{}, Sessions: 20}, true, false)
	require.NoError(t, err)
	assert.Zero(t, figures.Left)
}

// TestClosedSessionsLeaveNoMemory: nothing of the sessions stays, nor of what
// they have answered. The program bench/crowd does it at full size.
func TestClosedSessionsLeaveNoMemory(t *testing.T) {
	for name, job := range map[string]drive.Job{
		"many":      {Backend: scripted.New(), Sessions: 600},
		"callbacks": {Backend: fast.Program{}, Sessions: 4, Mode: measure.Hook, N: 200, Answer: 8192},
	} {
		t.Run(name, func(t *testing.T) {
			figures, err := drive.Many(t.Context(), job, false, false)
			require.NoError(t, err)
			assert.NoError(t, figures.Kept(), "open they take %.1f KiB each", figures.HeapEach)
		})
	}
}

func TestWhatClosedSessionsMayKeep(t *testing.T) {
	assert.NoError(t, drive.Crowd{HeapBefore: 10, HeapLeft: 3}.Kept())
	assert.EqualError(t, drive.Crowd{Sessions: 7, HeapBefore: 10, HeapLeft: 3.2}.Kept(), "7 closed sessions keep 3.2 MiB of heap, more than 3.0")
}

func TestIdleSessionsHaveFewGoroutines(t *testing.T) {
	figures, err := drive.Many(t.Context(), drive.Job{Backend: scripted.New(), Sessions: 20}, false, false)
	require.NoError(t, err)
	assert.Less(t, figures.Goroutines, 0.5, "in memory none, the agent's included")

	path, env, err := fast.Self()
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	held, shared := 0, 30
	if runtime.GOOS != "linux" {
		shared += 40 // each has its reader
	}
	_, err = drive.Run(t.Context(), drive.Job{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: path}), Env: env, Mode: measure.Idle, N: 1, Sessions: 40,
		Held: func() error {
			for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // those of the turns end by and by
				if held = runtime.NumGoroutine() - before; held < shared || time.Now().After(until) {
					return nil
				}
			}
		},
	})
	require.NoError(t, err)
	assert.Less(t, held, shared)
}
