package simtests_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// A turn without progress is interrupted after Limits.Stall; what only takes long is
// not.
func TestStall(t *testing.T) {
	t.Parallel()
	tool := func(takes time.Duration) *scripted.ToolUse {
		return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Gate: agent.GateAsk, Takes: takes}
	}
	slow := func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		time.Sleep(2 * time.Hour)
		return allowAll(ctx, nil)
	}
	retries := make(scripted.Steps, 20)
	for i := range retries {
		retries[i] = &scripted.APIRetry{Attempt: i + 1, Delay: 5 * time.Minute}
	}
	words := make(scripted.Steps, 0, 20)
	for range 10 {
		words = append(words, scripted.Text("word"), scripted.Delay(29*time.Minute))
	}
	for name, c := range map[string]struct {
		steps  scripted.Steps
		ask    sdk.CanUseTool
		limit  time.Duration
		stalls bool
	}{
		"nothing comes":                  {scripted.Steps{scripted.Text("hm"), scripted.Delay(2 * time.Hour)}, nil, 0, true},
		"nothing comes, another limit":   {scripted.Steps{scripted.Delay(20 * time.Minute)}, nil, 10 * time.Minute, true},
		"nothing comes, no limit":        {scripted.Steps{scripted.Delay(20 * time.Hour)}, nil, -1, false},
		"the agent only tries again":     {retries, nil, 0, true},
		"words that come slowly":         {words, nil, 0, false},
		"a tool that runs long":          {scripted.Steps{tool(2 * time.Hour)}, allowAll, 0, false},
		"a tool that reports nothing":    {scripted.Steps{&scripted.ToolUse{Name: "WebFetch", Input: map[string]any{"url": "https://x.invalid"}, Gate: agent.GateAsk, Takes: 2 * time.Hour}}, allowAll, 0, false},
		"nothing comes after a tool":     {scripted.Steps{tool(2 * time.Hour), scripted.Delay(time.Hour)}, allowAll, 0, true},
		"a person who decides slowly":    {scripted.Steps{tool(0)}, slow, 0, false},
		"a background task in the turn":  {scripted.Steps{&scripted.Shell{Command: "serve", Takes: 2 * time.Hour}, scripted.Delay(90 * time.Minute)}, allowAll, 0, false},
		"nothing comes after the person": {scripted.Steps{tool(0), scripted.Delay(time.Hour)}, slow, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simtests.Explore(t, simtests.Config{Seeds: 5, Cost: 20, Twice: -1}, func(w *simtests.World) {
				var stalled []*session.TurnStalled
				o := &sdk.Options{CanUseTool: c.ask, OnEvent: func(r session.EventRecord) {
					if e, ok := r.Event.(*session.TurnStalled); ok {
						stalled = append(stalled, e)
					}
				}}
				o.Limits.Stall, o.Limits.Retry = c.limit, -1 // else that limit holds for retries
				client := w.Open(o, &scripted.Script{Turns: []scripted.Turn{{Steps: c.steps}, {Steps: scripted.Steps{scripted.Text("again")}}}})
				first, err := client.Send(w.Context(), sdk.UserText("go"))
				require.NoError(w, err)
				r, err := first.Result(w.Context())
				require.NoError(w, err)
				require.Equal(w, c.stalls, r.Interrupted())
				_, r, err = simtests.Ask(w.Context(), client, "on")
				require.NoError(w, err)
				require.False(w, r.Failed())
				require.NoError(w, client.Close(w.Context()))
				w.Run() // OnEvent has its own task
				if c.stalls {
					limit := max(c.limit, 30*time.Minute)
					if c.limit > 0 {
						limit = c.limit
					}
					require.Len(w, stalled, 1)
					assert.Equal(w, session.TurnStalled{Idle: limit, Limit: limit}, *stalled[0])
				} else {
					require.Empty(w, stalled)
				}
			})
		})
	}
}
