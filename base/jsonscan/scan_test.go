package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// walk reads an object to its end, and returns its members.
func walk(c jsonscan.Cursor) (keys, values []string, whole bool) {
	for {
		k, v, ok := c.Member()
		if !ok {
			return keys, values, c.Whole()
		}
		keys, values = append(keys, string(c.Bytes(k))), append(values, string(c.Bytes(v)))
	}
}

// texts are objects, and what is nearly one.
var texts = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":"\u00e9\"\\","b":[1,{"c":null}],"d":{"e":{}}}`, `{"a":-0.5e+3,"b":true,"c":false}`,
	``, ` `, `[]`, `"x"`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1}x`, `{"a":01}`, `{"a":1.}`, `{"a":"\x"}`, `{"a":"\u12"}`,
	"{\"a\":\"\n\"}", " [ \t1 , \"a  \\\" b\" , {\r\n\"c\" : null } ]\n", ` true `, ` 5`, `5 5`, strings.Repeat("[", 2000) + strings.Repeat("] ", 2000), `{"a":tru}`, `{"a":[1,]}`, `{"a":[1}`, `{"a":{"b":1]}`, `{a:1}`, `{"a":"`,
}

func checkStrict(t *testing.T, text []byte) {
	t.Helper()
	require.Equal(t, json.Valid(text), jsonscan.Valid(text), "%q", text)
	wanted := bytes.NewBufferString("before")
	wantErr := json.Compact(wanted, text)
	got, err := jsonscan.AppendCompact([]byte("before"), text)
	require.Equal(t, wantErr, err, "%q", text)
	require.Equal(t, wanted.String(), string(got), "%q", text)
	i := jsonscan.Space(text, 0)
	want := json.Valid(text) && i < len(text) && text[i] == '{'
	keys, values, whole := walk(jsonscan.StrictObject(text))
	require.Equal(t, want, whole, "%q", text)
	if want {
		k, v, ok := walk(jsonscan.Object(text, 0))
		assert.True(t, ok)
		assert.Equal(t, keys, k)
		assert.Equal(t, values, v)
	}
}

// TestStrictObject: it is whole if encoding/json takes the text, and then Object finds the same.
func TestStrictObject(t *testing.T) {
	t.Parallel()
	for _, text := range texts {
		checkStrict(t, []byte(text))
	}
}

func FuzzStrictObject(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkStrict(t, text) })
}
