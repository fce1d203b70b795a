package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/protocol"
)

// TestTextResultsAreThoseOfTheLibrary: the short way writes what the library
// writes, and leaves alone what it does not know.
func TestTextResultsAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	same := func(t require.TestingT, r *ToolResult) {
		want, err := protocol.Marshal(r)
		require.NoError(t, err)
		got, err := marshalResult(r)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got)) // the library escapes for HTML, too
	}
	rapid.Check(t, func(t *rapid.T) {
		r := Text(rapid.String().Draw(t, "text"))
		r.IsError = rapid.Bool().Draw(t, "error")
		same(t, r)
	})
	// A field that the library gains is noticed here.
	set := map[string]any{
		"Meta": mcpsdk.Meta{"a": 1}, "Content": []mcpsdk.Content{&mcpsdk.TextContent{Text: "a"}, &mcpsdk.TextContent{Text: "b"}},
		"StructuredContent": map[string]any{"a": 1}, "IsError": true, "InputRequests": mcpsdk.InputRequestMap{},
		"RequestState": "s", "Text": "<&>", "Annotations": &mcpsdk.Annotations{Priority: 1},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ToolResult]()) {
		if field.IsExported() {
			r := Text("x")
			require.Contains(t, set, field.Name)
			reflect.ValueOf(r).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(set[field.Name]))
			same(t, r)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[mcpsdk.TextContent]()) {
		c := &mcpsdk.TextContent{Text: "x"}
		require.Contains(t, set, field.Name)
		reflect.ValueOf(c).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(set[field.Name]))
		same(t, &ToolResult{Content: []mcpsdk.Content{c}})
	}
}

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
