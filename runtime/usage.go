package runtime

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/agent-troupe/troupe/protocol"
)

// Usage is what a session's agent has used since the session was opened, as its results say.
// The turn that runs is not in it.
type Usage struct {
	USD     float64 `json:"usd"`     // US dollars, an estimate of the agent
	Credits float64 `json:"credits"` // Qoder's
	Turns   int     `json:"turns"`   // calls of the model and tool results, as protocol.ResultMessage.NumTurns counts them
	Tokens  Tokens  `json:"tokens"`  // by class
}

// Tokens are tokens by class, of all models together.
type Tokens struct {
	Input      int64 `json:"input"`      // without those of the prompt cache
	Output     int64 `json:"output"`     // thinking included
	CacheWrite int64 `json:"cacheWrite"` // input that was written to the prompt cache
	CacheRead  int64 `json:"cacheRead"`  // input that was read from it
}

func (t *Tokens) add(o Tokens) {
	t.Input += o.Input
	t.Output += o.Output
	t.CacheWrite += o.CacheWrite
	t.CacheRead += o.CacheRead
}

// minus is t - o, or t where o is more in any class: the agent then counts anew.
func (t Tokens) minus(o Tokens) Tokens {
	d := Tokens{t.Input - o.Input, t.Output - o.Output, t.CacheWrite - o.CacheWrite, t.CacheRead - o.CacheRead}
	if min(d.Input, d.Output, d.CacheWrite, d.CacheRead) < 0 {
		return t
	}
	return d
}

func (t Tokens) total() int64 { return t.Input + t.Output + t.CacheWrite + t.CacheRead }

// meter counts the usage of one session. The actor that owns the routing adds, and anyone reads.
type meter struct {
	used atomic.Pointer[Usage] // nil before the first result

	// The sums that the agent reported last.
	usd, credits float64
	tokens       Tokens
	result       string // the uuid of the last result, which may come again
}

// read is the usage so far.
func (m *meter) read() Usage {
	if u := m.used.Load(); u != nil {
		return *u
	}
	return Usage{}
}

// add takes a result, and returns what it adds.
func (m *meter) add(r *protocol.ResultMessage) (added Usage) {
	if r.UUID != "" && r.UUID == m.result {
		return Usage{}
	}
	m.result = r.UUID
	added.Turns = r.NumTurns
	if r.TotalCostUSD < m.usd || r.TotalCredits < m.credits { // another process, or /clear
		m.usd, m.credits, m.tokens = 0, 0, Tokens{}
	}
	added.USD, added.Credits = r.TotalCostUSD-m.usd, r.TotalCredits-m.credits
	m.usd, m.credits = r.TotalCostUSD, r.TotalCredits
	sums, _ := ofModels(r.ModelUsage)
	switch {
	case r.ModelUsageSinceLastResult != nil:
		added.Tokens, added.USD = ofModels(r.ModelUsageSinceLastResult)
	case len(r.ModelUsage) > 0:
		added.Tokens = sums.minus(m.tokens)
	default:
		u := &r.Usage
		added.Tokens = Tokens{u.InputTokens, u.OutputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens}
	}
	m.tokens = sums
	all := m.read()
	all.USD += added.USD
	all.Credits += added.Credits
	all.Turns += added.Turns
	all.Tokens.add(added.Tokens)
	m.used.Store(&all)
	return added
}

// ofModels adds up what models used.
func ofModels(all map[string]protocol.ModelUsage) (t Tokens, usd float64) {
	for _, name := range slices.Sorted(maps.Keys(all)) { // sums of dollars depend on the order
		u := all[name]
		t.add(Tokens{u.InputTokens, u.OutputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens})
		usd += u.CostUSD
	}
	return t, usd
}
