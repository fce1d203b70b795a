package shown

import "strings"

// Head is text, or its first bytes if there are more than most, cut at the end of a character.
func Head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Tail is text, or its last bytes if there are more than most, cut at the begin of a character.
func Tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}
