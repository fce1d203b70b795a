package textfile

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Error says which part of a file is not text.
type Error struct {
	Line, Column int // from 1, in characters
	Problem      string
	Fix          string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d %s; %s", e.Line, e.Column, e.Problem, e.Fix)
}

// Decode returns the text of a file as UTF-8 without a byte order mark. The error is an
// *[Error]: the file has bytes that are neither UTF-8 nor, with its mark, UTF-16. The
// result may share memory with raw.
func Decode(raw []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(raw, []byte{0xFF, 0xFE}):
		return fromUTF16(raw[2:], func(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 })
	case bytes.HasPrefix(raw, []byte{0xFE, 0xFF}):
		return fromUTF16(raw[2:], func(b []byte) uint16 { return uint16(b[1]) | uint16(b[0])<<8 })
	}
	raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
	if len(raw) > 1 && (raw[0] == 0) != (raw[1] == 0) { // a first character of ASCII
		return nil, &Error{Line: 1, Column: 1, Problem: "is UTF-16 without a byte order mark", Fix: "save the file as UTF-8"}
	}
	if n := validPrefix(raw); n < len(raw) {
		line, column := Position(raw, n)
		return nil, &Error{Line: line, Column: column, Problem: "is not UTF-8", Fix: "save the file as UTF-8"}
	}
	return raw, nil
}

func fromUTF16(raw []byte, unit func([]byte) uint16) ([]byte, error) {
	units := make([]uint16, 0, len(raw)/2)
	for ; len(raw) > 1; raw = raw[2:] {
		units = append(units, unit(raw))
	}
	out := make([]byte, 0, len(units))
	for i := 0; i < len(units); i++ {
		r := rune(units[i])
		if utf16.IsSurrogate(r) {
			if r = utf8.RuneError; i+1 < len(units) {
				r = utf16.DecodeRune(rune(units[i]), rune(units[i+1]))
			}
			if r == utf8.RuneError {
				return nil, broken(out)
			}
			i++
		}
		out = utf8.AppendRune(out, r)
	}
	if len(raw) > 0 {
		return nil, broken(out)
	}
	return out, nil
}

func broken(before []byte) error {
	line, column := Position(before, len(before))
	return &Error{Line: line, Column: column, Problem: "is broken UTF-16", Fix: "save the file as UTF-8"}
}

// Position is the line and the column, in characters, of the byte at offset; both from 1.
func Position(text []byte, offset int) (line, column int) {
	before := text[:min(offset, len(text))]
	last := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[last:]) + 1
}

// validPrefix is how many bytes come before the first that is not UTF-8.
func validPrefix(raw []byte) int {
	for n := 0; n < len(raw); {
		c, size := utf8.DecodeRune(raw[n:])
		if c == utf8.RuneError && size == 1 {
			return n
		}
		n += size
	}
	return len(raw)
}
