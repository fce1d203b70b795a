package sdk

import (
	"reflect"
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
