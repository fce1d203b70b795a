//go:build conformance

package conformance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// TestTasksShareAServer has one stdio server for the tasks of a job, where the CLI would start
// one for each. The gates see each call.
func TestTasksShareAServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Script("shared",
		func(modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("mcp__out__say", modelapi.Args{}), modelapi.ToolUse("mcp__out__never", modelapi.Args{})}}
		},
		func(c modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("finished " + c.Arg)}}
		})
	starts := r.at("starts")
	r.hosted = true // a spawner that records would be another place than the server's
	o := r.options()
	o.Spawner = nil
	o.MCPServers = map[string]sdk.MCPServerConfig{"out": {
		Command: os.Args[0], Args: []string{"-test.run=^TestStdioServer$"}, Env: map[string]string{stdioServer: starts}, Shared: true,
	}}
	o.AllowedTools = []string{"mcp__out__say"}
	var tasks []fleet.Task
	for i := range 4 {
		tasks = append(tasks, fleet.Task{ID: fmt.Sprint("t", i), Prompt: fmt.Sprintf("go [[scn:shared %d]]", i)})
	}
	n := 0
	for got, err := range fleet.Run(r.ctx, fleet.Job{Tasks: tasks, Concurrency: 2, Options: o}) {
		require.NoError(t, err)
		assert.Equal(t, fleet.Accepted, got.Status, got.Error)
		assert.Equal(t, "finished "+got.ID[1:], got.Text)
		assert.Equal(t, 2, got.ToolCalls)
		assert.Equal(t, 1, got.Denied, "no rule names the other tool")
		n++
	}
	assert.Equal(t, 4, n)
	said := 0
	for _, q := range r.model.Requests() {
		for _, told := range q.ToolResults() {
			if q.Marker.Scenario == "shared" && told.Text == "from outside" {
				said++
			}
		}
	}
	assert.Equal(t, 4, said)
	started, err := os.ReadFile(starts)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(started), "\n"), "one server for all")
}
