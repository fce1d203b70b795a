package agent

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTextsAreThoseOfAnEncoder holds what is written without an encoder against one.
func TestTextsAreThoseOfAnEncoder(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a", "a line\nanother\r\n\tand \"this\" with \\", "\n", "\\\\\"\"", "<a href=\"&\">", "é", "\u2028", "\x00", "\x1b[0m", "\x7f", "\b\f", "a\xff", "\n\xff"}
	for c := range rune(0x100) {
		texts = append(texts, "x"+string(c)+"y")
	}
	for _, text := range texts {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(text))
		got, err := encode(text)
		require.NoError(t, err)
		assert.Equal(t, b.String(), string(got)+"\n")
	}
}

func TestRawMembers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{ "b": [1, "<"] }`: `{"a":{"b":[1,"<"]}}`,
		"":                  `{"a":null}`,
	} {
		got, err := encode(Object{"a": append(json.RawMessage(nil), raw...)})
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	_, err := encode(Object{"a": json.RawMessage("{")})
	require.ErrorContains(t, err, "a: ")
}
