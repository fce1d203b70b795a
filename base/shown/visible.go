package shown

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible writes the runes of s that a terminal does not show as themselves as Go
// escapes: control characters, bidi marks and other invisible ones, and bytes that are
// not UTF-8. Newlines and tabs stay.
func Visible(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[0])|0x100, 16)[1:])
		case r == '\n', r == '\t', unicode.IsGraphic(r):
			b.WriteString(s[:n])
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		s = s[n:]
	}
	return b.String()
}

// Line is [Visible] for a text that must stay on one line: newlines and tabs are
// escaped, too.
func Line(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(Visible(s), "\n", `\n`), "\t", `\t`) // a Replacer is 7 KB, and calls of tools pass here
}
