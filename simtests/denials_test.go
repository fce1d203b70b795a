package simtests_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// The words were recorded from Claude Code 2.1.329 (conformance.TestDenialsOfTheDouble).
// The scripted agent says the same.
func TestDenialsAreTheRealOnes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../agent/testdata/denials.json")
	require.NoError(t, err)
	var all []struct {
		Tool, Arg, Disallowed, Callback, Text string
		Mode                                  sdk.PermissionMode
	}
	require.NoError(t, json.Unmarshal(raw, &all))
	require.NotEmpty(t, all)
	act := func(context.Context, struct{}) (*sdk.ToolResult, error) { return sdk.Text("acted"), nil }
	server, err := sdk.NewMCPServer("one", "", sdk.NewTool("get_a", "Gets.", act))
	require.NoError(t, err)
	ask := func(r sdk.PermissionResult, err error) sdk.CanUseTool {
		return func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) { return r, err }
	}
	for i, d := range all {
		t.Run(fmt.Sprint(i, d.Tool, d.Mode, d.Callback), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := &sdk.Options{Cwd: dir, SDKMCPServers: []*sdk.MCPServer{server}, PermissionMode: d.Mode}
			if d.Disallowed != "" {
				o.DisallowedTools = []string{d.Disallowed}
			}
			switch d.Callback {
			case "deny":
				o.CanUseTool = ask(sdk.Deny("not now"), nil)
			case "stop":
				o.CanUseTool = ask(sdk.DenyAndStop("enough"), nil)
			case "fail":
				o.CanUseTool = ask(sdk.PermissionResult{}, errBroken)
			case "hook":
				o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
					return sdk.DenyPreToolUse("not now"), nil
				})}
			}
			arg := strings.ReplaceAll(d.Arg, "{dir}", dir)
			input := map[string]any{}
			if key := map[string]string{"Bash": "command", "Read": "file_path", "Write": "file_path", "WebFetch": "url"}[d.Tool]; key != "" {
				input[key] = arg
			}
			p, err := simtests.AskPermission(t.Context(), o, d.Tool, input)
			if d.Callback == "fail" {
				require.ErrorIs(t, err, errBroken)
			} else {
				require.NoError(t, err)
			}
			require.False(t, p.Allowed)
			require.Equal(t, d.Text, strings.ReplaceAll(p.Message, dir, "{dir}"))
		})
	}
}
