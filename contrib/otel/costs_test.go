package troupeotel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

// TestCosts: each dollar is counted once, from the agent's sums or from what it says of
// the turn. A sum that is smaller than the last one was begun anew; the first one of a
// resumed session has the costs of an earlier one.
func TestCosts(t *testing.T) {
	t.Parallel()
	type result struct {
		sum  float64
		turn float64 // 0: not said
	}
	for name, c := range map[string]struct {
		resume  string
		results []result
		want    string
	}{
		"sums":                   {results: []result{{0.5, 0}, {0.75, 0}}, want: "0.75"},
		"sums that begin anew":   {results: []result{{0.5, 0}, {0.25, 0}}, want: "0.75"},
		"of the turn":            {results: []result{{10.5, 0.5}, {10.75, 0.25}}, want: "0.75"},
		"a resumed session":      {resume: id + "1", results: []result{{10, 0}, {10.75, 0}}, want: "0.75"},
		"one that says the turn": {resume: id + "1", results: []result{{10, 0.5}, {10.25, 0}}, want: "0.75"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			script := &scripted.Script{}
			for _, said := range c.results {
				fields := map[string]any{"total_cost_usd": said.sum}
				if said.turn > 0 {
					fields["model_usage_since_last_result"] = map[string]any{"opus": map[string]any{"costUSD": said.turn, "inputTokens": 2, "cacheReadInputTokens": 3, "outputTokens": 7}}
				}
				script.Turns = append(script.Turns, scripted.Turn{Steps: scripted.Steps{&scripted.Result{Fields: fields}}})
			}
			client := sdk.NewClient(&sdk.Options{Tracer: r.Session, Resume: c.resume, Backend: scripted.New(scripted.WithScript(script)), Discard: true})
			require.NoError(t, client.Connect(t.Context()))
			for range c.results {
				turn, err := client.Send(t.Context(), sdk.UserText("go"))
				require.NoError(t, err)
				_, err = turn.Result(t.Context())
				require.NoError(t, err)
			}
			require.NoError(t, client.Close(t.Context()))
			assert.Contains(t, r.measured(t), "troupe.cost ({USD}) gen_ai.agent.name=claude gen_ai.provider.name=anthropic: "+c.want+"\n")
			if c.results[0].turn > 0 {
				assert.Contains(t, r.measured(t), "gen_ai.response.model=opus gen_ai.token.type=input: ")
			}
		})
	}
}
