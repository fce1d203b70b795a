package fleet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// Agents show the begin of a prompt as the title of a session: what a job adds to a message that it sends again follows
// the message.
func TestAMessageThatIsSentAgainBeginsAsBefore(t *testing.T) {
	t.Parallel()
	overloaded, text := true, "x"
	failing := turn(&scripted.Result{IsError: &overloaded, Text: &text, APIErrorStatus: 529})
	for name, c := range map[string]struct {
		script *scripted.Script
		modes  string
		want   string
	}{
		"resume": {&scripted.Script{Transcript: true, Turns: []scripted.Turn{when("interrupted", scripted.Text("${prompt}")), failing}},
			"fresh:overloaded resume:accepted", "write the docs\n\n[You were interrupted"},
		"again": {&scripted.Script{Turns: []scripted.Turn{when("An earlier attempt", scripted.Text("${prompt}")), failing}},
			"fresh:overloaded again:accepted", "write the docs\n\n[An earlier attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &sdk.Options{Backend: scripted.New(scripted.WithScript(c.script), scripted.WithHistory(&scripted.MemoryHistory{}))}
			if !c.script.Transcript {
				o.PersistSession = sdk.Some(false)
			}
			results, err := collect(t, fleet.Job{Tasks: []fleet.Task{{ID: "t0", Prompt: "write the docs"}}, Options: o, Out: t.TempDir()})
			require.NoError(t, err)
			assert.Equal(t, c.modes, modes(results["t0"]))
			assert.Contains(t, results["t0"].Text, c.want)
			assert.Regexp(t, `^write the docs\n`, results["t0"].Text)
		})
	}
}

// modes are how the attempts of a task began and ended.
func modes(r fleet.TaskResult) string {
	var all []string
	for _, a := range r.Attempts {
		all = append(all, string(a.Mode)+":"+string(a.Status))
	}
	return strings.Join(all, " ")
}
