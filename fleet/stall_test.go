package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A turn that a watchdog of the session ends is a failure of the infrastructure, and is
// tried again. One that something else interrupts is the agent's.
func TestATurnThatAWatchdogEnds(t *testing.T) {
	t.Parallel()
	retries := func(status int) (all scripted.Steps) {
		for i := range 20 {
			all = append(all, &scripted.APIRetry{Attempt: i + 1, Delay: 5 * time.Minute, Status: status})
		}
		return all
	}
	for name, c := range map[string]struct {
		turns    []scripted.Turn
		limits   session.Limits
		job      fleet.Job
		status   fleet.Status
		class    string
		attempts int
		stopped  string
	}{
		"a stall, and then an answer": {
			turns:  []scripted.Turn{when("interrupted", scripted.Text("done")), when("go", scripted.Text("hm"), scripted.Delay(10*time.Hour))},
			status: fleet.Accepted, attempts: 2,
		},
		"a stall, for ever": {
			turns:  []scripted.Turn{when("go", scripted.Delay(10*time.Hour)), when("interrupted", scripted.Delay(10*time.Hour))},
			limits: session.Limits{Stall: time.Minute},
			status: fleet.Crashed, class: "Stalled", attempts: 3,
		},
		"the same stall twice": {
			turns: []scripted.Turn{when("go", scripted.Delay(10*time.Hour)), when("interrupted", scripted.Delay(10*time.Hour))},
			job:   fleet.Job{EqualFailures: 2}, status: fleet.Crashed, class: "Stalled", attempts: 2,
		},
		"only retries": {
			turns:  []scripted.Turn{when("interrupted", scripted.Text("done")), when("go", retries(529)...)},
			status: fleet.Accepted, attempts: 2,
		},
		"only retries, for ever": {
			turns:  []scripted.Turn{when("go", retries(529)...), when("interrupted", retries(529)...)},
			status: fleet.Overloaded, class: "RetryLimitError", attempts: 3,
		},
		"a refused login": {turns: []scripted.Turn{when("go", retries(401)...)}, stopped: fleet.StopUnauthorized},
		"another interrupt": {
			turns:  []scripted.Turn{when("go", &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk})},
			job:    fleet.Job{Options: &sdk.Options{CanUseTool: interrupts}},
			status: fleet.Failed, class: "ResultError", attempts: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := c.job
				o := private(t, backend(c.turns...))
				if o.Limits = c.limits; j.Options != nil {
					o.CanUseTool = j.Options.CanUseTool
				}
				j.Options, j.Tasks = o, []fleet.Task{{ID: "a", Prompt: "go"}}
				results, err := collect(t, j)
				if c.stopped != "" {
					var stopped *fleet.StoppedError
					require.ErrorAs(t, err, &stopped)
					assert.Equal(t, c.stopped, stopped.Reason)
					return
				}
				require.NoError(t, err)
				r := results["a"]
				assert.Equal(t, c.status, r.Status, r.Error)
				assert.Equal(t, c.class, r.Class)
				require.Len(t, r.Attempts, c.attempts)
				for _, a := range r.Attempts[1:] {
					assert.Equal(t, fleet.Mode("resume"), a.Mode)
				}
			})
		})
	}
}

func interrupts(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.DenyAndStop("no"), nil
}

// An agent that is silent and ignores the interrupt is killed, a minute after it.
func TestASilentAgentThatIgnoresTheInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		o := private(t, &sdk.Options{Backend: scripted.New(scripted.WithHistory(&scripted.MemoryHistory{}), scripted.WithScript(&scripted.Script{
			Transcript: true, Misbehave: scripted.Misbehaviour{Ignore: []string{"interrupt"}},
			Turns: []scripted.Turn{when("interrupted", scripted.Text("done")), when("go", scripted.Text("hm"), scripted.Delay(10*time.Hour))},
		}))})
		results, err := collect(t, fleet.Job{Options: o, Tasks: []fleet.Task{{ID: "a", Prompt: "go"}}})
		require.NoError(t, err)
		r := results["a"]
		assert.Equal(t, fleet.Accepted, r.Status, r.Error)
		require.Len(t, r.Attempts, 2)
		assert.InDelta(t, 31, time.Since(began).Minutes(), 1)
	})
}
