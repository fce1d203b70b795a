package fleet

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However a secret is mounted, it is found where it is written.
func TestSecretsAreFoundAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	const key, line = "5up3r+s3cr3t/0f<th3>h0st", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
	inJSON := func(text string) string {
		b, err := json.Marshal(text)
		require.NoError(t, err)
		return string(b)
	}
	for name, c := range map[string]struct{ value, text, never string }{
		"as it is":               {key, key, key},
		"with a newline":         {key + "\n", "is " + key + ".", key},
		"with CRLF":              {key + "\r\n", key, key},
		"with spaces":            {" \t" + key + " ", "(" + key + ")", key},
		"in JSON":                {key + "\n", inJSON(inJSON(key)), "5up3r+s3cr3t"},
		"in a query":             {key, "https://x/?q=" + url.QueryEscape(key), "5up3r"},
		"in a path":              {key, "https://x/" + url.PathEscape(key), "5up3r"},
		"a line in a diff":       {"-----BEGIN KEY-----\n" + line + "\n-----END KEY-----\n", "+-----BEGIN KEY-----\n+" + line + "\n", line},
		"a line that is quoted":  {"-----BEGIN KEY-----\r\n" + line + "\r\n-----END KEY-----", "> " + line, line},
		"a line in JSON in JSON": {"{\n  \"private\": \"" + line + "\"\n}", inJSON(inJSON("  \"private\": \"" + line + "\"")), line},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := secrets{}
			s.variable("MY_TOKEN", c.value)
			got := s.replacer().Replace(c.text)
			assert.NotContains(t, got, c.never)
			assert.Contains(t, got, "[redacted]")
		})
	}
	s := secrets{}
	s.variable("MY_TOKEN", "  short \n")
	s.variable("MY_KEY", "a\nb\nlines\nof a text")
	s.variable("PLACE", "not a secret at all")
	const text = "short lines, of a text, not a secret at all"
	assert.Equal(t, text, s.replacer().Replace(text))
	assert.NotContains(t, s.replacer().Replace("a\nb\nlines\nof a text"), "lines")
}
