package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, line string
		want       envelope
		body       string
	}{
		{name: "empty object", line: `{}`},
		{name: "white space", line: "  {\t\"type\" :\n\"user\"\r} ", want: envelope{typ: "user"}},
		{name: "type comes last", line: `{"session_id":"s","subtype":"success","type":"result"}`,
			want: envelope{typ: "result", subtype: "success", session: "s"}},
		{name: "last of a repeated key", line: `{"type":"user","uuid":"1","type":"assistant","uuid":"2"}`,
			want: envelope{typ: "assistant", uuid: "2"}},
		{name: "repeated by another type", line: `{"type":"user","type":7}`},
		{name: "escaped key and value", line: `{"t\u0079pe":"\u0075ser","uuid":"a\"b\\c\/\n\u00e9\ud83d\ude00"}`,
			want: envelope{typ: "user", uuid: "a\"b\\c/\né😀"}},
		{name: "not UTF-8", line: "{\"type\":\"a\xff\"}", want: envelope{typ: "a\ufffd"}},
		{name: "lone surrogate", line: `{"type":"\ud800x"}`, want: envelope{typ: "\ufffdx"}},
		{name: "nested keys do not count", line: `{"message":{"type":"message","uuid":"no"},"type":"assistant","parent_tool_use_id":null}`,
			want: envelope{typ: "assistant"}, body: `{"type":"message","uuid":"no"}`},
		{name: "braces in strings", line: `{"a":"}{][\"","type":"user","b":["}",{"c":"]"}]}`, want: envelope{typ: "user"}},
		{name: "replay", line: `{"type":"user","isReplay":true,"parent_tool_use_id":"p"}`,
			want: envelope{typ: "user", replay: true, parent: "p"}},
		{name: "request by subtype", line: `{"request_id":"r","type":"control_request","request":{"subtype":"interrupt"}}`,
			want: envelope{typ: "control_request", subtype: "interrupt", id: "r"}, body: `{"subtype":"interrupt"}`},
		{name: "request by type", line: `{"type":"control_request","request_id":"r","request":{"type":"mcp_status"}}`,
			want: envelope{typ: "control_request", subtype: "mcp_status", id: "r"}, body: `{"type":"mcp_status"}`},
		{name: "subtype wins", line: `{"type":"control_request","request_id":"r","request":{"type":"a","subtype":"b"}}`,
			want: envelope{typ: "control_request", subtype: "b", id: "r"}, body: `{"type":"a","subtype":"b"}`},
		{name: "request without a kind", line: `{"type":"control_request","request_id":"r","subtype":"no","request":{}}`,
			want: envelope{typ: "control_request", id: "r"}, body: `{}`},
		{name: "request that is no object", line: `{"type":"control_request","request_id":"r","request":"x"}`,
			want: envelope{typ: "control_request", id: "r"}, body: `"x"`},
		{name: "request absent", line: `{"type":"control_request","request_id":"r"}`,
			want: envelope{typ: "control_request", id: "r"}},
		{name: "id that is no string", line: `{"type":"control_request","request_id":7,"request":{"subtype":"x"}}`,
			want: envelope{typ: "control_request", subtype: "x"}, body: `{"subtype":"x"}`},
		{name: "response", line: `{"type":"control_response","request_id":"no","response":{"request_id":"r","subtype":"error","error":"e"}}`,
			want: envelope{typ: "control_response", subtype: "error", id: "r"}, body: `{"request_id":"r","subtype":"error","error":"e"}`},
		{name: "cancel", line: `{"type":"control_cancel_request","request_id":"r"}`,
			want: envelope{typ: "control_cancel_request", id: "r"}},
		{name: "stream event", line: `{"type":"stream_event","event":{"type":"ping"},"uuid":"u"}`,
			want: envelope{typ: "stream_event", uuid: "u"}, body: `{"type":"ping"}`},
		{name: "API request id is not a control id", line: `{"type":"assistant","request_id":"req_1"}`,
			want: envelope{typ: "assistant"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := ParseFrame([]byte(c.line))
			require.NoError(t, err)
			checkEnvelope(t, f, c.line)
			got := envelope{f.Type, f.Subtype, f.RequestID, f.UUID(), f.SessionID(), f.ParentToolUseID(), f.Replay}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.body, string(f.Body()))
			assert.Equal(t, c.line, string(f.Raw))
		})
	}
}

func TestParseFrameErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]FrameErrorKind{
		"":                         NotJSON,
		"this is not json":         NotJSON,
		"{":                        NotJSON,
		`{"a"`:                     NotJSON,
		`{"a":`:                    NotJSON,
		`{"a":1`:                   NotJSON,
		`{"a":1,}`:                 NotJSON,
		`{"a":"b`:                  NotJSON,
		`{"a":"b\"}`:               NotJSON,
		`{"type":"assistant", bro`: NotJSON,
		`{"a":tru}`:                NotJSON,
		`{a:1}`:                    NotJSON,
		`{"a":[1}`:                 NotJSON,
		`{"a":1} {"b":2}`:          NotJSON,
		`{"a":1}}`:                 NotJSON,
		`null`:                     NotObject,
		`true`:                     NotObject,
		`42`:                       NotObject,
		`"x"`:                      NotObject,
		`[]`:                       NotObject,
		`[1,2]`:                    NotObject,
	} {
		_, err := ParseFrame([]byte(line))
		var fe *FrameError
		require.ErrorAs(t, err, &fe, "%q", line)
		assert.Equal(t, want, fe.Kind, "%q", line)
		assert.Equal(t, line, string(fe.Head), "%q", line)
		assert.Equal(t, len(line), fe.Len)
		assert.LessOrEqual(t, fe.Offset, len(line))
	}
}

func TestFrameErrorText(t *testing.T) {
	t.Parallel()
	line := []byte("oops " + strings.Repeat("é", 300))
	_, err := ParseFrame(line)
	var fe *FrameError
	require.ErrorAs(t, err, &fe)
	assert.Len(t, fe.Head, 256)
	assert.Contains(t, err.Error(), "line is not JSON at byte 0")
	assert.Contains(t, err.Error(), "(605 bytes)")
	line[0] = 'X'
	assert.Equal(t, byte('o'), fe.Head[0], "an error keeps no line alive")
	assert.Equal(t, "FrameErrorKind(9)", FrameErrorKind(9).String())
	assert.Equal(t, "too long", tooLong.String())
}

func TestParseFrameAllocatesNothingForKnownTypes(t *testing.T) {
	line := []byte(deltaLine)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := ParseFrame(line); err != nil {
			t.Fatal(err)
		}
	}))
}

// FuzzParseFrame compares with encoding/json wherever that accepts a line.
func FuzzParseFrame(f *testing.F) {
	for _, s := range []string{
		deltaLine, `{}`, `null`, `[1]`, `{"type":"user","type":1}`, `{"type":"\u0041\ud83d\ude00\ud800"}`,
		`{"type":"control_request","request_id":"r","request":{"type":"a","subtype":"b"}}`,
		`{"type":"control_response","response":{"subtype":"success","request_id":"x","response":null}}`,
		`{"a":[{"b":"\\\""},-1.5e+3,true,false,null],"type":"system","subtype":"init"}`,
		"{\"type\":\"a\xff\\u00e9\"}", `{"isReplay":true,"type":"user"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		fr, err := ParseFrame(line)
		if !json.Valid(line) {
			if err != nil {
				var fe *FrameError
				require.ErrorAs(t, err, &fe)
				require.Equal(t, NotJSON, fe.Kind)
			}
			return
		}
		trimmed := strings.TrimLeft(string(line), " \t\r\n")
		require.Equal(t, trimmed[0] == '{', err == nil, "%v", err)
		if err == nil {
			checkEnvelope(t, fr, string(line))
		}
	})
}

const deltaLine = `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello there"}},"session_id":"cbf164af-55e7-4483-acff-7a0a3cfb9c0b","parent_tool_use_id":null,"uuid":"43c2ad5f-b917-44f1-ac0f-c254d892d343"}`

func BenchmarkParseFrame(b *testing.B) {
	big, _ := Marshal(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{map[string]any{
		"type": "tool_result", "tool_use_id": "t", "content": strings.Repeat("line of \"output\" \\ text\n", 10_000)}}}})
	for name, line := range map[string]string{
		"delta":   deltaLine,
		"result":  resultLine,
		"control": `{"type":"control_request","request_id":"6fe7ae36-1f80-4f3e-9910-13c3d9347ee2","request":{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"touch made-by-bash && echo ok","description":"touch"},"tool_use_id":"toolu_fake37_0"}}`,
		"big":     string(big),
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(line)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseFrame(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

const resultLine = `{"duration_api_ms":97,"stop_reason":"end_turn","session_id":"cf25260f-345c-4366-8008-217d3f3194e1","total_cost_usd":0.00042,"usage":{"input_tokens":20,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":10,"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard","cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},"inference_geo":"","iterations":[],"speed":"standard"},"modelUsage":{"claude-opus-5-5":{"inputTokens":20,"outputTokens":10,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.00042,"contextWindow":1000000,"maxOutputTokens":128000}},"permission_denials":[],"terminal_reason":"completed","is_error":false,"num_turns":2,"subtype":"success","result":"Agent done.","type":"result","duration_ms":144,"uuid":"c1859dcd-33eb-42f4-9f29-784ffcda7cab"}`
