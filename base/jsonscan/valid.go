package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
)

// Valid is [json.Valid], faster for texts that are valid.
func Valid(text []byte) bool { return valid(text) || json.Valid(text) }

// AppendCompact appends the text to dst without white space between its values, like
// [json.Compact].
func AppendCompact(dst, text []byte) ([]byte, error) {
	if !valid(text) {
		buf := bytes.NewBuffer(dst)
		if err := json.Compact(buf, text); err != nil {
			return dst, err
		}
		return buf.Bytes(), nil
	}
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case ' ', '\n', '\r', '\t':
			i = end
			continue
		case '"':
			end = String(text, i)
		}
		dst = append(dst, text[i:end]...)
		i = end
	}
	return dst, nil
}

// valid reports whether the text is valid JSON that is not nested deeper than maxDepth.
func valid(text []byte) bool {
	end := validValue(text, Space(text, 0), 1)
	return end >= 0 && Space(text, end) == len(text)
}

// maxDepth is how deep objects and arrays of a valid text may be nested.
const maxDepth = 1000

// validValue returns the index after the value at i; negative if it is not valid JSON.
func validValue(b []byte, i, depth int) int {
	if i >= len(b) || depth > maxDepth {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return ValidString(b, i)
	case '{':
		i = Space(b, i+1)
		if i < len(b) && b[i] == '}' {
			return i + 1
		}
		for {
			if i >= len(b) || b[i] != '"' {
				return -1
			}
			if i = ValidString(b, i); i < 0 {
				return -1
			}
			if i = Space(b, i); i >= len(b) || b[i] != ':' {
				return -1
			}
			if i = validValue(b, Space(b, i+1), depth+1); i < 0 {
				return -1
			}
			if i = Space(b, i); i >= len(b) {
				return -1
			}
			if b[i] == '}' {
				return i + 1
			}
			if b[i] != ',' {
				return -1
			}
			i = Space(b, i+1)
		}
	case '[':
		i = Space(b, i+1)
		if i < len(b) && b[i] == ']' {
			return i + 1
		}
		for {
			if i = validValue(b, i, depth+1); i < 0 {
				return -1
			}
			if i = Space(b, i); i >= len(b) {
				return -1
			}
			if b[i] == ']' {
				return i + 1
			}
			if b[i] != ',' {
				return -1
			}
			i = Space(b, i+1)
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

// skipDigits returns the index after at least one digit; negative without one.
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

// marks sets the highest bit of each byte of w that is a quote, a backslash or a control
// character. The lowest mark is exact; those above it may be wrong.
func marks(w uint64) uint64 {
	quote := w ^ lowBits*'"'
	slash := w ^ lowBits*'\\'
	return ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*0x20)&^w) & highBits
}

// ValidString returns the index after the string whose quote is at i; negative if the
// string is not valid.
func ValidString(b []byte, i int) int {
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
			if i+6 > len(b) || !IsHex(b[i+2]) || !IsHex(b[i+3]) || !IsHex(b[i+4]) || !IsHex(b[i+5]) {
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

// IsHex reports whether c is a hexadecimal digit.
func IsHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
