//go:build conformance

package conformance_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

const realCassette = "../simtests/testdata/claude.jsonl"

// A session of the real agent is recorded, and its host then talks to the recording as
// it did to the agent. The recording that package simtests replays is made here, with
// TROUPE_RECORD=1.
func TestCassetteOfTheRealAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	refund := sdk.NewTool("refund", "Refunds an order.", func(_ context.Context, in struct {
		Order int `json:"order"`
	}) (*sdk.ToolResult, error) {
		return sdk.Text("refunded"), nil
	})
	options := func() *sdk.Options {
		o := r.options()
		server, err := sdk.NewMCPServer("shop", "", refund)
		require.NoError(t, err)
		o.SDKMCPServers = []*sdk.MCPServer{server}
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, nil
		}, sdk.Match("Bash"))}
		o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			if ask.ToolName == "Bash" {
				return sdk.Deny("not now"), nil
			}
			return sdk.Allow(), nil
		}
		return o
	}
	r.model.Script("shop",
		modelapi.Say(shell("touch paid")),
		modelapi.Say(modelapi.ToolUse("mcp__shop__refund", modelapi.Args{"order": 7})),
		modelapi.Say(modelapi.Text("Refunded.")))
	talk := func(o *sdk.Options) {
		c := r.connect(o)
		messages, result := r.ask(c, "refund order 7 [[scn:shop]]")
		assert.False(t, result.Failed())
		assert.NotEmpty(t, messages)
		r.close(c)
	}
	recording := simtests.Record(options())
	talk(recording.Options())
	cassette := recording.Cassette()
	if os.Getenv("TROUPE_RECORD") != "" {
		require.NoError(t, cassette.Save(realCassette))
	}
	o := options()
	o.Spawner, o.Backend = nil, cassette.Replay(t)
	talk(o)
}
