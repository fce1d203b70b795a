package shown_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/base/shown"
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

func TestJSON(t *testing.T) {
	t.Parallel()
	const text = "a\u202e\u009b2J\x1b\n日本 🎭\U000e0041\u2028"
	raw, err := json.Marshal(text)
	require.NoError(t, err)
	got := shown.JSON(append(raw, '\n'))
	assert.Equal(t, `"a\u202e\u009b2J\u001b\n日本 🎭\udb40\udc41\u2028"`+"\n", string(got))
	var back string
	require.NoError(t, json.Unmarshal(got, &back))
	assert.Equal(t, text, back)
}
