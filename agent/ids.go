package agent

import (
	"encoding/binary"
	"encoding/hex"
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
	// Each event of a stream has one, and fmt would take a tenth of the event's time.
	s := []byte("00000000-0000-0000-0000-000000000000")
	hex.Encode(s, b[:4])
	hex.Encode(s[9:], b[4:6])
	hex.Encode(s[14:], b[6:8])
	hex.Encode(s[19:], b[8:10])
	hex.Encode(s[24:], b[10:])
	return string(s)
}

// hex returns n hexadecimal digits, n <= 16.
func (g *ids) hex(n int) string {
	return fmt.Sprintf("%016x", g.rng.Uint64())[:n]
}
