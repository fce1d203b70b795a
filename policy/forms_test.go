package policy_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Commands in thousands of forms: options, quotes, texts and filters, each varied. A policy
// allows none that the agent does not.
func TestForms(t *testing.T) {
	t.Parallel()
	const dir = "/work/repo"
	raw, err := os.ReadFile("testdata/forms.json")
	require.NoError(t, err)
	var forms struct{ Decisions map[string][]string }
	require.NoError(t, json.Unmarshal(raw, &forms))
	sets, strict := readUsual(t).RuleSets, map[string]int{"allow": 0, "ask": 1, "deny": 2}
	tried, equal := 0, 0
	for what, commands := range forms.Decisions {
		name, agent, _ := strings.Cut(what, " ")
		rules := sets[name]
		rules.Cwd, rules.Root, rules.Home = dir, dir, "/home/u"
		p := compile(t, rules)
		for _, command := range commands {
			in := bash(strings.ReplaceAll(command, "{dir}", dir))
			in.Cwd = dir
			e := p.Explain(in)
			tried++
			if strict[string(e.Behavior)] == strict[agent] {
				equal++
			}
			assert.GreaterOrEqual(t, strict[string(e.Behavior)], strict[agent], "under %s the agent decides %s about %q: %s", name, agent, command, e)
		}
	}
	t.Logf("%d of %d decisions are equal, the others stricter", equal, tried)
	assert.Greater(t, tried, 3500)
	assert.Greater(t, 100*equal, 85*tried)
}
