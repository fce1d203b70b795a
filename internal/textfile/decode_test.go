package textfile_test

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/textfile"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	const text = "prüfe\n😀 ok"
	little, err := binary.Append([]byte{0xFF, 0xFE}, binary.LittleEndian, utf16.Encode([]rune(text)))
	require.NoError(t, err)
	big, err := binary.Append([]byte{0xFE, 0xFF}, binary.BigEndian, utf16.Encode([]rune(text)))
	require.NoError(t, err)
	for name, raw := range map[string]string{
		"UTF-8": text, "UTF-8 with a mark": "\uFEFF" + text, "UTF-16 from Windows": string(little), "UTF-16, the other order": string(big),
	} {
		out, err := textfile.Decode([]byte(raw))
		require.NoError(t, err, name)
		assert.Equal(t, text, string(out), name)
	}
	for raw, want := range map[string]string{
		"a\nb \xe9t\xe9":         "line 2, column 3 is not UTF-8; save the file as UTF-8",
		"a\x00b\x00":             "line 1, column 1 is UTF-16 without a byte order mark; save the file as UTF-8",
		"\x00a\x00b":             "line 1, column 1 is UTF-16 without a byte order mark; save the file as UTF-8",
		"\xff\xfea\x00\x00\xd8":  "line 1, column 2 is broken UTF-16; save the file as UTF-8",
		"\xff\xfe\x00\xd8a\x00b": "line 1, column 1 is broken UTF-16; save the file as UTF-8",
		"\xff\xfea\x00\n\x00b":   "line 2, column 1 is broken UTF-16; save the file as UTF-8",
	} {
		_, err := textfile.Decode([]byte(raw))
		var wrong *textfile.Error
		require.ErrorAs(t, err, &wrong, "%q", raw)
		assert.EqualError(t, err, want, "%q", raw)
	}
	out, err := textfile.Decode(nil)
	require.NoError(t, err)
	assert.Empty(t, out)
}
