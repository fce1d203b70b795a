package jsonscan

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Unescaped returns the text of a key or string value, given with its quotes.
// The result may alias quoted. A string that is not valid JSON gives "".
func Unescaped(quoted []byte) []byte {
	s := quoted[1 : len(quoted)-1]
	if IsPlain(s) {
		return s
	}
	return AppendUnescaped(make([]byte, 0, len(s)), s)
}

// Text returns a copy of a string value; "" if the value is not a string.
func Text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	return string(Unescaped(value))
}

// IsPlain reports whether the inside of a JSON string stands for itself.
func IsPlain(s []byte) bool {
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

// AppendUnescaped appends the text of the inside of a JSON string, as
// encoding/json reads it: what is not UTF-8 becomes U+FFFD.
func AppendUnescaped(dst, s []byte) []byte {
	return AppendUnescapedAs(dst, s, func(dst []byte, _ rune) []byte { return utf8.AppendRune(dst, utf8.RuneError) })
}

// AppendUnescapedAs is AppendUnescaped with a choice of what a lone surrogate
// becomes.
func AppendUnescapedAs(dst, s []byte, lone func(dst []byte, r rune) []byte) []byte {
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
			r := HexRune(s[i:])
			if r < 0 {
				return nil
			}
			if utf16.IsSurrogate(r) {
				if pair := utf16.DecodeRune(r, HexRune(s[i+6:])); pair != utf8.RuneError {
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

// HexRune reads a \uXXXX escape at the start of s; -1 for any other text.
func HexRune(s []byte) rune {
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

// Get returns the value of a key of the object b, or nil; the last one of a repeated
// key.
func Get(b []byte, key string) []byte {
	var found []byte
	c := Object(b, 0)
	for k, v := range c.Members() {
		if string(Unescaped(k.Of(b))) == key {
			found = v.Of(b)
		}
	}
	return found
}
