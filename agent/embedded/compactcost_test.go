package embedded_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// With a limit of the cost, the price of the model that writes a summary must be known, too: its
// request is the largest of a session.
func TestASummaryWithoutAPrice(t *testing.T) {
	t.Parallel()
	const want = "the price of no-such is not known, and MaxBudgetUSD limits the cost: change the model, or add the price to the profiles"
	limited := func(t *testing.T, tokens int) *long {
		l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
			if r.N == 1 {
				return tells("a", 100)
			}
			return bashes("true", tokens)
		})
		l.o.MaxBudgetUSD = sdk.Some(100.0)
		return l
	}
	none := func(t *testing.T, l *long) {
		t.Helper()
		for _, r := range l.Requests() {
			assert.False(t, isSummary(r))
		}
	}
	chooses := func(l *long) {
		l.o.ResolveModelTimeout = -1
		l.o.ResolveModel = func(_ context.Context, r *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
			if r.Purpose == "compact" {
				return sdk.UseModel("no-such"), nil
			}
			return sdk.KeepModel(), nil
		}
	}
	t.Run("the command, chosen by the host", func(t *testing.T) {
		t.Parallel()
		l := limited(t, 100)
		chooses(l)
		c := open(t, l.o)
		l.ask(t, c, "one")
		assert.Contains(t, l.ask(t, c, "/compact").Errors, want)
		none(t, l)
	})
	t.Run("the command, changed", func(t *testing.T) {
		t.Parallel()
		l := limited(t, 100)
		c := open(t, l.o)
		l.ask(t, c, "one")
		require.NoError(t, c.SetModel(t.Context(), "no-such"))
		assert.Contains(t, l.ask(t, c, "/compact").Errors, want)
		none(t, l)
	})
	t.Run("at the window", func(t *testing.T) {
		t.Parallel()
		l := limited(t, 11_000)
		chooses(l)
		c := open(t, l.o)
		l.ask(t, c, "one")
		assert.Contains(t, l.ask(t, c, "two").Errors, want)
		none(t, l)
	})
}

// A summary that breaks off counts for its model and in the cost, and not in the turn's usage, like
// one that is whole.
func TestASummaryThatBreaksOffIsNotPartOfTheTurn(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(*modeltest.Request) *modeltest.Answer { return tells("a", 100) })
	broken := false
	l.Fault = func(r *modeltest.Request) *modeltest.Fault {
		if isSummary(r) && !broken {
			broken = true
			return &modeltest.Fault{BreakAt: 600}
		}
		return nil
	}
	c := open(t, l.o)
	l.ask(t, c, "one")
	r := l.ask(t, c, "/compact")
	assert.True(t, broken)
	assert.Zero(t, r.Usage.InputTokens)
	assert.Equal(t, 100+700+700, int(r.ModelUsage["claude-sonnet-4-5"].InputTokens))
}
