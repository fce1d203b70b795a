package runtime_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestTheOptionsOfASession are shown without their secrets.
func TestTheOptionsOfASession(t *testing.T) {
	t.Parallel()
	w := inSim(t, 1)
	spec := w.spec(turns())
	o := &spec.Options
	o.Model, o.Title, o.MaxTurns, o.MaxBudgetUSD = "opus", "t", session.Some(60), session.Some(2.5)
	o.Env = map[string]string{"GITHUB_TOKEN": "geheim", "EMPTY": ""}
	o.ExtraArgs = map[string]session.Opt[string]{"api-key": session.Some("geheim")}
	o.Policy = &policy.Rules{Allow: []string{"Read"}, Ask: []string{"Bash(rm *)"}}
	o.Limits.Stall = 42 * time.Minute
	o.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		return protocol.PermissionResult{}, nil
	}
	o.MCPServers = map[string]session.MCPServerConfig{
		"web":   {Type: "http", URL: "https://mira:geheim@tracker.example/geheim?k=geheim", Headers: map[string]string{"Authorization": "geheim"}},
		"local": {Command: "serve", Args: []string{"--token", "geheim"}, Env: map[string]string{"K": "geheim"}},
	}
	s := w.open(spec)
	got := s.Options()
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "geheim")
	assert.NotContains(t, string(raw), "mira")
	set := "•••• set"
	assert.Equal(t, []any{"opus", "t", 60, 2.5}, []any{got["model"], got["title"], got["maxTurns"], got["maxBudgetUsd"]})
	assert.Equal(t, map[string]any{"GITHUB_TOKEN": set, "EMPTY": set}, got["env"])
	assert.Equal(t, map[string]any{"api-key": set}, got["extraArgs"])
	assert.Equal(t, []any{"Bash(rm *)"}, got["policy"].(map[string]any)["ask"])
	limits := got["limits"].(map[string]any)
	assert.Equal(t, "42m0s", limits["stall"])
	assert.Equal(t, "1m0s", limits["control"], "a default in force")
	assert.Equal(t, "set", got["canUseTool"])
	servers := got["mcpServers"].(map[string]any)
	assert.Equal(t, "https://tracker.example", servers["web"].(map[string]any)["url"])
	assert.Equal(t, map[string]any{"Authorization": set}, servers["web"].(map[string]any)["headers"])
	assert.Equal(t, "serve", servers["local"].(map[string]any)["command"])
	assert.Equal(t, []any{set, set}, servers["local"].(map[string]any)["args"])
	assert.NotContains(t, got, "resume", "it is not set")
}
