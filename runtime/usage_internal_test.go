package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
)

func models(input, output int64, usd float64) map[string]protocol.ModelUsage {
	return map[string]protocol.ModelUsage{
		"a": {InputTokens: input, CostUSD: usd}, "b": {OutputTokens: output, CacheReadInputTokens: 1, CacheCreationInputTokens: 2},
	}
}

// TestUsage adds results of the three kinds: with sums, with the part of the turn, and with neither.
func TestUsage(t *testing.T) {
	t.Parallel()
	var m meter
	assert.Zero(t, m.read())
	result := func(uuid string, usd float64, r protocol.ResultMessage) Usage {
		r.UUID, r.TotalCostUSD, r.NumTurns = uuid, usd, 2
		return m.add(&r)
	}
	assert.Equal(t, Usage{USD: 1, Turns: 2, Tokens: Tokens{10, 5, 2, 1}}, result("1", 1, protocol.ResultMessage{ModelUsage: models(10, 5, 1)}))
	assert.Equal(t, Usage{USD: 0.5, Turns: 2, Tokens: Tokens{Input: 20, Output: 1}}, result("2", 1.5, protocol.ResultMessage{ModelUsage: models(30, 6, 1.5)}), "sums")
	assert.Zero(t, result("2", 1.5, protocol.ResultMessage{ModelUsage: models(30, 6, 1.5)}), "the same result again")
	assert.Equal(t, Usage{USD: 0.25, Turns: 2, Tokens: Tokens{3, 3, 2, 1}},
		result("3", 2, protocol.ResultMessage{ModelUsage: models(33, 9, 2), ModelUsageSinceLastResult: models(3, 3, 0.25)}), "what the turn used")
	assert.Equal(t, Usage{USD: 0.1, Turns: 2, Tokens: Tokens{7, 1, 2, 1}}, result("4", 0.1, protocol.ResultMessage{ModelUsage: models(7, 1, 0.1)}), "the next process counts anew")
	assert.Equal(t, Usage{Turns: 2, Tokens: Tokens{Input: 4, CacheRead: 5}},
		result("", 0.1, protocol.ResultMessage{Usage: protocol.Usage{InputTokens: 4, CacheReadInputTokens: 5}}), "an agent that names no models")
	all := m.read()
	assert.InDelta(t, 1.85, all.USD, 1e-9)
	assert.Equal(t, 10, all.Turns)
	assert.Equal(t, Tokens{44, 10, 6, 8}, all.Tokens)
}
