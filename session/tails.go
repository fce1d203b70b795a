package session

import (
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
)

// tails is the end of an error's text that says what an agent wrote last.
func tails(stderr, stdout string) string {
	var b strings.Builder
	for _, tail := range []struct{ name, text string }{{"stderr", stderr}, {"stdout", stdout}} {
		if text := strings.TrimSpace(tail.text); text != "" {
			b.WriteString("; " + tail.name + ": " + shown.Visible(text))
		}
	}
	return b.String()
}
