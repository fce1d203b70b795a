package shown_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/shown"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"": "",
		"plain 'text', \\n\n\tünïcode 日本 🎭": "plain 'text', \\n\n\tünïcode 日本 🎭",
		"\x1b[31mred\x1b[0m\x00\x7f\r":      `\x1b[31mred\x1b[0m\x00\x7f\r`,
		"a\u202eb\u2066c\u200fd\ufeff":      `a\u202eb\u2066c\u200fd\ufeff`,
		"\u0085\u009b2J\u2028":              `\u0085\u009b2J\u2028`,
		"cut \xe6\x97":                      `cut \xe6\x97`,
		"\ufffd":                            "\ufffd",
	} {
		assert.Equal(t, want, shown.Visible(raw))
	}
	assert.Equal(t, `a\nb\tc\x1b[2J`, shown.Line("a\nb\tc\x1b[2J"))
}
