package simtests_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

func allowAll(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
}

// ask sends a prompt and reads until its result.
func ask(w *simtests.World, c *sdk.Client, prompt string) error {
	turn, err := c.Send(w.Context(), sdk.UserText(prompt))
	if err != nil {
		return err
	}
	_, err = turn.Result(w.Context())
	return err
}

// refund is a turn with a payment behind a permission.
func refund() *scripted.Script {
	return &scripted.Script{Turns: []scripted.Turn{
		{Steps: scripted.Steps{
			scripted.Text("let me see"),
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "pay"}, Gate: agent.GateAsk, Effect: "paid", Takes: 5 * time.Millisecond},
			scripted.Text("done"),
		}},
		{Steps: scripted.Steps{scripted.Text("again")}},
	}}
}

func TestExploreACalmSession(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: 50, Twice: 1}, func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		err := ask(w, c, "refund order 7")
		require.NoError(w, err)
		require.Len(w, w.Effects(), 1)
		require.NoError(w, c.Close(w.Context()))
	})
}

func TestExploreFaults(t *testing.T) {
	simtests.Explore(t, simtests.Config{Seeds: fewer(200)}, func(w *simtests.World) {
		w.Faults(
			simtests.AgentCrash(0.02), simtests.KillActor(0.01), simtests.SlowCallback(0.25, "CanUseTool", 30*time.Second),
			simtests.SplitWrites(0.3), simtests.Noise(0.1), simtests.StallStdout(0.05, time.Second), simtests.PanicCallback(0.2, "CanUseTool"),
			simtests.IgnoreTerm(0.3), simtests.StayAfterEOF(0.3), simtests.UnknownType(0.1), simtests.UnknownAnswer(0.1),
			simtests.AnswerTwice(0.2), simtests.GoexitCallback(0.1, "CanUseTool"), simtests.HostShutdown(0.002), simtests.ClockJump(0.005, time.Minute),
		)
		c, err := w.Dial(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 1}, refund())
		if err != nil {
			return
		}
		err = ask(w, c, "refund order 7")
		w.Sometimes("the turn failed", err != nil)
		err = ask(w, c, "and again")
		w.Sometimes("the second turn went well", err == nil)
		_ = c.Close(w.Context())
	})
}
