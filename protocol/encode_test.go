package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

func TestAppendControl(t *testing.T) {
	t.Parallel()
	line, err := AppendControlRequest([]byte("x"), "r1", json.RawMessage("{ \"subtype\" : \"interrupt\",\n \"a\":\"<b>\" }"))
	require.NoError(t, err)
	assert.Equal(t, `x{"type":"control_request","request_id":"r1","request":{"subtype":"interrupt","a":"<b>"}}`+"\n", string(line))

	for _, c := range []struct{ response, want string }{
		{"", `{"type":"control_response","response":{"subtype":"success","request_id":"r"}}`},
		{"null", `{"type":"control_response","response":{"subtype":"success","request_id":"r","response":null}}`},
		{"{}", `{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{}}}`},
		{`"s"`, `{"type":"control_response","response":{"subtype":"success","request_id":"r","response":"s"}}`},
	} {
		var raw json.RawMessage
		if c.response != "" {
			raw = json.RawMessage(c.response)
		}
		line, err = AppendControlSuccess(nil, "r", raw)
		require.NoError(t, err)
		assert.Equal(t, c.want+"\n", string(line))
		f, err := ParseFrame(line)
		require.NoError(t, err)
		r, err := DecodeControlResponse(f)
		require.NoError(t, err)
		assert.Equal(t, raw, r.Response, "absent, null and a string stay apart")
	}

	for want, got := range map[string][]byte{
		`{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no\n"}}`:                AppendControlError(nil, "r", "no\n", ""),
		`{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no","error_code":"c"}}`: AppendControlError(nil, "r", "no", "c"),
		`{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no","code":"c"}}`:       appendControlErrorAs(nil, "r", "no", ErrorCodeKeyQoder, "c"),
		`{"type":"control_cancel_request","request_id":"r"}`:                                                        AppendControlCancel(nil, "r"),
	} {
		assert.Equal(t, want+"\n", string(got))
	}

	for _, bad := range []string{"", "{", `{"a":1}{}`, "nope", "\"a\nb\""} {
		line, err = AppendControlRequest([]byte("x"), "r", json.RawMessage(bad))
		require.ErrorContains(t, err, `control_request "r"`)
		assert.Equal(t, "x", string(line), "dst comes back as it was")
		line, err = AppendControlSuccess([]byte("x"), "r", append(json.RawMessage{}, bad...))
		require.Error(t, err)
		assert.Equal(t, "x", string(line))
	}
}

// A line with any strings is one line, and reads back as it was written.
func TestAppendControlRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id, msg, code := rapid.String().Draw(t, "id"), rapid.String().Draw(t, "msg"), rapid.String().Draw(t, "code")
		line := AppendControlError(nil, id, msg, code)
		require.Equal(t, 1, strings.Count(string(line), "\n"))
		require.True(t, json.Valid(line), "%q", line)
		f, err := ParseFrame(line)
		require.NoError(t, err)
		r, err := DecodeControlResponse(f)
		require.NoError(t, err)
		require.Equal(t, []string{id, msg, code}, []string{r.RequestID, r.Error, r.ErrorCode})
		require.True(t, r.Failed())
	})
}

func TestAppendString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		if rapid.Bool().Draw(t, "text") {
			b = []byte(rapid.String().Draw(t, "string"))
		}
		want, err := Marshal(string(b))
		require.NoError(t, err)
		var x, y string
		require.NoError(t, json.Unmarshal(want, &x))
		got := appendString(nil, string(b))
		require.NoError(t, json.Unmarshal(got, &y), "%q", got)
		require.Equal(t, x, y)
		require.Equal(t, x, jsonscan.Text(got))
	})
}

// FuzzUnescape compares with encoding/json.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{`""`, `"a"`, `"\u0041\ud83d\ude00"`, `"\ud83d\u0041"`, `"\ude00"`, `"\"\\\/\b\f\n\r\t"`, "\"\xff\xc3\"", `"aaaaaaaaaaaaaaaé\n"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		var want string
		if len(quoted) < 2 || quoted[0] != '"' || json.Unmarshal(quoted, &want) != nil || quoted[len(quoted)-1] != '"' {
			return
		}
		require.Equal(t, want, jsonscan.Text(quoted))
		require.Equal(t, len(quoted), jsonscan.String(quoted, 0))
	})
}
