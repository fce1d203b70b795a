package sharedmcp_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// Two jobs use one process of the server db, wherever their tasks work.
func Example() {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = rt.Shutdown(ctx) }()
	servers := sharedmcp.New(rt, sharedmcp.Options{Dir: os.TempDir()})
	defer func() { _ = servers.Close(ctx) }()

	for _, name := range []string{"nightly", "weekly"} {
		opts := &sdk.Options{
			Backend: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
				&scripted.ToolUse{Name: "mcp__db__pid"}, scripted.Text("asked"),
			}})),
			AllowedTools: []string{"mcp__db__pid"},
			Runtime:      rt,
			// This program is the server, too.
			MCPServers: map[string]sdk.MCPServerConfig{"db": {
				Command: os.Args[0], Env: map[string]string{serverEnv: os.DevNull}, Shared: true,
			}},
		}
		job := fleet.Job{ID: name, Options: opts, SharedMCP: servers, Tasks: []fleet.Task{{ID: "a", Prompt: "go"}, {ID: "b", Prompt: "go"}}}
		for result, err := range fleet.Run(ctx, job) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(name, result.ID, result.Status)
		}
		fmt.Println(servers.Running(), "server runs")
	}
	// Unordered output:
	// nightly a accepted
	// nightly b accepted
	// 1 server runs
	// weekly a accepted
	// weekly b accepted
	// 1 server runs
}
