package fleet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
)

func turn(steps ...scripted.Step) scripted.Turn { return scripted.Turn{Steps: steps} }

func when(word string, steps ...scripted.Step) scripted.Turn {
	return scripted.Turn{When: word, Steps: steps}
}

// backend is an agent that plays turns, and keeps its sessions so that they can be
// resumed.
func backend(turns ...scripted.Turn) *sdk.Options {
	return &sdk.Options{Backend: scripted.New(
		scripted.WithScript(&scripted.Script{Transcript: true, Turns: turns}), scripted.WithHistory(&scripted.MemoryHistory{}))}
}

func tasks(n int) []fleet.Task {
	all := make([]fleet.Task, n)
	for i := range all {
		all[i] = fleet.Task{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("do ", i)}
	}
	return all
}

// fast is a job whose retries do not wait.
func fast(j fleet.Job) fleet.Job {
	if j.Backoff == (supervisor.Backoff{}) {
		j.Backoff = supervisor.Backoff{Initial: time.Millisecond, Max: time.Millisecond}
	}
	return j
}

// collect runs a job to its end.
func collect(t *testing.T, j fleet.Job) (map[string]fleet.TaskResult, error) {
	t.Helper()
	all := map[string]fleet.TaskResult{}
	for r, err := range fleet.Run(t.Context(), fast(j)) {
		if err != nil {
			return all, err
		}
		require.NotContains(t, all, r.ID, "each result comes once")
		all[r.ID] = r
	}
	return all, nil
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	require.NoError(t, err)
	return string(b)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }
