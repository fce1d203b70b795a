package simulation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// Without the kit: a session with the scripted agent works in a testing/synctest bubble.
// Nobody decides for an hour, and the test takes milliseconds.
func TestNobodyDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.New(runtime.Config{}) // its own: nothing may cross bubbles
		require.NoError(t, err)
		began := time.Now()
		var effects []string
		script := scripted.New(
			scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
				&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -r build"}, Gate: agent.GateAsk, Effect: "removed"},
			}}),
			scripted.WithEffect(func(_, line string) error { effects = append(effects, line); return nil }),
		)
		c := sdk.NewClient(&sdk.Options{
			Runtime: rt, Backend: script, PermissionTimeout: time.Hour,
			CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				<-ctx.Done() // a person who has gone home
				return protocol.PermissionResult{}, context.Cause(ctx)
			},
		})
		require.NoError(t, c.Connect(t.Context()))
		turn, err := c.Send(t.Context(), sdk.UserText("clean up"))
		require.NoError(t, err)
		_, err = turn.Result(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, rt.Shutdown(t.Context()))
		require.Empty(t, effects, "the tool did not run")
		require.GreaterOrEqual(t, time.Since(began), time.Hour)
	})
}
