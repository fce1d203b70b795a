package jsonshape

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"
)

// TestPlainValuesAreThoseOfJSON: what is read in one scan is what encoding/json reads.
func TestPlainValuesAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	var number func(v any) any
	number = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			n, err := plainNumber(v)
			require.NoError(t, err)
			return n
		case []any:
			for i := range v {
				v[i] = number(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = number(v[k])
			}
		}
		return v
	}
	var value func(t *rapid.T, depth int) string
	value = func(t *rapid.T, depth int) string {
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
		kind := rapid.IntRange(0, 5-min(depth, 2)*2).Draw(t, "kind")
		switch kind {
		case 2, 3, 4, 5:
			var parts []string
			for range rapid.IntRange(0, 3).Draw(t, "parts") {
				part := value(t, depth+1)
				if kind%2 == 0 {
					part = space + rapid.SampledFrom([]string{`"a"`, `"\u0061"`, `"b"`, `"é"`, "\"\xff\""}).Draw(t, "key") + space + ":" + part
				}
				parts = append(parts, part)
			}
			if kind%2 == 0 {
				return space + "{" + strings.Join(parts, ",") + space + "}"
			}
			return space + "[" + strings.Join(parts, ",") + space + "]"
		}
		return space + rapid.SampledFrom([]string{
			"null", "true", "false", "0", "-1", "3.0", "1.5", "1e3", "9007199254740993", "18446744073709551615", `""`, `"a b"`, `"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"",
			"tru", "01", `"\x"`, "\"\x01\"",
		}).Draw(t, "value") + space
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := value(t, 0)
		d := json.NewDecoder(strings.NewReader(raw))
		d.UseNumber()
		var want any
		wantErr := d.Decode(&want)
		got, err := decodePlain(json.RawMessage(raw))
		if !json.Valid([]byte(raw)) {
			require.Error(t, err, raw)
			return
		}
		require.NoError(t, wantErr, raw)
		require.NoError(t, err, raw)
		require.Equal(t, number(want), got, raw)
	})
}
