package transport

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// same reports whether b is a itself, and not a copy.
func same(a, b []byte) bool { return &a[0] == &b[0] }

func TestWhatIsKeptIsCopiedWhereItIsRare(t *testing.T) {
	t.Parallel()
	var s thrift
	line := make([]byte, 100)
	for range 1000 { // a quarter is enough
		s.read(400, 100)
		assert.True(t, same(line, s.keep(line)))
	}
	s.read(spill, 0)
	assert.True(t, same(line, s.keep(line)), "some may be wasted")
	s.read(1, 0)
	copied := s.keep(line)
	assert.False(t, same(line, copied))
	assert.Equal(t, line, copied)
	large := make([]byte, smallPart)
	assert.True(t, same(large, s.keep(large)), "it is a large part of its chunk")
	s.read(1<<30, 0)
	s.read(spill, spill) // and it is forgiven soon
	assert.True(t, same(line, s.keep(line)))
}

// TestWhatIsKeptIsALargePartOfWhatIsRead is the bound, whatever comes.
func TestWhatIsKeptIsALargePartOfWhatIsRead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s thrift
		kept, held := 0, 0 // what the user's side counts, and what it keeps from being freed
		for range 2000 {
			n := 1 + rnd.IntN(32<<10)
			part := rnd.IntN(min(n, smallPart-1))
			if rnd.IntN(3) > 0 {
				part = min(part, rnd.IntN(100))
			}
			line := make([]byte, part+1)[:part]
			if part > 0 {
				kept += part
				if same(line, s.keep(line)) {
					held += n
				} else {
					held += part
				}
			}
			s.read(n, part)
		}
		assert.LessOrEqual(t, held, 4*kept+2*spill, "seed %d", seed)
	}
}
