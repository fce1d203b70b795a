package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

const deltas = 20_000

// longAnswer is an answer of so many deltas, with the members in the order in which the
// vendors write them.
func longAnswer(api string) []byte {
	var all []string
	if api == "anthropic" {
		all = append(all, begin, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for i := range deltas {
			all = append(all, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word %d of it, "}}`, i))
		}
		all = append(all, `{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
	} else {
		for i := range deltas {
			all = append(all, fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764150000,"model":"gpt","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"word %d of it, "},"logprobs":null,"finish_reason":null}]}`, i))
		}
		all = append(all, chunk(`{}`, "stop"), "[DONE]")
	}
	return sse(all...)
}

// BenchmarkAnswer compares the codecs with a loop over the lines that decodes each event
// into a small struct: the least that a program without this package does.
func BenchmarkAnswer(b *testing.B) {
	perEvent := func(b *testing.B) {
		b.Helper()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/deltas, "ns/event")
	}
	for _, api := range []string{"anthropic", "openai"} {
		stream := longAnswer(api)
		for _, raw := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/raw=%t", api, raw), func(b *testing.B) {
				for b.Loop() {
					m := open(api, answering(200, isStream(), stream, 4096), model.Quirks{})
					require.NoError(b, m.Stream(b.Context(), &model.Request{Raw: raw}, all))
				}
				perEvent(b)
			})
		}
	}
	stream := longAnswer("anthropic")
	b.Run("anthropic/json.Unmarshal", func(b *testing.B) {
		for b.Loop() {
			var text strings.Builder
			for line := range bytes.Lines(stream) {
				data, ok := bytes.CutPrefix(line, []byte("data: "))
				if !ok {
					continue
				}
				var e struct {
					Type  string `json:"type"`
					Index int    `json:"index"`
					Delta struct {
						Type string `json:"type"`
						Text string `json:"text"`
					} `json:"delta"`
				}
				if err := json.Unmarshal(data, &e); err != nil {
					b.Fatal(err)
				}
				text.WriteString(e.Delta.Text)
			}
		}
		perEvent(b)
	})
}
