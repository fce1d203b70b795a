package protocol_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
)

func ExampleMembers() {
	for key, value := range protocol.Members(json.RawMessage(`{"name":"echo","arguments":{"text":"hi"}}`)) {
		fmt.Println(string(key), string(value))
	}
	// Output:
	// name "echo"
	// arguments {"text":"hi"}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		`{"a":1,"b":[2, {"c":3}],"\u0061":"x"}`: {"a=1", `b=[2, {"c":3}]`, `a="x"`},
		` { "é" : null } `:                      {"é=null"},
		`{}`:                                    nil,
		`[1,2]`:                                 nil,
		`null`:                                  nil,
		`"a"`:                                   nil,
		``:                                      nil,
	} {
		var got []string
		for key, value := range protocol.Members(json.RawMessage(raw)) {
			got = append(got, string(key)+"="+string(value))
		}
		assert.Equal(t, want, got, raw)
	}
	for range protocol.Members(json.RawMessage(`{"a":1,"b":2}`)) {
		break // is heeded
	}
}

func TestStringValue(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{`"a"`: "a", `""`: "", `"\n\ud83d\ude00"`: "\n😀", `"\ud800"`: "\ufffd"} {
		got, ok := protocol.StringValue(json.RawMessage(raw))
		assert.True(t, ok, raw)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{`7`, `null`, `true`, `{}`, `[]`, ``} {
		_, ok := protocol.StringValue(json.RawMessage(raw))
		assert.False(t, ok, raw)
	}
}

// FuzzMembers: of valid JSON they are what encoding/json reads, and nothing
// makes them panic.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":{"c":["}"]}}`, `{"\u00e9":"\ud83d\ude00"}`, `{"a":"\xff"}`, `{"a`, `[{}]`, `{"a":1,"a":2}`, `{"":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := map[string]json.RawMessage{}
		for key, value := range protocol.Members(raw) {
			got[string(key)] = value
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil {
			return
		}
		require.Len(t, got, len(want))
		for key, value := range want {
			require.Equal(t, string(value), string(got[key]))
			var text string
			if read, ok := protocol.StringValue(got[key]); ok {
				require.NoError(t, json.Unmarshal(value, &text))
				require.Equal(t, text, read)
			}
		}
	})
}
