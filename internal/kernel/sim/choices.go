package sim

import (
	"math"
	"math/rand/v2"
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

// Of chooses one of n.
func (c *Choices) Of(n int) int {
	i := 0
	switch {
	case n <= 1:
		return 0
	case !c.play:
		i = c.rng.IntN(n)
	case len(c.taken) < len(c.given):
		i = min(int(c.given[len(c.taken)]), n-1)
	}
	c.taken = append(c.taken, uint16(i))
	c.outOf = append(c.outOf, uint16(min(n, math.MaxUint16)))
	return i
}

// Taken are the decisions so far, and among how many each was taken. The caller must
// not modify them.
func (c *Choices) Taken() (decisions, outOf []uint16) { return c.taken, c.outOf }
