package sdk

import (
	"encoding/json"
	"reflect"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
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

// TestFlatArgumentsFit: what the short way lets pass the long one does, with the
// same values, and usual arguments take the short way.
func TestFlatArgumentsFit(t *testing.T) {
	t.Parallel()
	schema, err := schemaOf(reflect.TypeFor[struct {
		A string `json:"a" jsonschema:"what"`
		B bool   `json:"b,omitempty"`
		C string `json:"c,omitempty"`
	}]())
	require.NoError(t, err)
	require.NotNil(t, schema.flat)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) string { b, _ := json.Marshal(s); return string(b) }),
			rapid.SampledFrom([]string{"true", "false", "null", "1", "1.0", "[]", `{"a":1}`, `"\ud800"`, `"\u0041"`, "\"\xff\"", "tru", `"`, ""}),
		)
		raw := "{"
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				raw += rapid.SampledFrom([]string{",", " , "}).Draw(t, "comma")
			}
			raw += rapid.SampledFrom([]string{`"a"`, `"a"`, `"b"`, `"c"`, `"d"`, `"\u0061"`, `"A"`}).Draw(t, "key") + ":" + value.Draw(t, "value")
		}
		raw += rapid.SampledFrom([]string{"}", "}", "} ", "", "}}"}).Draw(t, "end")
		if !schema.flat.fits(json.RawMessage(raw)) {
			return
		}
		v, err := decodePlain(json.RawMessage(raw))
		require.NoError(t, err, raw)
		require.NoError(t, schema.resolved.Validate(v), raw)
		require.Contains(t, v, "a")
	})
	assert.True(t, schema.flat.fits(json.RawMessage(`{"a":"x <y>","b":true}`)))
	assert.False(t, schema.flat.fits(json.RawMessage(`{"b":true}`)), "a is missing")
}

func TestWhatIsFlat(t *testing.T) {
	t.Parallel()
	for raw, flat := range map[string]bool{
		`{"type":"object","additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string","description":"d"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                                 false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"additionalProperties":false}`:                      false,
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"additionalProperties":false}`:                       false,
		`{"type":"object","properties":{"a":{"type":["string","null"]}},"additionalProperties":false}`:                           false,
		`{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":false}`:                                    false,
		`{"type":"object","properties":{"a":true},"additionalProperties":false}`:                                                 false,
		`{"type":"object","required":["a"],"additionalProperties":false}`:                                                        false,
		`{"type":"object","minProperties":1,"additionalProperties":false}`:                                                       false,
		`{"type":"object","allOf":[{"required":["a"]}],"additionalProperties":false}`:                                            false,
	} {
		s, err := schemaFrom(json.RawMessage(raw))
		require.NoError(t, err, raw)
		assert.Equal(t, flat, s.flat != nil, raw)
	}
}

// TestCallParamsAreThoseOfJSON: the short way reads what the long one reads.
func TestCallParamsAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"name":"a","arguments":{"x":1},"_meta":{"progressToken":1}}`, `{"name":"a"}`, `{"name":"a","name":"b"}`, `{"NAME":"a"}`, `{"name":"a","Name":"b"}`, `{"Name":"b","name":"a"}`,
		`{"name":null}`, `{"name":""}`, `{"name":7}`, `{}`, `null`, `[]`, `7`, ``, `{"name":"a"`, `{"name":"a"}}`, `{"name":"a","x":1}`,
		`{"name":"\u0061","arguments":null}`, ` {"name" : "a" } `,
	} {
		var want callParams
		wantErr := protocol.Unmarshal([]byte(raw), &want)
		got, err := readCall(json.RawMessage(raw))
		assert.Equal(t, wantErr, err, raw)
		assert.Equal(t, want, got, raw)
	}
}
