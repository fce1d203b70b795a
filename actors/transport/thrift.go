package transport

import "bytes"

// A line keeps the chunk that it was read into, 32 KiB. Where what is kept is a
// small part of what is read, it is copied.
const (
	smallPart = 16 << 10 // lines from here on are a large part of any chunk
	spill     = 32 << 10 // may be read and not kept before copying begins
)

// thrift decides when lines are copied: small lines are copied when less than a quarter
// of the bytes that were read is retained, because a retained line keeps its whole chunk
// in memory.
type thrift struct{ wasted int }

// read notes that n bytes were read, of which kept bytes are retained. Memory is at most
// four times what the user's side counts, plus spill.
func (t *thrift) read(n, kept int) {
	t.wasted = min(max(t.wasted+n-4*kept, 0), 2*spill)
}

// keep returns the line, or a copy of it that keeps nothing else.
func (t *thrift) keep(line []byte) []byte {
	if t.wasted > spill && len(line) < smallPart {
		return bytes.Clone(line)
	}
	return line
}
