package sessions_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

func TestCLIMatchersOfServersAndAgents(t *testing.T) {
	r := newRig(t)
	srv, err := sdk.NewMCPServer("srv", "1", sdk.NewTool("act", "acts", func(context.Context, struct{}) (*sdk.ToolResult, error) { return sdk.JSONResult("acted"), nil }))
	if err != nil {
		t.Fatal(err)
	}
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{srv}
	o.AllowedTools = []string{"Bash", "mcp__srv__act", "Agent", "Task"}
	var mu sync.Mutex
	fired := map[string]bool{}
	for _, p := range []string{"mcp__srv", "mcp__srv__act", "mcp__srv__.*", "mcp__srv__*", "mcp__srv.*", "mcp__", "mcp__.*", "Task", "Agent", "Bash|mcp__srv", "srv", "act"} {
		o.Hooks = append(o.Hooks, sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			fired[in.ToolName+" by "+p] = true
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match(p)))
	}
	out, _ := r.play(o, one(modelapi.ToolUse("mcp__srv__act", modelapi.Args{})), one(modelapi.ToolUse("Agent", modelapi.Args{"description": "d", "prompt": "p [[scn:text]]", "subagent_type": "general-purpose", "run_in_background": false})))
	t.Logf("%v", out)
	for _, f := range slices.Sorted(maps.Keys(fired)) {
		t.Log(f)
	}
	if !fired["mcp__srv__act by mcp__srv"] {
		t.Error("a gate with Match(\"mcp__srv\") is never asked: a name of letters and _ is compared as a whole, not as a regular expression (docs/hooks.md)")
	}
}
