package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

// Tokens are counted by class, those of subagents too, and a budget of one class is not
// spent by the others.
func TestTokensHaveClasses(t *testing.T) {
	t.Parallel()
	yes, text := true, "overloaded"
	model := func(input, output, write, read int) map[string]any {
		return map[string]any{"inputTokens": input, "outputTokens": output, "cacheCreationInputTokens": write, "cacheReadInputTokens": read, "costUSD": 0.1}
	}
	// Each attempt fails, so that the budget decides whether there is another one.
	once := turn(&scripted.Result{IsError: &yes, Text: &text, APIErrorStatus: 529, Fields: map[string]any{
		"usage":      map[string]any{"input_tokens": 1, "output_tokens": 1}, // of the main agent's last call
		"modelUsage": map[string]any{"main": model(10, 20, 300, 9000), "of a subagent": model(1, 2, 30, 900)},
	}})
	each := fleet.Tokens{Input: 11, Output: 22, CacheWrite: 330, CacheRead: 9900}
	for name, c := range map[string]struct {
		budget fleet.Tokens
		spent  bool
	}{
		"input":                 {fleet.Tokens{Input: each.Input}, true},
		"more input":            {fleet.Tokens{Input: each.Input + 1}, false},
		"output":                {fleet.Tokens{Output: each.Output}, true},
		"more output":           {fleet.Tokens{Output: each.Output + 1}, false},
		"written to the cache":  {fleet.Tokens{CacheWrite: each.CacheWrite}, true},
		"more for the cache":    {fleet.Tokens{CacheWrite: each.CacheWrite + 1}, false},
		"read from the cache":   {fleet.Tokens{CacheRead: each.CacheRead}, true},
		"more out of the cache": {fleet.Tokens{CacheRead: each.CacheRead + 1}, false},
		"no limit":              {fleet.Tokens{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(once), Attempts: 1, TaskBudget: &fleet.Budget{Tokens: c.budget}})
			require.NoError(t, err)
			r := results["t0"]
			assert.Equal(t, each, r.Usage.Tokens)
			want := fleet.Overloaded
			if c.spent {
				want = fleet.OverBudget
			}
			assert.Equal(t, want, r.Status, r.Error)
		})
	}
}
