package jsonscan

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// Span is a part of a text of less than 4 GiB.
type Span struct{ Lo, Hi uint32 }

// Of is the part of b.
func (s Span) Of(b []byte) []byte { return b[s.Lo:s.Hi:s.Hi] }

// Empty reports whether nothing is there.
func (s Span) Empty() bool { return s.Lo == s.Hi }

// Space returns the index of the first byte at or after i that is not
// JSON white space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// String returns the index after the string whose opening quote is at i;
// negative if it does not end.
func String(b []byte, i int) int {
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

// Nested returns the index after the object or array that opens at i;
// negative if it does not end. It counts brackets of both kinds as one.
func Nested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		c := b[i]
		if c == '"' {
			if i = String(b, i); i < 0 {
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

// skipLiteral returns the index after the number or name at i; negative without one.
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

// Value returns the index after the value at i; negative without one.
func Value(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return String(b, i)
	case '{', '[':
		return Nested(b, i)
	}
	return skipLiteral(b, i)
}

// Cursor walks the members of an object or the elements of an array.
type Cursor struct {
	b   []byte
	I   int  // next byte to read
	Bad int  // where the structure breaks, if Err
	Err bool // the structure is broken
	end byte // the closing bracket, 0 once it has been read

	strict bool // all of the text is looked at
}

// Object returns a cursor over the object that starts at i.
func Object(b []byte, i int) Cursor { return open(b, i, '{', '}') }

// StrictObject is Object for a text that may not be valid: what is not breaks the
// structure. See [Cursor.Whole].
func StrictObject(b []byte) Cursor {
	c := Object(b, 0)
	c.strict = true
	return c
}

// Whole reports whether all members were read and nothing follows the object.
func (c *Cursor) Whole() bool { return !c.Err && c.end == 0 && Space(c.b, c.I) == len(c.b) }

// Array returns a cursor over the array that starts at i.
func Array(b []byte, i int) Cursor { return open(b, i, '[', ']') }

func open(b []byte, i int, from, to byte) Cursor {
	i = Space(b, i)
	if i >= len(b) || b[i] != from {
		return Cursor{b: b, I: i, Bad: i, Err: true}
	}
	c := Cursor{b: b, I: Space(b, i+1), end: to}
	if c.I < len(b) && b[c.I] == to {
		c.I++
		c.end = 0
	}
	return c
}

func (c *Cursor) fail(at int) bool {
	c.Err, c.Bad = true, at
	return false
}

// skip returns the index after the value at I; negative without one.
func (c *Cursor) skip() int {
	if c.strict {
		return validValue(c.b, c.I, 1)
	}
	return Value(c.b, c.I)
}

// Member returns the spans of the next key, quotes included, and its value.
func (c *Cursor) Member() (key, val Span, ok bool) {
	if c.Err || c.end == 0 {
		return Span{}, Span{}, false
	}
	if c.I >= len(c.b) || c.b[c.I] != '"' {
		return Span{}, Span{}, c.fail(c.I)
	}
	j := c.skip()
	if j < 0 {
		return Span{}, Span{}, c.fail(c.I)
	}
	key = Span{uint32(c.I), uint32(j)}
	j = Space(c.b, j)
	if j >= len(c.b) || c.b[j] != ':' {
		return Span{}, Span{}, c.fail(j)
	}
	c.I = Space(c.b, j+1)
	val, ok = c.value()
	return key, val, ok
}

// Members yields what [Cursor.Member] returns until the object ends or breaks; see Err.
func (c *Cursor) Members() iter.Seq2[Span, Span] {
	return func(yield func(key, val Span) bool) {
		for {
			if key, val, ok := c.Member(); !ok || !yield(key, val) {
				return
			}
		}
	}
}

// Elements yields what [Cursor.Element] returns until the array ends or breaks; see Err.
func (c *Cursor) Elements() iter.Seq[Span] {
	return func(yield func(val Span) bool) {
		for {
			if val, ok := c.Element(); !ok || !yield(val) {
				return
			}
		}
	}
}

// Bytes is a part of the text.
func (c *Cursor) Bytes(part Span) []byte { return part.Of(c.b) }

// Element returns the span of the next element.
func (c *Cursor) Element() (val Span, ok bool) {
	if c.Err || c.end == 0 {
		return Span{}, false
	}
	return c.value()
}

// value reads the value at c.I and the comma or bracket after it.
func (c *Cursor) value() (Span, bool) {
	j := c.skip()
	if j < 0 {
		return Span{}, c.fail(c.I)
	}
	val := Span{uint32(c.I), uint32(j)}
	j = Space(c.b, j)
	switch {
	case j >= len(c.b):
		return Span{}, c.fail(j)
	case c.b[j] == c.end:
		c.I, c.end = j+1, 0
	case c.b[j] == ',':
		c.I = Space(c.b, j+1)
	default:
		return Span{}, c.fail(j)
	}
	return val, true
}
