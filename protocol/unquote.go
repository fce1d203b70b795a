package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// unescaped returns the text of a key or string value, given with its quotes.
// The result may alias quoted. A string that is not valid JSON gives "".
func unescaped(quoted []byte) []byte {
	s := quoted[1 : len(quoted)-1]
	if isPlain(s) {
		return s
	}
	return appendUnescaped(make([]byte, 0, len(s)), s)
}

// stringOf returns a copy of a string value; "" if the value is not a string.
func stringOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return string(unescaped(value))
}

// looseString returns a string value as text, null as "", and any other value
// as its JSON.
func looseString(value []byte) string {
	if len(value) > 0 && value[0] == '"' {
		return stringOf(value)
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// isPlain reports whether the inside of a JSON string stands for itself.
func isPlain(s []byte) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		if bytesEqual(w, '\\') != 0 {
			return false
		}
		if w&highBits != 0 {
			break
		}
	}
	for j := i; j < len(s); j++ {
		if s[j] == '\\' {
			return false
		}
		if s[j] >= utf8.RuneSelf {
			return bytes.IndexByte(s[j:], '\\') < 0 && utf8.Valid(s[j:])
		}
	}
	return true
}

// appendUnescaped appends the text of the inside of a JSON string, as
// encoding/json reads it: what is not UTF-8 becomes U+FFFD.
func appendUnescaped(dst, s []byte) []byte {
	return appendUnescapedAs(dst, s, func(dst []byte, _ rune) []byte { return utf8.AppendRune(dst, utf8.RuneError) })
}

// appendSurrogate appends a lone surrogate in the form that UTF-8 has for other
// runes of its size, so that two of them stay apart.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// appendUnescapedAs is appendUnescaped with a choice of what a lone surrogate
// becomes.
func appendUnescapedAs(dst, s []byte, lone func(dst []byte, r rune) []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		if c != '\\' {
			j := i + 1
			for j < len(s) && s[j] != '\\' && s[j] < utf8.RuneSelf {
				j++
			}
			dst = append(dst, s[i:j]...)
			i = j
			continue
		}
		if i+1 >= len(s) {
			return nil
		}
		switch s[i+1] {
		case '"', '\\', '/':
			dst = append(dst, s[i+1])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hexRune(s[i:])
			if r < 0 {
				return nil
			}
			if utf16.IsSurrogate(r) {
				if pair := utf16.DecodeRune(r, hexRune(s[i+6:])); pair != utf8.RuneError {
					dst = utf8.AppendRune(dst, pair)
					i += 12
					continue
				}
				dst = lone(dst, r)
				i += 6
				continue
			}
			dst = utf8.AppendRune(dst, r)
			i += 6
			continue
		default:
			return nil
		}
		i += 2
	}
	return dst
}

// hexRune reads a \uXXXX escape at the start of s; -1 if there is none.
func hexRune(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// memberOf returns the value of a key of the object b, nil if there is none;
// of a repeated key the last.
func memberOf(b []byte, key string) []byte {
	var found []byte
	c := object(b, 0)
	for {
		k, v, ok := c.member()
		if !ok {
			return found
		}
		if string(unescaped(k.of(b))) == key {
			found = v.of(b)
		}
	}
}

// isNull reports whether raw is absent or JSON null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}
