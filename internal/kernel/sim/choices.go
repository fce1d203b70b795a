package sim

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Choices are where a [Bubble] gets its decisions from: drawn from a seed, and kept;
// or given, to play a history again. A decision that is not given is 0, which is the
// plainest: inline, one message, the one that has waited longest.
type Choices struct {
	rng   *rand.Rand // of decisions
	rest  *rand.Rand // of all else that is drawn, such as ids
	given []uint16
	play  bool // given counts, nothing is drawn
	taken []uint16
	outOf []uint16 // among how many each was taken
	pct   *priorities
	plain bool
}

// Draw returns choices that follow from seed.
func Draw(seed uint64) *Choices {
	return &Choices{rng: rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)), rest: rand.New(rand.NewPCG(seed, 0xD1B54A32D192ED03))}
}

// Play returns choices that are given. The seed is that of all else that is drawn.
func Play(seed uint64, given []uint16) *Choices {
	c := Draw(seed)
	c.given, c.play = given, true
	return c
}

// priorities are those of the tasks in a walk by probabilistic concurrency testing
// (PCT): the one with the highest runs, and at a few points the one that runs becomes
// the last. A bug that needs d such changes is found with a probability that does not
// depend on how many other tasks there are.
type priorities struct {
	of      map[uint64]uint64
	lowest  uint64
	changes []int // at which picks
	picks   int
}

// DrawPCT returns choices that follow from seed, in which tasks have priorities that
// change depth times, at picks up to a bound that is drawn, too.
func DrawPCT(seed uint64, depth int) *Choices {
	c := Draw(seed)
	c.pct = &priorities{of: make(map[uint64]uint64), lowest: lowest}
	span := 32 << c.rng.IntN(7)
	for range depth {
		c.pct.changes = append(c.pct.changes, c.rng.IntN(span))
	}
	return c
}

// lowest is below every priority that is drawn.
const lowest = 1 << 32

// Pick chooses one of n tasks, which it knows by the numbers that task gives.
func (c *Choices) Pick(n int, task func(i int) uint64) int {
	if c.pct == nil || c.play || c.plain || n <= 1 {
		return c.Of(n)
	}
	p := c.pct
	for i := range n {
		if t := task(i); p.of[t] == 0 {
			p.of[t] = lowest + c.rng.Uint64()>>1
		}
	}
	highest := func() int {
		best := 0
		for i := range n {
			if p.of[task(i)] > p.of[task(best)] {
				best = i
			}
		}
		return best
	}
	i := highest()
	if slices.Contains(p.changes, p.picks) {
		p.lowest--
		p.of[task(i)] = p.lowest
		i = highest()
	}
	p.picks++
	return c.took(i, n)
}

// Of chooses one of n.
func (c *Choices) Of(n int) int {
	i := 0
	switch {
	case n <= 1 || c.plain:
		return 0
	case !c.play:
		i = c.rng.IntN(n)
	case len(c.taken) < len(c.given):
		i = min(int(c.given[len(c.taken)]), n-1)
	}
	return c.took(i, n)
}

// took keeps a decision.
func (c *Choices) took(i, n int) int {
	c.taken = append(c.taken, uint16(i))
	c.outOf = append(c.outOf, uint16(min(n, math.MaxUint16)))
	return i
}

// Taken are the decisions so far, and among how many each was taken. The caller must
// not modify them.
func (c *Choices) Taken() (decisions, outOf []uint16) { return c.taken, c.outOf }
