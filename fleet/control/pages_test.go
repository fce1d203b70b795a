package control_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/sdk"
)

// TestAWindowHasNoOutputOfCommands is a window of a job, which may be shown to those who may not read what its
// command has printed.
func TestAWindowHasNoOutputOfCommands(t *testing.T) {
	t.Parallel()
	script := &scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Text("done")}}
	h, err := fleet.Start(t.Context(), fleet.Job{
		Tasks: []fleet.Task{{ID: "a", Prompt: "x"}}, Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(script))}, Out: t.TempDir(), OnAccept: "echo SECRET",
	})
	require.NoError(t, err)
	<-h.Done()
	state, err := control.Job(h, "").State(t.Context())
	require.NoError(t, err)
	require.Len(t, state.Tasks, 1)
	shown, err := json.Marshal(state.Tasks[0].Value)
	require.NoError(t, err)
	assert.Contains(t, string(shown), `"onAccept":{"state":"done"}`)
	require.NotNil(t, h.Snapshot().Tasks[0].OnAccept)
	assert.Contains(t, h.Snapshot().Tasks[0].OnAccept.Output, "SECRET", "the job keeps it")
}
