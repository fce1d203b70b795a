//go:build conformance

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// Prompts of a job are text for the model, also those that begin with the name of a command.
// A command that is meant as one is sent as one: the agent's own ends without a model, which is
// no success, and the project's asks the model.
func TestPromptsOfAJobAreText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.SettingSources = sdk.Only("project")
	commands := filepath.Join(o.Cwd, ".claude", "commands")
	require.NoError(t, os.MkdirAll(commands, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(commands, "greet.md"), []byte("Say hello to the team."), 0o600))
	job := fleet.Job{Options: o, Concurrency: 2}
	want := map[string]fleet.Status{}
	add := func(id, prompt string, slash bool, status fleet.Status) {
		job.Tasks = append(job.Tasks, fleet.Task{ID: id, Prompt: prompt, Slash: slash})
		want[id] = status
	}
	add("login", "/login page is blank", false, fleet.Accepted)
	add("usage", "/usage", false, fleet.Accepted)
	add("clear", "/clear the cache", false, fleet.Accepted)
	add("path", "/usr/bin/env is missing", false, fleet.Accepted)
	add("usage-command", "/usage", true, fleet.Suspicious)
	add("own-command", "/greet", true, fleet.Accepted)
	for result, err := range fleet.Run(r.ctx, job) {
		require.NoError(t, err)
		assert.Equal(t, want[result.ID], result.Status, "%s: %s %s", result.ID, result.Error, result.Text)
		assert.Equal(t, result.ID == "usage-command", result.Usage.Turns == 0, result.ID)
	}
	asked := ""
	for _, q := range r.model.Requests() {
		asked += string(q.Body)
	}
	assert.Contains(t, asked, "/login page is blank")
	assert.Contains(t, asked, "Say hello to the team.")
}
