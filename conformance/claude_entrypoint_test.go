//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session presents itself as the vendor's SDK and names Troupe beside it. Under another name the agent is another one:
// it offers the model a subagent more.
func TestEntrypoint(t *testing.T) { //nolint:tparallel // what both say is compared
	t.Parallel()
	run := func(t *testing.T, env map[string]string) (agent string, agents []string) {
		t.Helper()
		r := newRig(t)
		o := r.options()
		for name, value := range env {
			o.Env[name] = value
		}
		c := r.connect(o)
		offered, err := c.Agents()
		require.NoError(t, err)
		for _, a := range offered {
			agents = append(agents, a.Name)
		}
		r.ask(c, "hi [[scn:text]]")
		for _, request := range r.model.Requests() {
			agent = request.Header.Get("User-Agent")
		}
		r.close(c)
		return agent, agents
	}
	var agents, ownAgents []string
	t.Run("the vendor's SDK", func(t *testing.T) { // a rig for each, as each has a slot
		var agent string
		agent, agents = run(t, nil)
		assert.Contains(t, agent, "(external, sdk-ts, agent-sdk/0.3.329, client-app/troupe)")
		assert.NotContains(t, agents, "claude-code-guide")
	})
	t.Run("another name", func(t *testing.T) {
		var own string
		own, ownAgents = run(t, map[string]string{"CLAUDE_CODE_ENTRYPOINT": "sdk-go", "CLAUDE_AGENT_SDK_CLIENT_APP": "mine/1.0"})
		assert.Contains(t, own, "(external, sdk-go, agent-sdk/0.3.329, client-app/mine/1.0)")
		assert.Contains(t, ownAgents, "claude-code-guide")
	})
	assert.Subset(t, ownAgents, agents)
}
