package main

import (
	"slices"
	"strings"
	"unicode"
)

// goName turns a name of the schema into one of Go: session_id, sessionId and SessionId
// become SessionID.
func goName(name string) string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r):
			flush()
		}
		word.WriteRune(unicode.ToLower(r))
	}
	flush()
	var b strings.Builder
	for _, w := range words {
		if slices.Contains([]string{"id", "mcp", "url", "uri", "http", "sse"}, w) {
			b.WriteString(strings.ToUpper(w))
			continue
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}
