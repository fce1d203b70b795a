package simtests_test

import (
	"context"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// till is a part of a user's program, with the clock that production gives it: a refund is
// allowed when an hour has passed since the one before.
type till struct {
	clock clock.Clock
	paid  time.Time
}

func (p *till) allow(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	timer := p.clock.Timer(time.Hour - p.clock.Since(p.paid))
	defer timer.Stop()
	select {
	case <-timer.C:
		p.paid = p.clock.Now()
		return sdk.Allow(), nil
	case <-ctx.Done():
		return sdk.Deny("the turn is over"), ctx.Err()
	}
}

// A clock that a user's code was given goes with the world's time: its timers fire to the
// instant, and no real time passes.
func TestAUsersClockGoesWithTheWorld(t *testing.T) {
	t.Parallel()
	pay := &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "pay"}, Gate: agent.GateAsk}
	report := simtests.Explore(t, simtests.Config{Seeds: 20, Cost: 20, Twice: 1}, func(w *simtests.World) {
		own := clock.New()
		began := own.Now()
		p := &till{clock: own, paid: began}
		reported := 0
		ticker := own.Ticker(30 * time.Minute)
		w.Go(func() {
			defer ticker.Stop()
			for reported < 4 {
				<-ticker.C
				reported++
				assert.Equal(w, began.Add(time.Duration(reported)*30*time.Minute), own.Now())
			}
		})
		c := w.Open(&sdk.Options{CanUseTool: p.allow}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{pay, pay, scripted.Text("paid")}}}})
		_, r, err := simtests.Ask(w.Context(), c, "refund twice")
		require.NoError(w, err)
		require.False(w, r.Failed())
		assert.Equal(w, began.Add(2*time.Hour), p.paid)
		require.NoError(w, c.Close(w.Context()))
		w.Run()
		assert.Equal(w, 4, reported)
	})
	assert.Zero(t, report.Unseeded)
}
