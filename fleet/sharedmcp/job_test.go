package sharedmcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/sdk"
)

// Where it cannot be shared the job does not start.
func TestJobsWithServersThatCannotBeShared(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*sdk.Options{
		"in a container": {Spawner: sdk.SpawnThrough(nil), MCPServers: map[string]sdk.MCPServerConfig{"db": {Command: "x", Shared: true}}},
		"with a URL":     {MCPServers: map[string]sdk.MCPServerConfig{"db": {Type: "http", URL: "https://x", Shared: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := fleet.Job{Tasks: []fleet.Task{{ID: "a", Prompt: "x"}}, Options: o}
			require.ErrorContains(t, job.Validate(), `MCPServers["db"].Shared`)
			_, err := sharedmcp.New(nil, sharedmcp.Options{}).Share(t.Context(), o)
			require.NotEmpty(t, sdk.ConfigErrors(err))
			job.SharedMCP, job.SharedMCPDir = sharedmcp.New(nil, sharedmcp.Options{}), "x"
			require.ErrorContains(t, job.Validate(), "SharedMCPDir: is for")
			job.SharedMCP = nil
			o.MCPServers["db"] = sdk.MCPServerConfig{Command: "x"}
			require.NoError(t, job.Validate())
		})
	}
}
