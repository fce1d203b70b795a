package view

import (
	"maps"
	"math"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// Amount is money and credits, which are never added to each other: Claude
// counts US dollars, Qoder its own credits.
type Amount struct {
	USD     float64 // US dollars, an estimate of the agent
	Credits float64 // Qoder credits
}

func (a Amount) plus(b Amount) Amount  { return Amount{a.USD + b.USD, a.Credits + b.Credits} }
func (a Amount) minus(b Amount) Amount { return Amount{a.USD - b.USD, a.Credits - b.Credits} }

// TurnCost is what one turn cost.
type TurnCost struct {
	Result *protocol.ResultMessage // the turn's result; never nil
	Amount
	// Models is the usage of each model in the turn, by name.
	Models map[string]protocol.ModelUsage
}

// Costs counts the costs of a session: of each turn, and of all turns that were added. The
// agents report sums; the cost of a turn is the difference, or the usage that the agent
// reports for the turn. A result that arrives twice counts once.
//
// The sums of a resumed session include the costs before the resume ([Costs.Before]). An
// agent may restart its sums: Claude Code 2.1.329 does after /clear (observed).
type Costs struct {
	turns  []TurnCost
	spent  Amount
	before Amount
	models map[string]protocol.ModelUsage

	seen     map[string]bool // uuids of results
	began    bool
	last     Amount // the last sums that were reported
	sums     map[string]protocol.ModelUsage
	expected Amount // what the next sum stands on
}

// Turns returns the turns in the order in which they ended, since Forget.
func (c *Costs) Turns() []TurnCost { return c.turns }

// Forget drops the turns and the messages they hold; the sums stay. A result
// that comes again is still not counted again.
func (c *Costs) Forget() { c.turns = nil }

// Spent is the sum of the turns, of those forgotten too.
func (c *Costs) Spent() Amount { return c.spent }

// Before returns the costs of the session before the first turn, if it was resumed.
func (c *Costs) Before() Amount { return c.before }

// Reported is the agent's own sum, in the last result.
func (c *Costs) Reported() Amount { return c.last }

// Gap returns how much the agent's own sum exceeds the sum of Costs; zero if they agree.
// Differences by rounding are ignored.
func (c *Costs) Gap() Amount {
	gap := c.last.minus(c.expected)
	return Amount{USD: withoutRounding(gap.USD, c.last.USD), Credits: withoutRounding(gap.Credits, c.last.Credits)}
}

func withoutRounding(gap, of float64) float64 {
	if math.Abs(gap) <= 1e-9*max(1, math.Abs(of)) {
		return 0
	}
	return gap
}

// Models returns the usage of each model in all turns, by name.
func (c *Costs) Models() map[string]protocol.ModelUsage { return maps.Clone(c.models) }

// ModelNames returns the names of the models in alphabetical order.
func (c *Costs) ModelNames() []string { return slices.Sorted(maps.Keys(c.models)) }

// Add takes a message and returns the turn that it ended, or nil.
func (c *Costs) Add(m protocol.Message) *TurnCost {
	r, ok := known(m).(*protocol.ResultMessage)
	if !ok || c.seen[r.UUID] {
		return nil
	}
	if c.seen == nil {
		c.seen, c.models = map[string]bool{}, map[string]protocol.ModelUsage{}
	}
	if r.UUID != "" {
		c.seen[r.UUID] = true
	}
	turn := TurnCost{Result: r, Models: r.ModelUsageSinceLastResult}
	sum := Amount{USD: r.TotalCostUSD, Credits: r.TotalCredits}
	if sum.USD < c.last.USD && withoutRounding(sum.USD-c.last.USD, c.last.USD) != 0 || sum.Credits < c.last.Credits {
		c.expected, c.last, c.sums = Amount{}, Amount{}, nil // it counts anew
	}
	turn.Amount = sum.minus(c.last)
	if turn.Models == nil {
		turn.Models = difference(r.ModelUsage, c.sums)
	} else {
		turn.USD = 0
		for _, name := range slices.Sorted(maps.Keys(turn.Models)) {
			turn.USD += turn.Models[name].CostUSD
		}
	}
	if !c.began {
		c.began = true
		c.before = sum.minus(turn.Amount)
		c.before.USD = withoutRounding(c.before.USD, sum.USD)
		c.expected = c.before
	}
	c.spent = c.spent.plus(turn.Amount)
	c.expected = c.expected.plus(turn.Amount)
	c.last, c.sums = sum, r.ModelUsage
	for name, u := range turn.Models { //troupe:maporder sums by key
		c.models[name] = tally(u, c.models[name], u, 1)
	}
	c.turns = append(c.turns, turn)
	return &c.turns[len(c.turns)-1]
}

// difference is what was used since the sums before.
func difference(sums, before map[string]protocol.ModelUsage) map[string]protocol.ModelUsage {
	out := make(map[string]protocol.ModelUsage, len(sums))
	none := protocol.ModelUsage{}
	for name, u := range sums { //troupe:maporder one entry by key
		if d := tally(u, u, before[name], -1); d != tally(u, none, none, 1) {
			out[name] = d
		}
	}
	return out
}

// tally returns of with the counters of a + sign*b; names and limits stay.
func tally(of, a, b protocol.ModelUsage, sign int64) protocol.ModelUsage {
	of.InputTokens = a.InputTokens + sign*b.InputTokens
	of.OutputTokens = a.OutputTokens + sign*b.OutputTokens
	of.ThinkingTokens = a.ThinkingTokens + sign*b.ThinkingTokens
	of.CacheReadInputTokens = a.CacheReadInputTokens + sign*b.CacheReadInputTokens
	of.CacheCreationInputTokens = a.CacheCreationInputTokens + sign*b.CacheCreationInputTokens
	of.CacheCreationEphemeral1hInputTokens = a.CacheCreationEphemeral1hInputTokens + sign*b.CacheCreationEphemeral1hInputTokens
	of.CacheCreationEphemeral5mInputTokens = a.CacheCreationEphemeral5mInputTokens + sign*b.CacheCreationEphemeral5mInputTokens
	of.WebSearchRequests = a.WebSearchRequests + sign*b.WebSearchRequests
	of.CostUSD = a.CostUSD + float64(sign)*b.CostUSD
	of.Credits = a.Credits + float64(sign)*b.Credits
	return of
}
