package shown

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON escapes the runes of a JSON text that a terminal does not show as themselves, and
// that encoding/json leaves as they are: C1 controls, bidi marks and other invisible ones.
// The value of the text stays the same. Newlines stay, since they are between values.
func JSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		switch {
		case r == '\n' || unicode.IsGraphic(r):
			out = append(out, raw[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		raw = raw[n:]
	}
	return out
}
