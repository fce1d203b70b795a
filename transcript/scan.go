package transcript

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how deep objects and arrays of a valid line may be nested.
const maxDepth = 1000

// members walks the members of a JSON object. next returns false at the end; ok then
// says whether the whole text was one valid object.
type members struct {
	b          []byte
	i          int
	began      bool
	ok         bool
	trusted    bool // the text is valid: values are only skipped
	key, value []byte
}

func (m *members) next() bool {
	b := m.b
	if !m.began {
		m.began = true
		m.i = skipSpace(b, 0)
		if m.i >= len(b) || b[m.i] != '{' {
			return false
		}
		m.i = skipSpace(b, m.i+1)
		if m.i < len(b) && b[m.i] == '}' {
			m.ok = skipSpace(b, m.i+1) == len(b)
			return false
		}
	} else {
		m.i = skipSpace(b, m.i)
		if m.i >= len(b) {
			return false
		}
		switch b[m.i] {
		case '}':
			m.ok = skipSpace(b, m.i+1) == len(b)
			return false
		case ',':
			m.i = skipSpace(b, m.i+1)
		default:
			return false
		}
	}
	if m.i >= len(b) || b[m.i] != '"' {
		return false
	}
	end := m.skip(m.i)
	if end < 0 {
		return false
	}
	m.key = b[m.i+1 : end-1]
	m.i = skipSpace(b, end)
	if m.i >= len(b) || b[m.i] != ':' {
		return false
	}
	m.i = skipSpace(b, m.i+1)
	end = m.skip(m.i)
	if end < 0 {
		return false
	}
	m.value = b[m.i:end:end]
	m.i = end
	return true
}

func (m *members) skip(i int) int {
	if m.trusted {
		return skipTrusted(m.b, i)
	}
	return skipValue(m.b, i, 0)
}

// walk walks the members of a valid object without knowing where the current value ends:
// it finds the end only when it goes on. So a caller that has found what it wants never
// reads a long value.
type walk struct {
	b     []byte
	i     int // of the value, or of the object before the first call
	began bool
	key   []byte
}

func (w *walk) next() bool {
	i := w.i
	if !w.began {
		w.began = true
		i = skipSpace(w.b, i) + 1 // the bracket
	} else if i = skipTrusted(w.b, i); i < 0 {
		return false
	} else if i = skipSpace(w.b, i); i >= len(w.b) || w.b[i] != ',' {
		return false
	} else {
		i++
	}
	i = skipSpace(w.b, i)
	if i >= len(w.b) || w.b[i] != '"' {
		return false
	}
	end := skipTrustedString(w.b, i)
	if end < 0 {
		return false
	}
	w.key = w.b[i+1 : end-1]
	i = skipSpace(w.b, end)
	w.i = skipSpace(w.b, i+1) // the colon
	return w.i < len(w.b)
}

// value returns the current value.
func (w *walk) value() []byte {
	end := skipTrusted(w.b, w.i)
	if end < 0 {
		return nil
	}
	return w.b[w.i:end:end]
}

// elements walks the elements of a JSON array that is known to be valid.
type elements struct {
	b     []byte
	i     int
	value []byte
}

func (e *elements) next() bool {
	e.i = skipSpace(e.b, e.i)
	if e.i >= len(e.b) || e.b[e.i] == ']' {
		return false
	}
	e.i = skipSpace(e.b, e.i+1) // the bracket or the comma
	if e.i >= len(e.b) || e.b[e.i] == ']' {
		return false
	}
	end := skipTrusted(e.b, e.i)
	if end < 0 {
		return false
	}
	e.value = e.b[e.i:end:end]
	e.i = end
	return true
}

// get returns the value of a member of a valid object; nil if there is none. As in
// JavaScript, the last member of a name counts.
func get(object []byte, name string) []byte {
	m := members{b: object, trusted: true}
	var found []byte
	for m.next() {
		if string(m.key) == name {
			found = m.value
		}
	}
	return found
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns the index after the value at i; negative if it is not valid JSON.
func skipValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return skipString(b, i)
	case '{':
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == '}' {
			return i + 1
		}
		for {
			if i >= len(b) || b[i] != '"' {
				return -1
			}
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
				return -1
			}
			if i = skipValue(b, skipSpace(b, i+1), depth+1); i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i >= len(b) {
				return -1
			}
			if b[i] == '}' {
				return i + 1
			}
			if b[i] != ',' {
				return -1
			}
			i = skipSpace(b, i+1)
		}
	case '[':
		i = skipSpace(b, i+1)
		if i < len(b) && b[i] == ']' {
			return i + 1
		}
		for {
			if i = skipValue(b, i, depth+1); i < 0 {
				return -1
			}
			if i = skipSpace(b, i); i >= len(b) {
				return -1
			}
			if b[i] == ']' {
				return i + 1
			}
			if b[i] != ',' {
				return -1
			}
			i = skipSpace(b, i+1)
		}
	case 't':
		return skipName(b, i, "true")
	case 'f':
		return skipName(b, i, "false")
	case 'n':
		return skipName(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

func skipName(b []byte, i int, name string) int {
	if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
		return -1
	}
	return i + len(name)
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i >= len(b):
		return -1
	case b[i] == '0':
		i++
	default:
		if i = skipDigits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = skipDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return skipDigits(b, i)
	}
	return i
}

