package fleet_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// sub is a subagent that plays steps.
func sub(steps ...scripted.Step) *scripted.SubAgent {
	return &scripted.SubAgent{Description: "d", Prompt: "p", Type: "general-purpose", Steps: steps, Report: "r"}
}

func TestSubagentsAreLimited(t *testing.T) {
	t.Parallel()
	long := scripted.Delay(time.Minute)
	for name, tt := range map[string]struct {
		max           fleet.Subagents
		steps         []scripted.Step
		begin, denied int
	}{
		"no limit":       {fleet.Subagents{}, []scripted.Step{sub(), sub(), sub()}, 3, 0},
		"some":           {fleet.Subagents{Max: 2}, []scripted.Step{sub(), sub(), sub(), sub()}, 2, 2},
		"none":           {fleet.Subagents{Max: -1}, []scripted.Step{sub()}, 0, 1},
		"nested":         {fleet.Subagents{}, []scripted.Step{sub(sub(sub()))}, 3, 0},
		"depth":          {fleet.Subagents{Depth: 1}, []scripted.Step{sub(sub()), sub()}, 2, 1},
		"more depth":     {fleet.Subagents{Depth: 2}, []scripted.Step{sub(sub(sub())), sub(sub())}, 4, 1},
		"one at a time":  {fleet.Subagents{AtOnce: 1}, []scripted.Step{sub(), sub(), sub()}, 3, 0},
		"nested at once": {fleet.Subagents{AtOnce: 2}, []scripted.Step{sub(sub(sub())), sub()}, 3, 1},
		"parallel":       {fleet.Subagents{AtOnce: 2}, []scripted.Step{scripted.Parallel{sub(long), sub(long), sub(long)}}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // subagents in parallel are there together
				o := private(t, backend(turn(append(tt.steps, scripted.Text("done"))...)))
				o.Policy = &policy.Rules{Allow: []string{"Agent", "Task"}, Default: policy.Deny}
				got, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, Subagents: &tt.max})
				require.NoError(t, err)
				r := got["t0"]
				assert.Equal(t, fleet.Accepted, r.Status, r.Error)
				assert.Equal(t, [2]int{tt.begin, tt.denied}, [2]int{r.Subagents, r.SubagentsDenied}, "begun and denied")
			})
		})
	}
}

// The limit of a job holds for tasks that run at the same time.
func TestSubagentsOfAJobAreLimited(t *testing.T) {
	t.Parallel()
	o := backend(turn(sub(), sub(), sub(), scripted.Text("done")))
	o.Policy = &policy.Rules{Allow: []string{"Agent", "Task"}, Default: policy.Deny}
	got, err := collect(t, fleet.Job{Tasks: tasks(8), Concurrency: 8, Options: o, Subagents: &fleet.Subagents{MaxJob: 10}})
	require.NoError(t, err)
	begun, denied := 0, 0
	for _, r := range got {
		begun += r.Subagents
		denied += r.SubagentsDenied
	}
	assert.Equal(t, "10 begun, 14 denied", fmt.Sprintf("%d begun, %d denied", begun, denied))
}

// A call that a rule denies takes no place.
func TestADeniedSubagentDoesNotCount(t *testing.T) {
	t.Parallel()
	o := backend(turn(sub(), scripted.Text("one")), turn(sub(), scripted.Text("two")))
	o.Policy = &policy.Rules{Default: policy.Deny}
	task := fleet.Task{ID: "t0", Prompt: "a", Turns: []string{"b"}}
	got, err := collect(t, fleet.Job{Tasks: []fleet.Task{task}, Options: o, Subagents: &fleet.Subagents{AtOnce: 1, Max: 1}})
	require.NoError(t, err)
	assert.Zero(t, got["t0"].Subagents)
	assert.Zero(t, got["t0"].SubagentsDenied)
	assert.Equal(t, 2, got["t0"].Denied)
}

// The embedded agent's sub-agents are limited like those of a program. They come one after the
// other: of calls in one answer, any may be the first.
func TestSubagentsOfTheEmbeddedAgentAreLimited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		max           fleet.Subagents
		begin, denied int
	}{
		"no limit":      {fleet.Subagents{}, 4, 0},
		"some":          {fleet.Subagents{Max: 3}, 3, 1},
		"depth":         {fleet.Subagents{Depth: 1}, 3, 1},
		"one at a time": {fleet.Subagents{AtOnce: 1}, 3, 1}, // the first asks for another while it works
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := func(prompt string) model.Block {
				return modeltest.Call("Agent", map[string]any{"description": "d", "prompt": prompt, "run_in_background": false})
			}
			s := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
				asks := []string{"inner", "leaf", "leaf"}
				switch first := r.Messages[0].Blocks; first[len(first)-1].Text {
				case "inner":
					asks = []string{"leaf"}
				case "leaf":
					asks = nil
				}
				if answers := len(r.Messages) / 2; answers < len(asks) {
					return modeltest.Say(call(asks[answers]))
				}
				return modeltest.Say(modeltest.Text("done"))
			}}
			o := &sdk.Options{
				Backend: embedded.New(embedded.Config{Model: s.Anthropic(model.Config{}), Name: "m", Dir: t.TempDir()}),
				Policy:  &policy.Rules{Allow: []string{"Agent", "Task"}, Default: policy.Deny},
			}
			got, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, Subagents: &tt.max})
			require.NoError(t, err)
			r := got["t0"]
			assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			assert.Equal(t, [2]int{tt.begin, tt.denied}, [2]int{r.Subagents, r.SubagentsDenied}, "begun and denied")
		})
	}
}
