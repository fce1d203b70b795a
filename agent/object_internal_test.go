package agent

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTextsAreThoseOfAnEncoder holds what is written without an encoder against one.
func TestTextsAreThoseOfAnEncoder(t *testing.T) {
	t.Parallel()
	texts := []string{"", "a", "a line\nanother\r\n\tand \"this\" with \\", "\n", "\\\\\"\"", "<a href=\"&\">", "é", "\u2028", "\x00", "\x1b[0m", "\x7f", "\b\f", "a\xff", "\n\xff"}
	for c := range rune(0x100) {
		texts = append(texts, "x"+string(c)+"y")
	}
	for _, text := range texts {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(text))
		got, err := encode(text)
		require.NoError(t, err)
		assert.Equal(t, b.String(), string(got)+"\n")
	}
}

func TestNumbersAreThoseOfAnEncoder(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
		want, err := json.Marshal(n)
		require.NoError(t, err)
		got, err := encode(Object{"ü\n": n, "n": int(n)})
		require.NoError(t, err)
		assert.JSONEq(t, `{"ü\n":`+string(want)+`,"n":`+string(want)+`}`, string(got))
		assert.Contains(t, string(got), `"n":`+string(want)+`,"ü\n":`+string(want))
	}
}

func TestRawMembers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{ "b": [1, "<"] }`: `{"a":{"b":[1,"<"]}}`,
		"":                  `{"a":null}`,
	} {
		got, err := encode(Object{"a": append(json.RawMessage(nil), raw...)})
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	_, err := encode(Object{"a": json.RawMessage("{")})
	require.ErrorContains(t, err, "a: ")
}

// framesOfATurn are a frame of a call and a result of a turn, as the embedded agent writes them.
func framesOfATurn() []Object {
	return []Object{
		{
			"type": "assistant", "uuid": "0a5c1f3e-8a0b-4b60-9d5e-0c3a5f1f6a11", "session_id": "0a5c1f3e-8a0b-4b60-9d5e-0c3a5f1f6a12", "parent_tool_use_id": nil,
			"message": Object{
				"id": "msg_1", "type": "message", "role": "assistant", "model": "bench", "stop_reason": nil, "stop_sequence": nil,
				"content": []any{Object{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": json.RawMessage(`{"file_path":"/tmp/a.txt"}`)}},
				"usage":   Object{"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "service_tier": "standard"},
			},
		},
		{
			"type": "result", "subtype": "success", "is_error": false, "num_turns": 2, "result": "done", "stop_reason": "end_turn", "session_id": "0a5c1f3e-8a0b-4b60-9d5e-0c3a5f1f6a12",
			"duration_ms": int64(12), "duration_api_ms": int64(10), "time_to_request_ms": int64(1), "request_sent_wall_ms": int64(1795789965123), "ttft_ms": int64(5), "ttft_stream_ms": int64(4),
			"first_content_frame_ms": int64(5), "first_request_input_tokens": 10, "usage": Object{"input_tokens": 20, "output_tokens": 10}, "permission_denials": []any{},
		},
	}
}

func BenchmarkFrames(b *testing.B) {
	frames := framesOfATurn()
	b.ReportAllocs()
	var out bytes.Buffer
	for b.Loop() {
		for _, f := range frames {
			out.Reset()
			if err := write(&out, f); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Frames that are collected for one write of an agent that has kept no buffer.
func BenchmarkSend(b *testing.B) {
	frames := framesOfATurn()
	b.ReportAllocs()
	e := &engine{}
	for b.Loop() {
		for _, f := range frames {
			e.send(f)
		}
		e.out = nil
	}
}