// skipDigits returns the index after at least one digit; negative if there is none.
func skipDigits(b []byte, i int) int {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

const (
	lowBits  = 0x0101010101010101
	highBits = lowBits << 7
)

// marks sets the highest bit of each byte of w that is a quote, a backslash or a control
// character. The lowest mark is exact; those above it may be wrong.
func marks(w uint64) uint64 {
	quote := w ^ lowBits*'"'
	slash := w ^ lowBits*'\\'
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*0x20)&^w) & highBits
}

// skipString returns the index after the string whose quote is at i; negative if the
// string is not valid.
func skipString(b []byte, i int) int {
	i++
	for {
		if i+8 <= len(b) {
			m := marks(binary.LittleEndian.Uint64(b[i:]))
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
		}
		if i+1 >= len(b) {
			if i < len(b) && b[i] == '"' {
				return i + 1
			}
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return -1
		case c != '\\':
			i++ // only near the end of b
		case b[i+1] == 'u':
			if i+6 > len(b) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) || !isHex(b[i+5]) {
				return -1
			}
			i += 6
		case isEscape(b[i+1]):
			i += 2
		default:
			return -1
		}
	}
}

// isEscape reports whether c can follow a backslash, apart from u.
func isEscape(c byte) bool {
	switch c {
	case 'n', '"', '\\', 't', '/', 'r', 'b', 'f':
		return true
	}
	return false
}

// skipTrustedString is skipString for a valid text. It looks for quotes alone, which is
// several times as fast in text with many other escapes, such as code.
func skipTrustedString(b []byte, i int) int {
	i++
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return -1
		}
		i += j
		n := i
		for b[n-1] == '\\' { // it ends at the opening quote
			n--
		}
		i++
		if (i-n)%2 == 1 {
			return i
		}
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// skipTrusted returns the index after the value at i of a valid text.
func skipTrusted(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipTrustedString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			c := b[i]
			if c == '"' {
				if i = skipTrustedString(b, i); i < 0 {
					return -1
				}
				continue
			}
			i++
			switch c {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i
				}
			}
		}
		return -1
	}
	return skipValue(b, i, 0)
}

// unquote decodes a JSON string; it is not ok for any other value.
func unquote(v []byte) (text string, ok bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	v = v[1 : len(v)-1]
	for i := range v {
		if v[i] == '\\' || v[i] >= utf8.RuneSelf {
			return unquoteSlow(v), true
		}
	}
	return string(v), true
}

func unquoteSlow(v []byte) string {
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); {
		c := v[i]
		switch {
		case c == '\\' && i+1 < len(v):
			i++
			switch v[i] {
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'n':
				out = append(out, '\n')
			case 'r':
				out = append(out, '\r')
			case 't':
				out = append(out, '\t')
			case 'u':
				r := hex4(v[i+1:])
				i += 4
				if r >= 0xd800 && r < 0xdc00 && i+6 < len(v) && v[i+1] == '\\' && v[i+2] == 'u' {
					if low := hex4(v[i+3:]); low >= 0xdc00 && low < 0xe000 {
						r = (r-0xd800)<<10 + low - 0xdc00 + 0x10000
						i += 6
					}
				}
				out = utf8.AppendRune(out, r) // half a surrogate pair becomes U+FFFD
			default:
				out = append(out, v[i])
			}
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRune(v[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
	return string(out)
}

// hex4 reads four hexadecimal digits of a valid text.
func hex4(v []byte) rune {
	var r rune
	for i := 0; i < 4 && i < len(v); i++ {
		c := v[i] | ' '
		if c >= 'a' {
			r = r<<4 + rune(c-'a') + 10
		} else {
			r = r<<4 + rune(c&0xf)
		}
	}
	return r
}

// text decodes a JSON string; "" for any other value.
func text(v []byte) string {
	s, _ := unquote(v)
	return s
}

func isTrue(v []byte) bool   { return len(v) == 4 && v[0] == 't' }
func isObject(v []byte) bool { return len(v) > 0 && v[0] == '{' }
func isArray(v []byte) bool  { return len(v) > 0 && v[0] == '[' }
func isString(v []byte) bool { return len(v) > 1 && v[0] == '"' }
