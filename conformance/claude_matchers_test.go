//go:build conformance

package conformance_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

// A hook is called for what its pattern matches, whatever the agent's own engine
// makes of the pattern. Most of these were dropped silently by Claude Code when
// they were sent to it.
func checkMatchersFire(t *testing.T, rel release) {
	bash := []string{
		"Bash", "Bash|Write", "Bash, Write", "Bash | Write", "*", "", "(?i)bash", "(?i)bash|write", "Bash|(?i)write",
		`\ABash\z`, `^Bash\z`, `\QBash\E`, "(?P<tool>Bash)", "(?<tool>Bash)", "[[:alpha:]]+", "[[:upper:]].*", `\p{L}+`,
		`\pL+`, `\p{Lu}.*`, "(?s)B.*", "(?s:B.*)", "(?U)B.*", "(?m)^Bash$", `B\x{61}sh`, `\x42ash`, `B\141sh`, `\a|Bash`,
		"(?:Bash)", "^(Bash|Write)$", "B.*", ".*", "B[a-z]+", `B\w+`, "Bash{1}", "^Bash$", "Bash$", "^Ba",
	}
	server := []string{"mcp__srv", "mcp__srv__act", "mcp__srv__.*", "mcp__srv__*", "mcp__srv.*", "mcp__", "mcp__.*", "Bash|mcp__srv"}
	neither := []string{"bash", "Ba", "ash", "Write", "^Write$", "mcp__other", "srv"}

	r := rel.rig(t)
	srv, err := sdk.NewMCPServer("srv", "1", sdk.NewTool("act", "acts", func(context.Context, struct{}) (*sdk.ToolResult, error) {
		return sdk.Text("acted"), nil
	}))
	require.NoError(t, err)
	o := r.options()
	o.SDKMCPServers = []*sdk.MCPServer{srv}
	o.AllowedTools = []string{"Bash", "mcp__srv__act"}
	var mu sync.Mutex
	fired := map[string]bool{}
	for _, list := range [][]string{bash, server, neither} {
		for _, pattern := range list {
			o.Hooks = append(o.Hooks, sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				mu.Lock()
				defer mu.Unlock()
				fired[pattern+" of "+in.ToolName] = true
				return sdk.PreToolUseOutput{}, nil
			}, sdk.Match(pattern)))
		}
	}
	r.model.Script("both", modelapi.Say(shell("true")), modelapi.Say(modelapi.ToolUse("mcp__srv__act", modelapi.Args{})),
		modelapi.Say(modelapi.Text("Both done.")))
	_, _ = r.once(o, "use both [[scn:both]]")
	for _, pattern := range bash {
		assert.True(t, fired[pattern+" of Bash"], "%s is for Bash", pattern)
	}
	for _, pattern := range server {
		assert.True(t, fired[pattern+" of mcp__srv__act"], "%s is for mcp__srv__act", pattern)
	}
	for _, pattern := range neither {
		assert.False(t, fired[pattern+" of Bash"], "%s is not for Bash", pattern)
	}
	for _, pattern := range neither[:len(neither)-1] {
		assert.False(t, fired[pattern+" of mcp__srv__act"], "%s is not for mcp__srv__act", pattern)
	}
}

// A gate denies by such a pattern.
func checkMatcherDenies(t *testing.T, rel release) {
	for _, pattern := range []string{"(?i)bash", `\ABash\z`, `\p{L}+`, "[[:alpha:]]+"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			_, result := r.once(r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.DenyPreToolUse("no"), nil
			}, sdk.Match(pattern)), r.touch("made"))
			assert.NoFileExists(t, r.at("made"))
			assert.Len(t, result.PermissionDenials, 1)
		})
	}
}
