package protocol

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStreamEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event string
		want  StreamEvent
	}{
		{`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":2}}}`,
			&MessageStart{Message: APIMessage{ID: "m", Type: "message", Role: "assistant", Model: "x", Content: Content{}, Usage: &Usage{InputTokens: 1, OutputTokens: 2}}}},
		{`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}`,
			&ContentBlockStart{Index: 3, Block: &TextBlock{}}},
		{`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a\"b\n"}}`,
			&ContentBlockDelta{Index: 3, Delta: &DeltaText{Text: "a\"b\n"}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"t"}}`,
			&ContentBlockDelta{Delta: &DeltaThinking{Thinking: "t"}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"","estimated_tokens":5}}`,
			&ContentBlockDelta{Delta: &DeltaThinking{EstimatedTokens: 5}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}`,
			&ContentBlockDelta{Delta: &DeltaInputJSON{PartialJSON: `{"a`}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
			&ContentBlockDelta{Delta: &DeltaSignature{Signature: "s"}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"a":1}}}`,
			&ContentBlockDelta{Delta: &DeltaCitations{Citation: []byte(`{"a":1}`)}}},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"x_delta","x":1}}`,
			&ContentBlockDelta{Delta: &DeltaUnknown{Type: "x_delta", Raw: []byte(`{"type":"x_delta","x":1}`)}}},
		{`{"type":"content_block_stop","index":3}`, &ContentBlockStop{Index: 3}},
		{`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":0,"output_tokens":5}}`,
			&MessageDelta{Delta: MessageDeltaBody{StopReason: "end_turn"}, Usage: &Usage{OutputTokens: 5}}},
		{`{"type":"message_stop"}`, &MessageStop{}},
		{`{"type":"ping"}`, &Ping{}},
		{`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
			&StreamError{Error: APIError{Type: "overloaded_error", Message: "m"}}},
		{`{"type":"later","a":1}`, &UnknownEvent{Type: "later", Raw: []byte(`{"type":"later","a":1}`)}},
	} {
		m, ok := decode(t, `{"type":"stream_event","uuid":"u","event":`+c.event+`,"session_id":"s","ttft_ms":4}`).(*PartialAssistantMessage)
		require.True(t, ok, c.event)
		assert.Equal(t, c.want, m.Event)
		assert.InDelta(t, 4, float64(m.TTFTMS), 0)
		again, err := Marshal(m.Event)
		require.NoError(t, err)
		lost := differ{tags: map[string]bool{"stop_sequence": true, "content": true}}.diff("", generic(t, []byte(c.event)), generic(t, again))
		assert.Empty(t, lost, "%s -> %s", c.event, again)
	}
	m := decode(t, `{"type":"stream_event","event":{"type":"content_block_delta","index":"odd"}}`).(*PartialAssistantMessage)
	odd, ok := m.Event.(*UnknownEvent)
	require.True(t, ok)
	require.Error(t, odd.Err)
	m = decode(t, `{"type":"stream_event"}`).(*PartialAssistantMessage)
	assert.IsType(t, &UnknownEvent{}, m.Event, "an event is never nil")
}

// TestCommonDeltas: a line of the usual form is decoded as any other one is.
func TestCommonDeltas(t *testing.T) {
	t.Parallel()
	f, err := ParseFrame([]byte(`{"event":{"delta":{"text":"\u00e9\ud83d\ude00\"","type":"text_delta"},"type":"content_block_delta"},"type":"stream_event"}`))
	require.NoError(t, err)
	m := decodeDeltaLine(&f)
	require.NotNil(t, m, "in any order of keys")
	assert.Equal(t, "é😀\"", TextOf(m))
	for _, line := range []string{
		`{"type":"stream_event"}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"a"}}}`,
		`{"type":"stream_event","event":{"type":"message_stop"}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":7}}}`,
		`{"type":"stream_event","event":7}`,
	} {
		f, err := ParseFrame([]byte(line))
		require.NoError(t, err)
		assert.Nil(t, decodeDeltaLine(&f), line)
	}
}

func TestDeltaLineAllocations(t *testing.T) {
	line := []byte(deltaLine)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		f, _ := ParseFrame(line)
		if DecodeMessage(f) == nil {
			t.Fatal()
		}
	}), 4.0, "one for the message, one for each string")
}

func BenchmarkDecodeMessage(b *testing.B) {
	for name, line := range map[string]string{
		"delta":   deltaLine,
		"escaped": `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"- \"Hello\"\n- there\n"}},"session_id":"cbf164af-55e7-4483-acff-7a0a3cfb9c0b","parent_tool_use_id":null,"uuid":"43c2ad5f-b917-44f1-ac0f-c254d892d343","api_message_id":"msg_0123456789"}`,
		"result":  resultLine,
	} {
		b.Run(name, func(b *testing.B) {
			raw := []byte(line)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := ParseFrame(raw)
				if err != nil {
					b.Fatal(err)
				}
				if TextOf(DecodeMessage(f)) == "" {
					b.Fatal("no text")
				}
			}
		})
	}
}
