package protocol

import (
	"encoding/binary"
	"math/bits"
)

// span is a part of a line. Lines longer than 4 GiB are not frames.
type span struct{ lo, hi uint32 }

func (s span) of(b []byte) []byte { return b[s.lo:s.hi:s.hi] }
func (s span) empty() bool        { return s.lo == s.hi }

// The scanner walks JSON by structure: it finds where strings, objects and
// arrays end and believes the rest. What it accepts may still be invalid
// JSON; what it rejects always is. Typed decoding validates in full.

// skipSpace returns the index of the first byte at or after i that is not
// JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string whose opening quote is at i;
// negative if it does not end.
func skipString(b []byte, i int) int {
	i++
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		m := bytesEqual(w, '"') | bytesEqual(w, '\\')
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) / 8
		if b[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for i < len(b) {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
		i++
	}
	return -1
}

// bytesEqual marks the bytes of w that equal c by their highest bit. The lowest
// mark is exact; those above it may be wrong.
func bytesEqual(w uint64, c byte) uint64 {
	x := w ^ lowBits*uint64(c)
	return (x - lowBits) &^ x & highBits
}

const (
	lowBits  = 0x0101010101010101
	highBits = lowBits << 7
)

// skipNested returns the index after the object or array that opens at i;
// negative if it does not end. It counts brackets of both kinds as one.
func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		c := b[i]
		if c == '"' {
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
		switch c | ' ' { // [ and ] differ from { and } by this bit
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// skipLiteral returns the index after the number or name at i; negative if
// there is none.
func skipLiteral(b []byte, i int) int {
	switch b[i] {
	case 't':
		return skipName(b, i, "true")
	case 'f':
		return skipName(b, i, "false")
	case 'n':
		return skipName(b, i, "null")
	}
	from := i
	for i < len(b) && isNumeric(b[i]) {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

func skipName(b []byte, i int, name string) int {
	if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
		return -1
	}
	return i + len(name)
}

func isNumeric(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// skipValue returns the index after the value at i; negative if there is none.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	return skipLiteral(b, i)
}

// cursor walks the members of an object or the elements of an array.
type cursor struct {
	b   []byte
	i   int  // next byte to read
	bad int  // where the structure breaks, if err
	err bool // the structure is broken
	end byte // the closing bracket, 0 once it has been read
}

// object returns a cursor over the object that starts at i.
func object(b []byte, i int) cursor { return open(b, i, '{', '}') }

// array returns a cursor over the array that starts at i.
func array(b []byte, i int) cursor { return open(b, i, '[', ']') }

func open(b []byte, i int, from, to byte) cursor {
	i = skipSpace(b, i)
	if i >= len(b) || b[i] != from {
		return cursor{b: b, i: i, bad: i, err: true}
	}
	c := cursor{b: b, i: skipSpace(b, i+1), end: to}
	if c.i < len(b) && b[c.i] == to {
		c.i++
		c.end = 0
	}
	return c
}

func (c *cursor) fail(at int) bool {
	c.err, c.bad = true, at
	return false
}

// member returns the spans of the next key, quotes included, and its value.
func (c *cursor) member() (key, val span, ok bool) {
	if c.err || c.end == 0 {
		return span{}, span{}, false
	}
	if c.i >= len(c.b) || c.b[c.i] != '"' {
		return span{}, span{}, c.fail(c.i)
	}
	j := skipString(c.b, c.i)
	if j < 0 {
		return span{}, span{}, c.fail(c.i)
	}
	key = span{uint32(c.i), uint32(j)}
	j = skipSpace(c.b, j)
	if j >= len(c.b) || c.b[j] != ':' {
		return span{}, span{}, c.fail(j)
	}
	c.i = skipSpace(c.b, j+1)
	val, ok = c.value()
	return key, val, ok
}

// element returns the span of the next element.
func (c *cursor) element() (val span, ok bool) {
	if c.err || c.end == 0 {
		return span{}, false
	}
	return c.value()
}

// value reads the value at c.i and the comma or bracket after it.
func (c *cursor) value() (span, bool) {
	j := skipValue(c.b, c.i)
	if j < 0 {
		return span{}, c.fail(c.i)
	}
	val := span{uint32(c.i), uint32(j)}
	j = skipSpace(c.b, j)
	switch {
	case j >= len(c.b):
		return span{}, c.fail(j)
	case c.b[j] == c.end:
		c.i, c.end = j+1, 0
	case c.b[j] == ',':
		c.i = skipSpace(c.b, j+1)
	default:
		return span{}, c.fail(j)
	}
	return val, true
}
