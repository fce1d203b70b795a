package agent

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// ids draws identifiers from a seed.
type ids struct{ rng *rand.Rand }

func newIDs(seed uint64) *ids {
	return &ids{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

// uuid returns a version 4 UUID.
func (g *ids) uuid() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], g.rng.Uint64())
	binary.BigEndian.PutUint64(b[8:], g.rng.Uint64())
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// hex returns n hexadecimal digits, n <= 16.
func (g *ids) hex(n int) string {
	return fmt.Sprintf("%016x", g.rng.Uint64())[:n]
}
