package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// Counts that are known are not taken back by a later null or 0.
func TestUsageThatIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	const none = `{"input_tokens":0,"output_tokens":0}`
	const input = `{"input_tokens":1000,"cache_read_input_tokens":50000,"cache_creation_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":1500},"output_tokens":1}`
	all := model.Usage{Input: 1000, CacheRead: 50000, CacheWrite: 2000, CacheHour: 1500, Output: 7}
	for name, c := range map[string]struct {
		start, end string
		want       model.Usage
	}{
		"left out":    {input, `{"output_tokens":7}`, all},
		"null":        {input, `{"input_tokens":null,"cache_read_input_tokens":null,"cache_creation_input_tokens":null,"cache_creation":null,"output_tokens":7}`, all},
		"0":           {input, `{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":7}`, all},
		"known later": {none, input[:len(input)-2] + "7}", all},
		"more later":  {input, `{"input_tokens":1001,"cache_read_input_tokens":null,"output_tokens":7}`, model.Usage{Input: 1001, CacheRead: 50000, CacheWrite: 2000, CacheHour: 1500, Output: 7}},
		"no answer":   {input, `{"output_tokens":0}`, model.Usage{Input: 1000, CacheRead: 50000, CacheWrite: 2000, CacheHour: 1500}},
	} {
		events, err := decode(t, "anthropic", isStream(), sse(
			`{"type":"message_start","message":{"id":"msg_1","model":"m","usage":`+c.start+`}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+c.end+`}`, `{"type":"message_stop"}`), 1<<20, false)
		require.NoError(t, err, name)
		got := events[len(events)-1].Usage
		got.Raw = nil
		assert.Equal(t, c.want, got, name)
	}
}

// Some servers of chat completions say the usage in the choice, or repeat it as zeros.
func TestWhereUsageIs(t *testing.T) {
	t.Parallel()
	const counts = `{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005}`
	end := func(inside, outside string) string {
		return `{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"` + inside + `}]` + outside + `}`
	}
	for name, last := range map[string][]string{
		"in the chunk":         {end("", `,"usage":`+counts)},
		"in the choice":        {end(`,"usage":`+counts, "")},
		"in the choice alone":  {end(`,"usage":`+counts, `,"usage":null`)},
		"in both":              {end(`,"usage":{"prompt_tokens":1}`, `,"usage":`+counts)},
		"in the choice, again": {end(`,"usage":`+counts, ""), `{"id":"x","choices":[],"usage":` + counts + `}`},
		"then zeros":           {end("", `,"usage":`+counts), `{"id":"x","choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`},
		"zeros, then it":       {end("", `,"usage":{"prompt_tokens":0}`), `{"id":"x","choices":[],"usage":` + counts + `}`},
	} {
		events, err := decode(t, "openai", isStream(), sse(append(append([]string{chunk(`{"content":"hi"}`, "")}, last...), "[DONE]")...), 1<<20, false)
		require.NoError(t, err, name)
		got := events[len(events)-1]
		assert.Equal(t, 1000, got.Usage.Input, name)
		assert.Equal(t, 5, got.Usage.Output, name)
		assert.JSONEq(t, counts, string(got.Usage.Raw), name)
		assert.Equal(t, name == "in both", got.Extra != nil, "%s: %s", name, got.Extra)
	}
}
